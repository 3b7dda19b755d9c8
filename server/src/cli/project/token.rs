//! `gen bearer-jwt`: a token for the project's APIs, for a role and a user.

use chrono::{DateTime, Duration, Utc};
use clap::Args;
use serde_json::{Map, Value};

use super::{open, settings};
use crate::config::parse_go_duration;
use crate::jwt::sign::SigningKeys;

#[derive(Args)]
pub struct TokenArgs {
    /// PostgreSQL role, such as anon, authenticated or service_role
    #[arg(long)]
    role: String,
    /// Id of the user [default: none; with role authenticated the token is then an anonymous user's]
    #[arg(long)]
    sub: Option<String>,
    /// When it expires, as 2030-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    exp: Option<DateTime<Utc>>,
    /// How long it is valid, as 45s, 30m or 12h
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    valid_for: Duration,
    /// Further claims as a JSON object; they override the others
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    payload: Map<String, Value>,
}

pub fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_go_duration(text).filter(|nanoseconds| *nanoseconds > 0);
    nanoseconds.map(Duration::nanoseconds).ok_or_else(|| "not of the form 45s, 30m or 12h".to_owned())
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

/// Prints a token signed with the project's first key.
pub fn bearer_jwt(args: TokenArgs) -> anyhow::Result<()> {
    let (_, settings) = settings(&open()?)?;
    let jwt = &settings.auth.jwt;
    let keys = SigningKeys::new(&jwt.secret, &jwt.key_id, jwt.keys.as_ref(), jwt.valid_methods.as_deref())
        .map_err(|error| anyhow::anyhow!("the project's signing keys: {error}"))?;
    crate::cli::print_all(&format!("{}\n", keys.sign(&claims(args, Utc::now()))?))
}

fn claims(args: TokenArgs, now: DateTime<Utc>) -> Map<String, Value> {
    let issued = args.exp.map_or(now, |exp| exp - args.valid_for);
    let mut claims = Map::new();
    claims.insert("iat".to_owned(), issued.timestamp().into());
    claims.insert("exp".to_owned(), (issued + args.valid_for).timestamp().into());
    match args.sub {
        Some(sub) => {
            claims.insert("sub".to_owned(), sub.into());
        }
        None if args.role.eq_ignore_ascii_case("authenticated") => {
            claims.insert("is_anonymous".to_owned(), true.into());
        }
        None => {}
    }
    claims.insert("role".to_owned(), args.role.into());
    claims.extend(args.payload);
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(role: &str) -> TokenArgs {
        let valid_for = duration("30m").expect("a duration");
        TokenArgs { role: role.to_owned(), sub: None, exp: None, valid_for, payload: Map::new() }
    }

    #[test]
    fn claims_are_taken_from_the_arguments() {
        let now = DateTime::from_timestamp(1000, 0).expect("a time");
        let exp = DateTime::from_timestamp(9000, 0);
        let payload = object(r#"{"role":"editor","app":{"x":1}}"#).expect("claims");
        for (args, expected) in [
            (args("anon"), r#"{"iat":1000,"exp":2800,"role":"anon"}"#),
            (args("authenticated"), r#"{"iat":1000,"exp":2800,"is_anonymous":true,"role":"authenticated"}"#),
            (
                TokenArgs { sub: Some("ada".to_owned()), exp, ..args("authenticated") },
                r#"{"iat":7200,"exp":9000,"sub":"ada","role":"authenticated"}"#,
            ),
            (TokenArgs { payload, ..args("anon") }, r#"{"iat":1000,"exp":2800,"role":"editor","app":{"x":1}}"#),
        ] {
            assert_eq!(Value::Object(claims(args, now)).to_string(), expected);
        }
        assert!(duration("soon").is_err() && duration("-1m").is_err() && object("[]").is_err());
    }
}
