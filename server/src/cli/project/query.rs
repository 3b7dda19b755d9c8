//! `db query`: runs SQL on a database and prints the rows. Reference: supabase/cli `internal/db/query`.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::inspect::table;
use super::target::{TargetArgs, connect_plainly};
use crate::cli::database::block_on;
use crate::cli::print_all;

#[derive(Args)]
pub struct QueryArgs {
    /// The statement [default: standard input]
    sql: Option<String>,
    /// File with the statement
    #[arg(short, long, conflicts_with = "sql")]
    file: Option<PathBuf>,
    /// How rows are printed
    #[arg(short, long, default_value = "table")]
    output: Output,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    Csv,
}

pub fn query(args: &QueryArgs) -> anyhow::Result<()> {
    let sql = statement(args)?;
    let text = block_on(async {
        let target = args.target.open().await?;
        run(&connect_plainly(&target.url).await?, &sql, args.output).await
    })?;
    print_all(&text)
}

fn statement(args: &QueryArgs) -> anyhow::Result<String> {
    let sql = match (&args.file, &args.sql) {
        (Some(file), _) => std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
        (None, Some(sql)) => sql.clone(),
        (None, None) if std::io::stdin().is_terminal() => String::new(),
        (None, None) => std::io::read_to_string(std::io::stdin())?,
    };
    anyhow::ensure!(!sql.trim().is_empty(), "there is no SQL: give it as an argument, by --file or on standard input");
    Ok(sql)
}

/// What the statement returns, as text.
async fn run(client: &Client, sql: &str, output: Output) -> anyhow::Result<String> {
    // Several statements cannot be prepared. Their columns are then texts.
    let types: Vec<Type> = match client.prepare(sql).await {
        Ok(prepared) => prepared.columns().iter().map(|column| column.type_().clone()).collect(),
        Err(error) if error.code().is_some_and(|code| code.code() == "42601") => Vec::new(),
        Err(error) => return Err(refused(&error)),
    };
    let mut headings: Vec<String> = Vec::new();
    let mut rows: Vec<Vec<Option<String>>> = Vec::new();
    for message in client.simple_query(sql).await.map_err(|error| refused(&error))? {
        match message {
            // Of several results, the last one is printed.
            SimpleQueryMessage::RowDescription(columns) => {
                headings = columns.iter().map(|column| column.name().to_owned()).collect();
                rows.clear();
            }
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|place| row.get(place).map(str::to_owned)).collect());
            }
            _ => {}
        }
    }
    if headings.is_empty() {
        return Ok(String::new());
    }
    Ok(match output {
        Output::Table => {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
            let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
            table(&headings, &rows)
        }
        Output::Csv => {
            let lines = rows.iter().map(|row| row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect());
            let all = std::iter::once(headings.iter().map(String::as_str).collect::<Vec<_>>()).chain(lines);
            all.map(|cells| cells.into_iter().map(csv).collect::<Vec<_>>().join(",") + "\n").collect()
        }
        Output::Json => {
            let object = |row: &Vec<Option<String>>| {
                let value = |place: usize| json(types.get(place), row[place].as_deref());
                Value::Object(
                    headings.iter().enumerate().map(|(n, name)| (name.clone(), value(n))).collect::<Map<_, _>>(),
                )
            };
            serde_json::to_string_pretty(&rows.iter().map(object).collect::<Vec<_>>())? + "\n"
        }
    })
}

fn refused(error: &tokio_postgres::Error) -> anyhow::Error {
    match error.as_db_error() {
        Some(error) => anyhow::anyhow!("{} (SQLSTATE {})", error.message(), error.code().code()),
        None => anyhow::anyhow!("{error}"),
    }
}

/// A value of PostgreSQL's as JSON: numbers, booleans and JSON as such, anything else as text.
fn json(kind: Option<&Type>, text: Option<&str>) -> Value {
    let Some(text) = text else { return Value::Null };
    match kind {
        Some(kind) if *kind == Type::BOOL => Value::Bool(text == "t"),
        Some(kind)
            if [Type::INT2, Type::INT4, Type::INT8, Type::FLOAT4, Type::FLOAT8, Type::JSON, Type::JSONB]
                .contains(kind) =>
        {
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
        _ => text.into(),
    }
}

fn csv(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_kind_in_json_and_are_quoted_in_csv() {
        assert_eq!(json(Some(&Type::INT8), Some("42")), serde_json::json!(42));
        assert_eq!(json(Some(&Type::BOOL), Some("f")), serde_json::json!(false));
        assert_eq!(json(Some(&Type::JSONB), Some(r#"{"a": 1}"#)), serde_json::json!({ "a": 1 }));
        assert_eq!(json(Some(&Type::FLOAT8), Some("NaN")), serde_json::json!("NaN"));
        assert_eq!(json(Some(&Type::TEXT), Some("1")), serde_json::json!("1"));
        assert_eq!(json(Some(&Type::TEXT), None), Value::Null);
        assert_eq!(csv("plain"), "plain");
        assert_eq!(csv("a \"b\", c"), "\"a \"\"b\"\", c\"");
    }
}
