//! From a compact token to its claims.

use base64::Engine as _;
use serde::Deserialize;

use super::keys::{Check, KeySet, Signed};
use super::material::{Algorithm, BASE64URL};
use super::{Claims, ClaimsError, DecodeError, JwtError};

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Critical extensions (RFC 7515, 4.1.11), none of which are supported.
    crit: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    #[allow(dead_code, reason = "only its type is checked")]
    typ: Option<String>,
    #[serde(default)]
    #[allow(dead_code, reason = "only its type is checked")]
    cty: Option<String>,
}

/// A header from JSON in UTF-8. On bytes, `serde_json` would skip members that nobody reads without looking at their encoding.
fn header(json: &[u8]) -> Option<Header> {
    serde_json::from_str(std::str::from_utf8(json).ok()?).ok()
}

/// The claims of a signed token. Times and audience are checked by [`Claims::check`].
pub fn verify(token: &str, keys: &KeySet) -> Result<Claims, JwtError> {
    if token.is_empty() {
        return Err(DecodeError::Empty.into());
    }
    let parts: Vec<&str> = token.split('.').collect();
    let &[header_part, claims_part, signature_part] = parts.as_slice() else {
        return Err(DecodeError::Parts(parts.len()).into());
    };
    let decode = |part: &str| BASE64URL.decode(part).map_err(|_| DecodeError::Unreadable);
    let header = header(&decode(header_part)?).ok_or(DecodeError::Unreadable)?;
    let claims = decode(claims_part)?;
    if header.crit.is_some() {
        return Err(DecodeError::Unreadable.into());
    }
    if header.alg == "none" {
        return Err(DecodeError::Unsecured.into());
    }
    let algorithm = Algorithm::by_name(&header.alg).ok_or(DecodeError::Unreadable)?;
    let signature = decode(signature_part)?;
    let message = header_part.len() + 1 + claims_part.len();
    let (kid, signed) = (header.kid.as_deref(), Signed { token, message, signature: &signature });
    let own = keys.check(algorithm, kid, signed);
    let of_another = match (own, &keys.others) {
        (Check::NoKey | Check::NotSigned, Some(others)) => others.check(algorithm, kid, signed, &claims),
        _ => None,
    };
    match of_another.unwrap_or(own) {
        Check::NoKey => Err(DecodeError::NoSuitableKey.into()),
        Check::NotSigned => Err(DecodeError::NoKeyFits.into()),
        Check::Signed { until } => {
            let claims = Claims::parse(&claims).ok_or(ClaimsError::Unreadable)?;
            // Other issuers use these claims in their own ways.
            if of_another.is_none() && claims.are_of_id_token() {
                return Err(ClaimsError::IdToken.into());
            }
            Ok(claims.until(until))
        }
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header as Heading, encode};
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &[u8] = b"a secret that is long enough for HS256";

    fn hs(algorithm: jsonwebtoken::Algorithm, kid: Option<&str>, claims: &Value) -> String {
        let mut header = Heading::new(algorithm);
        header.kid = kid.map(str::to_owned);
        encode(&header, claims, &EncodingKey::from_secret(SECRET)).expect("token")
    }

    fn refused(token: &str, keys: &KeySet) -> DecodeError {
        match verify(token, keys) {
            Err(JwtError::Decode(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_text_secret_verifies_only_hs256() {
        let keys = KeySet::from_secret(SECRET);
        let token = hs(jsonwebtoken::Algorithm::HS256, None, &json!({"role": "r"}));
        assert_eq!(verify(&token, &keys).expect("claims").text("role"), Some("r"));
        let longer = hs(jsonwebtoken::Algorithm::HS512, None, &json!({}));
        assert_eq!(refused(&longer, &keys), DecodeError::NoSuitableKey);
        assert_eq!(refused(&token, &KeySet::from_secret(b"another")), DecodeError::NoKeyFits);
    }

    #[test]
    fn an_id_token_is_no_access_token() {
        let claims = json!({"sub": "1", "aud": "c", "client_id": "c"});
        let token = hs(jsonwebtoken::Algorithm::HS256, None, &claims);
        assert_eq!(verify(&token, &KeySet::from_secret(SECRET)), Err(ClaimsError::IdToken.into()));
    }

    #[test]
    fn the_format_is_checked_before_the_signature() {
        let keys = KeySet::from_secret(SECRET);
        assert_eq!(refused("", &keys), DecodeError::Empty);
        assert_eq!(refused("a", &keys), DecodeError::Parts(1));
        assert_eq!(refused("a.b.c.d", &keys), DecodeError::Parts(4));
        assert_eq!(refused("..", &keys), DecodeError::Unreadable);
        let none = format!("{}.{}.", BASE64URL.encode(r#"{"alg":"none"}"#), BASE64URL.encode("{}"));
        assert_eq!(refused(&none, &keys), DecodeError::Unsecured);
        let token = hs(jsonwebtoken::Algorithm::HS256, None, &json!({}));
        assert_eq!(refused(&format!("{token}!"), &keys), DecodeError::Unreadable);
        let (_, signed) = token.split_once('.').expect("parts");
        let no_text = format!("{}.{signed}", BASE64URL.encode(b"{\"alg\":\"HS256\",\"x\":\"\xef\"}"));
        assert_eq!(refused(&no_text, &keys), DecodeError::Unreadable);
        let critical = format!("{}.{signed}", BASE64URL.encode(r#"{"alg":"HS256","crit":["b64"]}"#));
        assert_eq!(refused(&critical, &keys), DecodeError::Unreadable);
    }

    #[test]
    fn a_kid_selects_only_its_own_key() {
        let jwk = |kid: &str| json!({"kty": "oct", "kid": kid, "k": BASE64URL.encode(SECRET)});
        let keys = |kid: &str| KeySet::parse(json!({"keys": [jwk(kid)]}).to_string().as_bytes()).expect("keys");
        let token = hs(jsonwebtoken::Algorithm::HS384, Some("one"), &json!({}));
        assert!(verify(&token, &keys("one")).is_ok());
        assert_eq!(refused(&token, &keys("two")), DecodeError::NoSuitableKey);
        let without = hs(jsonwebtoken::Algorithm::HS384, None, &json!({}));
        assert!(verify(&without, &keys("two")).is_ok());
    }

    #[test]
    fn a_signed_payload_that_is_not_an_object_is_refused() {
        let token = encode(&Heading::default(), &json!("text"), &EncodingKey::from_secret(SECRET)).expect("token");
        assert_eq!(verify(&token, &KeySet::from_secret(SECRET)).err(), Some(JwtError::Claims(ClaimsError::Unreadable)));
    }

    /// Regression: a token with a later expiry than its key's was accepted until then.
    #[test]
    fn a_former_key_is_valid_until_it_ends_and_only_for_its_listed_tokens() {
        let token = hs(jsonwebtoken::Algorithm::HS256, None, &json!({"role": "r", "exp": 5_000_000_000_i64}));
        let other = hs(jsonwebtoken::Algorithm::HS256, None, &json!({"role": "s", "exp": 5_000_000_000_i64}));
        let keys = |members: Value| {
            let mut jwk = json!({"kty": "oct", "alg": "HS256", "k": BASE64URL.encode(SECRET)});
            jwk.as_object_mut().expect("object").extend(members.as_object().expect("object").clone());
            KeySet::parse(json!({"keys": [jwk]}).to_string().as_bytes()).expect("keys")
        };
        let now = chrono::Utc::now().timestamp();
        let claims = verify(&token, &keys(json!({"exp": now + 600}))).expect("still accepted");
        assert_eq!(claims.check(now + 599, None), Ok(()));
        assert_eq!(claims.check(now + 600, None), Err(ClaimsError::Expired));
        assert_eq!(claims.valid(None).map(|valid| *valid.end()), Some(now + 599));
        assert_eq!(refused(&token, &keys(json!({"exp": now}))), DecodeError::NoSuitableKey);
        let restricted = keys(json!({"only": [token]}));
        assert!(verify(&token, &restricted).is_ok());
        assert_eq!(refused(&other, &restricted), DecodeError::NoKeyFits);
        assert!(
            KeySet::parse(json!({"keys": [{"kty": "oct", "k": "AAAA", "exp": "soon"}]}).to_string().as_bytes())
                .is_err()
        );
    }

    #[test]
    fn es512_is_verified() {
        use p521::ecdsa::signature::Signer as _;
        let mut secret = [7u8; 66];
        secret[0] = 0;
        let signer = p521::ecdsa::SigningKey::from_slice(&secret).expect("key");
        let verifying = p521::ecdsa::VerifyingKey::from(&signer);
        let point = verifying.to_encoded_point(false);
        let jwk = json!({"kty": "EC", "crv": "P-521",
            "x": BASE64URL.encode(point.x().expect("x")), "y": BASE64URL.encode(point.y().expect("y"))});
        let message = format!("{}.{}", BASE64URL.encode(r#"{"alg":"ES512"}"#), BASE64URL.encode(r#"{"a":1}"#));
        let signature: p521::ecdsa::Signature = signer.sign(message.as_bytes());
        let keys = KeySet::parse(jwk.to_string().as_bytes()).expect("keys");
        let token = format!("{message}.{}", BASE64URL.encode(signature.to_bytes()));
        assert!(verify(&token, &keys).is_ok());
        assert_eq!(refused(&format!("{message}.{}", BASE64URL.encode([0u8; 132])), &keys), DecodeError::NoKeyFits);
    }
}
