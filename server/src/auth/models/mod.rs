//! The rows of schema `auth`: their types, queries and updates.

pub mod action;
pub mod audit;
pub mod cleanup;
pub mod confirmation;
pub mod factor;
pub mod flow_state;
pub mod identity;
pub mod oauth_client;
pub mod oauth_client_state;
pub mod one_time_token;
pub mod passkey;
pub mod recovery_codes;
pub mod refresh_token;
pub mod session;
pub mod slot;
pub mod sso_provider;
pub mod store;
pub mod unproved_address;
pub mod user;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

/// A JSON object of metadata.
pub type Json = Map<String, Value>;

/// The present, in the microseconds PostgreSQL keeps.
pub fn now() -> DateTime<Utc> {
    let now = Utc::now();
    DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
}

/// SQL for the JSON object in `column`, merged at the top level with what [`changes`] made of the updates: `$3` is set,
/// the keys in `$4` go.
pub fn merged(column: &str) -> String {
    format!("(case when jsonb_typeof({column}) = 'object' then {column} else '{{}}' end || $3::jsonb) - $4::text[]")
}

/// The values that updates set, and the keys that they remove (those with null).
pub fn changes(updates: &Json) -> (Json, Vec<&str>) {
    let set = updates.iter().filter(|(_, value)| !value.is_null());
    let removed = updates.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key.as_str());
    (set.map(|(key, value)| (key.clone(), value.clone())).collect(), removed.collect())
}
