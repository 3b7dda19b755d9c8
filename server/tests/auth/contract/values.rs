//! The named values of a case, and functions of them: `{{name}}` and `{{function arguments}}`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac as _};
use sha2::Digest as _;

use super::keys;

#[derive(Clone, Default)]
pub struct Values {
    pub known: BTreeMap<String, String>,
}

pub fn unix_now() -> i64 {
    chrono::Utc::now().timestamp()
}

impl Values {
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.known.insert(name.to_owned(), value.into());
    }

    pub fn get(&self, name: &str) -> &str {
        self.known.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Names a value. If the name already has a different value, returns that one.
    pub fn bind(&mut self, name: &str, value: &str) -> Option<String> {
        if name.is_empty() {
            return None;
        }
        let known = self.known.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        (known != value).then(|| known.clone())
    }

    /// Replaces every `{{…}}`.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let Some(end) = rest[start..].find("}}").map(|end| start + end) else { break };
            let words: Vec<&str> = rest[start + 2..end].split(' ').filter(|word| !word.is_empty()).collect();
            let value = self.evaluate(&words).unwrap_or_else(|| panic!("{words:?} is neither value nor function"));
            out.push_str(&rest[..start]);
            out.push_str(&value);
            rest = &rest[end + 2..];
        }
        out.push_str(rest);
        out
    }

    fn evaluate(&self, words: &[&str]) -> Option<String> {
        let (&name, arguments) = words.split_first()?;
        if arguments.is_empty()
            && let Some(value) = self.known.get(name)
        {
            return Some(value.clone());
        }
        let argument = |index: usize| {
            let word = arguments.get(index).copied().unwrap_or_default();
            self.known.get(word).cloned().unwrap_or_else(|| word.to_owned())
        };
        let number = |index: usize| argument(index).parse::<i64>().unwrap_or(0);
        Some(match name {
            "now" => (unix_now() + number(0)).to_string(),
            "iso" => (chrono::Utc::now() + chrono::Duration::seconds(number(0)))
                .to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "upper" => argument(0).to_uppercase(),
            "rep" => argument(1).repeat(usize::try_from(number(0)).expect("a count")),
            "wrong" => if argument(0) == "000000" { "000001" } else { "000000" }.to_owned(),
            "totp" => totp(&argument(0), number(1)),
            "cut" => argument(0).chars().skip(1).collect(),
            "bare" => argument(0).trim_start_matches("pkce_").to_owned(),
            "tamper" => tamper(&argument(0)),
            "b64" => {
                STANDARD.encode(arguments.iter().enumerate().map(|(i, _)| argument(i)).collect::<Vec<_>>().join(":"))
            }
            "s256" => URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(argument(0))),
            "sha224" => hex::encode(sha2::Sha224::digest(argument(0) + &argument(1))),
            "code_hash" => {
                let secret = ferrobase::config::DEVELOPMENT_JWT_SECRET;
                let mut mac = Hmac::<sha2::Sha224>::new_from_slice(secret.as_bytes()).expect("key");
                mac.update((argument(0) + &argument(1)).as_bytes());
                hex::encode(mac.finalize().into_bytes())
            }
            "sha256" => hex::encode(sha2::Sha256::digest(argument(0))),
            "json" => serde_json::Value::String(argument(0)).to_string(),
            "urlq" => url::form_urlencoded::byte_serialize(argument(0).as_bytes()).collect(),
            "credential" => keys::created(&argument(0), &argument(1)).to_string(),
            "assertion" => keys::asserted(&argument(0), &argument(1), &argument(2)).to_string(),
            "solana_address" => keys::solana_address(),
            "solana" => keys::solana_signature(&argument(0)),
            "ledger" => keys::ledger_signature(&argument(0), &argument(1)),
            "ethereum_address" => keys::ethereum_address(),
            "ethereum" => keys::ethereum_signature(&argument(0)),
            "jwk" => keys::public_jwk().to_string(),
            _ => return None,
        })
    }
}

/// The RFC 6238 code, offset by some steps of thirty seconds.
fn totp(secret: &str, steps: i64) -> String {
    let key = data_encoding::BASE32_NOPAD.decode(secret.as_bytes()).expect("base32");
    let mut mac = Hmac::<sha1::Sha1>::new_from_slice(&key).expect("key");
    mac.update(&(unix_now() / 30 + steps).to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let offset = usize::from(digest[19] & 15);
    let word = u32::from_be_bytes(digest[offset..offset + 4].try_into().expect("four bytes"));
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}

/// A token with the signature of another.
fn tamper(token: &str) -> String {
    let (head, signature) = token.rsplit_once('.').expect("a token");
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    format!("{head}.{first}{}", &signature[1..])
}
