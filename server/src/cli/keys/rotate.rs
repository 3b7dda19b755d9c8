//! Computes the settings of a key rotation: a new secret with its API keys and, where key pairs sign, a new key pair. Former keys
//! stay accepted for a while, so that no session ends and no app has to change on the same day.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Duration, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::env_file::Settings;
use super::random;
use crate::config::{Reader, Secret, Source};
use crate::gateway::sign_key;
use crate::jwt::secret::SecretKey;
use crate::jwt::sign::{SigningKeys, generate_es256};
use crate::jwt::{ACCEPTED_KEYS, AcceptedKeys};

/// A server may keep signing with the former keys for this long, until it is restarted with the new ones.
const RESTART_WITHIN: Duration = Duration::days(1);

/// How the former keys are retired.
pub struct Terms {
    pub now: DateTime<Utc>,
    /// How long the former API keys stay accepted.
    pub keep_keys: Duration,
    /// Whether the former keys are rejected at once.
    pub is_leaked: bool,
    /// Whether users' tokens are signed with a key pair from now on.
    pub signing_key: bool,
}

/// Changed settings, and what to do about them.
#[derive(Debug)]
pub struct Change {
    pub settings: Settings,
    pub note: String,
}

/// The settings in use.
struct Current {
    keys: AcceptedKeys,
    /// The array in `GOTRUE_JWT_KEYS`, if there is one.
    signing: Option<Vec<Map<String, Value>>>,
    accepted: Vec<AcceptedKeys>,
    /// How long a user's token is valid.
    token_life: Duration,
}

/// Names of each setting. The first is used if none is set.
const SECRET: [&str; 2] = ["JWT_SECRET", "GOTRUE_JWT_SECRET"];
const PUBLISHABLE: [&str; 2] = ["SB_PUBLISHABLE_KEY", "SUPABASE_PUBLISHABLE_KEY"];
const SECRET_KEY: [&str; 2] = ["SB_SECRET_KEY", "SUPABASE_SECRET_KEY"];

impl Current {
    fn read(source: &Source) -> anyhow::Result<Self> {
        let mut reader = Reader::new(source);
        let secret = reader.text(&SECRET).context(
            "JWT_SECRET is not set, so there is nothing to rotate (generate keys with 'ferrobase keys generate')",
        )?;
        if reader.find(&["PGRST_JWT_SECRET"]).is_some() {
            bail!(
                "PGRST_JWT_SECRET is set separately: remove it from the settings (it follows JWT_SECRET), then rotate"
            );
        }
        let key = |name: &'static str, role: &str| -> anyhow::Result<Secret> {
            let key = reader.text(&[name]).unwrap_or_else(|| sign_key(&secret, role));
            let is_ours = SecretKey::new(&secret).verify::<Value>(&key).is_ok();
            anyhow::ensure!(is_ours, "{name} is not signed with JWT_SECRET: whoever created it has to replace it");
            Ok(Secret::new(key))
        };
        let mut keys = AcceptedKeys {
            anon_key: Some(key("ANON_KEY", "anon")?),
            service_role_key: Some(key("SERVICE_ROLE_KEY", "service_role")?),
            publishable_key: reader.secret(&PUBLISHABLE),
            secret_key: reader.secret(&SECRET_KEY),
            jwt_secret: Secret::new(&secret),
            jwt_key_id: reader.text(&["GOTRUE_JWT_KEY_ID"]),
            tokens_until: None,
            keys_until: None,
        };
        let signing = reader.text(&["GOTRUE_JWT_KEYS"]).map(|text| {
            serde_json::from_str(&text).map_err(|_| anyhow::anyhow!("GOTRUE_JWT_KEYS is not a JSON array of JWKs"))
        });
        let signing: Option<Vec<Map<String, Value>>> = signing.transpose()?;
        let among_keys = signing.iter().flatten().find(|jwk| is_secret(jwk, &keys.jwt_secret));
        if let Some(kid) = among_keys.and_then(|jwk| jwk.get("kid")?.as_str()) {
            keys.jwt_key_id = Some(kid.to_owned());
        }
        let accepted = reader.accepted_keys();
        let seconds: u32 = reader.parse_or(&["GOTRUE_JWT_EXP", "JWT_EXPIRY"], "a whole number of seconds", 3600);
        let token_life = Duration::seconds(i64::from(if seconds == 0 { 3600 } else { seconds }));
        Ok(reader.finish(Self { keys, signing, accepted, token_life })?)
    }
}

