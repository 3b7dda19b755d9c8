//! `gen signing-key`: generates a private key for signing users' tokens. Prints it, or writes it to the project's file of keys.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::ask::defaults_to_yes;
use super::{find, say};
use crate::jwt::sign::{generate_es256, generate_rs256};
use crate::project::ProjectError;

/// The order of a key's members in the Supabase CLI.
const MEMBERS: [&str; 17] =
    ["kty", "kid", "use", "key_ops", "alg", "ext", "n", "e", "d", "p", "q", "dp", "dq", "qi", "crv", "x", "y"];

#[derive(Args)]
pub struct SigningKeyArgs {
    /// Algorithm of the key
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    algorithm: Algorithm,
    /// Add the key to those in the file. Tokens are still signed with the first one
    #[arg(long)]
    append: bool,
    /// Do not ask before replacing the file
    #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    yes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    /// ECDSA with P-256 and SHA-256
    #[default]
    #[value(name = "ES256")]
    Es256,
    /// RSA with 2048 bits and SHA-256
    #[value(name = "RS256")]
    Rs256,
}

pub fn signing_key(args: &SigningKeyArgs) -> anyhow::Result<()> {
    let path = match find() {
        Ok(project) => project.signing_keys_path(),
        // Printing a key needs no project.
        Err(error) if matches!(error.downcast_ref(), Some(ProjectError::NoProject)) => None,
        Err(error) => return Err(error),
    };
    let Some(path) = path else {
        crate::cli::print_all(&format!("{}\n", generate(args.algorithm)?))?;
        say(
            "To sign with it, save it as a JSON array in supabase/signing_keys.json, which git should ignore, and name that file in \
             supabase/config.toml: signing_keys_path = \"./signing_keys.json\" below [auth]",
        );
        return Ok(());
    };
    // A file that does not contain keys is an error, not something to replace.
    let mut keys = read(&path)?;
    if !args.append {
        let question = format!("Do you want to overwrite the existing {} file?", path.display());
        anyhow::ensure!(
            keys.is_empty() || defaults_to_yes(&question, args.yes),
            "not confirmed: the keys were not changed"
        );
        keys.clear();
    }
    keys.push(generate(args.algorithm)?);
    write(&path, &keys)?;
    let count = keys.len();
    say(&format!("JWT signing key appended to: {} (now contains {count} keys)", path.display()));
    if count == 1 {
        say("IMPORTANT: Add your signing key path to .gitignore to prevent committing to version control.");
    }
    Ok(())
}

/// A key with the same members as the Supabase CLI's, in the same order.
fn generate(algorithm: Algorithm) -> anyhow::Result<Value> {
    let kid = uuid::Uuid::new_v4().to_string();
    let mut key = match algorithm {
        Algorithm::Es256 => generate_es256(&kid),
        Algorithm::Rs256 => generate_rs256(&kid)?,
    };
    key["use"] = json!("sig");
    key["ext"] = json!(true);
    let members = MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), key.get(*name)?.clone())));
    Ok(Value::Object(members.collect::<Map<_, _>>()))
}

/// The keys in a file. A missing file has none.
fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).with_context(|| format!("{} is not a JSON array of keys", path.display()))
}

/// Replaces the file atomically, readable only by its owner.
fn write(path: &Path, keys: &[Value]) -> anyhow::Result<()> {
    let partial = path.with_extension("partial");
    let written = || -> anyhow::Result<()> {
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        writeln!(file, "{}", serde_json::to_string_pretty(keys)?)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use crate::jwt::sign::SigningKeys;

    #[test]
    fn keys_sign_and_have_their_members_in_order() {
        for (algorithm, members) in [
            (Algorithm::Es256, "kty kid use key_ops alg ext d crv x y"),
            (Algorithm::Rs256, "kty kid use key_ops alg ext n e d p q dp dq qi"),
        ] {
            let key = generate(algorithm).expect("a key");
            let names: Vec<&str> = key.as_object().expect("an object").keys().map(String::as_str).collect();
            assert_eq!(names.join(" "), members);
            let keys = Secret::new(format!("[{key}]"));
            let keys = SigningKeys::new(&Secret::new("secret"), "", Some(&keys), None).expect("usable keys");
            let token = keys.sign(&json!({"sub": "ada"})).expect("a token");
            assert_eq!(keys.verify(&token).expect("verified")["sub"], "ada");
        }
    }
}
