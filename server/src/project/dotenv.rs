//! The `.env` files of a project. A value is never overridden: the process environment wins, then the nearer folder, then the
//! earlier file.

use std::collections::BTreeMap;
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
    dotenvy::from_read_iter(text.as_bytes()).map(|pair| pair.map_err(|error| unreadable(error.to_string()))).collect()
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
