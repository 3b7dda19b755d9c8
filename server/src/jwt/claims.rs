//! The claims of a token, and their checks.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::ClaimsError;

/// The accepted difference between clocks, in seconds.
const SKEW: i64 = 30;

/// A token's payload: a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    members: Map<String, Value>,
    /// When the key ends that signed them, in seconds since 1970; a token may say later, and a former key must not outlive its time.
    key_ends: Option<i64>,
}

impl Claims {
    /// None unless the text is a JSON object.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok().map(|members| Self { members, key_ends: None })
    }

    /// Whether they are those of an ID token of the OAuth server: it names a client as its audience and no session.
    pub(super) fn are_of_id_token(&self) -> bool {
        are_of_id_token(&self.members)
    }

    /// The same under a key that ends.
    pub(super) fn until(self, key_ends: Option<i64>) -> Self {
        Self { key_ends, ..self }
    }

    /// When the key ends that signed them, in seconds since 1970.
    pub fn key_ends(&self) -> Option<i64> {
        self.key_ends
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub fn as_object(&self) -> &Map<String, Value> {
        &self.members
    }

    /// The claims as JSON text for policies, with `role` set to the role of the request. Members are sorted by name,
    /// as in PostgREST.
    pub fn to_json_as(&self, role: &str) -> String {
        let mut claims = self.members.clone();
        claims.insert("role".to_owned(), Value::String(role.to_owned()));
        let mut claims = Value::Object(claims);
        claims.sort_all_objects();
        claims.to_string()
    }

    /// `exp`, `nbf`, `iat` against `now` (seconds since 1970, give or take [`SKEW`]), then `aud`.
    ///
    /// Types are always checked, the audience only if one is configured; absent, null and `[]` pass. A
    /// fractional time counts as 0, as in the reference.
    pub fn check(&self, now: i64, audience: Option<&str>) -> Result<(), ClaimsError> {
        if self.key_ends.is_some_and(|ends| now >= ends) {
            return Err(ClaimsError::Expired);
        }
        if self.time("exp", ClaimsError::ExpNotNumber)?.is_some_and(|exp| now - SKEW > exp) {
            return Err(ClaimsError::Expired);
        }
        if self.time("nbf", ClaimsError::NbfNotNumber)?.is_some_and(|nbf| now + SKEW < nbf) {
            return Err(ClaimsError::NotYetValid);
        }
        if self.time("iat", ClaimsError::IatNotNumber)?.is_some_and(|iat| now + SKEW < iat) {
            return Err(ClaimsError::IssuedAtFuture);
        }
        let wanted = |aud: &str| audience.is_none_or(|audience| audience == aud);
        let accepted = match self.present("aud") {
            None => true,
            Some(Value::String(aud)) => wanted(aud),
            Some(Value::Array(list)) => {
                let list: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                let list = list.ok_or(ClaimsError::AudNotString)?;
                list.is_empty() || list.into_iter().any(wanted)
            }
            Some(_) => return Err(ClaimsError::AudNotString),
        };
        if accepted { Ok(()) } else { Err(ClaimsError::NotInAudience) }
    }

    /// The times at which [`Claims::check`] passes; `None` or an empty range if never.
    pub fn valid(&self, audience: Option<&str>) -> Option<RangeInclusive<i64>> {
        let time = |name: &str| self.time(name, ClaimsError::ExpNotNumber).ok();
        let (exp, nbf, iat) = (time("exp")?, time("nbf")?, time("iat")?);
        let from = nbf.max(iat).map_or(i64::MIN, |time| time.saturating_sub(SKEW));
        let until = exp.map_or(i64::MAX, |time| time.saturating_add(SKEW));
        let until = self.key_ends.map_or(until, |ends| until.min(ends.saturating_sub(1)));
        // Apart from times, only the audience is left to check.
        let others = Map::from_iter(self.get("aud").map(|aud| ("aud".to_owned(), aud.clone())));
        let others = Self { members: others, key_ends: None };
        others.check(0, audience).ok().map(|()| from..=until)
    }

    fn present(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|value| !value.is_null())
    }

    fn time(&self, name: &str, not_number: ClaimsError) -> Result<Option<i64>, ClaimsError> {
        match self.present(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.as_i64().unwrap_or_else(|| whole(number.as_f64())))),
            Some(_) => Err(not_number),
        }
    }
}

/// Whether claims that this server signed are those of an ID token of the OAuth server. A client may show such a token to
/// others, and no sign-out ends it, so it opens nothing.
pub(super) fn are_of_id_token(claims: &Map<String, Value>) -> bool {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text("client_id").is_some_and(|client| text("aud") == Some(client)) && text("session_id").or(text("role")).is_none()
}

