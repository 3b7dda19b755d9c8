//! AWS Signature Version 4: verifies who signed a request and with which key.
//!
//! Implemented here because crates that verify bring their own server (`s3s`: hyper, another version of `http`, thirty thousand
//! generated lines), and crates that sign do not verify. Reference:
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html>.

use actix_web::HttpRequest;
use chrono::{DateTime, NaiveDateTime, Utc};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::refused;
use crate::storage::StorageError;
use crate::storage::sigv4::{ALGORITHM, SigningKey, UNRESERVED_AND_SLASH, UNSIGNED, encoded};

/// Maximum clock difference, in seconds.
const SKEW: i64 = 15 * 60;
/// Maximum lifetime of a presigned URL, in seconds.
const LONGEST: i64 = 7 * 24 * 60 * 60;
/// Amazon headers that need no signature: the first is part of the signed string anyway, the other has no effect.
const NEED_NO_SIGNATURE: [&str; 2] = ["x-amz-content-sha256", "x-amz-user-agent"];

/// The decoded parameters of a query. A plus stays a plus.
pub fn query_of(request: &HttpRequest) -> Vec<(String, String)> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = request.query_string().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(n, v)| (decode(n), decode(v))).collect()
}

/// The signature of a request.
#[derive(Clone, Debug)]
pub struct Signature {
    pub access_key: String,
    pub session_token: Option<String>,
    region: String,
    signed_headers: Vec<String>,
    signature: String,
    /// `20261122T101112Z`.
    timestamp: String,
    at: DateTime<Utc>,
    /// Lifetime of a presigned URL in seconds; `None` for a signature in the header.
    expires: Option<i64>,
    /// What the client declared about the body: a hash in hex, or one of AWS's keywords.
    pub payload: String,
}

impl Signature {
    /// Reads the signature from the header, or else from the query.
    pub fn of_request(request: &HttpRequest, query: &[(String, String)]) -> Result<Self, StorageError> {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let parameter = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        if let Some(fields) = header("authorization").and_then(|text| text.strip_prefix(ALGORITHM)) {
            let mut found = [None; 3];
            for field in fields.split(',') {
                let (name, value) = field.trim().split_once('=').ok_or_else(malformed)?;
                match name {
                    "Credential" => found[0] = Some(value),
                    "SignedHeaders" => found[1] = Some(value),
                    "Signature" => found[2] = Some(value),
                    _ => return Err(malformed()),
                }
            }
            let [Some(credential), Some(signed), Some(signature)] = found else { return Err(malformed()) };
            let timestamp = header("x-amz-date").ok_or_else(malformed)?;
            let payload = header("x-amz-content-sha256").unwrap_or(UNSIGNED);
            let token = header("x-amz-security-token");
            return Self::read(credential, signed, signature, timestamp, None, payload, token);
        }
        if let Some(credential) = parameter("X-Amz-Credential") {
            if parameter("X-Amz-Algorithm") != Some(ALGORITHM) {
                return Err(malformed());
            }
            let signed = parameter("X-Amz-SignedHeaders").ok_or_else(malformed)?;
            let signature = parameter("X-Amz-Signature").ok_or_else(malformed)?;
            let timestamp = parameter("X-Amz-Date").ok_or_else(malformed)?;
            let expires = parameter("X-Amz-Expires").and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
            let payload = parameter("X-Amz-Content-Sha256").or(header("x-amz-content-sha256")).unwrap_or(UNSIGNED);
            let token = parameter("X-Amz-Security-Token");
            return Self::read(credential, signed, signature, timestamp, Some(expires), payload, token);
        }
        Err(StorageError::AccessDenied("Missing signature".to_owned()))
    }

    /// Reads the signature from a form's fields, which have lower case names. It signs the form's policy.
    pub fn of_form<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Result<Self, StorageError> {
        if field("x-amz-algorithm").is_some_and(|algorithm| algorithm != ALGORITHM) {
            return Err(malformed());
        }
        let incomplete = || StorageError::InvalidSignature("Invalid signature format");
        let credential = field("x-amz-credential").ok_or_else(incomplete)?;
        let signature = field("x-amz-signature").ok_or_else(incomplete)?;
        let timestamp = field("x-amz-date").ok_or_else(incomplete)?;
        Self::read(credential, "host", signature, timestamp, None, UNSIGNED, field("x-amz-security-token"))
    }

