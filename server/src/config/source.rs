//! Sources of settings: the process environment, then an optional `ferrobase.toml` or PostgREST's own file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::postgrest_file;

/// A folder that is searched first for PostgreSQL's programs, such as `pg_dump`. Commands read it from the environment.
pub const PG_TOOLS: &str = "FERROBASE_PG_TOOLS";

/// Settings that only commands read, or prefixes of theirs: neither the server nor `doctor` takes them for misspelt.
const OF_COMMANDS: [&str; 6] = [
    PG_TOOLS,
    "FERROBASE_BACKUP_IDENTITY_FILE",
    "FERROBASE_BINARY", // of the package @ferrobase/testing
    "FERROBASE_IMPORT_",
    "FERROBASE_SERVICE_KEY",
    "FERROBASE_UPGRADE_FROM_BIN",
];

/// Named settings, all as text. Names are upper case with underscores (`GOTRUE_SITE_URL`).
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// From the environment, or set later; these win.
    values: BTreeMap<String, String>,
    /// Of the settings file.
    file: BTreeMap<String, String>,
    path: Option<PathBuf>,
    syntax: Syntax,
    /// Names and prefixes that were read; shared by clones.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

/// The syntax of a settings file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    #[default]
    Toml,
    /// PostgREST's: `db-uri = "…"`, which is `PGRST_DB_URI`.
    Postgrest,
}

impl Source {
    /// The process environment over the settings of PostgREST's own configuration file.
    pub fn with_postgrest_file(file: &Path) -> anyhow::Result<Self> {
        let mut source = Self { path: Some(file.to_owned()), syntax: Syntax::Postgrest, ..Self::environment() };
        source.file = source.read_file(file)?;
        Ok(source)
    }

    fn environment() -> Self {
        let values = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Self { values: values.collect(), ..Self::default() }
    }

    fn read_file(&self, path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
        match self.syntax {
            Syntax::Toml => read_file(path),
            Syntax::Postgrest => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| anyhow::anyhow!("cannot read the settings file {}: {e}", path.display()))?;
                postgrest_file::parse(&text)
                    .map_err(|e| anyhow::anyhow!("the settings file {} cannot be read ({e})", path.display()))
            }
        }
    }

    /// The process environment over the settings of `file` (TOML: tables are joined to names by underscores,
    /// so `[smtp] host = "x"` is `SMTP_HOST`). A missing file is an error only if it was named explicitly.
    pub fn from_process(file: Option<&Path>) -> anyhow::Result<Self> {
        let path = file.unwrap_or_else(|| Path::new("ferrobase.toml"));
        let path = (file.is_some() || path.exists()).then(|| path.to_owned());
        let file = path.as_deref().map(read_file).transpose()?.unwrap_or_default();
        Ok(Self { file, path, ..Self::environment() })
    }

    /// The same with the settings file read again; an unreadable file changes nothing.
    pub fn reread(&self) -> Self {
        let mut source = self.clone();
        match self.path.as_deref().map(|path| self.read_file(path)).transpose() {
            Ok(file) => source.file = file.unwrap_or_default(),
            Err(error) => tracing::error!(%error, "keeping the previous settings of the file"),
        }
        source
    }

    /// Settings given as pairs; what tests and `up` use.
    pub fn from_pairs<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self { values: pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect(), ..Self::default() }
    }

    /// The value under `name`; an empty string counts as set.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name).or_else(|| self.file.get(name))?;
        self.asked.lock().insert(name.to_owned());
        Some(value)
    }

    /// Settings for this server (from the file, or named `FERROBASE_…`) that were never read, nor are by commands, in name order:
    /// misspelt, or without effect.
    pub fn unread(&self) -> Vec<String> {
        let asked = self.asked.lock();
        let is_of = |name: &str, known: &str| name == known || known.ends_with('_') && name.starts_with(known);
        let is_read = |name: &str| {
            OF_COMMANDS.iter().any(|known| is_of(name, known))
                || asked.contains(name)
                || asked.iter().any(|known| is_of(name, known))
        };
        // PostgREST ignores unknown settings.
        let of_file = self.file.keys().filter(|_| self.syntax == Syntax::Toml);
        let ours = self.values.keys().filter(|name| name.starts_with("FERROBASE_")).chain(of_file);
        let unread: BTreeSet<&String> = ours.filter(|name| !is_read(name)).collect();
        unread.into_iter().cloned().collect()
    }

    /// Sets `name` unless it has a value; `up` sets its development defaults this way.
    pub fn set_default(&mut self, name: &str, value: impl Into<String>) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    /// Sets `name`, replacing any value it had.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.insert(name.to_owned(), value.into());
    }

    /// All names that begin with `prefix`, with their values, in name order.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.asked.lock().insert(prefix.to_owned());
        let of = |map: &'a BTreeMap<String, String>| {
            map.range(prefix.to_owned()..)
                .take_while(move |(name, _)| name.starts_with(prefix))
                .map(|(name, value)| (name.as_str(), value.as_str()))
        };
        let mut both: BTreeMap<&str, &str> = of(&self.file).collect();
        both.extend(of(&self.values));
        both.into_iter()
    }
}

