//! A software authenticator performs both ceremonies, correctly and with errors.

use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};

use super::*;

fn config() -> WebAuthnConfig {
    WebAuthnConfig {
        rp_id: "app.example".to_owned(),
        rp_display_name: "App".to_owned(),
        rp_origins: vec!["https://app.example".to_owned()],
        challenge_expiry: std::time::Duration::from_secs(300),
        passkey_enabled: true,
        max_passkeys_per_user: 10,
    }
}

const ID: &[u8] = b"credential";

fn key() -> SigningKey {
    SigningKey::from_slice(&[7; 32]).expect("key")
}

fn cbor(value: ciborium::Value) -> Vec<u8> {
    let mut out = Vec::new();
    ciborium::into_writer(&value, &mut out).expect("cbor");
    out
}

fn cose() -> Vec<u8> {
    let point = key().verifying_key().to_encoded_point(false);
    let int = |n: i64| ciborium::Value::from(n);
    cbor(ciborium::Value::Map(vec![
        (int(1), int(2)),
        (int(3), int(-7)),
        (int(-1), int(1)),
        (int(-2), ciborium::Value::Bytes(point.x().expect("x").to_vec())),
        (int(-3), ciborium::Value::Bytes(point.y().expect("y").to_vec())),
    ]))
}

fn client_data(kind: &str, challenge: &str, origin: &str) -> Vec<u8> {
    serde_json::to_vec(&json!({ "type": kind, "challenge": challenge, "origin": origin })).expect("json")
}

fn created(challenge: &str, origin: &str, rp_id: &str, flags: u8) -> Value {
    let mut data = Sha256::digest(rp_id).to_vec();
    data.push(flags);
    data.extend([0; 4]);
    data.extend([0; 16]);
    data.extend((ID.len() as u16).to_be_bytes());
    data.extend(ID);
    data.extend(cose());
    let object = cbor(ciborium::Value::Map(vec![
        ("fmt".into(), "none".into()),
        ("attStmt".into(), ciborium::Value::Map(Vec::new())),
        ("authData".into(), ciborium::Value::Bytes(data)),
    ]));
    json!({
        "id": URL_SAFE_NO_PAD.encode(ID),
        "type": "public-key",
        "response": {
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client_data("webauthn.create", challenge, origin)),
            "attestationObject": URL_SAFE_NO_PAD.encode(object),
        },
    })
}

fn asserted(challenge: &str, user: Uuid, tampered: bool) -> Value {
    let mut data = Sha256::digest("app.example").to_vec();
    data.push(0x05);
    data.extend(9_u32.to_be_bytes());
    let client = client_data("webauthn.get", challenge, "https://app.example");
    let mut signed = data.clone();
    signed.extend(Sha256::digest(&client));
    let signature: Signature = key().sign(&signed);
    if tampered {
        data[36] ^= 1;
    }
    json!({
        "id": URL_SAFE_NO_PAD.encode(ID),
        "type": "public-key",
        "response": {
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client),
            "authenticatorData": URL_SAFE_NO_PAD.encode(data),
            "signature": URL_SAFE_NO_PAD.encode(signature.to_der()),
            "userHandle": URL_SAFE_NO_PAD.encode(user.to_string()),
        },
    })
}

#[test]
fn a_credential_is_registered_and_signs_in() {
    let user = Uuid::from_u128(1);
    let account = Account { id: user, name: "a", display_name: "a" };
    let (_, ceremony) = registration_options(&config(), &account, Vec::new(), true);
    let stored = Ceremony::from_json(&ceremony.to_json(Utc::now())).expect("stored");
    assert_eq!(stored, ceremony);
    let answer = created(&ceremony.challenge, "https://app.example", "app.example", 0x45);
    let credential = register(&config(), &stored, &Registration::parse(&answer).expect("parsed")).expect("registered");
    assert_eq!(Credential::from_json(&credential.to_json()).as_ref(), Some(&credential));

    let (_, ceremony) = authentication_options(&config(), None, "preferred");
    let answer = Assertion::parse(&asserted(&ceremony.challenge, user, false)).expect("parsed");
    assert_eq!(answer.user, Some(user));
    assert_eq!(authenticate(&config(), &ceremony, &answer, &credential), Ok(9));
    let tampered = Assertion::parse(&asserted(&ceremony.challenge, user, true)).expect("parsed");
    assert_eq!(authenticate(&config(), &ceremony, &tampered, &credential), Err("the signature is wrong"));
    let replayed = Assertion::parse(&asserted("AAAA", user, false)).expect("parsed");
    assert!(authenticate(&config(), &ceremony, &replayed, &credential).is_err());
}

#[test]
fn another_user_s_assertion_does_not_answer_a_second_factor() {
    let user = Uuid::from_u128(1);
    let account = Account { id: user, name: "a", display_name: "a" };
    let (_, ceremony) = registration_options(&config(), &account, Vec::new(), false);
    let answer = created(&ceremony.challenge, "https://app.example", "app.example", 0x45);
    let credential = register(&config(), &ceremony, &Registration::parse(&answer).expect("parsed")).expect("ok");
    let (_, ceremony) = authentication_options(&config(), Some((user, std::slice::from_ref(&credential))), "");
    let other = Assertion::parse(&asserted(&ceremony.challenge, Uuid::from_u128(2), false)).expect("parsed");
    assert!(authenticate(&config(), &ceremony, &other, &credential).is_err());
}

#[test]
fn registrations_of_other_sites_or_without_presence_are_refused() {
    let account = Account { id: Uuid::from_u128(1), name: "a", display_name: "a" };
    let (_, ceremony) = registration_options(&config(), &account, Vec::new(), true);
    let ours = ("https://app.example", "app.example", 0x45);
    for (origin, rp_id, flags) in [
        ("https://evil.example", ours.1, ours.2),
        (ours.0, "evil.example", ours.2),
        (ours.0, ours.1, 0x44),
        (ours.0, ours.1, 0x55),
    ] {
        let answer = Registration::parse(&created(&ceremony.challenge, origin, rp_id, flags)).expect("parsed");
        assert!(register(&config(), &ceremony, &answer).is_err(), "{origin} {rp_id} {flags:x}");
    }
    assert!(Registration::parse(&json!({ "id": "x" })).is_none());
    assert!(Assertion::parse(&json!(null)).is_none());
}
