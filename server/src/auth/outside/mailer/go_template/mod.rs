//! The part of Go's `html/template` that mail templates use.
//!
//! Actions: `{{ .Field.key }}`, `{{ if }}`/`{{ else if }}`/`{{ else }}`, `{{ range }}` (with `$i, $v :=`),
//! `{{ with }}`, `{{ end }}`, variables, comments, trim markers, pipelines with `eq ne lt le gt ge and or not
//! len index printf print urlquery html js`, parentheses and literals. Values are escaped for their context: text, attribute, or
//! URL. Reference: <https://pkg.go.dev/html/template>.

mod html;
mod parse;
mod render;

use serde_json::{Map, Value};

use html::{Context, HtmlState};
use parse::{Parser, pieces};
use render::{Scope, render};

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
    #[error("{0}")]
    Value(&'static str),
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    nodes: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    Text(String),
    Print(Pipeline, Context),
    Assign(String, Pipeline),
    If { branches: Vec<(Pipeline, Vec<Node>)>, otherwise: Vec<Node> },
    With { over: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    Range { key: Option<String>, item: Option<String>, over: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
}

/// Commands joined by `|`.
#[derive(Debug)]
struct Pipeline(Vec<Vec<Operand>>);

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
        let mut parser = Parser { pieces: pieces(text)?, at: 0, html: HtmlState::default() };
        let (nodes, end) = parser.nodes()?;
        match end {
            None => Ok(Self { nodes }),
            Some(word) => Err(TemplateError::Unexpected(format!("{{{{ {word} }}}}"))),
        }
    }

    /// The text with `data` filled in.
    pub fn render(&self, data: &Map<String, Value>) -> Result<String, TemplateError> {
        let root = Value::Object(data.clone());
        let mut out = String::new();
        let mut scope = Scope { root: &root, variables: Vec::new() };
        render(&self.nodes, &root, &mut scope, &mut out)?;
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

    #[test]
    fn invalid_templates_are_errors() {
        for template in
            ["{{", "{{ .A", "{{ if .A }}", "{{ end }}", "{{ frob .A }}", "{{ }}", "{{ if }}x{{ end }}", "{{ \"x }}"]
        {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
