//! The keys of the authentication API: signs and checks its tokens, and publishes the public keys.
//!
//! Keys come from a JSON array of private JWKs (one of them with `sign` in `key_ops`) or from the shared
//! secret. Older keys stay in the array for verification, so that rotating keys does not end sessions.
//! Reference: supabase/auth `internal/conf/jwk.go`, `internal/api/auth.go`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use jsonwebtoken::EncodingKey;
use p256::pkcs8::EncodePrivateKey as _;
use p521::ecdsa::signature::Signer as _;
use rsa::pkcs1::EncodeRsaPrivateKey as _;
use rsa::{BigUint, RsaPrivateKey};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::AcceptedKeys;
use super::claims::are_of_id_token;
use super::keys::{end_of, has_come};
use super::material::{Algorithm, BASE64URL, Material, octets};
use crate::secret::Secret;

/// Why a set of keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the keys are not a JSON array of JWKs")]
    Json,
    #[error("the key '{0}' lacks '{1}' or has an invalid one")]
    Member(String, &'static str),
    #[error("the key '{0}' has an algorithm that is not supported (HS256, RS256, RS512, ES256, ES512, EdDSA are)")]
    Algorithm(String),
    #[error("exactly one key must have 'sign' among its key_ops; {0} do")]
    Signers(usize),
}

/// Why a token was refused. The text is for the caller.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    #[error("token is malformed: {0}")]
    Malformed(&'static str),
    #[error("token signature is invalid: signing method {0} is invalid")]
    Method(String),
    #[error("token is unverifiable: error while executing keyfunc: unrecognized JWT kid {0} for algorithm {1}")]
    UnknownKey(String, String),
    #[error("token signature is invalid: signature is invalid")]
    Signature,
    #[error("token has invalid claims: token is expired")]
    Expired,
    #[error("token has invalid claims: token is not valid yet")]
    Early,
    #[error("token has invalid claims: an ID token is not an access token")]
    IdToken,
}

/// What signs. `jsonwebtoken` does not support P-521.
enum Signer {
    Known(EncodingKey, jsonwebtoken::Algorithm),
    P521(Box<p521::ecdsa::SigningKey>),
}

impl Signer {
    /// The signature of `message` in base64url.
    fn sign(&self, message: &str) -> Result<String, jsonwebtoken::errors::Error> {
        match self {
            Self::Known(key, algorithm) => jsonwebtoken::crypto::sign(message.as_bytes(), key, *algorithm),
            Self::P521(key) => {
                let signature: p521::ecdsa::Signature = key.sign(message.as_bytes());
                Ok(URL_SAFE_NO_PAD.encode(signature.to_bytes()))
            }
        }
    }
}

struct Key {
    kid: String,
    algorithm: Algorithm,
    material: Material,
    /// The published key; `None` for symmetric keys.
    public: Option<Value>,
    /// Its end, in seconds since 1970: member `exp`.
    until: Option<i64>,
}

/// The signing key, every verifying key and the algorithms that are accepted.
pub struct SigningKeys {
    algorithm: Algorithm,
    /// The encoded header of every token.
    header: String,
    signer: Signer,
    keys: Vec<Key>,
    /// HS256 with the shared secret, for tokens without a known `kid`.
    secret: Material,
    /// Further secrets: former ones, and one that comes next.
    accepted: Vec<Accepted>,
    valid_methods: Vec<String>,
}

/// A secret that verifies beside the one that signs.
struct Accepted {
    kid: Option<String>,
    material: Material,
    /// Its end, in seconds since 1970.
    until: Option<i64>,
    /// API keys of its time, and their end.
    tokens: Vec<Secret>,
    tokens_until: Option<i64>,
}

impl Accepted {
    fn new(keys: &AcceptedKeys) -> Self {
        Self {
            kid: keys.jwt_key_id.clone(),
            material: Material::Symmetric(keys.jwt_secret.reveal().as_bytes().to_vec()),
            until: keys.tokens_until.map(|until| until.timestamp()),
            tokens: keys.tokens().cloned().collect(),
            tokens_until: keys.keys_until.map(|until| until.timestamp()),
        }
    }

