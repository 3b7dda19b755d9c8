//! The values of `config.toml` as texts under dotted paths, with `env(NAME)` substituted and overridden by `SUPABASE_…`
//! variables.

use std::collections::BTreeMap;

use super::{encrypted, keys};

/// Sections of older versions, and their current names.
const RENAMED: [(&str, &str); 1] = [("inbucket", "local_smtp")];

/// One value of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    List(Vec<String>),
}

#[derive(Clone, Debug, Default)]
pub struct Values {
    /// By path. Keys are in lower case, except the names of secrets.
    values: BTreeMap<String, Value>,
    /// All tables in the file, including empty ones.
    tables: Vec<String>,
    pub warnings: Vec<String>,
}

/// Whether a text is an `env(NAME)` that was not substituted.
pub fn is_unset(text: &str) -> bool {
    unset_variable(text).is_some()
}

/// Its name, if a value is a variable that is unset.
pub fn unset_variable(text: &str) -> Option<&str> {
    text.strip_prefix("env(")?.strip_suffix(')')
}

/// The `SUPABASE_…` variables that have a value, by the rest of their name. Those of older sections get the current name, unless
/// that is given, too.
fn variables(environment: &BTreeMap<String, String>) -> BTreeMap<String, &String> {
    let set = || environment.iter().filter(|(_, value)| !value.is_empty());
    let mut found: BTreeMap<String, &String> =
        set().filter_map(|(name, _)| Some((name.strip_prefix("SUPABASE_")?.to_owned(), name))).collect();
    for (old, new) in RENAMED.map(|(old, new)| (old.to_uppercase() + "_", new.to_uppercase() + "_")) {
        let names: Vec<String> = found.keys().filter(|name| name.starts_with(&old)).cloned().collect();
        for name in names {
            if let Some(whole) = found.remove(&name) {
                found.entry(name.replacen(&old, &new, 1)).or_insert(whole);
            }
        }
    }
    found
}

