//! `keys`: generates, shows and rotates secrets and API keys.

mod database;
mod env_file;
mod rotate;

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use clap::{Args, Subcommand};
use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::config::{Reader, ServerConfig, Source, parse_go_duration};
use crate::gateway::{ApiKeys, sign_key};
use env_file::EnvFile;
use rotate::{Change, Terms};

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Print new secrets and keys as settings, ready for an .env file
    Generate,
    /// Print the API keys of the current configuration
    Show,
    /// Replace secret, API keys and signing keys without ending a session; former ones are accepted for a while
    Rotate(RotateArgs),
    /// Remove former keys that are no longer accepted from the settings
    Drop {
        /// Also remove those that are still accepted
        #[arg(long)]
        all: bool,
        /// Change the settings in this file, such as .env [default: print them]
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
}

#[derive(Args)]
pub struct RotateArgs {
    /// Change the settings in this file, such as .env [default: print them]
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// With several servers: let all of them accept the new keys before any uses them. Restart them, then rotate
    #[arg(long)]
    prepare: bool,
    /// The former keys have leaked: accept nothing signed with them
    #[arg(long, conflicts_with = "prepare")]
    leaked: bool,
    /// Sign users' tokens with a new ES256 key from now on
    #[arg(long)]
    signing_key: bool,
    /// How long former API keys and links to files are accepted
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = hours)]
    keep_keys: chrono::Duration,
    /// Change the passwords of the database instead
    #[arg(long, conflicts_with_all = ["prepare", "leaked", "signing_key"])]
    database: bool,
}

fn hours(text: &str) -> Result<chrono::Duration, String> {
    let nanos = parse_go_duration(text).filter(|nanos| *nanos >= 0);
    nanos.map(chrono::Duration::nanoseconds).ok_or_else(|| "expected a duration such as 720h".to_owned())
}

pub fn run(command: KeysCommand, source: &Source) -> anyhow::Result<()> {
    match command {
        KeysCommand::Generate => super::print_all(&generate()?),
        KeysCommand::Show => super::print_all(&show(source)?),
        KeysCommand::Rotate(args) if args.database => database::rotate(args.write.as_deref(), source),
        KeysCommand::Rotate(args) => {
            let write = args.write.as_deref();
            change(write, source, |source| {
                if args.prepare {
                    return rotate::prepare(source, args.signing_key);
                }
                let terms = Terms {
                    now: Utc::now(),
                    keep_keys: args.keep_keys,
                    is_leaked: args.leaked,
                    signing_key: args.signing_key,
                };
                rotate::rotate(source, &terms)
            })
        }
        KeysCommand::Drop { all, write } => {
            change(write.as_deref(), source, |source| rotate::drop_former(source, Utc::now(), all))
        }
    }
}

/// Computes new settings and writes them to `file`, or prints them.
fn change(
    file: Option<&Path>,
    source: &Source,
    work: impl FnOnce(&Source) -> anyhow::Result<Change>,
) -> anyhow::Result<()> {
    let Some(file) = file else {
        let change = work(source)?;
        eprintln!("{}", change.note);
        return super::print_all(&env_file::lines(&change.settings));
    };
    let file = EnvFile::open(file)?;
    file.ensure_nothing_staged()?;
    // The file is what gets changed, even if it was not loaded into the environment.
    let change = work(&file.over(source))?;
    file.with(&change.settings)?.put()?;
    super::print_all(&format!("{}\n", change.note))
}

fn show(source: &Source) -> anyhow::Result<String> {
    let mut reader = Reader::new(source);
    let config = ServerConfig::read(&mut reader);
    let config = reader.finish(config)?;
    let keys = ApiKeys::from_config(&config);
    let mut text = format!("ANON_KEY={}\nSERVICE_ROLE_KEY={}\n", keys.anon(), keys.service_role());
    if let Some(key) = &config.publishable_key {
        text.push_str(&format!("SB_PUBLISHABLE_KEY={key}\n"));
    }
    if let Some(key) = &config.secret_key {
        text.push_str(&format!("SB_SECRET_KEY={}\n", key.reveal()));
    }
    Ok(text)
}

/// Settings as `NAME=value` lines. The values contain only characters that need no quoting.
fn generate() -> anyhow::Result<String> {
    let secret = random(48)?;
    let settings = [
        ("POSTGRES_PASSWORD", random(24)?),
        ("ANON_KEY", sign_key(&secret, "anon")),
        ("SERVICE_ROLE_KEY", sign_key(&secret, "service_role")),
        ("JWT_SECRET", secret),
        ("SB_PUBLISHABLE_KEY", format!("sb_publishable_{}", random(24)?)),
        ("SB_SECRET_KEY", format!("sb_secret_{}", random(24)?)),
    ];
    Ok(settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect())
}

/// `bytes` random bytes from the operating system, as URL-safe base64.
fn random(bytes: usize) -> anyhow::Result<String> {
    let mut buffer = vec![0; bytes];
    OsRng.try_fill_bytes(&mut buffer)?;
    Ok(URL_SAFE_NO_PAD.encode(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_are_signed_by_their_secret_and_differ_each_time() {
        let text = generate().expect("random numbers");
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{name}="))).expect(name);
            line.split_once('=').expect(name).1.to_owned()
        };
        let secret = value("JWT_SECRET");
        assert!(secret.len() >= 32);
        assert_eq!(value("ANON_KEY"), sign_key(&secret, "anon"));
        assert_eq!(value("SERVICE_ROLE_KEY"), sign_key(&secret, "service_role"));
        assert!(value("SB_PUBLISHABLE_KEY").starts_with("sb_publishable_"));
        assert_ne!(text, generate().expect("random numbers"));
    }
}