    fn has_signed(&self, token: &str, message: &str, signature: &[u8]) -> bool {
        let is_key = self.tokens.iter().any(|key| key.reveal() == token);
        let is_in_time = |until: Option<i64>| !until.is_some_and(has_come);
        (is_in_time(self.until) || is_key && is_in_time(self.tokens_until))
            && self.material.verifies(Algorithm::HS256, message.as_bytes(), signature)
    }
}

impl SigningKeys {
    /// The keys of `jwks` if there are any, else `secret` with `key_id` (may be empty) as its `kid`.
    ///
    /// `valid_methods` replaces the accepted algorithms. The default is those of the configured keys, so that
    /// with only asymmetric keys a token signed with the secret is refused.
    pub fn new(
        secret: &Secret,
        key_id: &str,
        jwks: Option<&Secret>,
        valid_methods: Option<&[String]>,
    ) -> Result<Self, KeyError> {
        let shared = secret.reveal().as_bytes();
        let (signing, mut keys) = match jwks {
            Some(jwks) => read_jwks(jwks.reveal())?,
            None => {
                let signer = Signer::Known(EncodingKey::from_secret(shared), jsonwebtoken::Algorithm::HS256);
                (SigningKey { algorithm: Algorithm::HS256, kid: key_id.to_owned(), signer }, Vec::new())
            }
        };
        let methods = match valid_methods {
            Some(methods) => methods.to_vec(),
            None if keys.is_empty() => vec![name(Algorithm::HS256).to_owned()],
            None => keys.iter().map(|key| name(key.algorithm).to_owned()).collect(),
        };
        if !key_id.is_empty() && !keys.iter().any(|key| key.kid == key_id) {
            keys.push(Key {
                kid: key_id.to_owned(),
                algorithm: Algorithm::HS256,
                material: Material::Symmetric(shared.to_vec()),
                public: None,
                until: None,
            });
        }
        let mut header = json!({ "alg": name(signing.algorithm), "typ": "JWT" });
        if !signing.kid.is_empty() {
            header["kid"] = json!(signing.kid);
        }
        Ok(Self {
            algorithm: signing.algorithm,
            header: URL_SAFE_NO_PAD.encode(header.to_string()),
            signer: signing.signer,
            keys,
            secret: Material::Symmetric(shared.to_vec()),
            accepted: Vec::new(),
            valid_methods: methods,
        })
    }

    /// The same, which take tokens of further secrets as well.
    pub fn accepting(mut self, keys: &[AcceptedKeys]) -> Self {
        self.accepted = keys.iter().map(Accepted::new).collect();
        self
    }

    /// Whether tokens are signed with a published key.
    pub fn is_asymmetric(&self) -> bool {
        self.algorithm != Algorithm::HS256
    }

