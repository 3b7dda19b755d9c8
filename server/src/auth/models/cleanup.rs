//! Removes expired rows: `GOTRUE_DB_CLEANUP_ENABLED`. Reference: supabase/auth `internal/models/cleanup.go`, which
//! runs one statement after each writing request. Here a background task runs them all once a minute, so requests
//! are not slowed down.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::auth::Auth;
use crate::auth::error::AuthResult;
use crate::auth::models::store::Db;

/// The interval of the task.
const PAUSE: Duration = Duration::from_secs(60);

/// Rows per statement, so that no lock is held for long.
const PORTION: u64 = 100;

/// Tokens that were revoked long ago. The condition starts with the creation time, which has an index that
/// revocations do not have to update.
const SPENT: &str = "(r.created_at < now() - interval '24 hours' or r.created_at is null) \
    and r.revoked and r.updated_at < now() - interval '24 hours'";

impl Auth {
    /// Removes expired rows and returns their number. Does nothing if the setting is off.
    ///
    /// Instances may do so at the same time: each skips rows that another has locked.
    pub async fn clean_up(&self) -> AuthResult<u64> {
        if !self.config.cleanup_enabled {
            return Ok(0);
        }
        let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
        let sessions = &self.config.sessions;
        let mut due = vec![
            ("refresh_tokens", SPENT, None),
            ("saml_relay_states", "r.created_at < now() - interval '24 hours'", None),
            ("oauth_spent_codes", "r.created_at < now() - interval '1 hour'", None),
            // Anybody can add to these three. A row is of no use once it has expired; what asks for it later is told so for
            // an hour. Upstream leaves them.
            ("oauth_authorizations", "r.expires_at < now() - interval '1 hour'", None),
            ("oauth_client_states", "r.created_at < now() - interval '1 hour'", None),
            ("webauthn_challenges", "r.expires_at < now() - interval '1 hour'", None),
            ("flow_state", "r.created_at < now() - interval '24 hours'", None),
            ("mfa_challenges", "r.created_at < now() - interval '24 hours'", None),
            ("mfa_factors", "r.status = 'unverified' and r.created_at < now() - interval '24 hours'", None),
            ("sessions", "r.not_after < now() - interval '72 hours'", None),
        ];
        if let Some(limit) = seconds(sessions.timebox) {
            due.push((
                "sessions",
                "r.created_at + make_interval(secs => $1) < now() - interval '24 hours'",
                Some(limit),
            ));
        }
        if let Some(limit) = seconds(sessions.inactivity_timeout) {
            // Sessions of old releases do not record when they were refreshed; their active tokens do.
            let idle = "coalesce(r.refreshed_at at time zone 'UTC', (select max(t.updated_at) from auth.refresh_tokens t \
                where t.session_id = r.id and not t.revoked), r.created_at) + make_interval(secs => $1) \
                < now() - interval '24 hours'";
            due.push(("sessions", idle, Some(limit)));
        }
        if self.config.external.anonymous_users_enabled {
            due.push(("users", "r.is_anonymous and r.created_at < now() - interval '30 days'", None));
        }
        let db = Db::acquire(&self.pool).await?;
        let mut removed = 0;
        for (table, condition, limit) in due {
            let key = if table == "oauth_spent_codes" { "code_hash" } else { "id" };
            // Names and conditions are the literals above.
            let sql = format!(
                "delete from auth.{table} where {key} in (select r.{key} from auth.{table} r where {condition} \
                 limit {PORTION} for update skip locked)"
            );
            loop {
                let rows = match &limit {
                    Some(seconds) => db.execute(&sql, &[seconds]).await?,
                    None => db.execute(&sql, &[]).await?,
                };
                removed += rows;
                if rows < PORTION {
                    break;
                }
            }
        }
        Ok(removed)
    }
}

/// Runs the clean-up periodically for the life of the server.
pub fn keep_clean(auth: &Arc<Auth>) {
    if !auth.config.cleanup_enabled {
        return;
    }
    let auth: Weak<Auth> = Arc::downgrade(auth);
    tokio::spawn(async move {
        while let Some(auth) = auth.upgrade() {
            match auth.clean_up().await {
                Ok(0) => {}
                Ok(rows) => tracing::info!(rows, "what had outlived its use was removed from schema auth"),
                Err(error) => tracing::warn!(cause = error.message(), "schema auth could not be cleaned up now"),
            }
            drop(auth);
            tokio::time::sleep(PAUSE).await;
        }
    });
}
