//! The keys among the settings. Without them, restored data cannot be read or sessions become invalid, so they are stored inside
//! the encrypted archive. (The vault's key is a file of the cluster.)

use crate::config::Source;

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
}