    /// A compact token over `claims`.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, jsonwebtoken::errors::Error> {
        let mut token = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims)?));
        let signature = self.signer.sign(&token)?;
        token.push('.');
        token.push_str(&signature);
        Ok(token)
    }

    /// The claims of `token` if its signature, `exp` and `nbf` hold (no leeway; both may be absent).
    ///
    /// The key is chosen by `kid` and must be of the token's algorithm; HS256 tokens of no known `kid` fall
    /// back to the shared secret. The caller checks `aud` and `iss`.
    pub fn verify(&self, token: &str) -> Result<Map<String, Value>, TokenError> {
        let header_part = token.split('.').next().unwrap_or("");
        if token.split('.').count() != 3 {
            return Err(TokenError::Malformed("token contains an invalid number of segments"));
        }
        let header: Map<String, Value> = BASE64URL
            .decode(header_part)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or(TokenError::Malformed("could not parse the header"))?;
        // RFC 7515, 4.1.11: no critical extensions are supported.
        if header.contains_key("crit") {
            return Err(TokenError::Malformed("the header names extensions that are not supported"));
        }
        let method = header.get("alg").and_then(Value::as_str).unwrap_or("").to_owned();
        let kid = header.get("kid").and_then(Value::as_str);
        let (message, signature) = token.rsplit_once('.').unwrap_or((token, ""));
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Signature);
        let is_of_accepted = |signature: &[u8]| {
            let of_kid =
                |accepted: &&Accepted| kid.is_none() || accepted.kid.is_none() || accepted.kid.as_deref() == kid;
            self.accepted.iter().filter(of_kid).any(|accepted| accepted.has_signed(token, message, signature))
        };
        // Secrets of another time keep their algorithm.
        if method != name(Algorithm::HS256) || !signature.as_deref().is_ok_and(is_of_accepted) {
            if !self.valid_methods.contains(&method) {
                return Err(TokenError::Method(method));
            }
            let algorithm = by_name(&method).ok_or_else(|| TokenError::Method(method.clone()))?;
            let is_named = |key: &&Key| kid == Some(key.kid.as_str()) && !key.until.is_some_and(has_come);
            let material = match self.keys.iter().find(is_named) {
                Some(key) if key.algorithm == algorithm => &key.material,
                // The key determines the algorithm, not the token, so a public key cannot be used as a secret.
                Some(_) => return Err(TokenError::Signature),
                None if algorithm == Algorithm::HS256 => &self.secret,
                None => return Err(TokenError::UnknownKey(kid.unwrap_or("<nil>").to_owned(), method)),
            };
            if !material.verifies(algorithm, message.as_bytes(), &signature?) {
                return Err(TokenError::Signature);
            }
        }
        let payload = message.split_once('.').map_or("", |(_, payload)| payload);
        let claims: Map<String, Value> = URL_SAFE_NO_PAD
            .decode(payload)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or(TokenError::Signature)?;
        let now = Utc::now().timestamp_millis() as f64 / 1000.0;
        if instant(&claims, "exp")?.is_some_and(|exp| exp.trunc() <= now) {
            return Err(TokenError::Expired);
        }
        if instant(&claims, "nbf")?.is_some_and(|nbf| nbf.trunc() > now) {
            return Err(TokenError::Early);
        }
        if are_of_id_token(&claims) {
            return Err(TokenError::IdToken);
        }
        Ok(claims)
    }

    /// The public keys, as `/.well-known/jwks.json` lists them. Symmetric keys are never among them.
    pub fn public_jwks(&self) -> Value {
        let lasting = self.keys.iter().filter(|key| !key.until.is_some_and(has_come));
        json!({ "keys": lasting.filter_map(|key| key.public.as_ref()).collect::<Vec<_>>() })
    }
}

/// A new private key for ES256, as a JWK that may sign.
pub fn generate_es256(kid: &str) -> Value {
    use p256::elliptic_curve::sec1::ToEncodedPoint as _;
    use rand::Rng as _;
    let key = loop {
        let mut bytes = [0_u8; 32];
        rand::rng().fill(&mut bytes);
        // Nearly every number is one.
        if let Ok(key) = p256::SecretKey::from_slice(&bytes) {
            break key;
        }
    };
    let point = key.public_key().to_encoded_point(false);
    let text = |bytes: Option<&p256::FieldBytes>| bytes.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).unwrap_or_default();
    json!({
        "kty": "EC", "kid": kid, "alg": "ES256", "crv": "P-256", "key_ops": ["sign", "verify"],
        "x": text(point.x()), "y": text(point.y()), "d": URL_SAFE_NO_PAD.encode(key.to_bytes()),
    })
}

