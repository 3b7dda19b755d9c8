//! The `.env` files of a project. A value is never overridden: the process environment wins, then the nearer folder, then the
//! earlier file.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::ProjectError;

/// Adds the variables of the `.env` files in `supabase/` and in `root` to `environment`. The functions' own `.env` file is not
/// read here.
pub fn load(root: &Path, environment: &mut BTreeMap<String, String>) -> Result<(), ProjectError> {
    let stage = environment.get("SUPABASE_ENV").map_or("development", String::as_str).to_owned();
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

/// The pairs of one file, in order.
pub fn read(path: &Path) -> Result<Vec<(String, String)>, ProjectError> {
    let unreadable = |reason: String| ProjectError::Read { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let text = with_bare_values_quoted(&text);
    let line = Cell::new(0);
    let mut pairs = dotenvy::from_read_iter(ByLine { rest: text.as_bytes(), line: &line });
    let mut found = Vec::new();
    loop {
        let before = line.get();
        match pairs.next() {
            Some(Ok(pair)) => found.push(pair),
            // The parser's own error quotes the line, which may contain a secret.
            Some(Err(_)) => {
                let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
                let wrong = text.lines().skip(before).position(is_said).unwrap_or_default() + before + 1;
                return Err(unreadable(format!("line {wrong} is not NAME=value")));
            }
            None => return Ok(found),
        }
    }
}

/// Gives the parser one line at a time, because it does not tell where it is.
struct ByLine<'a> {
    rest: &'a [u8],
    /// How many lines it has taken.
    line: &'a Cell<usize>,
}

impl Read for ByLine<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |at| at + 1);
        let length = end.min(into.len());
        let (now, later) = self.rest.split_at(length);
        into[..length].copy_from_slice(now);
        self.rest = later;
        if length == end && length > 0 {
            self.line.set(self.line.get() + 1);
        }
        Ok(length)
    }
}

/// Quotes bare values that contain spaces or quotes (`NAME=My app`, `NAME=[{"a": 1}]`). The Supabase CLI accepts them, `dotenvy`
/// does not.
fn with_bare_values_quoted(text: &str) -> String {
    let mut lines = Vec::new();
    // The closing quote that a multi-line value is missing so far.
    let mut open = None;
    for line in text.lines() {
        if let Some(quote) = open {
            if line.contains(quote) {
                open = None;
            }
            lines.push(line.to_owned());
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.trim_start().starts_with('#')) else {
            lines.push(line.to_owned());
            continue;
        };
        let value = value.trim();
        if let Some(quote) = value.chars().next().filter(|first| matches!(first, '"' | '\'' | '`')) {
            open = (!value[1..].contains(quote)).then_some(quote);
            lines.push(line.to_owned());
            continue;
        }
        let bare = value.split(" #").next().unwrap_or_default().trim_end();
        if bare.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')) {
            // Double quotes, so that variables are substituted as in the bare value.
            lines.push(format!("{name}=\"{}\"", bare.replace('\\', "\\\\").replace('"', "\\\"")));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
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
                ("supabase/.env", "A=near\nB='quoted # value'\n"),
                ("supabase/functions/.env", "E=function\n"),
            ],
        );
        let mut environment = BTreeMap::from([("A".to_owned(), "process".to_owned())]);
        load(&folder.0, &mut environment).expect("read");
        let found: Vec<_> = environment.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(found, [("A", "process"), ("B", "quoted # value"), ("C", "root local"), ("D", "root")]);
        let mut test = BTreeMap::from([("SUPABASE_ENV".to_owned(), "test".to_owned())]);
        load(&folder.0, &mut test).expect("read");
        assert_eq!(test.get("C").map(String::as_str), Some("root"));
    }

    /// Regression: the parser's message with the whole line, and so a secret, went to the log.
    #[test]
    fn an_error_names_the_line_and_does_not_quote_it() {
        for (name, text, line) in [
            ("no-equals", "A=1\n# B\nsk_live_secret\n", 3),
            ("bad-name", "A=1\n2B=secret\n", 2),
            ("comment", "A=1\n\n2B=secret # secret too\n", 3),
            ("open-quote", "A=1\nB=\"secret\nsecret\n", 2),
            ("bad-escape", "A=\"se\\cret\"", 1),
            ("after-lines", "A=\"1\n2\"\n\nsecret value\n", 4),
        ] {
            let folder = Folder::new(&format!("dotenv-{name}"), &[(".env", text)]);
            let path = folder.0.join(".env");
            let told = read(&path).expect_err(name).to_string();
            assert_eq!(told, format!("cannot read {}: line {line} is not NAME=value", path.display()));
        }
    }

    #[test]
    fn bare_values_may_contain_spaces_and_quotes() {
        let text = "export A=My app # a name\n# B=not this one\nC=\"two\nD=lines here\"\nE=plain\nF=a=b c\n\
                    G=[{\"id\": \"a\\b\", \"n\": 1}]\nH=it's";
        let folder = Folder::new("dotenv-spaces", &[(".env", text)]);
        let pairs = read(&folder.0.join(".env")).expect("read");
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
}
