//! The `.env` files of a project. A value is never overridden: the process environment wins, then the nearer folder, then the
//! earlier file.
//!
//! A file means here what it means to the Supabase CLI, which reads it with godotenv 1.5.1 (`parser.go`). `dotenvy` knows another
//! dialect: it refuses backslashes in bare values and takes `$def` out of `abc$def`. We differ where godotenv mangles a value: a
//! quoted one may end with an escaped quote (`"say \"hi\""`) or with an escaped backslash (`"C:\\"`). A pair without a name, which
//! godotenv drops, is an error.

use std::collections::BTreeMap;
use std::path::Path;

use super::ProjectError;

/// Adds the variables of the `.env` files in `supabase/` and in `root` to `environment`. The functions' own `.env` file is not
/// read here.
pub fn load(root: &Path, environment: &mut BTreeMap<String, String>) -> Result<(), ProjectError> {
    let stage = environment.get("SUPABASE_ENV").filter(|stage| !stage.is_empty());
    let stage = stage.map_or("development", String::as_str).to_owned();
    let mut names = vec![format!(".env.{stage}.local")];
    if stage != "test" {
        names.push(".env.local".to_owned());
    }
    names.extend([format!(".env.{stage}"), ".env".to_owned()]);
    for folder in [root.join("supabase"), root.to_owned()] {
        for name in &names {
            let path = folder.join(name);
            if path.is_file() {
                for (name, value) in read(&path)? {
                    environment.entry(name).or_insert(value);
                }
            }
        }
    }
    Ok(())
}

/// The pairs of one file. Of two with the same name, the last one counts.
pub fn read(path: &Path) -> Result<BTreeMap<String, String>, ProjectError> {
    let unreadable = |reason: String| ProjectError::Read { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    // The line is not quoted, because it may contain a secret.
    parse(&text).map_err(|line| unreadable(format!("line {line} is not NAME=value")))
}

/// The error is the line of the first pair that is none.
fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut pairs = BTreeMap::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('#') {
            rest = rest.find('\n').map_or("", |end| rest[end..].trim_start());
            continue;
        }
        let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
        let (name, after) = take_name(rest).ok_or(line)?;
        let (value, after) = take_value(after, &pairs).ok_or(line)?;
        pairs.insert(name.to_owned(), value);
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// White space within a line.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{a0}')
}

/// The name before `=` or `:`, and what follows that.
fn take_name(text: &str) -> Option<(&str, &str)> {
    let exported = text.strip_prefix("export").filter(|rest| rest.starts_with(is_blank));
    let text = exported.map_or(text, |rest| rest.trim_start_matches(is_blank));
    let is_of_name = |c: char| c.is_alphanumeric() || is_blank(c) || matches!(c, '_' | '.');
    let (name, after) = text.split_at(text.find(|c| !is_of_name(c))?);
    let name = name.trim_end();
    after.strip_prefix(['=', ':']).filter(|_| !name.is_empty()).map(|after| (name, after))
}

/// The value at the start of `text`, and what follows it. `known` are the pairs before it.
fn take_value<'a>(text: &'a str, known: &BTreeMap<String, String>) -> Option<(String, &'a str)> {
    let text = text.trim_start_matches(is_blank);
    for quote in ['"', '\''] {
        let Some(quoted) = text.strip_prefix(quote) else { continue };
        let end = closing(quoted, quote)?;
        let (value, after) = (&quoted[..end], &quoted[end + 1..]);
        let value = if quote == '"' { with_variables(&unescaped(value), known) } else { value.to_owned() };
        return Some((value, after));
    }
    let (line, after) = text.split_at(text.find(['\n', '\r']).unwrap_or(text.len()));
    // The last number sign behind a blank begins the comment.
    let comment = line.rmatch_indices('#').map(|(at, _)| at).find(|at| line[..*at].ends_with(is_blank));
    let bare = &line[..comment.unwrap_or(line.len())];
    Some((with_variables(bare.trim_end_matches(is_blank), known), after))
}

/// Where a quoted value ends.
fn closing(quoted: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    quoted.char_indices().find_map(|(at, c)| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

/// A value in double quotes without its backslashes. That of `\$` is left to [`with_variables`].
fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next_if(|next| *next != '$') } else { None };
        text.push(match escaped {
            Some('n') => '\n',
            Some('r') => '\r',
            Some(other) => other,
            None => c,
        });
    }
    text
}

