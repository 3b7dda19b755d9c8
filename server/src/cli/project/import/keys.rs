//! The JWT secret and signing keys of an imported project, which keep its existing tokens valid. Dumps do not contain them.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context;

use super::source::read_text;
use crate::cli::project::{find, say};
use crate::project::Project;

/// The shortest secret that the server accepts.
const SHORTEST_SECRET: usize = 16;

/// The keys given on the command line.
pub struct Keys {
    pub secret: Option<String>,
    /// A JSON array of private JWKs.
    pub signing: Option<String>,
}

impl Keys {
    /// Errors: a secret or keys that a server could not use.
    pub fn read(secret: Option<&str>, signing: Option<&Path>) -> anyhow::Result<Self> {
        let secret = secret.filter(|secret| !secret.is_empty()).map(str::to_owned);
        if let Some(secret) = &secret {
            let is_plain = !secret.chars().any(|c| c == '\'' || c.is_control());
            anyhow::ensure!(
                secret.len() >= SHORTEST_SECRET && is_plain,
                "--jwt-secret is none: it has at least {SHORTEST_SECRET} characters, on one line and without quotes"
            );
        }
        let signing = signing.map(read_text).transpose()?;
        if let Some(text) = &signing {
            let keys: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
            let is_private = |key: &serde_json::Value| key.get("d").is_some() || key.get("k").is_some();
            anyhow::ensure!(
                !keys.is_empty() && keys.iter().all(is_private),
                "--signing-keys must be a JSON array of private JWKs, the one in use first, as of 'supabase gen signing-key'"
            );
        }
        Ok(Self { secret, signing })
    }

    pub fn is_empty(&self) -> bool {
        self.secret.is_none() && self.signing.is_none()
    }

    /// Stores them in the project, in files that git ignores.
    pub fn keep(&self, project: &Project) -> anyhow::Result<()> {
        let mut pairs = Vec::new();
        if let Some(secret) = &self.secret {
            pairs.push(("SUPABASE_AUTH_JWT_SECRET", secret.clone()));
        }
        if let Some(signing) = &self.signing {
            let path = project.own_dir().join("signing_keys.json");
            write_private(&path, signing)?;
            pairs.push(("SUPABASE_AUTH_SIGNING_KEYS_PATH", "../.ferrobase/signing_keys.json".to_owned()));
        }
        let path = project.folder().join(".env.local");
        let before = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let is_replaced =
            |line: &&str| pairs.iter().any(|(name, _)| line.trim_start().starts_with(&format!("{name}=")));
        let mut text: String =
            before.lines().filter(|line| !is_replaced(line)).map(|line| format!("{line}\n")).collect();
        pairs.iter().for_each(|(name, value)| text.push_str(&format!("{name}='{value}'\n")));
        write_private(&path, &text)?;
        say(&format!("Wrote the project's keys to {}: keep it out of git.", path.display()));
        // An invalid configuration is reported now and not at the next start.
        find()?.settings().map(drop).map_err(Into::into)
    }
}

/// Replaces a file by one that only its owner can read.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let partial = path.with_extension("partial");
    let opened = std::fs::File::options().create(true).write(true).truncate(true).mode(0o600).open(&partial);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.and_then(|()| std::fs::rename(&partial, path)).with_context(|| format!("cannot write {}", path.display()))
}
