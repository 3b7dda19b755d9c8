//! An entry of the audit log, derived from a request.

use sha2::{Digest, Sha256};

/// The longest target, in characters.
const LONGEST: usize = 300;

/// Who did what, in which minute, and the outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Since 1970.
    pub minute: i64,
    /// See [`actor_of`].
    pub actor: String,
    pub address: String,
    /// The method.
    pub action: String,
    /// See [`target_of`].
    pub target: String,
    /// The class of the status.
    pub outcome: String,
}

/// The key behind a header `Authorization` or `apikey`: the first digits of its hash, or the id of an S3 access key.
pub fn actor_of(presented: Option<&str>) -> String {
    let Some(presented) = presented else { return "unknown key".to_owned() };
    if let Some(signed) = presented.strip_prefix("AWS4-HMAC-SHA256") {
        let id = signed.split_once("Credential=").and_then(|(_, rest)| rest.split('/').next());
        return actor_of_s3(id.unwrap_or("unknown"));
    }
    let key = match presented.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => presented,
    };
    format!("key {}", fingerprint(key))
}

/// The owner of an S3 access key with this id.
pub fn actor_of_s3(id: &str) -> String {
    format!("s3 {id}")
}

/// Identifies a key without revealing it: twelve digits of the SHA-256.
pub fn fingerprint(key: &str) -> String {
    hex::encode(&Sha256::digest(key.as_bytes())[..6])
}

/// The target of a path: a table, a function, an account, a bucket. File names are left out, because their number is
/// unlimited.
pub fn target_of(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').collect();
    let kept = match segments.get(1..) {
        Some(["storage", "v1", "object", verb, ..])
            if ["sign", "upload", "public", "authenticated", "info", "list", "list-v2"].contains(verb) =>
        {
            6
        }
        Some(["storage", "v1", ..]) => 5,
        _ => segments.len(),
    };
    segments[..kept.min(segments.len())].join("/").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_identified_by_hash_in_every_position() {
        let expected = "key 2c70e12b7a06";
        assert_eq!(actor_of(Some("secret-key")), format!("key {}", fingerprint("secret-key")));
        assert_eq!(actor_of(Some("Bearer secret-key")), actor_of(Some("secret-key")));
        assert_eq!(actor_of(Some("secret-key")).len(), expected.len());
        assert!(!actor_of(Some("secret-key")).contains("secret"));
        let signed = "AWS4-HMAC-SHA256 Credential=625729a0/20260101/local/s3/aws4_request, Signature=x";
        assert_eq!(actor_of(Some(signed)), "s3 625729a0");
        assert_eq!(actor_of(None), "unknown key");
    }

    #[test]
    fn targets_name_tables_accounts_and_buckets_but_no_files() {
        for (path, target) in [
            ("/rest/v1/notes", "/rest/v1/notes"),
            ("/rest/v1/rpc/close_month", "/rest/v1/rpc/close_month"),
            ("/auth/v1/admin/users/4711", "/auth/v1/admin/users/4711"),
            ("/storage/v1/object/docs/a/b.pdf", "/storage/v1/object/docs"),
            ("/storage/v1/object/sign/docs/a/b.pdf", "/storage/v1/object/sign/docs"),
            ("/storage/v1/s3/docs/a/b.pdf", "/storage/v1/s3/docs"),
            ("/storage/v1/bucket/docs/empty", "/storage/v1/bucket/docs"),
            ("/storage/v1/upload/resumable/x", "/storage/v1/upload/resumable"),
        ] {
            assert_eq!(target_of(path), target);
        }
        assert_eq!(target_of(&format!("/rest/v1/{}", "é".repeat(1000))).chars().count(), LONGEST);
    }
}