    fn read(
        credential: &str,
        signed_headers: &str,
        signature: &str,
        timestamp: &str,
        expires: Option<i64>,
        payload: &str,
        token: Option<&str>,
    ) -> Result<Self, StorageError> {
        let (access_key, scope) = credential.split_once('/').ok_or_else(malformed)?;
        let parts: Vec<&str> = scope.split('/').collect();
        let [date, region, "s3", "aws4_request"] = parts.as_slice() else { return Err(malformed()) };
        let at = NaiveDateTime::parse_from_str(timestamp, "%Y%m%dT%H%M%SZ").map_err(|_| malformed())?.and_utc();
        if !timestamp.starts_with(date) || date.len() != 8 {
            return Err(malformed());
        }
        let signed_headers: Vec<String> = signed_headers.split(';').map(str::to_ascii_lowercase).collect();
        if !signed_headers.iter().any(|name| name == "host") {
            return Err(malformed());
        }
        Ok(Self {
            access_key: access_key.to_owned(),
            session_token: token.filter(|token| !token.is_empty()).map(str::to_owned),
            region: (*region).to_owned(),
            signed_headers,
            signature: signature.to_owned(),
            timestamp: timestamp.to_owned(),
            at,
            expires,
            payload: payload.to_owned(),
        })
    }

    /// The signing key for this day, region and service.
    pub fn signing_key(&self, secret: &str) -> SigningKey {
        SigningKey::new(secret, &self.timestamp, &self.region)
    }

    /// Verifies that the request was signed with this key, is in time and was not changed. `prefix` is what a proxy stripped from
    /// the path. The client may have signed any of `hosts`.
    pub fn verify(
        &self,
        request: &HttpRequest,
        query: &[(String, String)],
        prefix: &str,
        hosts: &[String],
        key: &SigningKey,
    ) -> Result<(), StorageError> {
        let age = (Utc::now() - self.at).num_seconds();
        match self.expires {
            Some(life) if !(1..=LONGEST).contains(&life) => return Err(malformed()),
            Some(life) if age > life || age < -SKEW => return Err(StorageError::ExpiredToken),
            None if age.abs() > SKEW => {
                let message = "The difference between the request time and the server's time is too large.";
                return Err(refused(403, "RequestTimeTooSkewed", message));
            }
            _ => {}
        }
        // Unsigned Amazon headers were added on the way, or by the recipient of a link. Without this check, a link for uploading
        // could be used for copying.
        let amazons = request.headers().keys().map(|name| name.as_str()).filter(|name| name.starts_with("x-amz-"));
        for name in amazons.filter(|name| !NEED_NO_SIGNATURE.contains(name)) {
            if !self.signed_headers.iter().any(|signed| signed == name) {
                return Err(StorageError::AccessDenied(
                    "There were headers present in the request which were not signed".to_owned(),
                ));
            }
        }
        let said = |host: &String| {
            let canonical = self.canonical(request, query, prefix, host);
            let expected = key.sign(ALGORITHM, &hex::encode(Sha256::digest(canonical)));
            bool::from(expected.as_bytes().ct_eq(self.signature.as_bytes()))
        };
        if hosts.iter().any(said) { Ok(()) } else { Err(mismatch()) }
    }

    /// Verifies that a form's policy was signed with this key. Its expiry is in the policy itself.
    pub fn verify_policy(&self, policy: &str, key: &SigningKey) -> Result<(), StorageError> {
        let expected = key.sign_text(policy);
        if bool::from(expected.as_bytes().ct_eq(self.signature.as_bytes())) { Ok(()) } else { Err(mismatch()) }
    }

