//! WebAuthn ceremonies, for second factors and for passkeys.
//!
//! A ceremony starts with options for the browser and a stored [`Ceremony`]. [`register`] and [`authenticate`] check the browser's
//! answer against it. Attestation is neither requested nor evaluated, so nothing is known about the maker of an authenticator.
//! Reference: W3C Web Authentication level 3, §7.1 and §7.2; wire shapes as go-webauthn gives them
//! (supabase/auth `internal/api/mfa.go`, `passkey_webauthn.go`).

mod authenticator_data;
mod cose;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use rand::RngCore as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::auth::credentials::lenient_base64;
use crate::config::WebAuthnConfig;
use crate::http::json::parse_json;
use authenticator_data::AuthenticatorData;
use cose::PublicKey;

/// Milliseconds a browser is given.
const TIMEOUT: i64 = 300_000;
/// COSE algorithms that are accepted, in the order of preference that is announced.
const ALGORITHMS: [i64; 10] = [-7, -35, -36, -257, -258, -259, -37, -38, -39, -8];

/// Why a ceremony failed. Only for the log: the caller learns only that it failed.
pub type Reason = &'static str;

/// A key pair of an authenticator, as stored by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    pub id: Vec<u8>,
    /// A COSE key.
    pub public_key: Vec<u8>,
    /// `none`, `packed`, …: the format of the statement that came with it.
    pub attestation_type: String,
    pub transports: Vec<String>,
    pub backup_eligible: bool,
    pub backed_up: bool,
    pub aaguid: Option<Uuid>,
    pub sign_count: u32,
}

impl Credential {
    /// As upstream keeps it in `mfa_factors.web_authn_credential`.
    pub fn to_json(&self) -> Value {
        json!({
            "id": STANDARD.encode(&self.id),
            "publicKey": STANDARD.encode(&self.public_key),
            "attestationType": self.attestation_type,
            "attestationFormat": self.attestation_type,
            "transport": self.transports,
            "flags": {
                "userPresent": true,
                "userVerified": false,
                "backupEligible": self.backup_eligible,
                "backupState": self.backed_up,
            },
            "authenticator": {
                "AAGUID": self.aaguid.map(|id| STANDARD.encode(id.as_bytes())),
                "signCount": self.sign_count,
                "cloneWarning": false,
                "attachment": "",
            },
        })
    }

    pub fn from_json(stored: &Value) -> Option<Self> {
        let bytes = |value: &Value| lenient_base64::standard(value.as_str()?);
        let flag = |name: &str| stored["flags"][name].as_bool().unwrap_or(false);
        Some(Self {
            id: bytes(&stored["id"])?,
            public_key: bytes(&stored["publicKey"])?,
            attestation_type: stored["attestationType"].as_str().unwrap_or("").to_owned(),
            transports: texts(&stored["transport"]),
            backup_eligible: flag("backupEligible"),
            backed_up: flag("backupState"),
            aaguid: bytes(&stored["authenticator"]["AAGUID"]).and_then(|bytes| Uuid::from_slice(&bytes).ok()),
            sign_count: stored["authenticator"]["signCount"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        })
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Who registers a credential.
pub struct Account<'a> {
    pub id: Uuid,
    pub name: &'a str,
    pub display_name: &'a str,
}

/// The state between the options and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceremony {
    challenge: String,
    rp_id: String,
    /// The user; `None` for a sign-in by discoverable credential.
    user_id: Option<Uuid>,
    /// Ids of the credentials that may answer; empty: any.
    allowed: Vec<Vec<u8>>,
    user_verification: String,
}

impl Ceremony {
    fn new(config: &WebAuthnConfig, user_id: Option<Uuid>, user_verification: &str) -> Self {
        let mut challenge = [0_u8; 32];
        rand::rng().fill_bytes(&mut challenge);
        Self {
            challenge: URL_SAFE_NO_PAD.encode(challenge),
            rp_id: config.rp_id.clone(),
            user_id,
            allowed: Vec::new(),
            user_verification: user_verification.to_owned(),
        }
    }

    /// As upstream keeps it in `session_data` and `web_authn_session_data`.
    pub fn to_json(&self, expires_at: DateTime<Utc>) -> Value {
        let mut stored = json!({
            "challenge": self.challenge,
            "rpId": self.rp_id,
            "user_id": self.user_id.map(|id| STANDARD.encode(id.to_string())),
            "expires": expires_at,
            "userVerification": self.user_verification,
        });
        if !self.allowed.is_empty() {
            stored["allowed_credentials"] = self.allowed.iter().map(|id| STANDARD.encode(id)).collect();
        }
        stored
    }