/// A new secret with new API keys in place of the current ones.
fn fresh(current: &Current) -> anyhow::Result<AcceptedKeys> {
    let current = &current.keys;
    let secret = random(48)?;
    let opaque = |key: &Option<Secret>, prefix: &str| -> anyhow::Result<Option<Secret>> {
        key.as_ref().map(|_| Ok(Secret::new(format!("{prefix}{}", random(24)?)))).transpose()
    };
    Ok(AcceptedKeys {
        anon_key: Some(Secret::new(sign_key(&secret, "anon"))),
        service_role_key: Some(Secret::new(sign_key(&secret, "service_role"))),
        publishable_key: opaque(&current.publishable_key, "sb_publishable_")?,
        secret_key: opaque(&current.secret_key, "sb_secret_")?,
        jwt_secret: Secret::new(secret),
        jwt_key_id: current.jwt_key_id.as_ref().map(|_| uuid::Uuid::new_v4().to_string()),
        tokens_until: None,
        keys_until: None,
    })
}

fn ops(jwk: &Map<String, Value>) -> Vec<&str> {
    let ops = jwk.get("key_ops").and_then(Value::as_array);
    ops.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn signs(jwk: &Map<String, Value>) -> bool {
    ops(jwk).contains(&"sign")
}

/// Whether this key pair is prepared: able to sign, but not signing yet.
fn waits(jwk: &Map<String, Value>) -> bool {
    jwk.contains_key("d") && !signs(jwk)
}

fn is_secret(jwk: &Map<String, Value>, secret: &Secret) -> bool {
    jwk.get("k").and_then(Value::as_str).map(|k| k.trim_end_matches('='))
        == Some(URL_SAFE_NO_PAD.encode(secret.reveal()).as_str())
}

fn new_pair(key_ops: &Value) -> Option<Map<String, Value>> {
    let mut jwk = generate_es256(&uuid::Uuid::new_v4().to_string());
    jwk["key_ops"] = key_ops.clone();
    jwk.as_object().cloned()
}

/// The shared secret as a JWK beside key pairs, so that API keys stay valid.
fn secret_among_keys(secret: &Secret, signs: bool, kid: Option<&str>) -> Map<String, Value> {
    let key_ops = if signs { json!(["sign", "verify"]) } else { json!(["verify"]) };
    let mut jwk = Map::new();
    jwk.insert("kty".to_owned(), json!("oct"));
    if let Some(kid) = kid {
        jwk.insert("kid".to_owned(), json!(kid));
    }
    jwk.insert("alg".to_owned(), json!("HS256"));
    jwk.insert("k".to_owned(), json!(URL_SAFE_NO_PAD.encode(secret.reveal())));
    jwk.insert("key_ops".to_owned(), key_ops);
    jwk
}

/// The public part of a former signing key, with its expiry.
fn former_pair(mut jwk: Map<String, Value>, until: DateTime<Utc>) -> Map<String, Value> {
    for member in ["d", "p", "q", "dp", "dq", "qi", "oth"] {
        jwk.remove(member);
    }
    jwk.insert("key_ops".to_owned(), json!(["verify"]));
    jwk.insert("exp".to_owned(), json!(until.timestamp()));
    jwk
}

/// The next `GOTRUE_JWT_KEYS`; `None` if there are none and none are wanted.
fn rotate_signing(
    current: &Current,
    new: &AcceptedKeys,
    terms: &Terms,
    tokens_until: DateTime<Utc>,
) -> Option<Vec<Map<String, Value>>> {
    let old = &current.keys.jwt_secret;
    let keys = match &current.signing {
        None if !terms.signing_key => return None,
        None => vec![secret_among_keys(old, true, None)],
        Some(keys) => keys.clone(),
    };
    let (waiting, keys): (Vec<_>, Vec<_>) = keys.into_iter().partition(waits);
    let pair_signs = keys.iter().any(|jwk| signs(jwk) && !is_secret(jwk, old));
    let mut next = Vec::new();
    if terms.signing_key || pair_signs || !waiting.is_empty() {
        // Prepared pairs were in the same file as the leaked keys.
        let mut pair = waiting.into_iter().next().filter(|_| !terms.is_leaked);
        if let Some(pair) = &mut pair {
            pair.insert("key_ops".to_owned(), json!(["sign", "verify"]));
        }
        next.extend(pair.or_else(|| new_pair(&json!(["sign", "verify"]))));
    }
    let has_signer = !next.is_empty();
    for jwk in keys {
        let is_over = jwk.get("exp").and_then(Value::as_i64).is_some_and(|exp| exp <= terms.now.timestamp());
        if is_over {
            continue;
        }
        if is_secret(&jwk, old) {
            // The former secret is among the accepted secrets.
            let kid = jwk.get("kid").and(new.jwt_key_id.as_deref());
            next.push(secret_among_keys(&new.jwt_secret, signs(&jwk) && !has_signer, kid));
        } else if signs(&jwk) {
            if !terms.is_leaked {
                next.push(former_pair(jwk, tokens_until));
            }
        } else if !(terms.is_leaked && (jwk.contains_key("exp") || jwk.contains_key("k"))) {
            // One with an expiry is a former pair of ours, which may have leaked while it signed. A secret is in the file itself.
            next.push(jwk);
        }
    }
    Some(next)
}

/// Both names if both are set.
fn under<'a>(source: &'a Source, names: &'a [&'static str]) -> impl Iterator<Item = &'static str> + use<'a> {
    let is_set = |name: &str| source.get(name).is_some_and(|value| !value.is_empty());
    let any = names.iter().any(|name| is_set(name));
    names.iter().enumerate().filter(move |(at, name)| if any { is_set(name) } else { *at == 0 }).map(|(_, name)| *name)
}

