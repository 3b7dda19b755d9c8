//! What both sides of AWS Signature Version 4 share: the S3 protocol that we serve verifies, the S3 store that holds the
//! files is asked with signatures of ours.
//!
//! Reference: <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html>.

use hmac::{Hmac, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";
pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// What stays as it is in a canonical path or query: the unreserved characters.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
pub const UNRESERVED_AND_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Encodes as AWS does.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// Encodes as AWS does; slashes stay.
pub fn encoded_path(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED_AND_SLASH).to_string()
}

/// A key that signs requests and chunks of one day.
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

    /// The signature of a text, in hex. `last` are the further lines.
    pub fn sign(&self, algorithm: &str, last: &str) -> String {
        self.sign_text(&format!("{algorithm}\n{}\n{}\n{last}", self.timestamp, self.scope))
    }

    /// The signature of a text as it is, in hex.
    pub fn sign_text(&self, text: &str) -> String {
        hex::encode(hmac(&self.key, text.as_bytes()))
    }

    /// `20261122/local/s3/aws4_request`.
    pub fn scope(&self) -> &str {
        &self.scope
    }
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    // A key of any length will do.
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(data).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}
