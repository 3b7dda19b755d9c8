//! The rows of schema `auth`: what they are, how they are found and changed.

pub mod audit;
pub mod factor;
pub mod flow_state;
pub mod identity;
pub mod oauth_client;
pub mod oauth_client_state;
pub mod one_time_token;
pub mod passkey;
pub mod refresh_token;
pub mod session;
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

/// Merges `updates` into `into` at the top level: a null removes its key.
pub fn merge(into: &mut Option<Json>, updates: &Json) {
    match into {
        None => *into = Some(updates.clone()),
        Some(object) => {
            for (key, value) in updates {
                if value.is_null() {
                    object.remove(key);
                } else {
                    object.insert(key.clone(), value.clone());
                }
            }
        }
    }
}
