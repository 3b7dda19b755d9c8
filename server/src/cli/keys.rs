//! `keys generate` and `keys show`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Subcommand;
use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::config::{Reader, ServerConfig, Source};
use crate::gateway::{ApiKeys, sign_key};

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Print new secrets and keys as settings, ready for an .env file
    Generate,
    /// Print the API keys that the present configuration gives
    Show,
}

pub fn run(command: KeysCommand, source: &Source) -> anyhow::Result<()> {
    let text = match command {
        KeysCommand::Generate => generate()?,
        KeysCommand::Show => {
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
            text
        }
    };
    super::print_all(&text)
}

/// One `NAME=value` a line. Values hold only characters that no shell or file format minds.
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

/// `bytes` random bytes from the operating system as URL-safe base64.
fn random(bytes: usize) -> anyhow::Result<String> {
    let mut buffer = vec![0; bytes];
    OsRng.try_fill_bytes(&mut buffer)?;
    Ok(URL_SAFE_NO_PAD.encode(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_fit_their_secret_and_are_new_each_time() {
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