    pub fn from_json(stored: &Value) -> Option<Self> {
        let user_id = stored["user_id"]
            .as_str()
            .and_then(lenient_base64::standard)
            .and_then(|bytes| Uuid::parse_str(std::str::from_utf8(&bytes).ok()?).ok());
        let allowed = texts(&stored["allowed_credentials"]);
        Some(Self {
            challenge: stored["challenge"].as_str().filter(|text| !text.is_empty())?.to_owned(),
            rp_id: stored["rpId"].as_str()?.to_owned(),
            user_id,
            allowed: allowed.iter().map(|id| lenient_base64::standard(id)).collect::<Option<_>>()?,
            user_verification: stored["userVerification"].as_str().unwrap_or("").to_owned(),
        })
    }
}

/// Options to register a passkey (`discoverable`) or a second factor.
pub fn registration_options(
    config: &WebAuthnConfig,
    account: &Account<'_>,
    exclude: Vec<Value>,
    discoverable: bool,
) -> (Value, Ceremony) {
    let verification = if discoverable { "preferred" } else { "" };
    let ceremony = Ceremony::new(config, Some(account.id), verification);
    let mut options = json!({
        "rp": { "name": config.rp_display_name, "id": config.rp_id },
        "user": {
            "name": account.name,
            "displayName": account.display_name,
            "id": URL_SAFE_NO_PAD.encode(account.id.to_string()),
        },
        "challenge": ceremony.challenge,
        "pubKeyCredParams": ALGORITHMS.map(|alg| json!({ "type": "public-key", "alg": alg })),
        "timeout": TIMEOUT,
    });
    if !exclude.is_empty() {
        options["excludeCredentials"] = Value::Array(exclude);
    }
    if discoverable {
        options["authenticatorSelection"] = json!({ "residentKey": "required", "userVerification": "preferred" });
        options["attestation"] = json!("none");
    } else {
        options["authenticatorSelection"] = json!({});
    }
    (options, ceremony)
}

/// Options to sign in: with one of `credentials` of the user, or with any discoverable one.
pub fn authentication_options(
    config: &WebAuthnConfig,
    user: Option<(Uuid, &[Credential])>,
    user_verification: &str,
) -> (Value, Ceremony) {
    let mut ceremony = Ceremony::new(config, user.map(|(id, _)| id), user_verification);
    let mut options = json!({ "challenge": ceremony.challenge, "timeout": TIMEOUT, "rpId": config.rp_id });
    if let Some((_, credentials)) = user {
        ceremony.allowed = credentials.iter().map(|credential| credential.id.clone()).collect();
        options["allowCredentials"] =
            credentials.iter().map(|credential| descriptor(&credential.id, &credential.transports)).collect();
    }
    if !user_verification.is_empty() {
        options["userVerification"] = json!(user_verification);
    }
    (options, ceremony)
}

/// A credential as options name it.
pub fn descriptor(id: &[u8], transports: &[String]) -> Value {
    let mut descriptor = json!({ "type": "public-key", "id": URL_SAFE_NO_PAD.encode(id) });
    if !transports.is_empty() {
        descriptor["transports"] = json!(transports);
    }
    descriptor
}

/// The answer of a browser to creation options, decoded.
pub struct Registration {
    id: Vec<u8>,
    client_data: ClientData,
    attestation_format: String,
    authenticator_data: AuthenticatorData,
    transports: Vec<String>,
}

/// The answer of a browser to request options, decoded.
pub struct Assertion {
    pub id: Vec<u8>,
    client_data: ClientData,
    raw_authenticator_data: Vec<u8>,
    authenticator_data: AuthenticatorData,
    signature: Vec<u8>,
    /// The user's uuid as text, if the authenticator keeps it.
    pub user: Option<Uuid>,
}

struct ClientData {
    raw: Vec<u8>,
    kind: String,
    challenge: String,
    origin: String,
}

impl ClientData {
    fn read(response: &Value) -> Option<Self> {
        let raw = bytes(&response["clientDataJSON"])?;
        let fields: Map<String, Value> = parse_json(&raw).ok()?;
        let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
        Some(Self { kind: text("type")?, challenge: text("challenge")?, origin: text("origin")?, raw })
    }

    fn check(&self, kind: &str, ceremony: &Ceremony, config: &WebAuthnConfig) -> Result<(), Reason> {
        if self.kind != kind {
            return Err("the client data is of another ceremony");
        }
        let challenge = self.challenge.trim_end_matches('=').as_bytes();
        if !bool::from(challenge.ct_eq(ceremony.challenge.as_bytes())) {
            return Err("the challenge is another one");
        }
        if !config.rp_origins.iter().any(|origin| origin.eq_ignore_ascii_case(&self.origin)) {
            return Err("the origin is not allowed");
        }
        Ok(())
    }
}

/// Base64url, padded or not.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    lenient_base64::url_safe_no_pad(value.as_str()?.trim_end_matches('='))
}

