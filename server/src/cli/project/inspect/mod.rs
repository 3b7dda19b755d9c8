//! `inspect db`: reports about the database, as tables in the Supabase CLI's format.

use std::path::PathBuf;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use futures_util::TryStreamExt;

use super::dump::PLATFORM_SCHEMAS;
use super::say;
use super::target::{TargetArgs, connect_plainly};
use crate::cli::database::block_on;

/// Names and queries. `{platform}` is replaced by the patterns of schemas that are not the project's, `{io}` by the I/O time,
/// whose columns differ between versions.
const REPORTS: [(&str, &str); 13] = [
    ("bloat", include_str!("bloat.sql")),
    ("blocking", include_str!("blocking.sql")),
    ("calls", include_str!("calls.sql")),
    ("db-stats", include_str!("db_stats.sql")),
    ("index-stats", include_str!("index_stats.sql")),
    ("locks", include_str!("locks.sql")),
    ("long-running-queries", include_str!("long_running_queries.sql")),
    ("outliers", include_str!("outliers.sql")),
    ("replication-slots", include_str!("replication_slots.sql")),
    ("role-stats", include_str!("role_stats.sql")),
    ("table-stats", include_str!("table_stats.sql")),
    ("traffic-profile", include_str!("traffic_profile.sql")),
    ("vacuum-stats", include_str!("vacuum_stats.sql")),
];

/// Deprecated names and their replacements.
const DEPRECATED: [(&str, &str); 12] = [
    ("cache-hit", "db-stats"),
    ("index-sizes", "index-stats"),
    ("index-usage", "index-stats"),
    ("role-configs", "role-stats"),
    ("role-connections", "role-stats"),
    ("seq-scans", "index-stats"),
    ("table-index-sizes", "table-stats"),
    ("table-record-counts", "table-stats"),
    ("table-sizes", "table-stats"),
    ("total-index-size", "index-stats"),
    ("total-table-sizes", "table-stats"),
    ("unused-indexes", "index-stats"),
];

const IO_TIME: &str =
    "coalesce((to_jsonb(s) ->> 'shared_blk_read_time')::float8, (to_jsonb(s) ->> 'blk_read_time')::float8, 0)
  + coalesce((to_jsonb(s) ->> 'shared_blk_write_time')::float8, (to_jsonb(s) ->> 'blk_write_time')::float8, 0)";

#[derive(Subcommand)]
pub enum InspectCommand {
    /// Sizes, statistics, locks and slow queries of the database
    Db(InspectArgs),
    /// Write all of these as CSV files, into a folder named after the day
    Report(ReportArgs),
}

#[derive(Args)]
pub struct ReportArgs {
    /// Where the folder is made
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    output_dir: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args)]
pub struct InspectArgs {
    #[arg(value_parser = PossibleValuesParser::new(names()))]
    report: String,
    #[command(flatten)]
    target: TargetArgs,
}

fn names() -> impl Iterator<Item = &'static str> {
    REPORTS.iter().map(|(name, _)| *name).chain(DEPRECATED.iter().map(|(old, _)| *old))
}

pub fn inspect(command: &InspectCommand) -> anyhow::Result<()> {
    match command {
        InspectCommand::Db(args) => print_report(args),
        InspectCommand::Report(args) => write_reports(args),
    }
}

/// The SQL of a report.
fn sql_of(query: &str) -> String {
    let platform: Vec<String> = PLATFORM_SCHEMAS.iter().map(|schema| format!("'{}'", like(schema))).collect();
    query.replace("{platform}", &format!("array[{}]", platform.join(", "))).replace("{io}", IO_TIME)
}

fn write_reports(args: &ReportArgs) -> anyhow::Result<()> {
    let folder = args.output_dir.join(chrono::Local::now().format("%Y-%m-%d").to_string());
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    say("Running queries...");
    block_on(async {
        let target = args.target.open().await?;
        let client = connect_plainly(&target.url).await?;
        let statistics = "select exists (select from pg_extension where extname = 'pg_stat_statements')";
        let has_statistics: bool = target.client.query_one(statistics, &[]).await?.get(0);
        for (name, query) in REPORTS {
            if query.contains("pg_stat_statements") && !has_statistics {
                say(&format!("WARN: {name} is left out: the extension pg_stat_statements is missing"));
                continue;
            }
            let copy = format!("copy ({}) to stdout with csv header", sql_of(query).trim_end().trim_end_matches(';'));
            let rows = client.copy_out(copy.as_str()).await.with_context(|| format!("the report {name}"))?;
            let chunks: Vec<bytes::Bytes> = rows.try_collect().await.with_context(|| format!("the report {name}"))?;
            let path = folder.join(format!("{}.csv", name.replace('-', "_")));
            std::fs::write(&path, chunks.concat()).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    })?;
    say(&format!("Reports saved to {}", folder.display()));
    Ok(())
}

fn print_report(args: &InspectArgs) -> anyhow::Result<()> {
    let name = match DEPRECATED.iter().find(|(old, _)| *old == args.report) {
        Some((old, name)) => {
            say(&format!("Command \"{old}\" is deprecated, use \"{name}\" instead."));
            name
        }
        None => args.report.as_str(),
    };
    let query = REPORTS.iter().find(|(report, _)| *report == name).map_or("", |(_, query)| *query);
    let sql = sql_of(query);
    let (headings, rows) = block_on(async {
        let target = args.target.open().await?;
        if query.contains("pg_stat_statements") {
            let found = "select from pg_extension where extname = 'pg_stat_statements'";
            anyhow::ensure!(
                target.client.query_opt(found, &[]).await?.is_some(),
                "the extension pg_stat_statements is missing: create extension pg_stat_statements with schema extensions"
            );
        }
        let statement = target.client.prepare_cached(&sql).await?;
        let headings: Vec<String> = statement.columns().iter().map(|column| column.name().to_owned()).collect();
        // Every value as text, formatted by PostgreSQL.
        let as_text = format!(
            "select array(select coalesce(value, '') from json_each_text(row_to_json(report)) with ordinality order by ordinality)
             from ({sql}) as report"
        );
        let rows = target.client.query(as_text.as_str(), &[]).await?;
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.get::<_, Vec<String>>(0).iter().map(|value| one_line(value)).collect()).collect();
        Ok((headings, rows))
    })?;
    crate::cli::print_all(&table(&headings, &rows))
}

/// Turns `pg_*` into a `like` pattern.
fn like(schema: &str) -> String {
    schema.replace('_', "\\_").replace('*', "%")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Pads columns to their widest text, except the last.
pub fn table(headings: &[String], rows: &[Vec<String>]) -> String {
    let width = |n: usize| rows.iter().chain([&headings.to_vec()]).map(|row| row[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:<width$} ")).collect();
        format!(" {}\n", cells.join("|").trim_end())
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    let mut text = format!("\n{} {}\n", line(headings), rule.join("|"));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_aligned() {
        let cells = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let text = table(&cells(&["Name", "Size"]), &[cells(&["public.größe", "8 kB"]), cells(&["a", ""])]);
        assert_eq!(text, "\n  Name         | Size\n --------------|------\n  public.größe | 8 kB\n  a            |\n");
    }

    #[test]
    fn every_deprecated_name_leads_to_a_report() {
        for (old, name) in DEPRECATED {
            assert!(REPORTS.iter().any(|(report, _)| *report == name), "{old}");
        }
        assert_eq!(like("timescaledb_*"), "timescaledb\\_%");
    }
}