/// `1e9` is whole; `1.5` and numbers out of range are 0.
fn whole(number: Option<f64>) -> i64 {
    number.filter(|n| n.fract() == 0.0 && n.abs() < i64::MAX as f64).map_or(0, |n| n as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(claims: Value, audience: Option<&str>) -> Result<(), ClaimsError> {
        Claims::parse(claims.to_string().as_bytes()).expect("object").check(1000, audience)
    }

    #[test]
    fn an_id_token_names_its_client_as_audience_and_no_session() {
        let id_token = json!({"sub": "1", "aud": "c", "client_id": "c", "email": "a@x"});
        let with = |name: &str, value: &str| {
            let mut claims = id_token.clone();
            claims[name] = json!(value);
            are_of_id_token(claims.as_object().expect("object"))
        };
        assert!(with("sub", "1") && with("session_id", ""));
        // A client's access token, a token of the project's own server, and tokens without a client.
        assert!(!with("session_id", "s") && !with("role", "authenticated") && !with("aud", "authenticated"));
        assert!(!with("client_id", "") && !with("aud", ""));
    }

    #[test]
    fn times_have_thirty_seconds_of_leeway() {
        assert_eq!(check(json!({"exp": 970, "nbf": 1030, "iat": 1030}), None), Ok(()));
        assert_eq!(check(json!({"exp": 969}), None), Err(ClaimsError::Expired));
        assert_eq!(check(json!({"nbf": 1031}), None), Err(ClaimsError::NotYetValid));
        assert_eq!(check(json!({"iat": 1031}), None), Err(ClaimsError::IssuedAtFuture));
    }

    #[test]
    fn times_are_numbers_or_absent() {
        assert_eq!(check(json!({"exp": null, "nbf": null, "iat": null, "aud": null}), Some("x")), Ok(()));
        assert_eq!(check(json!({"exp": "9999"}), None), Err(ClaimsError::ExpNotNumber));
        assert_eq!(check(json!({"nbf": true}), None), Err(ClaimsError::NbfNotNumber));
        assert_eq!(check(json!({"iat": []}), None), Err(ClaimsError::IatNotNumber));
        assert_eq!(check(json!({"exp": 2000.5}), None), Err(ClaimsError::Expired));
        assert_eq!(check(json!({"exp": 2e3}), None), Ok(()));
    }

    #[test]
    fn the_audiences_type_is_always_checked_and_its_value_only_if_configured() {
        assert_eq!(check(json!({"aud": "a"}), None), Ok(()));
        assert_eq!(check(json!({"aud": ["a", "b"]}), Some("b")), Ok(()));
        assert_eq!(check(json!({"aud": []}), Some("b")), Ok(()));
        assert_eq!(check(json!({}), Some("b")), Ok(()));
        assert_eq!(check(json!({"aud": "a"}), Some("b")), Err(ClaimsError::NotInAudience));
        assert_eq!(check(json!({"aud": ["b", 1]}), Some("b")), Err(ClaimsError::AudNotString));
        assert_eq!(check(json!({"aud": 1}), None), Err(ClaimsError::AudNotString));
    }

    #[test]
    fn claims_pass_exactly_during_their_validity() {
        let times = [json!(null), json!(970), json!(1000), json!(1031), json!(1.5), json!("x")];
        for exp in &times {
            for nbf in &times {
                for iat in &times {
                    for aud in [json!(null), json!("a"), json!(["b"]), json!(1)] {
                        let claims = json!({"exp": exp, "nbf": nbf, "iat": iat, "aud": aud});
                        let claims = Claims::parse(claims.to_string().as_bytes()).expect("object");
                        for now in [-31, -30, 0, 939, 940, 970, 1000, 1001, 1030, 1031, 1061, 1062] {
                            let passes = claims.check(now, Some("a")).is_ok();
                            let valid = claims.valid(Some("a")).is_some_and(|valid| valid.contains(&now));
                            assert_eq!(valid, passes, "{claims:?} at {now}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_active_role_replaces_the_claimed_one() {
        let claims = Claims::parse(br#"{"sub":"1","role":"a","app":{"b":[{"y":1,"x":2}],"a":3}}"#).expect("object");
        assert_eq!(claims.to_json_as("b"), r#"{"app":{"a":3,"b":[{"x":2,"y":1}]},"role":"b","sub":"1"}"#);
        assert_eq!(Claims::default().to_json_as("anon"), r#"{"role":"anon"}"#);
    }
}