/// A new private key of 2048 bits for RS256, as a JWK that may sign.
pub fn generate_rs256(kid: &str) -> Result<Value, rsa::Error> {
    use rsa::traits::{PrivateKeyParts as _, PublicKeyParts as _};
    let key = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048)?;
    let text = |number: &BigUint| URL_SAFE_NO_PAD.encode(number.to_bytes_be());
    let optional = |number: Option<BigUint>| number.as_ref().map(text).unwrap_or_default();
    let prime = |place: usize| key.primes().get(place).map(text).unwrap_or_default();
    Ok(json!({
        "kty": "RSA", "kid": kid, "alg": "RS256", "key_ops": ["sign", "verify"],
        "n": text(key.n()), "e": text(key.e()), "d": text(key.d()), "p": prime(0), "q": prime(1),
        "dp": optional(key.dp().cloned()), "dq": optional(key.dq().cloned()), "qi": optional(key.crt_coefficient()),
    }))
}

fn instant(claims: &Map<String, Value>, claim: &str) -> Result<Option<f64>, TokenError> {
    match claims.get(claim) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_f64()),
        Some(_) => Err(TokenError::Malformed("a time among the claims is not a number")),
    }
}

fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::RS256 => "RS256",
        Algorithm::RS512 => "RS512",
        Algorithm::ES256 => "ES256",
        Algorithm::ES512 => "ES512",
        Algorithm::EdDSA => "EdDSA",
        _ => "HS256",
    }
}

/// The algorithms that the reference signs with; `None` for others.
fn by_name(text: &str) -> Option<Algorithm> {
    Algorithm::by_name(text).filter(|algorithm| name(*algorithm) == text)
}

/// The signing key, and its `kid` (may be empty).
struct SigningKey {
    algorithm: Algorithm,
    kid: String,
    signer: Signer,
}

fn read_jwks(text: &str) -> Result<(SigningKey, Vec<Key>), KeyError> {
    let jwks: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(|_| KeyError::Json)?;
    let mut signing = Vec::new();
    let mut keys = Vec::new();
    for jwk in jwks {
        let kid = jwk.get("kid").and_then(Value::as_str).unwrap_or("").to_owned();
        let kind = jwk.get("kty").and_then(Value::as_str).unwrap_or("");
        let curve = jwk.get("crv").and_then(Value::as_str);
        let stated = jwk.get("alg").and_then(Value::as_str);
        let algorithm = stated.and_then(by_name).ok_or_else(|| KeyError::Algorithm(kid.clone()))?;
        let fits = match algorithm {
            Algorithm::HS256 => kind == "oct",
            Algorithm::RS256 | Algorithm::RS512 => kind == "RSA",
            Algorithm::ES256 => kind == "EC" && curve == Some("P-256"),
            Algorithm::ES512 => kind == "EC" && curve == Some("P-521"),
            _ => kind == "OKP" && curve == Some("Ed25519"),
        };
        if !fits {
            return Err(KeyError::Algorithm(kid));
        }
        let signs = jwk
            .get("key_ops")
            .and_then(Value::as_array)
            .is_some_and(|ops| ops.iter().any(|op| op.as_str() == Some("sign")));
        if signs {
            signing.push(SigningKey { algorithm, signer: private_key(&jwk, &kid, algorithm)?, kid: kid.clone() });
        }
        let material = Material::of_jwk(&jwk).map_err(|bad| KeyError::Member(kid.clone(), bad.member()))?;
        let material = material.ok_or_else(|| KeyError::Algorithm(kid.clone()))?;
        let until = end_of(&jwk).map_err(|()| KeyError::Member(kid.clone(), "exp"))?;
        keys.push(Key { kid, algorithm, material, public: published(&jwk, algorithm), until });
    }
    let count = signing.len();
    match (signing.pop(), count) {
        (Some(signing), 1) => Ok((signing, keys)),
        _ => Err(KeyError::Signers(count)),
    }
}

fn bytes(jwk: &Map<String, Value>, kid: &str, member: &'static str) -> Result<Vec<u8>, KeyError> {
    octets(jwk, member).map_err(|bad| KeyError::Member(kid.to_owned(), bad.member()))
}

/// A number of `size` bytes; leading zeros may be missing.
fn scalar(digits: Vec<u8>, size: usize) -> Vec<u8> {
    let mut scalar = vec![0; size.saturating_sub(digits.len())];
    scalar.extend(digits);
    scalar
}