fn json_text(keys: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(keys)?)
}

fn accepted_text(accepted: &[AcceptedKeys]) -> anyhow::Result<String> {
    if accepted.is_empty() { Ok(String::new()) } else { json_text(&accepted) }
}

/// Settings with a new secret that is accepted but does not sign yet.
pub fn prepare(source: &Source, signing_key: bool) -> anyhow::Result<Change> {
    let mut current = Current::read(source)?;
    if current.accepted.iter().any(AcceptedKeys::is_next) {
        bail!(
            "new keys are already prepared: once all servers have started with them, 'ferrobase keys rotate' activates them"
        );
    }
    current.accepted.push(fresh(&current)?);
    let mut settings = vec![(ACCEPTED_KEYS, accepted_text(&current.accepted)?)];
    let old = &current.keys.jwt_secret;
    let keys = match current.signing {
        None if signing_key => Some(vec![secret_among_keys(old, true, None)]),
        Some(keys) if signing_key || keys.iter().any(|jwk| signs(jwk) && !is_secret(jwk, old)) => Some(keys),
        _ => None,
    };
    if let Some(mut keys) = keys {
        if !keys.iter().any(waits) {
            keys.extend(new_pair(&json!(["verify"])));
        }
        settings.push(("GOTRUE_JWT_KEYS", checked(source, old, &keys)?));
    }
    let note = "new keys are accepted once a server is started with these settings, and used after the next 'ferrobase keys rotate': \
                start all of them first";
    Ok(Change { settings, note: note.to_owned() })
}

