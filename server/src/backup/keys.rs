//! The keys among the settings. Without them, restored data cannot be read or sessions become invalid, so they are stored inside
//! the encrypted archive. (The vault's key is a file of the cluster.)

use crate::config::{Reader, Source};
use crate::jwt;

/// Name of the archive's entry.
pub const ENTRY: &str = "keys.env";

const NAMES: [&str; 16] = [
    "JWT_SECRET",
    "GOTRUE_JWT_SECRET",
    "PGRST_JWT_SECRET",
    "GOTRUE_JWT_KEYS",
    "GOTRUE_JWT_KEY_ID",
    "FERROBASE_ACCEPTED_KEYS",
    "ANON_KEY",
    "SERVICE_ROLE_KEY",
    "SB_PUBLISHABLE_KEY",
    "SUPABASE_PUBLISHABLE_KEY",
    "SB_SECRET_KEY",
    "SUPABASE_SECRET_KEY",
    "S3_PROTOCOL_ACCESS_KEY_ID",
    "S3_PROTOCOL_ACCESS_KEY_SECRET",
    "API_JWT_JWKS",
    "JWT_JWKS",
];
/// Column encryption: the key, its name, and former keys.
const PREFIX: &str = "GOTRUE_SECURITY_DATABASE_ENCRYPTION_";

/// The keys that are set, in `.env` format.
pub fn collect(source: &Source) -> String {
    let named = NAMES.iter().filter_map(|name| Some((*name, source.get(name)?)));
    let set = named.chain(source.with_prefix(PREFIX)).filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| format!("{name}={}\n", quoted(value))).collect()
}

/// The keys of an archive without those that the server derives from others. Archives that earlier versions made by schedule have them as
/// if they had been set; whoever took them over would keep them when the secret is rotated.
pub fn given(text: &str) -> String {
    let saved = Source::from_pairs(dotenvy::from_read_iter(text.as_bytes()).flatten());
    let mut reader = Reader::new(&saved);
    let Some(secret) = reader.text(&["JWT_SECRET"]) else { return text.to_owned() };
    let key_id = reader.text_or(&["GOTRUE_JWT_KEY_ID"], "");
    let (keys, accepted) = (reader.text(&["GOTRUE_JWT_KEYS"]), reader.accepted_keys());
    let verifying = jwt::shared::jwt_secret(&secret, &key_id, keys.as_deref(), &accepted);
    let derived = [("GOTRUE_JWT_SECRET", secret), ("PGRST_JWT_SECRET", verifying)];
    let is_derived = |name: &str, value: &str| derived.iter().any(|(known, of)| *known == name && of == value);
    let kept = saved.with_prefix("").filter(|(name, value)| !is_derived(name, value));
    kept.map(|(name, value)| format!("{name}={}\n", quoted(value))).collect()
}

/// Names of the keys in `text` that the settings lack or have with another value.
pub fn differing(text: &str, source: &Source) -> Vec<String> {
    let saved = dotenvy::from_read_iter(text.as_bytes()).flatten();
    saved.filter(|(name, value)| source.get(name) != Some(value.as_str())).map(|(name, _)| name).collect()
}

/// Quotes a value so that both `.env` parsers and shells read it.
pub fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/+=,".contains(c);
    if value.chars().all(is_plain) {
        value.to_owned()
    } else if value.contains('\'') || value.contains('\n') {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('\n', "\\n");
        format!("\"{escaped}\"")
    } else {
        format!("'{value}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_any_characters_are_read_back_unchanged() {
        let pairs = [
            ("JWT_SECRET", "a plain secret with $blanks and #signs"),
            ("GOTRUE_JWT_KEYS", r#"[{"kty":"EC","kid":"it's \"one\""}]"#),
            ("GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPTION_KEY", "abc+/="),
            ("ANON_KEY", "line\nbreak"),
        ];
        let source = Source::from_pairs(pairs.iter().copied().chain([("SMTP_PASS", "stays here")]));
        let text = collect(&source);
        let read: Vec<(String, String)> =
            dotenvy::from_read_iter(text.as_bytes()).map(|pair| pair.expect("a pair")).collect();
        assert_eq!(read.len(), pairs.len());
        assert_eq!(differing(&text, &source), [""; 0]);
        let other = Source::from_pairs([("JWT_SECRET", "another"), ("ANON_KEY", "line\nbreak")]);
        assert_eq!(
            differing(&text, &other),
            ["JWT_SECRET", "GOTRUE_JWT_KEYS", "GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPTION_KEY"]
        );
    }

    #[test]
    fn keys_that_follow_from_others_are_not_taken_for_given_ones() {
        let of = |pairs: &[(&str, &str)]| collect(&Source::from_pairs(pairs.iter().copied()));
        let secret = ("JWT_SECRET", "a secret of at least thirty-two bytes");
        let derived = of(&[secret, ("GOTRUE_JWT_SECRET", secret.1), ("PGRST_JWT_SECRET", secret.1)]);
        assert_eq!(given(&derived), of(&[secret]));
        let signing =
            ("GOTRUE_JWT_KEYS", r#"[{"kty":"EC","kid":"new","alg":"ES256","crv":"P-256","x":"eA","y":"eQ","d":"ZA"}]"#);
        let verifying = jwt::shared::jwt_secret(secret.1, "", Some(signing.1), &[]);
        let mut names: Vec<_> = given(&of(&[secret, signing, ("PGRST_JWT_SECRET", &verifying)]))
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
            .collect();
        names.sort();
        assert_eq!(names, ["GOTRUE_JWT_KEYS", "JWT_SECRET"]);
        for set in [
            of(&[secret, ("GOTRUE_JWT_SECRET", "another"), ("PGRST_JWT_SECRET", &verifying)]),
            of(&[("GOTRUE_JWT_SECRET", secret.1)]),
        ] {
            assert_eq!(given(&set).lines().count(), set.lines().count(), "{set}");
        }
    }
}