fn private_key(jwk: &Map<String, Value>, kid: &str, algorithm: Algorithm) -> Result<Signer, KeyError> {
    use jsonwebtoken::Algorithm as Known;
    let unusable = || KeyError::Member(kid.to_owned(), "d");
    let signer = match algorithm {
        Algorithm::ES512 => {
            let scalar = scalar(bytes(jwk, kid, "d")?, 66);
            Signer::P521(Box::new(p521::ecdsa::SigningKey::from_slice(&scalar).map_err(|_| unusable())?))
        }
        Algorithm::ES256 => {
            let key = p256::SecretKey::from_slice(&scalar(bytes(jwk, kid, "d")?, 32)).map_err(|_| unusable())?;
            let der = key.to_pkcs8_der().map_err(|_| unusable())?;
            Signer::Known(EncodingKey::from_ec_der(der.as_bytes()), Known::ES256)
        }
        Algorithm::EdDSA => {
            let seed = bytes(jwk, kid, "d")?.try_into().map_err(|_| unusable())?;
            let der = ed25519_dalek::SigningKey::from_bytes(&seed).to_pkcs8_der().map_err(|_| unusable())?;
            Signer::Known(EncodingKey::from_ed_der(der.as_bytes()), Known::EdDSA)
        }
        Algorithm::RS256 | Algorithm::RS512 => {
            let number = |member| Ok::<_, KeyError>(BigUint::from_bytes_be(&bytes(jwk, kid, member)?));
            let primes = vec![number("p")?, number("q")?];
            let key = RsaPrivateKey::from_components(number("n")?, number("e")?, number("d")?, primes);
            let der = key.map_err(|_| unusable())?.to_pkcs1_der().map_err(|_| unusable())?;
            let known = if algorithm == Algorithm::RS256 { Known::RS256 } else { Known::RS512 };
            Signer::Known(EncodingKey::from_rsa_der(der.as_bytes()), known)
        }
        _ => Signer::Known(EncodingKey::from_secret(&bytes(jwk, kid, "k")?), Known::HS256),
    };
    // Find an unusable key at start, not at the first sign-in.
    signer.sign("").map_err(|_| unusable())?;
    Ok(signer)
}

