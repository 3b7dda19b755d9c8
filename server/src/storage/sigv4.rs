//! AWS Signature Version 4, as shared by both sides: the S3 protocol, which verifies signatures, and the S3 file store, whose
//! requests are signed.
//!
//! Reference: <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html>.

use hmac::{Hmac, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";
pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Characters not encoded in a canonical path or query: the unreserved ones.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
pub const UNRESERVED_AND_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Percent-encodes as AWS does.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// Percent-encodes as AWS does, but keeps slashes.
pub fn encoded_path(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED_AND_SLASH).to_string()
}

/// A signing key, valid for the requests of one day.
#[derive(Clone)]
pub struct SigningKey {
    key: Vec<u8>,
    timestamp: String,
    scope: String,
}

impl SigningKey {
    /// For requests made at `timestamp` (`20261122T101112Z`) to the store of `region`.
    pub fn new(secret: &str, timestamp: &str, region: &str) -> Self {
        let date = timestamp.get(..8).unwrap_or_default();
        let first = hmac(format!("AWS4{secret}").as_bytes(), date.as_bytes());
        let key = [region, "s3", "aws4_request"].iter().fold(first, |key, part| hmac(&key, part.as_bytes()));
        Self { key, timestamp: timestamp.to_owned(), scope: format!("{date}/{region}/s3/aws4_request") }
    }

    /// The hex signature of a string to sign; `last` are its remaining lines.
    pub fn sign(&self, algorithm: &str, last: &str) -> String {
        self.sign_text(&format!("{algorithm}\n{}\n{}\n{last}", self.timestamp, self.scope))
    }

    /// The hex signature of a text.
    pub fn sign_text(&self, text: &str) -> String {
        hex::encode(hmac(&self.key, text.as_bytes()))
    }

    /// `20261122/local/s3/aws4_request`.
    pub fn scope(&self) -> &str {
        &self.scope
    }
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    // HMAC accepts keys of any length.
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(data).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}