/// Replaces `$NAME` and `${NAME}` by the pairs before it in the file, and by nothing if there is none of the name. Names in lower
/// case and `\$NAME` are no variables.
fn with_variables(value: &str, known: &BTreeMap<String, String>) -> String {
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let mut text = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        let (before, found) = rest.split_at(at);
        let inside = found.strip_prefix("$(").or_else(|| found.strip_prefix('$')).unwrap_or_default();
        let inside = inside.strip_prefix('{').unwrap_or(inside);
        let (name, after) = inside.split_at(inside.find(|c| !is_of_name(c)).unwrap_or(inside.len()));
        rest = after.strip_prefix('}').unwrap_or(after);
        let whole = &found[..found.len() - rest.len()];
        let (before, put) = match before.strip_suffix('\\') {
            Some(before) => (before, whole),
            None if name.is_empty() => (before, whole),
            None => (before, known.get(name).map_or("", String::as_str)),
        };
        text.push_str(before);
        text.push_str(put);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;
    use super::*;

    #[test]
    fn process_variables_win_then_the_nearer_folder_then_the_more_specific_file() {
        let folder = Folder::new(
            "dotenv",
            &[
                (".env", "A=root\nB=root\nC=root\nD=root\n"),
                (".env.local", "C=root local\n"),
                (".env.development", "D=development\n"),
                ("supabase/.env", "A=near\nB='quoted # value'\n"),
                ("supabase/functions/.env", "E=function\n"),
            ],
        );
        let mut environment = BTreeMap::from([("A".to_owned(), "process".to_owned())]);
        load(&folder.0, &mut environment).expect("read");
        let found: Vec<_> = environment.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(found, [("A", "process"), ("B", "quoted # value"), ("C", "root local"), ("D", "development")]);
        let mut empty = BTreeMap::from([("SUPABASE_ENV".to_owned(), String::new())]);
        load(&folder.0, &mut empty).expect("read");
        assert_eq!(empty.get("D").map(String::as_str), Some("development"));
        let mut test = BTreeMap::from([("SUPABASE_ENV".to_owned(), "test".to_owned())]);
        load(&folder.0, &mut test).expect("read");
        assert_eq!(test.get("C").map(String::as_str), Some("root"));
    }

    /// Regression: the parser's message with the whole line, and so a secret, went to the log.
    #[test]
    fn an_error_names_the_line_and_does_not_quote_it() {
        for (name, text, line) in [
            ("no-equals", "A=1\n# B\nsk_live_secret\n", 3),
            ("no-line-end", "A=1\nsk_live_secret", 2),
            ("bad-name", "A=1\n2-B=secret\n", 2),
            ("no-name", "A=1\n\n=secret # secret too\n", 3),
            ("open-quote", "A=1\nB=\"secret\nsecret\n", 2),
            ("escaped-quote", "A=1\r\nB='secret\\'\r\n", 2),
            ("after-lines", "A=\"1\n2\"\n\nsecret value\n", 4),
        ] {
            let folder = Folder::new(&format!("dotenv-{name}"), &[(".env", text)]);
            let path = folder.0.join(".env");
            let told = read(&path).expect_err(name).to_string();
            assert_eq!(told, format!("cannot read {}: line {line} is not NAME=value", path.display()));
        }
    }

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap_or_else(|line| panic!("line {line} of {text}")).into_iter().collect()
    }

    #[test]
    fn bare_values_may_contain_spaces_and_quotes() {
        let text = "export A=My app # a name\n# B=not this one\nC=\"two\nD=lines here\"\nE=plain\nF=a=b c\n\
                    G=[{\"id\": \"a\\b\", \"n\": 1}]\nH=it's";
        let pairs = parsed(text);
        let pairs: Vec<_> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("A", "My app"),
                ("C", "two\nD=lines here"),
                ("E", "plain"),
                ("F", "a=b c"),
                ("G", r#"[{"id": "a\b", "n": 1}]"#),
                ("H", "it's")
            ]
        );
    }

    /// What godotenv 1.5.1 makes of the same lines. Regression: `$` took what followed out of a secret, and a backslash or a colon
    /// was an error.
    #[test]
    fn values_are_those_of_the_supabase_cli() {
        for (line, value) in [
            ("A=abc$def", "abc$def"),
            ("A=pa$word1", "pa$word1"),
            ("A=100$", "100$"),
            ("A=$1st", "st"),
            ("A=$X-${X}-${NONE}-$(X)", "x-x--x)"),
            (r"A=\$X \${X}", "$X ${X}"),
            (r#"A="\$X $X\\$X""#, r"$X x$X"),
            ("A='$X'", "$X"),
            (r"A=ab\cd", r"ab\cd"),
            (r"A=C:\path\new", r"C:\path\new"),
            (r#"A="^\d+$""#, "^d+$"),
            (r#"A="^\\d+$""#, r"^\d+$"),
            (r#"A="1\n2\r3\t""#, "1\n2\r3t"),
            (r"A='1\n2\'s'", r"1\n2\'s"),
            ("A: value", "value"),
            ("A:b=c", "b=c"),
            ("  export \t A = b  ", "b"),
            ("A=", ""),
            ("A=\"\"", ""),
            ("A=b#c", "b#c"),
            ("A=b # c # d", "b # c"),
            ("A= # b", "# b"),
            ("A=\"b # c\" # d", "b # c"),
            ("A='b' # c", "b"),
            ("A=`b`", "`b`"),
            ("A=b\r\n", "b"),
            ("A=\"b\r\nc\"\r\n", "b\nc"),
            ("A=ä\u{a0}ö\u{a0}", "ä\u{a0}ö"),
            ("A=b\nA=c", "c"),
        ] {
            let pairs = parsed(&format!("X=x\n{line}"));
            assert_eq!(pairs, [("A".to_owned(), value.to_owned()), ("X".to_owned(), "x".to_owned())], "{line}");
        }
        // A variable stands for a pair before it, not for one of the environment.
        assert_eq!(parsed("A=$B$PATH\nB=b"), [("A".to_owned(), String::new()), ("B".to_owned(), "b".to_owned())]);
        assert_eq!(parsed("2a.B_1=c"), [("2a.B_1".to_owned(), "c".to_owned())]);
        // Here godotenv loses the last character, misses the end, or refuses the file.
        assert_eq!(parsed(r#"A="say \"hi\"""#)[0].1, r#"say "hi""#);
        assert_eq!(parsed(r#"A="C:\\""#)[0].1, r"C:\");
        assert_eq!(parsed("\u{feff}A=b")[0].0, "A");
    }
}
