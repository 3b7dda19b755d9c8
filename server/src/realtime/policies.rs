//! Checks the policies on `realtime.messages` for reading and writing broadcasts and presence.
//!
//! Checks by trying: selects or inserts a row as the caller, in a transaction that is rolled back. Reference:
//! supabase/realtime `lib/realtime/tenants/authorization.ex`.

use bytes::Bytes;
use uuid::Uuid;

use crate::db::{Asker, DbError, End, ExclusivePool, Param, Query, Row, Unit};

use super::token::Identity;

/// The caller and the topic.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub identity: &'a Identity,
    pub topic: &'a str,
    /// The headers of the request, as JSON.
    pub headers: &'a str,
}

/// What messages are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    Broadcast,
    Presence,
    /// Storing a broadcast.
    Persistence,
}

impl Extension {
    fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Presence => "presence",
            Self::Persistence => "persistence",
        }
    }
}

/// Why the policies could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A policy or a function in it failed, which counts as refused.
    #[error("{0}")]
    Policy(String),
    #[error("Query was cancelled, please try again")]
    Canceled,
    #[error("Realtime was unable to find the expected messages partition")]
    MissingPartition,
    #[error("Please increase your connection pool size")]
    Busy,
    #[error("Realtime was unable to connect to the project database")]
    Unreachable,
}

impl PolicyError {
    /// What stands before the text in a join's refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Policy(_) => "Unauthorized",
            Self::Canceled => "QueryCanceled",
            Self::MissingPartition => "MissingPartition",
            Self::Busy => "IncreaseConnectionPool",
            Self::Unreachable => "UnableToConnectToProject",
        }
    }

    pub fn from_db(error: &DbError) -> Self {
        match error {
            DbError::Refused(refusal) => match refusal.code.as_str() {
                "57014" => Self::Canceled,
                // No partition for the row.
                "23514" if refusal.message.starts_with("no partition") => Self::MissingPartition,
                code if code.starts_with("08") || code.starts_with("57") || code.starts_with("53") => Self::Unreachable,
                _ => Self::Policy(refusal.message.clone()),
            },
            DbError::PoolBusy | DbError::PoolTimeout => Self::Busy,
            DbError::Role(text) => Self::Policy(text.clone()),
            _ => Self::Unreachable,
        }
    }
}

/// Which of these extensions the caller may read on the topic.
pub async fn readable(
    db: &ExclusivePool,
    asked: Asked<'_>,
    extensions: &[Extension],
) -> Result<Vec<bool>, PolicyError> {
    let ids: Vec<String> = extensions.iter().map(|_| Uuid::new_v4().to_string()).collect();
    let names: Vec<&str> = extensions.iter().map(|extension| extension.name()).collect();
    let try_params = [text(asked.topic), array(names), array(ids.iter().map(String::as_str))];
    let see_params = [array(ids.iter().map(String::as_str))];
    let steps = [
        Query { text: "select realtime.try_messages($1, $2::text[], $3::uuid[])", params: &try_params, role: "" },
        Query {
            text: "select m.id::text from realtime.messages m where m.id = any ($1::uuid[])",
            params: &see_params,
            role: &asked.identity.caller.role,
        },
    ];
    let rows = attempt(db, asked, &[steps[0]], &[steps[1]]).await?;
    let seen: Vec<String> = rows.iter().filter_map(|row| row.text(0).ok().flatten()).collect();
    Ok(ids.iter().map(|id| seen.contains(id)).collect())
}

/// Whether the caller may write this extension on the topic.
pub async fn writable(db: &ExclusivePool, asked: Asked<'_>, extension: Extension) -> Result<bool, PolicyError> {
    let params = [text(asked.topic), text(extension.name())];
    let insert = Query {
        text: "insert into realtime.messages (topic, extension, inserted_at) \
               values ($1, $2, pg_catalog.now() at time zone 'utc')",
        params: &params,
        role: &asked.identity.caller.role,
    };
    match attempt(db, asked, &[], &[insert]).await {
        Ok(_) => Ok(true),
        Err(PolicyError::Policy(reason)) => {
            tracing::debug!(topic = asked.topic, reason, "a caller may not write to a channel");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Runs `before` as the login role and `then` as the caller, and rolls back. Returns the rows of the last step.
async fn attempt(
    db: &ExclusivePool,
    asked: Asked<'_>,
    before: &[Query<'_>],
    then: &[Query<'_>],
) -> Result<Vec<Row>, PolicyError> {
    if asked.topic.contains('\0') {
        // PostgreSQL cannot store such a text, so policies would check another topic.
        return Err(PolicyError::Policy("a topic with a zero byte".to_owned()));
    }
    let caller = &asked.identity.caller;
    let subject = caller.subject().unwrap_or_default();
    let settings = [
        text(asked.topic),
        text(&caller.claims),
        text(&subject),
        text(&caller.role),
        text(asked.headers),
        text(&caller.role),
    ];
    let act = Query {
        text: "select set_config('realtime.topic', $1, true), set_config('request.jwt.claims', $2, true), \
               set_config('request.jwt.claim.sub', $3, true), set_config('request.jwt.claim.role', $4, true), \
               set_config('request.headers', $5, true), set_config('statement_timeout', '5s', true), \
               set_config('role', $6, true)",
        params: &settings,
        role: "",
    };
    let mut steps = before.to_vec();
    steps.push(act);
    steps.extend_from_slice(then);
    let asker = Asker { role: &caller.role, client: None, is_quick: true };
    let unit = Unit { asker, begin: "BEGIN", steps, end: End::Decide };
    let mut answers = db.run(&unit).await.map_err(|error| PolicyError::from_db(&error))?;
    if let Some(open) = answers.open.take() {
        open.end(End::Decide).await.map_err(|error| PolicyError::from_db(&error))?;
    }
    Ok(answers.rows.pop().unwrap_or_default())
}

pub fn text(value: &str) -> Param {
    // PostgreSQL's texts cannot contain a NUL.
    Param::Text(Bytes::copy_from_slice(value.replace('\0', "").as_bytes()))
}

/// An array literal.
pub fn array<'a>(items: impl IntoIterator<Item = &'a str>) -> Param {
    let mut literal = String::from("{");
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            literal.push(',');
        }
        literal.push('"');
        for c in item.chars() {
            if matches!(c, '"' | '\\') {
                literal.push('\\');
            }
            literal.push(c);
        }
        literal.push('"');
    }
    literal.push('}');
    text(&literal)
}
