//! The SQL of our own extensions (`sql/extensions`). The embedded PostgreSQL reads it as files; on other servers the migrations
//! run it themselves.

use std::borrow::Cow;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../../sql/extensions"]
struct Ours;

/// The beginning of a line that includes a file of the folder. Left in a script, it is a syntax error.
const INCLUDE: &str = "\\i ";

/// Calls `with` for each file, with its name. Included files have been inserted.
pub fn each_file(mut with: impl FnMut(&str, &[u8])) {
    for (name, data) in files() {
        with(&name, &data);
    }
}

pub fn files() -> impl Iterator<Item = (Cow<'static, str>, Cow<'static, [u8]>)> {
    Ours::iter().filter(|name| !is_included(name)).filter_map(|name| {
        let data = Ours::get(&name)?.data;
        let including = std::str::from_utf8(&data).ok().filter(|text| text.contains(INCLUDE)).map(with_included);
        Some((name, including.map_or(data, |text| Cow::Owned(text.into_bytes()))))
    })
}

/// Whether this is one of the files as it stands.
pub fn has_file(name: &str) -> bool {
    Ours::get(name).is_some()
}

/// The names of the extensions.
pub fn names() -> impl Iterator<Item = String> {
    Ours::iter().filter_map(|name| name.strip_suffix(".control").map(str::to_owned))
}

/// Whose file this is: of `pgmq--1.5.1.sql` and `pgmq.control`, `pgmq`.
pub fn extension_of(file: &str) -> &str {
    file.split_once("--").map_or_else(|| file.trim_end_matches(".control"), |(name, _)| name)
}

/// Whether it is a part of scripts, not a file that PostgreSQL reads.
fn is_included(name: &str) -> bool {
    !name.contains("--") && !name.ends_with(".control")
}

fn with_included(script: &str) -> String {
    let mut text = String::with_capacity(script.len());
    for line in script.split_inclusive('\n') {
        let included = line.strip_prefix(INCLUDE).and_then(|name| Ours::get(name.trim_end()));
        match included {
            Some(file) => text.push_str(&String::from_utf8_lossy(&file.data)),
            None => text.push_str(line),
        }
    }
    text
}

/// An extension as its control file and its script describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    pub name: String,
    pub version: String,
    pub comment: String,
    /// The only schema that it can have, if there is one.
    pub schema: Option<String>,
    pub requires: Vec<String>,
    /// Its script, with `@extschema@` where the schema's name belongs.
    pub script: String,
}

impl Extension {
    /// `None` if it is none of ours.
    pub fn find(name: &str) -> Option<Self> {
        let control = Ours::get(&format!("{name}.control"))?.data;
        let control = std::str::from_utf8(&control).ok()?;
        let value = |key: &str| {
            let line = control.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
            Some(line.trim().trim_matches('\'').to_owned())
        };
        let version = value("default_version")?;
        let script = Ours::get(&format!("{name}--{version}.sql"))?.data;
        let requires = value("requires").unwrap_or_default();
        Some(Self {
            name: name.to_owned(),
            comment: value("comment")?,
            schema: value("schema"),
            requires: requires.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
            script: with_included(std::str::from_utf8(&script).ok()?),
            version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_inserted_into_the_scripts_that_include_them() {
        let mut including = Vec::new();
        each_file(|name, data| {
            let text = String::from_utf8_lossy(data);
            assert!(!text.lines().any(|line| line.starts_with(INCLUDE)), "{name}");
            if text.contains("is in use already") || text.contains("'dblink_connect'") {
                including.push(name.to_owned());
            }
        });
        including.sort();
        let expected = [
            "http--1.6--1.7.1.sql",
            "http--1.7--1.7.1.sql",
            "http--1.7.1.sql",
            "pg_tle--1.4.0.sql",
            "pgsodium--3.1.9.sql",
        ];
        assert_eq!(including, expected);
    }

    /// PostgreSQL runs them as a superuser with the caller's schema first in the search path, whose operators match better than its own.
    #[test]
    fn scripts_look_for_nothing_in_the_callers_schema() {
        let mut checked = 0;
        each_file(|name, data| {
            let text = String::from_utf8_lossy(data);
            if !name.ends_with(".sql") {
                return;
            }
            let control = Ours::get(&format!("{}.control", extension_of(name))).expect("a control file");
            let statements = text.lines().filter(|line| !line.starts_with("--") && !line.is_empty());
            if String::from_utf8_lossy(&control.data).contains("relocatable = true") {
                // PostgreSQL tells these no name of the schema.
                let is_quiet = |line: &&str| {
                    line.starts_with("create function") || line.starts_with("create view") || *line == "select;"
                };
                let run: Vec<_> = statements.filter(|line| line.starts_with(char::is_alphabetic)).collect();
                let others = run.iter().filter(|line| !is_quiet(line) && !is_clause(line)).collect::<Vec<_>>();
                assert!(others.is_empty(), "{name}: {others:?}");
            } else {
                assert_eq!(statements.clone().next(), Some("set local search_path = pg_catalog, pg_temp;"), "{name}");
                let unqualified = text.lines().find(|line| {
                    let object = [
                        "create function ",
                        "create or replace function ",
                        "create table ",
                        "create type ",
                        "create domain ",
                    ]
                    .iter()
                    .find_map(|begin| line.strip_prefix(begin));
                    object.is_some_and(|name| !name.split('(').next().is_some_and(|name| name.contains('.')))
                });
                assert_eq!(unqualified, None, "{name}");
            }
            checked += 1;
        });
        assert!(checked > 18, "{checked}");
    }

    /// Whether the line continues `create function`.
    fn is_clause(line: &str) -> bool {
        ["returns ", "language ", "as ", "begin", "end", "declare"].iter().any(|word| line.starts_with(word))
    }

    #[test]
    fn every_extension_is_described() {
        for name in names() {
            let extension = Extension::find(&name).unwrap_or_else(|| panic!("{name}"));
            assert!(!extension.version.is_empty() && !extension.comment.is_empty(), "{name}");
        }
        let pgjwt = Extension::find("pgjwt").expect("one of ours");
        assert_eq!((pgjwt.requires.as_slice(), pgjwt.schema), (&["pgcrypto".to_owned()][..], None));
        assert_eq!(Extension::find("pgmq").expect("one of ours").schema.as_deref(), Some("pgmq"));
        assert_eq!(Extension::find("postgis"), None);
    }
}
