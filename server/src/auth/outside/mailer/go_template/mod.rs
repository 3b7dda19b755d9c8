//! The part of Go's `html/template` that mail templates use.
//!
//! Actions: `{{ .Field.key }}`, `{{ if }}`, `{{ with }}`, both with `{{ else if }}` or `{{ else with }}`, `{{ range }}` with `{{ break }}` and
//! `{{ continue }}`, `{{ define }}`, `{{ template }}`, `{{ block }}`, variables, comments, trim markers, pipelines with Go's builtin
//! functions, parentheses and literals. Values are escaped for their context: text, attribute, or URL.
//! Reference: <https://pkg.go.dev/html/template>, <https://pkg.go.dev/text/template>.
//!
//! Where Go gives up at a value, this goes on: numbers of different types can be compared, and an index that is not
//! there is null. Numbers are printed with all digits, but `printf` follows Go.

mod format;
mod html;
mod parse;
mod render;

use serde_json::{Map, Value};

use html::Context;
use parse::Parser;
use render::{Scope, as_go_reads, render};

/// Why a text is not a template, or cannot be rendered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("unclosed action")]
    Unclosed,
    #[error("unexpected {0}")]
    Unexpected(String),
    #[error("missing {{{{ end }}}}")]
    MissingEnd,
    #[error("function {0:?} not defined")]
    Function(String),
    #[error("undefined variable {0:?}")]
    Variable(String),
    #[error("no template {0:?}")]
    NoTemplate(String),
    #[error("{0}")]
    Value(&'static str),
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    nodes: Vec<Node>,
    /// Those that it calls, for [`Node::Call`].
    called: Vec<Vec<Node>>,
}

#[derive(Debug)]
enum Node {
    Text(String),
    Print(Pipeline, Context),
    /// `if` and `with`.
    Branches {
        is_with: bool,
        branches: Vec<(Pipeline, Vec<Node>)>,
        otherwise: Vec<Node>,
    },
    Range {
        over: Pipeline,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Break,
    Continue,
    /// Calls a defined template, by its index.
    Call {
        index: usize,
        argument: Option<Pipeline>,
    },
}

/// Commands joined by `|`, and the variables that get their value.
#[derive(Debug)]
struct Pipeline {
    /// Two for the key and item of `range`.
    names: Vec<String>,
    /// `=`, not `:=`.
    is_assignment: bool,
    commands: Vec<Vec<Operand>>,
}

#[derive(Debug)]
enum Operand {
    Dot,
    Literal(Value),
    /// `.A.b`, `$.A`, `$x.b`.
    Field {
        variable: Option<String>,
        path: Vec<String>,
    },
    Function(String),
    Nested(Pipeline, Vec<String>),
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Parser::new(text)?.whole()
    }

