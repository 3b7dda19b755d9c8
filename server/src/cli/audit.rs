//! `audit`: shows who changed something with a service key or by a command.

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use serde_json::json;
use tokio_postgres::Row;

use super::database::{Database, block_on};
use crate::audit::fingerprint;
use crate::config::{Reader, ServerConfig, Source};
use crate::db;
use crate::gateway::ApiKeys;

#[derive(Args)]
pub struct AuditArgs {
    /// How far to look back, in days
    #[arg(long, default_value_t = 7)]
    days: i32,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const ENTRIES: &str = "select at, instance, actor, address, action, target, outcome, count, request_id
  from _supavisor.admin_audit where at > now() - make_interval(days => $1) order by at, id";

pub fn run(args: &AuditArgs, source: &Source) -> anyhow::Result<()> {
    let names = names_of_keys(source);
    let rows = block_on(Database::with(source, async |logins| {
        let client = db::connect_client(&logins.admin_url.parse()?).await?;
        let is_there = "select to_regclass('_supavisor.admin_audit') is not null";
        anyhow::ensure!(client.query_one(is_there, &[]).await?.get::<_, bool>(0), "this database has no audit log yet");
        Ok(client.query(ENTRIES, &[&args.days]).await?)
    }))?;
    let lines = rows.iter().map(|row| if args.json { as_json(row, &names) } else { as_line(row, &names) });
    super::print_all(&lines.collect::<String>())
}

/// The configured keys, by their identifiers in the log.
fn names_of_keys(source: &Source) -> HashMap<String, &'static str> {
    let mut reader = Reader::new(source);
    let config = ServerConfig::read(&mut reader);
    let mut names = HashMap::new();
    // With invalid settings, keys have no names.
    if let Ok(config) = reader.finish(config) {
        let service = ApiKeys::from_config(&config).service_role().to_owned();
        names.insert(format!("key {}", fingerprint(&service)), "SERVICE_ROLE_KEY");
        if let Some(key) = &config.secret_key {
            names.insert(format!("key {}", fingerprint(key.reveal())), "SB_SECRET_KEY");
        }
    }
    names
}

fn time_of(row: &Row) -> String {
    row.get::<_, DateTime<Utc>>("at").to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn as_line(row: &Row, names: &HashMap<String, &'static str>) -> String {
    let text = |name: &str| row.get::<_, &str>(name);
    let actor = text("actor");
    let actor = names.get(actor).map_or_else(|| actor.to_owned(), |name| format!("{actor} ({name})"));
    let (address, count) = (text("address"), row.get::<_, i64>("count"));
    let from = if address.is_empty() { text("instance") } else { address };
    format!(
        "{}  {actor} from {from}: {} {} {count}x {}\n",
        time_of(row),
        text("action"),
        text("target"),
        text("outcome")
    )
}

fn as_json(row: &Row, names: &HashMap<String, &'static str>) -> String {
    let text = |name: &str| row.get::<_, &str>(name);
    let entry = json!({
        "at": time_of(row),
        "instance": text("instance"),
        "actor": text("actor"),
        "key": names.get(text("actor")),
        "address": text("address"),
        "action": text("action"),
        "target": text("target"),
        "outcome": text("outcome"),
        "count": row.get::<_, i64>("count"),
        "request_id": text("request_id"),
    });
    format!("{entry}\n")
}
