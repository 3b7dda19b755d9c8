//! Where settings come from: the process environment first, then an optional `ferrobase.toml`.

use std::collections::BTreeMap;
use std::path::Path;

/// Named settings, all as text. Names are upper case with underscores (`GOTRUE_SITE_URL`).
#[derive(Clone, Debug, Default)]
pub struct Source {
    values: BTreeMap<String, String>,
}

impl Source {
    /// The process environment over the settings of `file` (TOML: tables are joined to names by underscores,
    /// so `[smtp] host = "x"` is `SMTP_HOST`). A missing file is an error only if it was named explicitly.
    pub fn from_process(file: Option<&Path>) -> anyhow::Result<Self> {
        let mut values = BTreeMap::new();
        let path = file.unwrap_or_else(|| Path::new("ferrobase.toml"));
        if file.is_some() || path.exists() {
            let text = std::fs::read_to_string(path)
                .map_err(|e| anyhow::anyhow!("cannot read the settings file {}: {e}", path.display()))?;
            let table: toml::Table =
                text.parse().map_err(|e| anyhow::anyhow!("the settings file {} is not TOML: {e}", path.display()))?;
            flatten("", &toml::Value::Table(table), &mut values);
        }
        values.extend(std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))));
        Ok(Self { values })
    }

    /// Settings given as pairs; what tests and `up` use.
    pub fn from_pairs<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self { values: pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect() }
    }

    /// The value under `name`; an empty string counts as set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Sets `name` unless it already has a value: how `up` lays its development defaults.
    pub fn set_default(&mut self, name: &str, value: impl Into<String>) {
        self.values.entry(name.to_owned()).or_insert_with(|| value.into());
    }

    /// Sets `name`, replacing any value it had.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.insert(name.to_owned(), value.into());
    }

    /// All names that begin with `prefix`, with their values, in name order.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.values
            .range(prefix.to_owned()..)
            .take_while(move |(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
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
    fn a_prefix_lists_only_its_own_names() {
        let source = Source::from_pairs([("PGRST_A", "1"), ("PGRSX", "2"), ("PGRST_B", "3")]);
        let names: Vec<_> = source.with_prefix("PGRST_").map(|(n, _)| n).collect();
        assert_eq!(names, ["PGRST_A", "PGRST_B"]);
    }
}
