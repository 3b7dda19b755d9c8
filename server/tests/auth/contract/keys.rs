//! The keys of the people and providers that the cases simulate: an authenticator, two wallets, an identity provider.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_slice(&[seed; 32]).expect("key")
}

/// The origin at which the authenticator is used.
const ORIGIN: &str = "https://app.example";
const RP_ID: &str = "app.example";

fn cbor(value: ciborium::Value) -> Vec<u8> {
    let mut out = Vec::new();
    ciborium::into_writer(&value, &mut out).expect("cbor");
    out
}

fn client_data(kind: &str, challenge: &str) -> Vec<u8> {
    serde_json::to_vec(&json!({ "type": kind, "challenge": challenge, "origin": ORIGIN })).expect("json")
}

fn coordinates(seed: u8) -> (Vec<u8>, Vec<u8>) {
    let point = key(seed).verifying_key().to_encoded_point(false);
    (point.x().expect("x").to_vec(), point.y().expect("y").to_vec())
}

/// The result of `navigator.credentials.create` (WebAuthn level 3, 6.5) for the credential `id`.
pub fn created(challenge: &str, id: &str) -> Value {
    let (x, y) = coordinates(7);
    let int = |n: i64| ciborium::Value::from(n);
    let cose = cbor(ciborium::Value::Map(vec![
        (int(1), int(2)),
        (int(3), int(-7)),
        (int(-1), int(1)),
        (int(-2), ciborium::Value::Bytes(x)),
        (int(-3), ciborium::Value::Bytes(y)),
    ]));
    let mut data = Sha256::digest(RP_ID).to_vec();
    // User present and verified, attested credential data, signature counter 0.
    data.push(0x45);
    data.extend([0; 4 + 16]);
    data.extend(u16::try_from(id.len()).expect("short").to_be_bytes());
    data.extend(id.as_bytes());
    data.extend(cose);
    let object = cbor(ciborium::Value::Map(vec![
        ("fmt".into(), "none".into()),
        ("attStmt".into(), ciborium::Value::Map(Vec::new())),
        ("authData".into(), ciborium::Value::Bytes(data)),
    ]));
    let id = URL_SAFE_NO_PAD.encode(id);
    json!({
        "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {},
        "response": {
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client_data("webauthn.create", challenge)),
            "attestationObject": URL_SAFE_NO_PAD.encode(object),
        },
    })
}

/// The result of `navigator.credentials.get`.
pub fn asserted(challenge: &str, id: &str, user: &str) -> Value {
    let mut data = Sha256::digest(RP_ID).to_vec();
    data.push(0x05);
    data.extend(9_u32.to_be_bytes());
    let client = client_data("webauthn.get", challenge);
    let mut signed = data.clone();
    signed.extend(Sha256::digest(&client));
    let signature: Signature = key(7).sign(&signed);
    let id = URL_SAFE_NO_PAD.encode(id);
    json!({
        "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {},
        "response": {
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client),
            "authenticatorData": URL_SAFE_NO_PAD.encode(data),
            "signature": URL_SAFE_NO_PAD.encode(signature.to_der()),
            "userHandle": URL_SAFE_NO_PAD.encode(user),
        },
    })
}

fn solana() -> ed25519_dalek::SigningKey {
    ed25519_dalek::SigningKey::from_bytes(&[3; 32])
}

pub fn solana_address() -> String {
    bs58::encode(solana().verifying_key().to_bytes()).into_string()
}

/// In base64url, as wallet libraries send it.
pub fn solana_signature(message: &str) -> String {
    use base64::engine::general_purpose::URL_SAFE;
    URL_SAFE.encode(solana().sign(message.as_bytes()).to_bytes())
}

/// The signature of a hardware wallet, which signs the text in an envelope: the off-chain message format, version 0.
/// `domain` is by default the text's own; 32 bytes of it are kept.
pub fn ledger_signature(message: &str, domain: &str) -> String {
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    let own = message.split(' ').next().unwrap_or_default();
    let mut place = if domain.is_empty() { own } else { domain }.as_bytes().to_vec();
    place.resize(32, 0);
    let length = u16::try_from(message.len()).expect("a short message").to_le_bytes();
    let key = solana().verifying_key().to_bytes();
    let parts: [&[u8]; 7] = [b"\xffsolana offchain", &[0], &place, &[0, 1], &key, &length, message.as_bytes()];
    STANDARD_NO_PAD.encode(solana().sign(&parts.concat()).to_bytes())
}

fn ethereum() -> k256::ecdsa::SigningKey {
    k256::ecdsa::SigningKey::from_slice(&[5; 32]).expect("key")
}

/// With the mixed-case checksum of ERC-55.
pub fn ethereum_address() -> String {
    let point = ethereum().verifying_key().to_encoded_point(false);
    let digest = sha3::Keccak256::digest(&point.as_bytes()[1..]);
    let plain = hex::encode(&digest[12..]);
    let check = hex::encode(sha3::Keccak256::digest(&plain));
    let mixed = plain.chars().zip(check.chars()).map(|(c, h)| if h >= '8' { c.to_ascii_uppercase() } else { c });
    format!("0x{}", mixed.collect::<String>())
}

/// ERC-191, version E.
pub fn ethereum_signature(message: &str) -> String {
    let prefixed = format!("\x19Ethereum Signed Message:\n{}{message}", message.len());
    let digest = sha3::Keccak256::digest(prefixed);
    let (signature, recovery) = ethereum().sign_prehash_recoverable(&digest).expect("signature");
    format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + recovery.to_byte())
}

/// The public key of the simulated identity provider.
pub fn public_jwk() -> Value {
    let (x, y) = coordinates(9);
    json!({
        "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "outside",
        "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
    })
}

/// A token signed according to `options`: `secret=`, `alg=` (HS256, HS512, none, or ES256 of the outside provider),
/// `kid=`.
pub fn token(secret: &str, options: &[(String, String)], claims: &str) -> String {
    let option = |name: &str| options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let alg = option("alg").unwrap_or("HS256");
    let mut header = json!({ "alg": alg, "typ": "JWT" });
    if let Some(kid) = option("kid") {
        header["kid"] = json!(kid);
    }
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims));
    let secret = option("secret").unwrap_or(secret);
    let signature = match alg {
        "none" => Vec::new(),
        "ES256" => {
            let signature: Signature = key(9).sign(signed.as_bytes());
            signature.to_bytes().to_vec()
        }
        "HS512" => mac::<hmac::Hmac<sha2::Sha512>>(secret, &signed),
        _ => mac::<hmac::Hmac<Sha256>>(secret, &signed),
    };
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn mac<M: hmac::Mac + hmac::digest::KeyInit>(secret: &str, signed: &str) -> Vec<u8> {
    let mut mac = <M as hmac::Mac>::new_from_slice(secret.as_bytes()).expect("key");
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
