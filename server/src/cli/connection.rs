//! The connection strings of the database, read as libpq reads them before anything connects.

use crate::config::conninfo::{Conninfo, DatabaseTls};
use crate::config::{Api, Source};
use crate::db;

/// Replaces what the driver does not understand in the connection strings that count for `only` this API, or for
/// everything, and settles how the database's certificate is judged.
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
        ],
    };
    let mut settled: Option<DatabaseTls> = None;
    for name in names {
        let given = match (only, source.get(name)) {
            // The environment may say everything.
            (Some(Api::Rest), None | Some("")) => "postgresql://".to_owned(),
            (_, None | Some("")) => continue,
            (_, Some(text)) => text.to_owned(),
        };
        let text = match given.strip_prefix('@') {
            // A file that cannot be read is told with all else that is wrong.
            Some(file) => match std::fs::read_to_string(file) {
                Ok(text) => text.strip_suffix('\n').map_or_else(|| text.clone(), str::to_owned),
                Err(_) => continue,
            },
            None => given.clone(),
        };
        let Conninfo { text: resolved, tls } = Conninfo::resolve(&text, source)
            .map_err(|error| anyhow::anyhow!("{name} is no connection string of PostgreSQL: {error}"))?;
        if resolved != text {
            source.set(name, resolved);
        }
        match &settled {
            None => settled = Some(tls),
            Some(other) if *other == tls => {}
            Some(_) => anyhow::bail!("{name} and {} differ in how the database's certificate is judged", names[0]),
        }
    }
    db::install_tls(&settled.unwrap_or_default()).map_err(|error| anyhow::anyhow!("the way to the database: {error}"))
}