impl Values {
    /// The error is the line, if known, and the reason.
    pub fn parse(text: &str, environment: &BTreeMap<String, String>) -> Result<Self, (Option<usize>, String)> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let reason = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            (Some(1 + before.matches('\n').count()), reason)
        })?;
        let mut values = Self::default();
        values.flatten("", &toml::Value::Table(table), environment);
        values.take_old_names();
        for (path, name) in values.overrides(environment) {
            let Some(value) = environment.get(&name) else { continue };
            let value = match values.values.get(&path) {
                Some(Value::List(_)) => Value::List(split(value)),
                _ => Value::Text(value.clone()),
            };
            values.values.insert(path, value);
        }
        values.decrypt(environment);
        Ok(values)
    }

    /// The keys that `SUPABASE_…` variables override, with the variables. A key with a name of the project's in it, such as
    /// `auth.external.github.secret`, is one if the file has that section.
    pub fn overrides(&self, environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
        let variables = variables(environment);
        if variables.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<(String, String)> = variables
            .iter()
            .filter_map(|(name, whole)| Some((keys::path_of_variable(name)?.to_owned(), (*whole).clone())))
            .collect();
        let of_sections = self.tables.iter().flat_map(|table| keys::keys_of_section(table));
        for path in of_sections.chain(self.values.keys().cloned()) {
            let wanted = path.replace('.', "_");
            let named = variables.iter().find(|(name, _)| name.eq_ignore_ascii_case(&wanted));
            if let Some((_, whole)) = named
                && !path.starts_with("remotes.")
                && found.iter().all(|(known, _)| *known != path)
            {
                found.push((path, (*whole).clone()));
            }
        }
        found
    }

    /// Opens values that dotenvx has encrypted. One that no key opens counts as unset.
    fn decrypt(&mut self, environment: &BTreeMap<String, String>) {
        let private = encrypted::keys(environment);
        let mut shut = Vec::new();
        for (path, value) in &mut self.values {
            let Value::Text(text) = value else { continue };
            match encrypted::open(text, &private) {
                Some(Some(opened)) => *text = opened,
                Some(None) => shut.push(path.clone()),
                None => {}
            }
        }
        for path in shut {
            self.values.remove(&path);
            if !path.starts_with("remotes.") {
                let why =
                    if private.is_empty() { "DOTENV_PRIVATE_KEY is not set" } else { "no DOTENV_PRIVATE_KEY opens it" };
                self.warnings.push(format!("{path} is encrypted, and {why}: it counts as unset"));
            }
        }
    }

    fn flatten(&mut self, path: &str, value: &toml::Value, environment: &BTreeMap<String, String>) {
        let replaced = |text: &str| {
            let name = text.strip_prefix("env(").and_then(|rest| rest.strip_suffix(')'));
            let found = name.and_then(|name| environment.get(name)).filter(|value| !value.is_empty());
            found.cloned().unwrap_or_else(|| text.to_owned())
        };
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => replaced(text),
            other => other.to_string(),
        };
        match value {
            toml::Value::Table(table) => {
                if !path.is_empty() {
                    self.tables.push(path.to_owned());
                }
                for (key, value) in table {
                    let key = match path {
                        "edge_runtime.secrets" => key.to_uppercase(),
                        _ => key.to_lowercase(),
                    };
                    let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                    self.flatten(&path, value, environment);
                }
            }
            // Arrays of tables (the rules of `inspect`) are not read by anything here.
            toml::Value::Array(items) if items.iter().any(|item| item.is_table()) => {
                self.values.insert(path.to_owned(), Value::List(Vec::new()));
            }
            toml::Value::Array(items) => {
                let value = Value::List(items.iter().map(text).collect());
                self.values.insert(path.to_owned(), value);
            }
            other => {
                let value = text(other);
                if is_unset(&value) {
                    self.unset(path, &value);
                }
                self.values.insert(path.to_owned(), Value::Text(value));
            }
        }
    }

    /// Warns about an unset variable. Sections that may be disabled are left to the caller, which knows whether they are in use.
    fn unset(&mut self, path: &str, value: &str) {
        if !path.starts_with("remotes.")
            && !path.starts_with("auth.external.")
            && !path.starts_with("auth.sms.")
            && !path.starts_with("auth.third_party.")
            && !path.starts_with("experimental.")
            && path != "studio.openai_api_key"
        {
            let name = value.trim_start_matches("env(").trim_end_matches(')');
            self.warnings.push(format!("environment variable is unset: {name} ({path})"));
        }
    }

    /// Moves keys of older versions to their current names.
    fn take_old_names(&mut self) {
        for (old, new) in RENAMED {
            let below: Vec<_> =
                self.values.keys().filter(|path| path.starts_with(&format!("{old}."))).cloned().collect();
            for path in below {
                if let Some(value) = self.values.remove(&path) {
                    self.values.entry(path.replacen(old, new, 1)).or_insert(value);
                }
            }
        }
        for old in ["linkedin", "slack"] {
            if self.flag(&format!("auth.external.{old}.enabled"), false) {
                self.warnings.push(format!("auth.external.{old} is no longer supported: use auth.external.{old}_oidc"));
                self.values.insert(format!("auth.external.{old}.enabled"), Value::Text("false".to_owned()));
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(path, value)| (path.as_str(), value))
    }

    /// The text at `path`; `None` if it is absent, empty or an unset variable.
    pub fn text(&self, path: &str) -> Option<String> {
        match self.values.get(path)? {
            Value::Text(text) if !text.is_empty() && !is_unset(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// The text at `path`, also an `env(NAME)` that was not substituted: the CLI passes that on.
    pub fn written(&self, path: &str) -> Option<String> {
        match self.values.get(path)? {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    pub fn text_or(&self, path: &str, default: &str) -> String {
        self.text(path).unwrap_or_else(|| default.to_owned())
    }

    /// Anything but a boolean counts as the default; [`warnings`](super::warnings::warnings) reports it.
    pub fn flag(&self, path: &str, default: bool) -> bool {
        self.text(path).and_then(|text| parse_flag(&text)).unwrap_or(default)
    }

    /// A list, or a text split at commas.
    pub fn list(&self, path: &str) -> Option<Vec<String>> {
        match self.values.get(path)? {
            Value::List(items) => Some(items.clone()),
            Value::Text(text) => Some(split(text)),
        }
    }

    /// Whether the file has this table.
    pub fn has_table(&self, path: &str) -> bool {
        self.tables.iter().any(|table| table == path)
    }

    /// Names of the tables directly below `path`.
    pub fn tables_below(&self, path: &str) -> Vec<String> {
        let prefix = format!("{path}.");
        let names = self.tables.iter().filter_map(|table| table.strip_prefix(&prefix));
        names.filter(|name| !name.contains('.')).map(str::to_owned).collect()
    }

    /// Names and texts directly below `path`.
    pub fn below(&self, path: &str) -> Vec<(String, String)> {
        let prefix = format!("{path}.");
        let found = self.values.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        found
            .filter_map(|(name, value)| match value {
                Value::Text(text) => Some((name[prefix.len()..].to_owned(), text.clone())),
                Value::List(_) => None,
            })
            .filter(|(name, _)| !name.contains('.'))
            .collect()
    }
}

pub fn parse_flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "t" => Some(true),
        "false" | "0" | "f" => Some(false),
        _ => None,
    }
}

/// Parses `50MiB`, `5MB` or `500KB` into bytes; both kinds of unit are powers of 1024. A bare number is in bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text.get(..digits)?.parse().ok()?;
    let power = match text.get(digits..)?.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return None,
    };
    // Far below the point where a float loses whole numbers.
    Some((number * 1024_f64.powi(power)) as u64)
}

fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, environment: &[(&str, &str)]) -> Values {
        let environment = environment.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Values::parse(text, &environment).expect("values")
    }

    #[test]
    fn variables_are_substituted_and_the_environment_wins() {
        let values = parse(
            "[auth]\nSite_URL = \"env(SITE)\"\njwt_secret = \"env(NONE)\"\nadditional_redirect_urls = [\"env(SITE)\", \"b\"]\n\
             [api]\nport = 54321\nschemas = [\"public\"]\n[db]\nport = \"env(PORT)\"",
            &[
                ("SITE", "https://x"),
                ("PORT", "7"),
                ("SUPABASE_API_PORT", "9"),
                ("SUPABASE_API_SCHEMAS", "a,b"),
                // Regression: an empty variable replaced what the file says by the default.
                ("SUPABASE_AUTH_SITE_URL", ""),
                ("SUPABASE_DB_PORT", ""),
            ],
        );
        assert_eq!(values.text("auth.site_url").as_deref(), Some("https://x"));
        assert_eq!(values.list("auth.additional_redirect_urls"), Some(vec!["https://x".to_owned(), "b".to_owned()]));
        assert_eq!(values.text("auth.jwt_secret"), None);
        assert_eq!(values.warnings, ["environment variable is unset: NONE (auth.jwt_secret)"]);
        assert_eq!((values.text("api.port").as_deref(), values.text("db.port").as_deref()), (Some("9"), Some("7")));
        assert_eq!(values.list("api.schemas"), Some(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn variables_also_override_keys_of_sections_that_the_file_has() {
        let file = "[auth.external.github]\nenabled = true\nsecret = \"from the file\"\n[auth.email.smtp]\nhost = \"a\"\n\
                    [storage.buckets.images]\n[remotes.production]\nproject_id = \"x\"\n";
        let values = parse(
            file,
            &[
                ("SUPABASE_AUTH_EXTERNAL_GITHUB_SECRET", "from the environment"),
                ("SUPABASE_AUTH_EXTERNAL_GITHUB_CLIENT_ID", "id"),
                ("SUPABASE_AUTH_EXTERNAL_GOOGLE_SECRET", "of no section"),
                ("SUPABASE_AUTH_EMAIL_SMTP_HOST", "b"),
                ("SUPABASE_STORAGE_BUCKETS_IMAGES_PUBLIC", "true"),
                ("SUPABASE_REMOTES_PRODUCTION_PROJECT_ID", "y"),
            ],
        );
        for (path, wanted) in [
            ("auth.external.github.secret", Some("from the environment")),
            ("auth.external.github.client_id", Some("id")),
            ("auth.external.google.secret", None),
            ("auth.email.smtp.host", Some("b")),
            ("storage.buckets.images.public", Some("true")),
            ("remotes.production.project_id", Some("x")),
        ] {
            assert_eq!(values.text(path).as_deref(), wanted, "{path}");
        }
    }

    #[test]
    fn old_sections_are_read_under_their_new_names() {
        let values = parse("[inbucket]\nport = 1\nsmtp_port = 2\n[local_smtp]\nport = 3\n", &[]);
        let (port, smtp) = (values.text("local_smtp.port"), values.text("local_smtp.smtp_port"));
        assert_eq!((port.as_deref(), smtp.as_deref()), (Some("3"), Some("2")));
        // Regression: variables of the old name had no effect.
        let old = ("SUPABASE_INBUCKET_PORT", "4");
        let of = |variables: &[(&str, &str)]| parse("[inbucket]\nport = 1\n", variables).text("local_smtp.port");
        assert_eq!(of(&[old]).as_deref(), Some("4"));
        assert_eq!(of(&[old, ("SUPABASE_LOCAL_SMTP_PORT", "5")]).as_deref(), Some("5"));
        assert_eq!(of(&[old, ("SUPABASE_LOCAL_SMTP_PORT", "")]).as_deref(), Some("4"));
        assert!(!parse("[auth.external.slack]\nenabled = true", &[]).flag("auth.external.slack.enabled", true));
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [("50MiB", 52_428_800), ("5MB", 5_242_880), ("500KB", 512_000), ("7", 7), ("0.5 KiB", 512)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        assert_eq!(parse_size("much"), None);
    }
}