/// The id of a `PublicKeyCredential`.
fn credential_id(credential: &Value) -> Option<Vec<u8>> {
    let id = bytes(&credential["id"]).filter(|id| !id.is_empty())?;
    let raw = bytes(&credential["rawId"]).unwrap_or_else(|| id.clone());
    (credential["type"] == "public-key" && raw == id).then_some(id)
}

impl Registration {
    /// `None` if it is not a `PublicKeyCredential` with an attestation response.
    pub fn parse(credential: &Value) -> Option<Self> {
        let response = &credential["response"];
        let object: ciborium::Value = ciborium::from_reader(bytes(&response["attestationObject"])?.as_slice()).ok()?;
        let member = |name: &str| {
            object.as_map()?.iter().find(|(key, _)| key.as_text() == Some(name)).map(|(_, value)| value.clone())
        };
        Some(Self {
            id: credential_id(credential)?,
            client_data: ClientData::read(response)?,
            attestation_format: member("fmt")?.as_text()?.to_owned(),
            authenticator_data: AuthenticatorData::parse(member("authData")?.as_bytes()?)?,
            transports: texts(&response["transports"]),
        })
    }
}

impl Assertion {
    /// `None` if it is not a `PublicKeyCredential` with an assertion response.
    pub fn parse(credential: &Value) -> Option<Self> {
        let response = &credential["response"];
        let raw = bytes(&response["authenticatorData"])?;
        let user =
            bytes(&response["userHandle"]).and_then(|handle| Uuid::parse_str(std::str::from_utf8(&handle).ok()?).ok());
        Some(Self {
            id: credential_id(credential)?,
            client_data: ClientData::read(response)?,
            authenticator_data: AuthenticatorData::parse(&raw)?,
            raw_authenticator_data: raw,
            signature: bytes(&response["signature"])?,
            user,
        })
    }
}

fn check_authenticator(data: &AuthenticatorData, ceremony: &Ceremony) -> Result<(), Reason> {
    if data.rp_id_hash != *Sha256::digest(ceremony.rp_id.as_bytes()) {
        return Err("the relying party is another one");
    }
    if !data.user_present {
        return Err("the user was not present");
    }
    if ceremony.user_verification == "required" && !data.user_verified {
        return Err("the user was not verified");
    }
    if data.backed_up && !data.backup_eligible {
        return Err("backed up without being eligible");
    }
    Ok(())
}

/// Checks a registration against its ceremony and gives the credential to store.
pub fn register(config: &WebAuthnConfig, ceremony: &Ceremony, answer: &Registration) -> Result<Credential, Reason> {
    answer.client_data.check("webauthn.create", ceremony, config)?;
    check_authenticator(&answer.authenticator_data, ceremony)?;
    let attested = answer.authenticator_data.attested.as_ref().ok_or("there is no credential in it")?;
    if attested.credential_id != answer.id {
        return Err("the credential's id is another one");
    }
    let key = PublicKey::parse(&attested.public_key).ok_or("the public key cannot be read")?;
    if !ALGORITHMS.contains(&key.algorithm()) {
        return Err("the algorithm was not offered");
    }
    Ok(Credential {
        id: answer.id.clone(),
        public_key: attested.public_key.clone(),
        attestation_type: answer.attestation_format.clone(),
        transports: answer.transports.clone(),
        backup_eligible: answer.authenticator_data.backup_eligible,
        backed_up: answer.authenticator_data.backed_up,
        aaguid: Some(attested.aaguid),
        sign_count: answer.authenticator_data.sign_count,
    })
}

/// Checks an assertion against its ceremony and the credential it names; gives the new signature counter.
///
/// A counter that went backwards is accepted: synced passkeys always report zero, and upstream only logs it.
pub fn authenticate(
    config: &WebAuthnConfig,
    ceremony: &Ceremony,
    answer: &Assertion,
    credential: &Credential,
) -> Result<u32, Reason> {
    answer.client_data.check("webauthn.get", ceremony, config)?;
    check_authenticator(&answer.authenticator_data, ceremony)?;
    if credential.id != answer.id {
        return Err("the credential is another one");
    }
    if !ceremony.allowed.is_empty() && !ceremony.allowed.contains(&answer.id) {
        return Err("the credential is not among those asked for");
    }
    if ceremony.user_id.zip(answer.user).is_some_and(|(wanted, got)| wanted != got) {
        return Err("the user is another one");
    }
    if answer.authenticator_data.backup_eligible != credential.backup_eligible {
        return Err("backup eligibility changed");
    }
    let key = PublicKey::parse(&credential.public_key).ok_or("the stored public key cannot be read")?;
    let mut signed = answer.raw_authenticator_data.clone();
    signed.extend_from_slice(&Sha256::digest(&answer.client_data.raw));
    if !key.verify(&signed, &answer.signature) {
        return Err("the signature is wrong");
    }
    Ok(answer.authenticator_data.sign_count)
}

#[cfg(test)]
mod tests;