/// Settings in which new keys sign: the prepared ones if there are any.
pub fn rotate(source: &Source, terms: &Terms) -> anyhow::Result<Change> {
    let mut current = Current::read(source)?;
    let next = current.accepted.iter().position(AcceptedKeys::is_next);
    // Prepared and former keys are in the same file as the leaked ones.
    let new = match next.filter(|_| !terms.is_leaked) {
        Some(at) => current.accepted.remove(at),
        None => fresh(&current)?,
    };
    let tokens_until = terms.now + RESTART_WITHIN + current.token_life;
    let keys_until = terms.now + terms.keep_keys;
    let signing = rotate_signing(&current, &new, terms, tokens_until);
    let mut accepted = current.accepted;
    accepted.retain(|keys| !terms.is_leaked && !keys.is_over(terms.now));
    if !terms.is_leaked {
        let times = (Some(tokens_until), Some(keys_until));
        accepted.push(AcceptedKeys { tokens_until: times.0, keys_until: times.1, ..current.keys });
    }
    let mut settings = Settings::new();
    let mut set = |names: &[&'static str], value: &Option<Secret>| {
        if let Some(value) = value {
            settings.extend(under(source, names).map(|name| (name, value.reveal().to_owned())));
        }
    };
    set(&SECRET, &Some(new.jwt_secret.clone()));
    set(&["ANON_KEY"], &new.anon_key);
    set(&["SERVICE_ROLE_KEY"], &new.service_role_key);
    set(&PUBLISHABLE, &new.publishable_key);
    set(&SECRET_KEY, &new.secret_key);
    if source.get("GOTRUE_JWT_KEY_ID").is_some_and(|id| !id.is_empty()) {
        settings.extend(new.jwt_key_id.clone().map(|id| ("GOTRUE_JWT_KEY_ID", id)));
    }
    if let Some(keys) = signing {
        settings.push(("GOTRUE_JWT_KEYS", checked(source, &new.jwt_secret, &keys)?));
    }
    settings.push((ACCEPTED_KEYS, accepted_text(&accepted)?));
    let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let note = if terms.is_leaked {
        "start all servers with these settings now. Nothing of the former keys is accepted from then on: apps need the new API \
         keys, and a session goes on at its next refresh"
            .to_owned()
    } else {
        format!(
            "start all servers with these settings before {}. Tokens of sessions under the former keys are accepted until {}, the \
             former API keys and links to files until {}: give your apps the new ones ('ferrobase keys show') by then",
            time(terms.now + RESTART_WITHIN),
            time(tokens_until),
            time(keys_until)
        )
    };
    Ok(Change { settings, note })
}

/// Settings without expired former keys, or without any former keys.
pub fn drop_former(source: &Source, now: DateTime<Utc>, all: bool) -> anyhow::Result<Change> {
    let current = Current::read(source)?;
    let before = current.accepted.len();
    let mut accepted = current.accepted;
    accepted.retain(|keys| keys.is_next() || !all && !keys.is_over(now));
    let mut dropped = before - accepted.len();
    let mut settings = vec![(ACCEPTED_KEYS, accepted_text(&accepted)?)];
    if let Some(mut keys) = current.signing {
        let before = keys.len();
        keys.retain(|jwk| {
            let end = jwk.get("exp").and_then(Value::as_i64);
            end.is_none_or(|end| !all && end > now.timestamp())
        });
        dropped += before - keys.len();
        settings.push(("GOTRUE_JWT_KEYS", checked(source, &current.keys.jwt_secret, &keys)?));
    }
    Ok(Change {
        settings,
        note: format!("{dropped} former key(s) dropped; they are accepted until the servers are restarted"),
    })
}