    /// The text with `data` filled in.
    pub fn render(&self, data: &Map<String, Value>) -> Result<String, TemplateError> {
        let mut root = Value::Object(data.clone());
        as_go_reads(&mut root);
        let mut out = String::new();
        render(&self.nodes, &root, &mut Scope::new(&root, &self.called), &mut out)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(template: &str, data: Value) -> String {
        let Value::Object(data) = data else { panic!("an object") };
        Template::parse(template).expect("template").render(&data).expect("rendered")
    }

    #[test]
    fn fields_branches_and_loops_are_rendered() {
        let data = json!({"Email": "a@b", "Data": {"name": "Ann", "groups": ["x", "y"], "vip": true}});
        for (template, expected) in [
            ("Hi {{ .Data.name }} <{{.Email}}>", "Hi Ann <a@b>"),
            ("{{ if .Data.vip }}vip{{ else }}plain{{ end }}", "vip"),
            ("{{ if .Data.none }}a{{ else if eq .Email \"a@b\" }}b{{ else }}c{{ end }}", "b"),
            ("{{ range .Data.groups }}<{{ . }}>{{ end }}", "<x><y>"),
            ("{{ range $i, $g := .Data.groups }}{{ $i }}={{ $g }};{{ end }}", "0=x;1=y;"),
            ("{{ range .Data.none }}x{{ else }}none{{ end }}", "none"),
            ("{{ with .Data }}{{ .name }} {{ $.Email }}{{ end }}", "Ann a@b"),
            ("a {{- /* note */ -}} b", "ab"),
            ("{{ len .Data.groups | printf \"%d groups\" }}", "2 groups"),
            ("{{ index .Data.groups 1 }}{{ .Data.missing }}", "y"),
            ("{{ if and .Data.vip (not .Data.none) }}yes{{ end }}", "yes"),
            ("{{ $x := .Email }}{{ $x }}", "a@b"),
        ] {
            assert_eq!(rendered(template, data.clone()), expected, "{template}");
        }
    }

    #[test]
    fn values_are_escaped_for_their_context() {
        let data = json!({"V": "a+b <c> \"d\" & 'e'", "U": "https://x/?a=b&c=d+e", "J": "javascript:alert(1)"});
        for (template, expected) in [
            ("<p>{{ .V }}</p>", "<p>a&#43;b &lt;c&gt; &#34;d&#34; &amp; &#39;e&#39;</p>"),
            ("<a href=\"{{ .U }}\">", "<a href=\"https://x/?a=b&amp;c=d&#43;e\">"),
            ("<a href=\"{{ .J }}\">", "<a href=\"#ZgotmplZ\">"),
            ("<a href='/r?to={{ .U }}'>", "<a href='/r?to=https%3a%2f%2fx%2f%3fa%3db%26c%3dd%2be'>"),
            ("<i title={{ .V }}>", "<i title=a&#43;b&#32;&lt;c&gt;&#32;&#34;d&#34;&#32;&amp;&#32;&#39;e&#39;>"),
            (
                "<a href=\"https://x/?q={{ urlquery .V }}\">",
                "<a href=\"https://x/?q=a%2Bb+%3Cc%3E+%22d%22+%26+%27e%27\">",
            ),
        ] {
            assert_eq!(rendered(template, data.clone()), expected, "{template}");
        }
    }

    /// Answers of Go 1.26.
    #[test]
    fn texts_are_formatted_and_templates_called_as_in_go() {
        let data = json!({
            "T": "604315", "S": "ab", "F": 12.5, "N": 5, "B": 12345678, "L": ["x", "y", 1], "M": true,
            "O": {"b": 2, "a": "z", "n": null}, "U": "https://x/?a=b&c=d e",
        });
        for (template, expected) in [
            // Go prints 70,000 digits.
            (
                r#"{{ printf "%.*f" 70000 1.5 | len }} {{ printf "%.*e" 70000 1.5 | len }} {{ printf "%.*U" 70000 65 | len }}"#,
                "65002 65006 65002",
            ),
            (r#"{{ printf "%.3s|%5s|%-5s|%05s" .T .S .S .S }}"#, "604|   ab|ab   |000ab"),
            (
                r#"{{ printf "%05d|%5d|%-5d|% d|%.3d|%x|%#x|%o|%b|%c" 42 42 42 42 42 255 255 8 5 65 }}"#,
                "00042|   42|42   | 42|042|ff|0xff|10|101|A",
            ),
            (
                r#"{{ printf "%.2f|%8.2f|%-8.2f|%08.2f|%g|%.3g" .F .F .F .F .F .F }}"#,
                "12.50|   12.50|12.50   |00012.50|12.5|12.5",
            ),
            (r#"{{ printf "%v|%v|%.0f|%g|%G" .F .N 2.5 1e-7 1e-7 }}"#, "12.5|5|2|1e-07|1E-07"),
            (r#"{{ printf "%08.3f|%-8.3f|" -3.14159 3.14159 }}"#, "-003.142|3.142   |"),
            (r#"{{ printf "%d|%5d|%f|%z" "x" "x" 42 1 }}"#, "%!d(string=x)|%!d(string=    x)|%!f(int=42)|%!z(int=1)"),
            (r#"{{ printf "%s %d" "a" }}"#, "a %!d(MISSING)"),
            (
                r#"{{ printf "%s|%s|%d|%t|%T" 42 .N .F .S .M }}"#,
                "%!s(int=42)|%!s(float64=5)|%!d(float64=12.5)|%!t(string=ab)|bool",
            ),
            (r#"{{ printf "100%%" }}{{ printf "%" }}"#, "100%%!(NOVERB)"),
            (r#"{{ printf "a" 1 "b" }}"#, "a%!(EXTRA int=1, string=b)"),
            (r#"{{ printf "%[2]s %[1]s" "a" "b" }}{{ printf "%[3]s" "a" }}"#, "b a%!s(BADINDEX)"),
            (
                r#"{{ printf "%*d|%-*d|%.*f" 5 42 5 42 2 1.5 }}{{ printf "%*d" "x" 42 }}"#,
                "   42|42   |1.50%!(BADWIDTH)42",
            ),
            (
                r#"{{ printf "%x|%X|% x|%#x|%.2x" "hey" "hey" "hey" "hey" "hey" }}"#,
                "686579|686579|68 65 79|0x686579|6865",
            ),
            (r#"{{ printf "%v %s %5v" .L .L .L }}"#, "[x y 1] [x y %!s(float64=1)] [    x     y     1]"),
            (r#"{{ print 1 2 "a" "b" 3 true }}{{ println 1 "a" }}"#, "1 2ab3 true1 a\n"),
            (r#"{{ js "it's <b>" }}"#, r"it\&#39;s \u003Cb\u003E"),
            (r#"{{ slice .T 0 3 }} {{ slice .T 3 }} {{ slice .L 1 2 }} {{ slice .L 0 1 2 }}"#, "604 315 [y] [x]"),
            (r#"{{ with .None }}a{{ else with .S }}{{ . }}{{ else }}c{{ end }}"#, "ab"),
            (r#"{{ range .L }}{{ if eq . "y" }}{{ break }}{{ end }}{{ . }}{{ end }}"#, "x"),
            (r#"{{ range .L }}{{ if eq . "y" }}{{ continue }}{{ end }}{{ . }}{{ end }}"#, "x1"),
            (
                "{{ range 3 }}{{ . }},{{ end }}{{ range $i := 2 }}{{ $i }}{{ end }}{{ range 0 }}a{{ else }}no{{ end }}",
                "0,1,2,01no",
            ),
            (r#"{{ template "x" .S }}{{ define "x" }}[{{ . }}]{{ end }}{{ template "x" }}"#, "[ab][]"),
            (r#"{{ block "b" .S }}({{ . }}){{ end }}{{ template "b" "again" }}"#, "(ab)(again)"),
            (
                r#"{{ define "u" }}{{ . }}{{ end }}<a href="{{ template "u" .U }}" title="{{ template "u" .U }}">"#,
                r#"<a href="https://x/?a=b&amp;c=d%20e" title="https://x/?a=b&amp;c=d e">"#,
            ),
            (
                r#"{{ define "r" }}{{ if . }}x{{ template "r" (slice . 1) }}{{ end }}{{ end }}{{ template "r" "abc" }}"#,
                "xxx",
            ),
            (r#"{{/* 5" */}}a{{/* {{ .X }} */ -}} b{{- /* it's */ -}} c"#, "abc"),
            (
                "{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}{{ if true }}{{ $x = 3 }}{{ end }}{{ $x }}",
                "13",
            ),
            ("{{ if $x := .S }}{{ $x }}{{ end }}{{ with $x := .O }}{{ $x.a }}{{ end }}", "abz"),
            ("{{ $i := 0 }}{{ $v := 0 }}{{ range $i, $v = .L }}{{ end }}{{ $i }}{{ $v }}", "21"),
            (r#"{{if(eq .S "ab")}}y{{end}}"#, "y"),
            (
                r#"{{ eq 'a' 97 }} {{ 0x10 }} {{ 1_000 }} {{ 1e3 }} {{ .5 }} {{ "\u00e9\x41|" }} {{ '\n' }}"#,
                "true 16 1000 1000 0.5 éA| 10",
            ),
            ("{{ and .None (slice .L 99) }}|{{ or .S (slice .L 99) }}", "|ab"),
            ("{{ .N }} {{ .B }} {{ .F }} {{ .L }}", "5 12345678 12.5 [x y 1]"),
        ] {
            assert_eq!(rendered(template, data.clone()), expected, "{template}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_errors() {
        let Value::Object(data) = json!({"S": "abc", "N": 5}) else { panic!("an object") };
        for template in [
            "{{ slice .S 2 1 }}",
            "{{ slice .S 0 9 }}",
            "{{ slice .S 0 1 2 }}",
            "{{ slice .None 0 1 }}",
            "{{ call .S }}",
            // As in Go, where it is no integer; so the user cannot choose how long it takes.
            "{{ range .N }}{{ end }}",
            "{{ range 1000000000 }}{{ end }}",
            "{{ define \"r\" }}{{ template \"r\" }}{{ end }}{{ template \"r\" }}",
        ] {
            let template = Template::parse(template).expect(template);
            assert!(template.render(&data).is_err(), "{template:?}");
        }
    }

    #[test]
    fn invalid_templates_are_errors() {
        for template in [
            "{{",
            "{{ .A",
            "{{ if .A }}",
            "{{ end }}",
            "{{ frob .A }}",
            "{{ }}",
            "{{ if }}x{{ end }}",
            "{{ \"x }}",
            "{{ break }}",
            "{{ range .A }}{{ template \"x\" }}{{ end }}{{ define \"x\" }}{{ continue }}{{ end }}",
            "{{ template \"x\" }}",
            "{{ if .A }}{{ define \"x\" }}{{ end }}{{ end }}",
            "{{/* a",
            "{{/* a */ b }}",
            "{{ define \"x\" }}1{{ end }}{{ define \"x\" }}2{{ end }}",
            "{{ if .A }}{{ else }}{{ else }}{{ end }}",
            "{{ if .A }}{{ else with .B }}{{ end }}",
            "{{ define \"x\" }}a{{ template \"x\" }}{{ end }}<b c=\"{{ template \"x\" }}",
        ] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