/// The published form of a key; `None` for symmetric ones.
fn published(jwk: &Map<String, Value>, algorithm: Algorithm) -> Option<Value> {
    let members: &[&str] = match algorithm {
        Algorithm::ES256 | Algorithm::ES512 => &["crv", "x", "y"],
        Algorithm::EdDSA => &["crv", "x"],
        Algorithm::RS256 | Algorithm::RS512 => &["n", "e"],
        _ => return None,
    };
    let mut public = Map::new();
    for member in ["kty", "kid", "alg"].iter().chain(members) {
        if let Some(value) = jwk.get(*member) {
            public.insert((*member).to_owned(), value.clone());
        }
    }
    public.insert("use".to_owned(), json!("sig"));
    public.insert("key_ops".to_owned(), json!(["verify"]));
    Some(Value::Object(public))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonwebtoken::Header;

    fn secret_keys() -> SigningKeys {
        SigningKeys::new(&Secret::new("a-secret-of-at-least-thirty-two-bytes"), "", None, None).expect("keys")
    }

    // The key of RFC 7515, appendix A.3, as a private JWK.
    const EC: &str = r#"{"kty":"EC","kid":"k1","alg":"ES256","crv":"P-256","key_ops":["sign","verify"],
        "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        "d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}"#;

    fn ec_keys() -> SigningKeys {
        SigningKeys::new(&Secret::new("shared"), "", Some(&Secret::new(format!("[{EC}]"))), None).expect("keys")
    }

    #[test]
    fn signed_tokens_verify_and_contain_their_kid() {
        let token = ec_keys().sign(&json!({"sub": "x"})).expect("token");
        assert_eq!(ec_keys().verify(&token).expect("claims").get("sub"), Some(&json!("x")));
        let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap_or("")).expect("base64");
        assert!(String::from_utf8_lossy(&header).contains(r#""kid":"k1""#));
    }

    #[test]
    fn times_have_no_leeway_and_may_be_absent() {
        let keys = secret_keys();
        let now = Utc::now().timestamp();
        let check = |claims: Value| keys.verify(&keys.sign(&claims).expect("token")).map(|_| ());
        assert_eq!(check(json!({})), Ok(()));
        assert_eq!(check(json!({"exp": now})), Err(TokenError::Expired));
        assert_eq!(check(json!({"exp": now + 5})), Ok(()));
        assert_eq!(check(json!({"nbf": now + 5})), Err(TokenError::Early));
        assert!(check(json!({"exp": "soon"})).is_err());
    }

    #[test]
    fn only_the_keys_own_algorithm_is_accepted() {
        let keys = ec_keys();
        let none = format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), URL_SAFE_NO_PAD.encode("{}"));
        assert_eq!(keys.verify(&none).map(|_| ()), Err(TokenError::Method("none".into())));
        // Signed with the shared secret, and with the public key as if it were a secret.
        for secret in ["shared", "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"] {
            let mut header = Header::new(jsonwebtoken::Algorithm::HS256);
            header.kid = Some("k1".to_owned());
            let forged = jsonwebtoken::encode(&header, &json!({}), &EncodingKey::from_secret(secret.as_bytes()));
            assert_eq!(keys.verify(&forged.expect("token")).map(|_| ()), Err(TokenError::Method("HS256".into())));
        }
    }

    #[test]
    fn with_both_algorithms_allowed_a_kid_still_requires_its_own() {
        let methods = ["HS256".to_owned(), "ES256".to_owned()];
        let jwks = Secret::new(format!("[{EC}]"));
        let keys = SigningKeys::new(&Secret::new("shared"), "", Some(&jwks), Some(&methods)).expect("keys");
        let mut header = Header::new(jsonwebtoken::Algorithm::HS256);
        header.kid = Some("k1".to_owned());
        let forged = jsonwebtoken::encode(&header, &json!({}), &EncodingKey::from_secret(b"shared")).expect("token");
        assert_eq!(keys.verify(&forged).map(|_| ()), Err(TokenError::Signature));
        let unknown = format!(
            "{}.{}.AAAA",
            URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"other"}"#),
            URL_SAFE_NO_PAD.encode("{}")
        );
        assert!(matches!(keys.verify(&unknown), Err(TokenError::UnknownKey(..))));
    }

    #[test]
    fn the_published_key_set_contains_no_secret() {
        assert_eq!(secret_keys().public_jwks(), json!({"keys": []}));
        let published = ec_keys().public_jwks().to_string();
        assert!(published.contains(r#""use":"sig""#) && !published.contains(r#""d""#), "{published}");
    }

    // Made for this test.
    const P521: &str = r#"{"kty":"EC","kid":"k5","alg":"ES512","crv":"P-521","key_ops":["sign","verify"],
        "x":"ADc_aL4fWF9mwGGP93c1pOZr0NpWQ-3gaDMp6-wa5TJFt51CZ58TwV5F-LT8SDt-_nL77TowwAIgDMaKRbuzs5MG",
        "y":"ALJBieD9_Q_fw-Yz6Iozb_zfHG0RfwJgJgNZuDP0PHhRqE0SsUbm5bjo_faxoVMvbGkq0Ym3lFBEghMf_h17Uq8j",
        "d":"AdtB82Vd0-1_h4ApxKhNJBh8wLJhoN1AOsoRHrTYBieC5t6tdylzbnz8KLu5_Y4TD0m78WMejhVkpq84RjtN9-6f"}"#;

    #[test]
    fn p521_signs_es512_which_the_verifier_of_other_tokens_accepts() {
        let keys = |jwk: &str| SigningKeys::new(&Secret::new(""), "", Some(&Secret::new(format!("[{jwk}]"))), None);
        let own = keys(P521).expect("keys");
        let token = own.sign(&json!({"sub": "x"})).expect("token");
        assert_eq!(own.verify(&token).expect("claims").get("sub"), Some(&json!("x")));
        let published = own.public_jwks();
        let set = crate::jwt::KeySet::from_jwks(published.as_object().expect("a set")).expect("a set");
        assert!(crate::jwt::verify(&token, &set).is_ok());
        let (signed, _) = token.rsplit_once('.').expect("three parts");
        let foreign = format!("{signed}.{}", URL_SAFE_NO_PAD.encode([1; 132]));
        assert_eq!(own.verify(&foreign).map(|_| ()), Err(TokenError::Signature));
        // Of another curve, and not on the curve.
        for broken in [P521.replace("ES512", "ES256"), P521.replace("\"x\":\"A", "\"x\":\"B")] {
            assert!(keys(&broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_generated_key_can_sign() {
        let jwks = Secret::new(format!("[{}]", generate_es256("made")));
        let keys = SigningKeys::new(&Secret::new(""), "", Some(&jwks), None).expect("keys");
        let token = keys.sign(&json!({"sub": "x"})).expect("token");
        assert_eq!(keys.verify(&token).expect("claims").get("sub"), Some(&json!("x")));
    }

    #[test]
    fn former_secrets_verify_until_their_end_and_their_api_keys_for_longer() {
        let sign = |secret: &str, claims: Value| {
            let key = EncodingKey::from_secret(secret.as_bytes());
            jsonwebtoken::encode(&Header::default(), &claims, &key).expect("token")
        };
        let (token, key) = (sign("former", json!({"sub": "x"})), sign("former", json!({"role": "service_role"})));
        let accepted = |tokens: i64, keys: i64| {
            let at = |seconds: i64| Utc::now() + chrono::Duration::seconds(seconds);
            let accepted = json!([{ "jwt_secret": "former", "service_role_key": key, "tokens_until": at(tokens), "keys_until": at(keys) }]);
            AcceptedKeys::parse(&accepted.to_string()).expect("keys")
        };
        // Beside a key pair as well, whose algorithm is another one.
        for own in [secret_keys, ec_keys] {
            assert!(own().verify(&token).is_err() && own().verify(&key).is_err());
            let keys = own().accepting(&accepted(60, 60));
            assert!(keys.verify(&token).is_ok() && keys.verify(&key).is_ok());
            let keys = own().accepting(&accepted(-1, 60));
            assert!(keys.verify(&token).is_err() && keys.verify(&key).is_ok());
            let keys = own().accepting(&accepted(-1, -1));
            assert!(keys.verify(&token).is_err() && keys.verify(&key).is_err());
        }
    }

    #[test]
    fn a_key_pair_that_has_ended_neither_verifies_nor_is_published() {
        let ending = |exp: i64| EC.replace("\"sign\",", "").replace("{\"kty\"", &format!("{{\"exp\":{exp},\"kty\""));
        let token = ec_keys().sign(&json!({"sub": "x"})).expect("token");
        let now = Utc::now().timestamp();
        for (exp, counts) in [(now + 60, true), (now, false)] {
            let jwks = Secret::new(format!("[{},{}]", generate_es256("new"), ending(exp)));
            let keys = SigningKeys::new(&Secret::new(""), "", Some(&jwks), None).expect("keys");
            assert_eq!(keys.verify(&token).is_ok(), counts);
            assert_eq!(keys.public_jwks().to_string().contains("\"k1\""), counts);
        }
    }

    #[test]
    fn exactly_one_key_signs() {
        let verify_only = EC.replace("\"sign\",", "");
        for (jwks, count) in [(format!("[{verify_only}]"), 0), (format!("[{EC},{EC}]"), 2)] {
            let error = SigningKeys::new(&Secret::new(""), "", Some(&Secret::new(jwks)), None).err();
            assert!(matches!(error, Some(KeyError::Signers(n)) if n == count));
        }
    }
}
