//! Proof key for code exchange: challenges, verifiers and the prefix of their tokens.
//! Reference: RFC 7636, supabase/auth `internal/api/pkce.go`, `internal/security/pkce.go`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::auth::error::{AuthError, AuthResult};

/// The prefix of tokens in mails whose link gives an auth code instead of a session.
pub const PREFIX: &str = "pkce_";

/// A token's hash without the prefix.
pub fn bare(hash: &str) -> &str {
    hash.strip_prefix(PREFIX).unwrap_or(hash)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeMethod {
    S256,
    Plain,
}

impl ChallengeMethod {
    /// Case-insensitive; `None` for other methods.
    pub fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("s256") {
            Some(Self::S256)
        } else if text.eq_ignore_ascii_case("plain") {
            Some(Self::Plain)
        } else {
            None
        }
    }

    /// As the database spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::S256 => "s256",
            Self::Plain => "plain",
        }
    }
}

/// The challenge that a client sends when it begins a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub method: ChallengeMethod,
    pub code: String,
}

impl Challenge {
    /// Reads the two request fields: either none, or both and well formed.
    ///
    /// Upstream answers 500 for an unknown method; here it is 400, because it is the caller's fault.
    pub fn read(method: &str, code: &str) -> AuthResult<Option<Self>> {
        match (method.is_empty(), code.is_empty()) {
            (true, true) => return Ok(None),
            (false, false) => {}
            _ => return Err(AuthError::invalid("PKCE flow requires code_challenge_method and code_challenge")),
        }
        if !(43..=128).contains(&code.len()) {
            return Err(AuthError::invalid("code challenge has to be between 43 and 128 characters"));
        }
        if !code.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)) {
            return Err(AuthError::invalid(
                "code challenge can only contain alphanumeric characters, hyphens, periods, underscores and tildes",
            ));
        }
        let method =
            ChallengeMethod::parse(method).ok_or_else(|| AuthError::invalid("Invalid code_challenge_method"))?;
        Ok(Some(Self { method, code: code.to_owned() }))
    }

    /// Whether `verifier` meets the challenge; compared in constant time.
    pub fn is_met_by(&self, verifier: &str) -> bool {
        let derived = match self.method {
            ChallengeMethod::S256 => URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())),
            ChallengeMethod::Plain => verifier.to_owned(),
        };
        derived.as_bytes().ct_eq(self.code.as_bytes()).into()
    }
}

/// A token's hash with the prefix of its flow.
pub fn prefixed(hash: String, challenge: Option<&Challenge>) -> String {
    if challenge.is_some() { format!("{PREFIX}{hash}") } else { hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_or_malformed_challenges_are_refused() {
        let code = "a".repeat(43);
        assert_eq!(Challenge::read("", "").expect("none"), None);
        assert!(Challenge::read("S256", &code).expect("some").is_some());
        for (method, code) in [("s256", ""), ("", code.as_str()), ("s256", "short"), ("sha1", code.as_str())] {
            assert!(Challenge::read(method, code).is_err(), "{method} {code}");
        }
        assert!(Challenge::read("plain", &"ä".repeat(40)).is_err());
    }

    #[test]
    fn only_the_right_verifier_matches_a_challenge() {
        // RFC 7636, appendix B.
        let challenge =
            Challenge { method: ChallengeMethod::S256, code: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned() };
        assert!(challenge.is_met_by("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert!(!challenge.is_met_by("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"));
    }
}
