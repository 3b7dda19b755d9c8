//! The schema `auth`: compiled-in files of `sql/auth`, recorded in `auth.schema_migrations`.

use anyhow::Context as _;
use rust_embed::RustEmbed;
use tokio_postgres::Client;

use crate::db::tls;

/// The migrations, in name order. Each may run again on any state between Supabase Auth's of 2023 and ours.
#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../sql/auth"]
struct Migrations;

/// Names the lock that lets one instance at a time migrate.
const LOCK: i64 = 0x6675_7468;

/// Brings schema `auth` of the database at `url` up to date; `url` logs in as `supabase_auth_admin`, who owns
/// the schema. A file runs in a transaction of its own, once.
pub async fn migrate(url: &str) -> anyhow::Result<()> {
    let config: tokio_postgres::Config = url.parse().context("the database URL of the auth server is not usable")?;
    let (client, connection) =
        config.connect(tls()).await.context("cannot connect to the database of the auth server")?;
    let driver = tokio::spawn(connection);
    let outcome = run(&client).await;
    drop(client);
    driver.abort();
    outcome
}

async fn run(client: &Client) -> anyhow::Result<()> {
    client.batch_execute("set client_min_messages = warning").await?;
    client.execute("select pg_advisory_lock($1)", &[&LOCK]).await?;
    let known: Vec<String> = match client.query("select version from auth.schema_migrations", &[]).await {
        Ok(rows) => rows.iter().map(|row| row.get(0)).collect(),
        Err(error) if error.code().is_some_and(|code| code.code() == "42P01") => Vec::new(),
        Err(error) => return Err(error).context("cannot read auth.schema_migrations"),
    };
    let mut names: Vec<_> = Migrations::iter().collect();
    names.sort();
    for name in names {
        let version = format!("ferrobase_{}", name.trim_end_matches(".sql"));
        if known.contains(&version) {
            continue;
        }
        let file = Migrations::get(&name).with_context(|| format!("the migration {name} is missing"))?;
        let sql = std::str::from_utf8(&file.data).with_context(|| format!("the migration {name} is not UTF-8"))?;
        // Versions are our own file names: nothing to escape.
        let recorded = format!("insert into auth.schema_migrations (version) values ('{version}')");
        client
            .batch_execute(&format!("begin;\n{sql}\n;{recorded};\ncommit"))
            .await
            .map_err(|error| anyhow::anyhow!("the auth migration {name} failed: {}", reason(&error)))?;
    }
    Ok(())
}

fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned())
}
