//! `db lint`: finds broken functions: in PL/pgSQL with plpgsql_check if it is installed, otherwise, and in SQL always, with
//! PostgreSQL's own validators. These find all errors in SQL functions, but in PL/pgSQL only syntax errors, no missing tables.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::dump::is_platform;
use super::say;
use super::target::{Target, TargetArgs};
use crate::cli::database::block_on;

#[derive(Args)]
pub struct LintArgs {
    /// Schemas to check [default: all except the platform's]
    #[arg(short, long, value_delimiter = ',')]
    schema: Vec<String>,
    /// Report issues of this level and above
    #[arg(long, default_value = "warning")]
    level: Level,
    /// Exit with 1 if there are issues of this level or above
    #[arg(long, default_value = "none")]
    fail_on: FailOn,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Level {
    Warning,
    Error,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    None,
    Warning,
    Error,
}

/// In the Supabase CLI's format.
#[derive(Debug, Deserialize, Serialize)]
struct Finding {
    #[serde(default)]
    function: String,
    issues: Vec<Issue>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Issue {
    level: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<StatementPlace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<QueryPlace>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    hint: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    detail: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    context: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    sql_state: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatementPlace {
    line_number: String,
    text: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct QueryPlace {
    position: String,
    text: String,
}

impl Issue {
    fn level(&self) -> Level {
        // For example "warning extra".
        if self.level.starts_with("warning") { Level::Warning } else { Level::Error }
    }
}

pub fn lint(args: &LintArgs) -> anyhow::Result<()> {
    let found = block_on(async {
        let target = args.target.open().await?;
        target.require_schemas(&args.schema).await?;
        let mut schemas = args.schema.clone();
        if schemas.is_empty() {
            let rows = target.client.query("select nspname::text from pg_namespace order by 1", &[]).await?;
            schemas = rows.iter().map(|row| row.get(0)).filter(|schema: &String| !is_platform(schema)).collect();
        }
        // Rolled back at the end, since linting must change nothing.
        target.client.batch_execute("begin").await?;
        let found = all(&target, &schemas).await;
        target.client.batch_execute("rollback").await?;
        found
    })?;
    if found.is_empty() {
        say("\nNo schema errors found");
        return Ok(());
    }
    let mut shown = found;
    for finding in &mut shown {
        finding.issues.retain(|issue| issue.level() >= args.level);
    }
    shown.retain(|finding| !finding.issues.is_empty());
    if !shown.is_empty() {
        crate::cli::print_all(&format!("{}\n", serde_json::to_string_pretty(&shown)?))?;
    }
    let limit = match args.fail_on {
        FailOn::None => return Ok(()),
        FailOn::Warning => Level::Warning,
        FailOn::Error => Level::Error,
    };
    let is_over = shown.iter().flat_map(|finding| &finding.issues).any(|issue| issue.level() >= limit);
    let name = if limit == Level::Error { "error" } else { "warning" };
    anyhow::ensure!(!is_over, "fail-on is set to {name}, non-zero exit");
    Ok(())
}

async fn all(target: &Target, schemas: &[String]) -> anyhow::Result<Vec<Finding>> {
    let extension = extension(target).await?;
    if extension.is_none() {
        say(
            "plpgsql_check is not installed on the database's server: only what PostgreSQL finds when it compiles functions \
             is reported, so a PL/pgSQL function may name a table that is not there.",
        );
    }
    // The extension knows nothing of SQL functions.
    let languages: &[&str] = if extension.is_some() { &["sql"] } else { &["sql", "plpgsql"] };
    let mut found = Vec::new();
    for schema in schemas {
        say(&format!("Linting schema: {schema}"));
        let mut here = by_validators(target, schema, languages).await?;
        if let Some(place) = &extension {
            here.extend(by_extension(target, place, schema).await?);
        }
        here.sort_by(|one, other| one.function.cmp(&other.function));
        found.extend(here);
    }
    Ok(found)
}

/// The schema of plpgsql_check, which is created if its server has it.
async fn extension(target: &Target) -> anyhow::Result<Option<String>> {
    // The stand-in extension has the same name but none of the functions.
    let is_available = "select exists (select from pg_available_extensions
                          where name = 'plpgsql_check' and comment !~ 'not served by Ferrobase')";
    if !target.client.query_one(is_available, &[]).await?.get::<_, bool>(0) {
        return Ok(None);
    }
    // A database from before the real one was installed has ours, which is not written in C.
    let is_ours = "select exists (select from pg_extension e join pg_depend d on d.refobjid = e.oid and d.deptype = 'e'
                     join pg_proc p on p.oid = d.objid join pg_language l on l.oid = p.prolang
                   where e.extname = 'plpgsql_check' and l.lanname = 'plpgsql' and d.classid = 'pg_proc'::regclass)";
    if target.client.query_one(is_ours, &[]).await?.get(0) {
        target.client.batch_execute("drop extension plpgsql_check cascade").await?;
    }
    target.client.batch_execute("create extension if not exists plpgsql_check").await?;
    let place = "select extnamespace::regnamespace::text from pg_extension where extname = 'plpgsql_check'";
    Ok(Some(target.client.query_one(place, &[]).await?.get(0)))
}

async fn by_extension(target: &Target, place: &str, schema: &str) -> anyhow::Result<Vec<Finding>> {
    let check = format!(
        "select p.proname::text, {place}.plpgsql_check_function(p.oid, format := 'json')::text
         from pg_proc p join pg_language l on l.oid = p.prolang
         where l.lanname = 'plpgsql' and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
           and p.pronamespace = $1::text::regnamespace
           and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
         order by 1"
    );
    let mut found = Vec::new();
    for row in target.client.query(&check, &[&quoted(schema)]).await? {
        let (name, report): (String, String) = (row.get(0), row.get(1));
        let finding: Finding = serde_json::from_str(&report)?;
        found.push(Finding { function: format!("{schema}.{name}"), ..finding });
    }
    found.retain(|finding| !finding.issues.is_empty());
    Ok(found)
}

async fn by_validators(target: &Target, schema: &str, languages: &[&str]) -> anyhow::Result<Vec<Finding>> {
    let client = &target.client;
    client
        .batch_execute("set local check_function_bodies = on; set local plpgsql.extra_errors = 'shadowed_variables'")
        .await?;
    let functions = "select p.oid, p.proname::text, p.prosrc, format('%s', l.lanvalidator::regproc)
                     from pg_proc p join pg_language l on l.oid = p.prolang
                     where l.lanname::text = any ($2) and p.pronamespace = $1::text::regnamespace
                       and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
                     order by 2, 1";
    let mut found = Vec::new();
    for row in client.query(functions, &[&quoted(schema), &languages]).await? {
        let (oid, name, source, validator): (u32, String, String, String) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        client.batch_execute("savepoint lint").await?;
        if let Err(error) = client.batch_execute(&format!("select pg_catalog.{validator}({oid})")).await {
            client.batch_execute("rollback to lint").await?;
            let function = format!("{schema}.{name}");
            match error.as_db_error() {
                Some(error) => found.push(Finding { function, issues: vec![issue(error, &source)] }),
                None => return Err(error.into()),
            }
        }
    }
    Ok(found)
}

fn issue(error: &tokio_postgres::error::DbError, source: &str) -> Issue {
    use tokio_postgres::error::ErrorPosition;
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let query = error.position().map(|position| match position {
        ErrorPosition::Internal { position, query } => {
            QueryPlace { position: position.to_string(), text: query.clone() }
        }
        ErrorPosition::Original(position) => QueryPlace { position: position.to_string(), text: source.to_owned() },
    });
    // A shadowed variable is legal, but rarely intended.
    let is_warning = error.code().code() == "42712";
    Issue {
        level: if is_warning { "warning" } else { "error" }.to_owned(),
        message: error.message().to_owned(),
        statement: None,
        query,
        hint: text(error.hint()),
        detail: text(error.detail()),
        context: text(error.where_()),
        sql_state: error.code().code().to_owned(),
    }
}

/// Quotes a name for `regnamespace`.
fn quoted(schema: &str) -> String {
    format!("\"{}\"", schema.replace('"', "\"\""))
}