    fn canonical(&self, request: &HttpRequest, query: &[(String, String)], prefix: &str, host: &str) -> String {
        let path = percent_decode_str(request.uri().path()).collect::<Vec<u8>>();
        let path = percent_encoding::percent_encode(&path, UNRESERVED_AND_SLASH);
        let mut pairs: Vec<(String, String)> = query
            .iter()
            .filter(|(name, _)| self.expires.is_none() || name != "X-Amz-Signature")
            .map(|(name, value)| (encoded(name), encoded(value)))
            .collect();
        pairs.sort();
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut headers = String::new();
        for name in &self.signed_headers {
            let values: Vec<String> = if name == "host" {
                vec![host.to_owned()]
            } else {
                let trimmed = |value: &actix_web::http::header::HeaderValue| {
                    let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
                };
                request.headers().get_all(name.as_str()).map(trimmed).collect()
            };
            headers.push_str(&format!("{name}:{}\n", values.join(",")));
        }
        format!(
            "{}\n{prefix}{path}\n{}\n{headers}\n{}\n{}",
            request.method(),
            pairs.join("&"),
            self.signed_headers.join(";"),
            self.payload
        )
    }

    /// The seed for the first chunk's signature.
    pub fn seed(&self) -> &str {
        &self.signature
    }

    /// The region that the client named.
    pub fn region(&self) -> &str {
        &self.region
    }
}

fn malformed() -> StorageError {
    let message = "The authorization that you provided is malformed; a complete Signature Version 4 is expected.";
    refused(400, "AuthorizationHeaderMalformed", message)
}

pub fn mismatch() -> StorageError {
    refused(
        403,
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    fn read(request: &HttpRequest) -> Signature {
        Signature::of_request(request, &query_of(request)).expect("a signature")
    }

    /// AWS's own example of a `GET` with a range in `sig-v4-header-based-auth`.
    #[test]
    fn amazons_header_signature_verifies() {
        let request = TestRequest::get()
            .uri("/test.txt")
            .insert_header(("host", "examplebucket.s3.amazonaws.com"))
            .insert_header(("range", "bytes=0-9"))
            .insert_header(("x-amz-content-sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
            .insert_header(("x-amz-date", "20130524T000000Z"))
            .insert_header((
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
                 SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
                 Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ))
            .to_http_request();
        let signature = read(&request);
        let canonical = signature.canonical(&request, &[], "", "examplebucket.s3.amazonaws.com");
        let expected = signature.signing_key(SECRET).sign(ALGORITHM, &hex::encode(Sha256::digest(canonical)));
        assert_eq!(expected, signature.signature);
        let late = signature.verify(&request, &[], "", &[], &signature.signing_key(SECRET)).expect_err("long ago");
        assert_eq!(late.code(), "RequestTimeTooSkewed");
    }

    /// AWS's own example of a presigned URL in `sigv4-query-string-auth`.
    #[test]
    fn amazons_query_signature_verifies() {
        let request = TestRequest::get()
            .uri(
                "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1\
                 %2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
                 &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
            )
            .insert_header(("host", "examplebucket.s3.amazonaws.com"))
            .to_http_request();
        let (signature, query) = (read(&request), query_of(&request));
        let canonical = signature.canonical(&request, &query, "", "examplebucket.s3.amazonaws.com");
        let expected = signature.signing_key(SECRET).sign(ALGORITHM, &hex::encode(Sha256::digest(canonical)));
        assert_eq!(expected, signature.signature);
        let late = signature.verify(&request, &query, "", &[], &signature.signing_key(SECRET)).expect_err("long ago");
        assert_eq!(late.code(), "ExpiredToken");
    }

    #[test]
    fn incomplete_signatures_are_malformed() {
        let whole = "AWS4-HMAC-SHA256 Credential=A/20130524/local/s3/aws4_request, SignedHeaders=host, Signature=x";
        let read = |authorization: &str| {
            let request = TestRequest::get()
                .insert_header(("authorization", authorization))
                .insert_header(("x-amz-date", "20130524T000000Z"))
                .to_http_request();
            Signature::of_request(&request, &[])
        };
        assert!(read(whole).is_ok());
        for (part, instead) in [
            ("/s3/", "/ec2/"),
            ("20130524", "20130525"),
            ("SignedHeaders=host", "SignedHeaders=range"),
            (", Signature=x", ""),
            ("A/2013", "A2013"),
        ] {
            let refused = read(&whole.replace(part, instead)).expect_err(instead);
            assert_eq!(refused.code(), "AuthorizationHeaderMalformed", "{instead}");
        }
    }
}
