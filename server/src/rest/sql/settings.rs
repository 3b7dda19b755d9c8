//! The statements that precede the query in its transaction.
//!
//! Reference: PostgREST `src/library/PostgREST/Query/PreQuery.hs`.

use super::builder::Sql;
use crate::config::rest::FunctionName;
use crate::db::replica::{FOLLOWED_TIMELINE, Target};
use crate::schema_cache::{IsolationLevel, Name};

/// Everything that is set for the transaction.
#[derive(Clone, Debug)]
pub struct TransactionSettings<'a> {
    pub schema: &'a str,
    pub extra_search_path: &'a [String],
    /// Settings of the role. Set before the role, so that the login role's privileges apply and the role needs none.
    pub role_settings: &'a [(String, String)],
    pub role: &'a str,
    /// JSON objects.
    pub claims: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a str,
    pub cookies: &'a str,
    pub timezone: Option<&'a str>,
    /// Settings of the function that hold for the whole transaction.
    pub function_settings: &'a [(Name, Name)],
    pub app_settings: &'a [(String, String)],
}

/// One `SELECT set_config(…)` for all settings: `SET LOCAL` could not be given parameters.
pub fn settings_query(settings: &TransactionSettings<'_>) -> Sql {
    let mut sql = Sql::new();
    sql.raw("select set_config('search_path', ").bind_bytes(&search_path(settings).into()).raw(", true)");
    let mut dynamic = |name: &str, value: &str| {
        sql.raw(", set_config(").bind(name).raw(", ").bind(value).raw(", true)");
    };
    for (name, value) in settings.role_settings {
        dynamic(name, value);
    }
    sql.raw(", set_config('role', ").bind(settings.role).raw(", true)");
    sql.raw(", set_config('request.jwt.claims', ").bind(settings.claims).raw(", true)");
    sql.raw(", set_config('request.method', ").bind(settings.method).raw(", true)");
    sql.raw(", set_config('request.path', ").bind(settings.path).raw(", true)");
    sql.raw(", set_config('request.headers', ").bind(settings.headers).raw(", true)");
    sql.raw(", set_config('request.cookies', ").bind(settings.cookies).raw(", true)");
    if let Some(timezone) = settings.timezone {
        sql.raw(", set_config('timezone', ").bind(timezone).raw(", true)");
    }
    let mut dynamic = |name: &str, value: &str| {
        sql.raw(", set_config(").bind(name).raw(", ").bind(value).raw(", true)");
    };
    for (name, value) in settings.function_settings {
        dynamic(name, value);
    }
    for (name, value) in settings.app_settings {
        dynamic(name, value);
    }
    sql
}

fn search_path(settings: &TransactionSettings<'_>) -> String {
    let mut path = Sql::new();
    let schemas = std::iter::once(settings.schema).chain(settings.extra_search_path.iter().map(String::as_str));
    path.list(", ", schemas, |path, schema| {
        path.ident(schema);
    });
    path.into_text()
}

/// The call of `db-pre-request`.
pub fn pre_request_query(function: &FunctionName) -> Sql {
    let mut sql = Sql::new();
    sql.raw("select ").qualified(function.schema.as_deref().unwrap_or_default(), &function.name).raw("()");
    sql
}

/// Refuses the transaction on a server that has not replayed the primary's log up to `target`, or is not a replica.
pub fn replayed_query(target: Target) -> Sql {
    let mut sql = Sql::new();
    sql.raw("select 1 / coalesce(pg_catalog.pg_is_in_recovery() and pg_catalog.pg_last_wal_replay_lsn() >= ");
    sql.bind(&target.position.to_string()).raw("::pg_catalog.pg_lsn and ").raw(FOLLOWED_TIMELINE).raw(" = ");
    sql.bind(&target.timeline.to_string()).raw("::pg_catalog.int8, false)::int");
    sql
}

/// `BEGIN` with its modes.
pub fn begin(isolation: IsolationLevel, read_only: bool) -> &'static str {
    match (isolation, read_only) {
        (IsolationLevel::ReadCommitted, true) => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
        (IsolationLevel::ReadCommitted, false) => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        (IsolationLevel::RepeatableRead, true) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        (IsolationLevel::RepeatableRead, false) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
        (IsolationLevel::Serializable, true) => "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
        (IsolationLevel::Serializable, false) => "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
    }
}