/// The value of `GOTRUE_JWT_KEYS` for these keys, if the auth API can use them.
fn checked(source: &Source, secret: &Secret, keys: &[Map<String, Value>]) -> anyhow::Result<String> {
    let text = json_text(&keys)?;
    let key_id = source.get("GOTRUE_JWT_KEY_ID").unwrap_or_default();
    SigningKeys::new(secret, key_id, Some(&Secret::new(&text)), None).context("GOTRUE_JWT_KEYS")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AuthConfig, AuthMode, ServerConfig};
    use crate::gateway::ApiKeys;
    use crate::jwt::{self, KeySet};

    const OWN: &str = "0123456789abcdef0123456789abcdef";

    fn terms(now: DateTime<Utc>) -> Terms {
        Terms { now, keep_keys: Duration::days(30), is_leaked: false, signing_key: false }
    }

    fn with(mut source: Source, change: &Change) -> Source {
        for (name, value) in &change.settings {
            source.set(name, value.as_str());
        }
        source
    }

    /// What the APIs read from the settings: signing keys, accepted keys, API keys.
    fn served(source: &Source) -> (SigningKeys, KeySet, ApiKeys) {
        let mut source = source.clone();
        source.set_default("GOTRUE_SITE_URL", "http://x");
        source.set_default("API_EXTERNAL_URL", "http://x");
        let mut reader = Reader::new(&source);
        let (server, auth) = (ServerConfig::read(&mut reader), AuthConfig::read(&mut reader, AuthMode::Full));
        let (server, auth) = reader.finish((server, auth)).expect("settings");
        let jwt = auth.jwt;
        let signing = SigningKeys::new(&jwt.secret, &jwt.key_id, jwt.keys.as_ref(), None).expect("keys");
        let keys = jwt.keys.as_ref().map(Secret::reveal);
        let others = jwt::shared::jwt_secret(server.jwt_secret.reveal(), &jwt.key_id, keys, &server.accepted_keys);
        assert_eq!(ApiKeys::problems(&server), [""; 0]);
        (
            signing.accepting(&jwt.accepted),
            KeySet::parse(others.as_bytes()).expect("keys"),
            ApiKeys::from_config(&server),
        )
    }

    fn takes(source: &Source, token: &str) -> [bool; 2] {
        let (signing, others, _) = served(source);
        [signing.verify(token).is_ok(), jwt::verify(token, &others).is_ok()]
    }

    fn token(source: &Source) -> String {
        served(source).0.sign(&json!({ "role": "authenticated", "sub": "x" })).expect("a token")
    }

    /// Typical settings: only a secret, a secret with a key id, key pairs with and without the secret among them.
    fn settings() -> Vec<Source> {
        let pair = generate_es256("k1");
        let secret = secret_among_keys(&Secret::new(OWN), false, None);
        let named = secret_among_keys(&Secret::new(OWN), true, Some("s1"));
        [
            vec![],
            vec![("GOTRUE_JWT_KEY_ID", "named".to_owned())],
            vec![("GOTRUE_JWT_KEYS", json!([pair, secret]).to_string())],
            vec![("GOTRUE_JWT_KEYS", json!([pair]).to_string())],
            vec![("GOTRUE_JWT_KEYS", json!([named]).to_string())],
        ]
        .into_iter()
        .map(|pairs| {
            let mut source = Source::from_pairs(pairs);
            source.set("JWT_SECRET", OWN);
            source.set("SB_SECRET_KEY", "sb_secret_own");
            source
        })
        .collect()
    }

    #[test]
    fn sessions_survive_every_rotation_and_new_tokens_use_new_keys() {
        for before in settings() {
            let now = Utc::now();
            let (old, key) = (token(&before), served(&before).2.anon().to_owned());
            let first = with(before.clone(), &rotate(&before, &terms(now)).expect("rotated"));
            assert_eq!(takes(&first, &old), [true, true]);
            let new = token(&first);
            assert_eq!(takes(&first, &new), [true, true]);
            assert_eq!(takes(&before, &new), [false, false], "another key signs");
            let keys = served(&first).2;
            assert_ne!(keys.anon(), key);
            assert_eq!(keys.token_of(&key).as_deref(), Some(keys.anon()));
            assert!(keys.is_of_service("sb_secret_own"));
            // A second rotation, and a third after the first keys have expired.
            let second = with(first.clone(), &rotate(&first, &terms(now)).expect("rotated"));
            for token in [&old, &new, &token(&second)] {
                assert_eq!(takes(&second, token), [true, true]);
            }
            let later = now + Duration::days(31);
            let third = with(second.clone(), &rotate(&second, &terms(later)).expect("rotated"));
            assert_eq!((takes(&third, &old), takes(&third, &new)), ([false; 2], [false; 2]));
            assert_eq!(takes(&third, &token(&second)), [true, true]);
            let dropped = with(third.clone(), &drop_former(&third, later, true).expect("dropped"));
            assert_eq!(takes(&dropped, &token(&third)), [true, true]);
            assert_eq!(takes(&dropped, &token(&second)), [false, false]);
        }
    }

    #[test]
    fn prepared_servers_accept_tokens_of_rotated_ones() {
        for before in settings() {
            let prepared = with(before.clone(), &prepare(&before, false).expect("prepared"));
            assert!(prepare(&prepared, false).is_err(), "once");
            // Prepared servers still sign as before, so servers that were not restarted accept their tokens.
            assert_eq!(takes(&before, &token(&prepared)), [true, true]);
            let rotated = with(prepared.clone(), &rotate(&prepared, &terms(Utc::now())).expect("rotated"));
            assert_eq!(takes(&prepared, &token(&rotated)), [true, true]);
            assert_eq!(takes(&before, &token(&rotated)), [false, false]);
            let keys = served(&prepared).2;
            assert_eq!(keys.token_of(served(&rotated).2.anon()).as_deref(), Some(keys.anon()));
        }
    }

    #[test]
    fn nothing_signed_by_leaked_keys_is_accepted() {
        for before in settings() {
            let old = token(&before);
            let terms = Terms { is_leaked: true, ..terms(Utc::now()) };
            let after = with(before.clone(), &rotate(&before, &terms).expect("rotated"));
            assert_eq!(takes(&after, &old), [false, false]);
            let key = served(&before).2.service_role().to_owned();
            assert_eq!(served(&after).2.token_of(&key), None);
            assert!(!after.get("GOTRUE_JWT_KEYS").unwrap_or_default().contains(&URL_SAFE_NO_PAD.encode(OWN)));
        }
    }

    #[test]
    fn nothing_of_keys_that_leaked_earlier_or_were_prepared_is_accepted() {
        for before in settings() {
            let now = Utc::now();
            let old = token(&before);
            let rotated = with(before.clone(), &rotate(&before, &terms(now)).expect("rotated"));
            let prepared = with(rotated.clone(), &prepare(&rotated, true).expect("prepared"));
            let later = with(prepared.clone(), &rotate(&prepared, &terms(now)).expect("rotated"));
            let leaked = Terms { is_leaked: true, ..terms(now) };
            let after = with(prepared.clone(), &rotate(&prepared, &leaked).expect("rotated"));
            for token in [&old, &token(&rotated), &token(&later)] {
                assert_eq!(takes(&after, token), [false, false]);
            }
            let keys = served(&after).2;
            for source in [&before, &rotated, &later] {
                assert_eq!(keys.token_of(served(source).2.service_role()), None);
            }
            assert_ne!(after.get("JWT_SECRET"), later.get("JWT_SECRET"), "the prepared secret is not used");
            assert_eq!(takes(&after, &token(&after)), [true, true]);
        }
    }

    #[test]
    fn a_key_pair_replaces_the_secret_on_request() {
        let before = &settings()[0];
        let terms = Terms { signing_key: true, ..terms(Utc::now()) };
        let after = with(before.clone(), &rotate(before, &terms).expect("rotated"));
        let (signing, others, keys) = served(&after);
        assert!(signing.is_asymmetric());
        assert_eq!(takes(&after, &token(before)), [true, true]);
        // The API keys are still signed by the secret, and the auth API accepts them beside its key pair.
        assert!(signing.verify(keys.service_role()).is_ok() && jwt::verify(keys.service_role(), &others).is_ok());
        assert!(signing.public_jwks().to_string().contains("ES256"));
    }

    #[test]
    fn settings_that_cannot_be_rotated_are_reported() {
        let refused = |pairs: &[(&str, &str)]| {
            let source = Source::from_pairs(pairs.iter().copied());
            rotate(&source, &terms(Utc::now())).expect_err("refused").to_string()
        };
        assert!(refused(&[]).starts_with("JWT_SECRET is not set"));
        let own = ("JWT_SECRET", OWN);
        assert!(refused(&[own, ("PGRST_JWT_SECRET", OWN)]).starts_with("PGRST_JWT_SECRET"));
        assert!(refused(&[own, ("ANON_KEY", &sign_key("another", "anon"))]).starts_with("ANON_KEY is not signed"));
        assert!(refused(&[own, (ACCEPTED_KEYS, "x")]).starts_with(ACCEPTED_KEYS));
    }
}