fn read_file(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| anyhow::anyhow!("cannot read the settings file {}: {e}", path.display()))?;
    let table: toml::Table = text.parse().map_err(|e| not_toml(path, &text, &e))?;
    let mut values = BTreeMap::new();
    flatten("", &toml::Value::Table(table), &mut values);
    Ok(values)
}

/// The error and its position, in one line.
fn not_toml(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = 1 + before.matches('\n').count();
    let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    anyhow::anyhow!("the settings file {} is not TOML (line {line}): {what}", path.display())
}

fn flatten(prefix: &str, value: &toml::Value, into: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, inner) in table {
                let key = key.to_uppercase().replace('-', "_");
                let name = if prefix.is_empty() { key } else { format!("{prefix}_{key}") };
                flatten(&name, inner, into);
            }
        }
        toml::Value::String(text) => {
            into.insert(prefix.to_owned(), text.clone());
        }
        toml::Value::Array(items) => {
            let items: Vec<String> =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect();
            into.insert(prefix.to_owned(), items.join(","));
        }
        other => {
            into.insert(prefix.to_owned(), other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_file_become_joined_upper_case_names() {
        let table: toml::Table =
            "[smtp]\nhost = \"mail\"\nport = 25\n[a.b-c]\nlist = [\"x\", \"y\"]".parse().expect("toml");
        let mut values = BTreeMap::new();
        flatten("", &toml::Value::Table(table), &mut values);
        assert_eq!(values.get("SMTP_HOST").map(String::as_str), Some("mail"));
        assert_eq!(values.get("SMTP_PORT").map(String::as_str), Some("25"));
        assert_eq!(values.get("A_B_C_LIST").map(String::as_str), Some("x,y"));
    }

    #[test]
    fn environment_variables_override_the_file_for_every_kind_of_read() {
        let mut source = Source::from_pairs([("PGRST_A", "1")]);
        source.file = [("PGRST_A", "file"), ("PGRST_B", "file")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        source.set_default("PGRST_B", "default");
        assert_eq!((source.get("PGRST_A"), source.get("PGRST_B")), (Some("1"), Some("file")));
        assert_eq!(source.with_prefix("PGRST_").collect::<Vec<_>>(), [("PGRST_A", "1"), ("PGRST_B", "file")]);
    }

    #[test]
    fn invalid_toml_is_reported_on_one_line() {
        let path = std::env::temp_dir().join(format!("ferrobase-{}.toml", std::process::id()));
        std::fs::write(&path, "a = 1\nb = [\n").expect("a file");
        let error = Source::from_process(Some(&path)).expect_err("refused").to_string();
        std::fs::remove_file(&path).expect("cleaned up");
        assert!(error.contains("(line 2): ") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn unread_settings_with_our_prefix_are_listed() {
        let commands =
            [(PG_TOOLS, "/bin"), ("FERROBASE_BACKUP_IDENTITY_FILE", "key.txt"), ("FERROBASE_IMPORT_DB_URL", "x")];
        let others = [("FERROBASE_DEV", "1"), ("PATH", "/bin")].into_iter().chain(commands);
        let source = Source::from_pairs([("FERROBASE_LISTNE", "x")].into_iter().chain(others));
        source.clone().get("FERROBASE_DEV");
        assert_eq!(source.unread(), ["FERROBASE_LISTNE"]);
    }

    #[test]
    fn a_prefix_lists_only_its_own_names() {
        let source = Source::from_pairs([("PGRST_A", "1"), ("PGRSX", "2"), ("PGRST_B", "3")]);
        let names: Vec<_> = source.with_prefix("PGRST_").map(|(n, _)| n).collect();
        assert_eq!(names, ["PGRST_A", "PGRST_B"]);
    }
}
