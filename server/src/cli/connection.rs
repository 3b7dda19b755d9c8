//! Prepares the connection strings of the database, with libpq's rules, before anything connects.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::conninfo::{Conninfo, DatabaseTls};
use crate::config::{Api, Source};
use crate::db;

/// For each of the driver's connection strings that one for PostgreSQL's programs, which check certificates themselves.
static FOR_PROGRAMS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

fn known() -> MutexGuard<'static, BTreeMap<String, String>> {
    FOR_PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection string for PostgreSQL's programs that belongs to one from the settings; others are what they are.
pub fn for_programs(text: &str) -> String {
    known().get(text).cloned().unwrap_or_else(|| text.to_owned())
}

/// Rewrites the connection strings used by `only`, or by all APIs, into what the driver understands, and decides how the
/// database's certificate is verified.
pub fn settle(source: &mut Source, only: Option<Api>) -> anyhow::Result<()> {
    let names: &[&str] = match only {
        Some(Api::Rest) => &["PGRST_DB_URI"],
        Some(Api::Auth) => &["GOTRUE_DB_DATABASE_URL", "DATABASE_URL"],
        Some(Api::Realtime) => &["DATABASE_URL", "FERROBASE_REPLICATION_URL"],
        Some(Api::Storage) => &["DATABASE_URL", "DATABASE_POOL_URL"],
        None => &[
            "DATABASE_URL",
            "PGRST_DB_URI",
            "GOTRUE_DB_DATABASE_URL",
            "FERROBASE_REPLICATION_URL",
            "FERROBASE_POOLER_URL",
            "FERROBASE_READ_REPLICA_URL",
        ],
    };
    let mut settled: Option<DatabaseTls> = None;
    for name in names {
        let given = match (only, source.get(name)) {
            // Without a URL, libpq's environment variables or its defaults apply.
            (Some(Api::Rest), None | Some("")) => "postgresql://".to_owned(),
            (_, None | Some("")) => continue,
            (_, Some(text)) => text.to_owned(),
        };
        let text = match given.strip_prefix('@') {
            // An unreadable file is reported together with the other configuration errors.
            Some(file) => match std::fs::read_to_string(file) {
                Ok(text) => text.strip_suffix('\n').map_or_else(|| text.clone(), str::to_owned),
                Err(_) => continue,
            },
            None => given.clone(),
        };
        let Conninfo { text: resolved, for_programs, tls } = Conninfo::resolve(&text, source)
            .map_err(|error| anyhow::anyhow!("{name} is not a PostgreSQL connection string: {error}"))?;
        known().insert(resolved.clone(), for_programs);
        if resolved != text {
            source.set(name, resolved);
        }
        match &settled {
            None => settled = Some(tls),
            Some(other) if *other == tls => {}
            Some(_) => anyhow::bail!("{name} and {} differ in how the database's certificate is verified", names[0]),
        }
    }
    db::install_tls(&settled.unwrap_or_default()).map_err(|error| anyhow::anyhow!("the way to the database: {error}"))
}
