//! The output of `start` and `status`: addresses and keys, in the formats of the Supabase CLI, which scripts parse.

use std::collections::BTreeMap;

use super::{KnownKeys, Project};

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Pretty,
    Env,
    Json,
    Yaml,
    Toml,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pretty" => Ok(Self::Pretty),
            "env" => Ok(Self::Env),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "toml" => Ok(Self::Toml),
            _ => Err("choose pretty, env, json, yaml or toml".to_owned()),
        }
    }
}

/// A line of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: &'static str,
    /// Its name in `--override-name`.
    name: &'static str,
    section: &'static str,
    label: &'static str,
    value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    entries: Vec<Entry>,
}

impl Status {
    /// The status of a project with these API keys.
    pub fn of(project: &Project, anon: &str, service_role: &str) -> Self {
        let api = project.api_url();
        let mut entries = Vec::new();
        let mut add = |key, name, section, label, value: String| {
            entries.push(Entry { key, name, section, label, value });
        };
        if project.is_on("local_smtp.enabled", true) {
            let inbox = format!("http://127.0.0.1:{}", project.inbox_port());
            add("MAILPIT_URL", "mailpit.url", "Development Tools", "Mailpit", inbox.clone());
            add("INBUCKET_URL", "inbucket.url", "", "", inbox);
            // Ours: the CLI prints no port of SMTP.
            if let Some(port) = project.smtp_port() {
                add("MAILPIT_SMTP_PORT", "mailpit.smtp_port", "Development Tools", "SMTP port", port.to_string());
            }
        }
        if project.is_on("api.enabled", true) {
            add("API_URL", "api.url", "APIs", "Project URL", api.clone());
            add("REST_URL", "api.rest_url", "APIs", "REST", format!("{api}/rest/v1"));
            add("GRAPHQL_URL", "api.graphql_url", "APIs", "GraphQL", format!("{api}/graphql/v1"));
            add("FUNCTIONS_URL", "api.functions_url", "APIs", "Edge Functions", format!("{api}/functions/v1"));
        }
        let database = format!("postgresql://postgres:postgres@127.0.0.1:{}/postgres", project.db_port());
        add("DB_URL", "db.url", "Database", "URL", database);
        if project.is_on("auth.enabled", true) {
            let keys = "Authentication Keys";
            add("PUBLISHABLE_KEY", "auth.publishable_key", keys, "Publishable", project.publishable_key());
            add("SECRET_KEY", "auth.secret_key", keys, "Secret", project.secret_key());
            add("ANON_KEY", "auth.anon_key", keys, "anon key", anon.to_owned());
            add("SERVICE_ROLE_KEY", "auth.service_role_key", keys, "service_role key", service_role.to_owned());
            add("JWT_SECRET", "auth.jwt_secret", keys, "JWT secret", project.jwt_secret());
        }
        if project.is_on("storage.enabled", true) && project.is_on("storage.s3_protocol.enabled", true) {
            let s3 = "Storage (S3)";
            add("STORAGE_S3_URL", "api.storage_s3_url", s3, "URL", format!("{api}/storage/v1/s3"));
            add(
                "S3_PROTOCOL_ACCESS_KEY_ID",
                "storage.s3_access_key_id",
                s3,
                "Access Key",
                KnownKeys::S3_ACCESS_KEY.to_owned(),
            );
            add(
                "S3_PROTOCOL_ACCESS_KEY_SECRET",
                "storage.s3_secret_access_key",
                s3,
                "Secret Key",
                KnownKeys::S3_SECRET_KEY.to_owned(),
            );
            add("S3_PROTOCOL_REGION", "storage.s3_region", s3, "Region", "local".to_owned());
        }
        Self { entries }
    }

    /// Renders the status. `names` replaces variable names, by their dotted names.
    pub fn render(&self, format: Format, names: &BTreeMap<String, String>) -> String {
        let pairs: BTreeMap<&str, &str> = self
            .entries
            .iter()
            .map(|entry| (names.get(entry.name).map_or(entry.key, String::as_str), entry.value.as_str()))
            .collect();
        let quoted = |value: &str| serde_json::Value::from(value).to_string();
        match format {
            Format::Env => pairs.iter().map(|(key, value)| format!("{key}={}\n", quoted(value))).collect(),
            Format::Yaml => pairs.iter().map(|(key, value)| format!("{key}: {}\n", quoted(value))).collect(),
            Format::Toml => pairs.iter().map(|(key, value)| format!("{key} = {}\n", quoted(value))).collect(),
            Format::Json => serde_json::to_string_pretty(&pairs).unwrap_or_default() + "\n",
            Format::Pretty => self.boxes(),
        }
    }

    /// One box per section.
    fn boxes(&self) -> String {
        let mut text = String::new();
        let mut sections: Vec<&str> = Vec::new();
        for entry in self.entries.iter().filter(|entry| !entry.section.is_empty()) {
            if !sections.contains(&entry.section) {
                sections.push(entry.section);
            }
        }
        for section in sections {
            let rows: Vec<&Entry> = self.entries.iter().filter(|entry| entry.section == section).collect();
            let width = |of: fn(&Entry) -> usize| rows.iter().map(|entry| of(entry)).max().unwrap_or(0);
            let (left, mut right) = (width(|e| e.label.chars().count()), width(|e| e.value.chars().count()));
            right = right.max(section.chars().count().saturating_sub(left + 3));
            let whole = left + right + 3;
            let (line, gap) = ("─".repeat(left + 2), "─".repeat(right + 2));
            text.push_str(&format!("╭{line}─{gap}╮\n│ {section:<whole$} │\n├{line}┬{gap}┤\n"));
            for row in rows {
                text.push_str(&format!("│ {:<left$} │ {:<right$} │\n", row.label, row.value));
            }
            text.push_str(&format!("╰{line}┴{gap}╯\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;
    use super::*;

    fn status() -> Status {
        let folder =
            Folder::new("status", &[("supabase/config.toml", "[api]\nport = 7\n[storage]\nenabled = false\n")]);
        Status::of(&folder.load(&[]), "anon", "service")
    }

    #[test]
    fn env_output_is_sorted_and_shell_readable() {
        let names = BTreeMap::from([("api.url".to_owned(), "NEXT_PUBLIC_SUPABASE_URL".to_owned())]);
        let text = status().render(Format::Env, &names);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.contains(&r#"NEXT_PUBLIC_SUPABASE_URL="http://127.0.0.1:7""#), "{text}");
        assert!(lines.contains(&r#"DB_URL="postgresql://postgres:postgres@127.0.0.1:54322/postgres""#), "{text}");
        assert!(lines.is_sorted() && !text.contains("S3_"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&status().render(Format::Json, &BTreeMap::new())).expect("JSON");
        assert_eq!((json["ANON_KEY"].as_str(), json["API_URL"].as_str()), (Some("anon"), Some("http://127.0.0.1:7")));
    }

    #[test]
    fn pretty_output_has_boxes_with_lines_of_equal_length() {
        let text = status().render(Format::Pretty, &BTreeMap::new());
        for section in text.split_inclusive("╯\n") {
            let widths: Vec<usize> = section.lines().map(|line| line.chars().count()).collect();
            assert!(widths.windows(2).all(|two| two[0] == two[1]), "{section}");
        }
        assert!(text.contains("│ anon key ") && text.contains("│ Authentication Keys"), "{text}");
    }
}
