//! The audit log, written in the transaction it reports.
//! Reference: supabase/auth `internal/models/audit_log_entry.go`.

use serde_json::{Value, json};
use tokio_postgres::types::Json as SqlJson;
use uuid::Uuid;

pub use super::action::Action;
use super::now;
use super::user::User;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// Who did it: a user, or an administrator known by role only.
#[derive(Clone, Copy, Debug)]
pub enum Actor<'a> {
    User(&'a User),
    Admin { role: &'a str },
}

/// An entry before it is written.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    pub actor: Actor<'a>,
    pub action: Action,
    pub ip_address: &'a str,
    /// Details, or null.
    pub traits: Value,
}

impl<'a> Entry<'a> {
    pub fn of(user: &'a User, action: Action) -> Self {
        Self { actor: Actor::User(user), action, ip_address: "", traits: Value::Null }
    }

    pub fn by_admin(role: &'a str, action: Action, traits: Value) -> Self {
        Self { actor: Actor::Admin { role }, action, ip_address: "", traits }
    }

    pub fn with(mut self, traits: Value) -> Self {
        self.traits = traits;
        self
    }

    #[allow(clippy::wrong_self_convention, reason = "an entry comes from an address")]
    pub fn from_address(mut self, ip_address: &'a str) -> Self {
        self.ip_address = ip_address;
        self
    }

    /// With its fields in upstream's order. Batched refreshes write this shape in SQL (`token/rotations.sql`).
    fn payload(&self) -> Value {
        let (id, name, via_sso, full_name) = match self.actor {
            Actor::User(user) => {
                let name = if user.phone.is_empty() { &user.email } else { &user.phone };
                let full_name = user.user_metadata.as_ref().and_then(|data| data.get("full_name"));
                (user.id, name.as_str(), user.is_sso_user, full_name)
            }
            Actor::Admin { role } => (Uuid::nil(), role, false, None),
        };
        let mut payload = json!({ "action": self.action.as_str(), "actor_id": id });
        if let Some(full_name) = full_name {
            payload["actor_name"] = full_name.clone();
        }
        payload["actor_username"] = json!(name);
        payload["actor_via_sso"] = json!(via_sso);
        payload["log_type"] = json!(self.action.log_type());
        if !self.traits.is_null() {
            payload["traits"] = self.traits.clone();
        }
        payload
    }

    /// Notes the entry in the process's log.
    pub fn log(&self) {
        self.action.log();
    }

    /// The entry to store in the database; `None` if `log_only`.
    pub fn stored(&self, log_only: bool) -> Option<Value> {
        (!log_only).then(|| self.payload())
    }

    /// Logs the entry, and stores it in the database unless `log_only`.
    pub async fn record(self, db: &Db, log_only: bool) -> Result<(), Fault> {
        db.note(self.action);
        let Some(payload) = self.stored(log_only) else { return Ok(()) };
        db.execute(
            "insert into auth.audit_log_entries (instance_id, id, payload, created_at, ip_address) values ($1, $2, $3, $4, $5)",
            &[&Uuid::nil(), &Uuid::new_v4(), &SqlJson(payload), &now(), &self.ip_address],
        )
        .await?;
        Ok(())
    }
}
