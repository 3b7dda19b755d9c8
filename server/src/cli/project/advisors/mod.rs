//! `db advisors`: checks a database for security and performance problems with the rules of Supabase's linter.
//!
//! The rules are queries in `rules.sql`. Reference: supabase/splinter, supabase/cli `internal/db/advisors`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use super::dump::is_platform;
use super::inspect::table;
use super::target::{Target, TargetArgs};
use super::{find, open, say};
use crate::cli::database::block_on;
use crate::cli::print_all;

const COMMON: &str = include_str!("common.sql");
const RULES: &str = include_str!("rules.sql");

/// Base of the links to explanations, completed by number and name of the rule.
const REMEDIATION: &str = "https://supabase.com/docs/guides/database/database-linter?lint=";

#[derive(Args)]
pub struct AdvisorsArgs {
    /// Kind of findings
    #[arg(long = "type", value_enum, default_value = "all")]
    kind: Kind,
    /// Report findings of this level and above
    #[arg(long, value_enum, default_value = "warn")]
    level: Level,
    /// Exit with 1 if there are findings of this level or above
    #[arg(long, value_enum, default_value = "none")]
    fail_on: FailOn,
    /// Output format
    #[arg(short, long, value_enum, default_value = "json")]
    output: Output,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    All,
    Security,
    Performance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Level {
    Info,
    Warn,
    Error,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    None,
    Info,
    Warn,
    Error,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Table,
}

/// A rule of the linter.
#[derive(Debug)]
struct Rule {
    number: &'static str,
    name: &'static str,
    level: Level,
    category: &'static str,
    /// The rule is skipped if this table is missing.
    needs: Option<&'static str>,
    title: &'static str,
    description: &'static str,
    query: String,
}

/// As the Supabase CLI prints it.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    title: &'static str,
    level: &'static str,
    facing: &'static str,
    categories: [&'static str; 1],
    description: &'static str,
    detail: String,
    remediation: String,
    metadata: Value,
    cache_key: String,
}

pub fn advisors(args: &AdvisorsArgs) -> anyhow::Result<()> {
    let project = if args.target.is_local() { Some(open()?) } else { find().ok() };
    let rules: Vec<Rule> = rules().into_iter().filter(|rule| args.takes(rule)).collect();
    let findings = block_on(async {
        let target = args.target.reach(project.as_ref()).await?;
        let exposed = match project.as_ref().filter(|_| args.target.is_local()) {
            Some(project) => project.schemas(),
            None => exposed(&target).await?.unwrap_or_else(|| vec!["public".to_owned()]),
        };
        look(&target, &rules, &exposed).await
    })?;
    if findings.is_empty() {
        say("No issues found");
        return Ok(());
    }
    print_all(&match args.output {
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&findings)?),
        Output::Table => {
            let headings = ["Level", "Category", "Name", "Detail"].map(str::to_owned);
            let row =
                |f: &Finding| vec![f.level.to_owned(), f.categories[0].to_owned(), f.name.to_owned(), f.detail.clone()];
            table(&headings, &findings.iter().map(row).collect::<Vec<_>>())
        }
    })?;
    let limit = match args.fail_on {
        FailOn::None => return Ok(()),
        FailOn::Info => Level::Info,
        FailOn::Warn => Level::Warn,
        FailOn::Error => Level::Error,
    };
    let is_over = findings.iter().any(|finding| Level::by_name(finding.level).is_some_and(|level| level >= limit));
    anyhow::ensure!(!is_over, "fail-on is set to {}, non-zero exit", limit.name().to_lowercase());
    Ok(())
}

impl AdvisorsArgs {
    fn takes(&self, rule: &Rule) -> bool {
        let is_kind = match self.kind {
            Kind::All => true,
            Kind::Security => rule.category == "SECURITY",
            Kind::Performance => rule.category == "PERFORMANCE",
        };
        is_kind && rule.level >= self.level
    }
}

impl Level {
    const ALL: [Self; 3] = [Self::Info, Self::Warn, Self::Error];

    fn name(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// The exposed schemas of a Supabase project, as set on the API's role.
async fn exposed(target: &Target) -> anyhow::Result<Option<Vec<String>>> {
    let setting = "select substr(setting, length('pgrst.db_schemas=') + 1)
                   from pg_catalog.pg_db_role_setting s join pg_catalog.pg_roles r on r.oid = s.setrole, unnest(s.setconfig) setting
                   where r.rolname = 'authenticator' and setting like 'pgrst.db_schemas=%'
                   order by s.setdatabase desc limit 1";
    let found = target.client.query_opt(setting, &[]).await?;
    let list = |text: String| text.split(',').map(|schema| schema.trim().trim_matches('"').to_owned()).collect();
    Ok(found.map(|row| list(row.get(0))))
}

/// Runs the rules in a read-only transaction.
async fn look(target: &Target, rules: &[Rule], exposed: &[String]) -> anyhow::Result<Vec<Finding>> {
    let client = &target.client;
    // With an empty search path, the expressions of policies contain schema names.
    client.batch_execute("begin isolation level repeatable read read only; set local search_path = ''").await?;
    let all = client.query("select nspname::text from pg_namespace", &[]).await?;
    let platform: Vec<String> =
        all.iter().map(|row| row.get(0)).filter(|schema: &String| is_platform(schema)).collect();
    let mut findings = Vec::new();
    for rule in rules {
        if let Some(table) = rule.needs {
            let there = client.query_one("select to_regclass($1) is not null", &[&table]).await?;
            if !there.get::<_, bool>(0) {
                continue;
            }
        }
        let query = format!(
            "{COMMON}select detail, metadata::text, cache_key from (\n{}\n) as found (detail, metadata, cache_key) order by cache_key",
            rule.query
        );
        for row in client.query(query.as_str(), &[&exposed, &platform]).await? {
            findings.push(Finding {
                name: rule.name,
                title: rule.title,
                level: rule.level.name(),
                facing: "EXTERNAL",
                categories: [rule.category],
                description: rule.description,
                detail: row.get(0),
                remediation: format!("{REMEDIATION}{}_{}", rule.number, rule.name),
                metadata: serde_json::from_str(row.get(1))?,
                cache_key: row.get(2),
            });
        }
    }
    client.batch_execute("rollback").await?;
    Ok(findings)
}

/// The rules in the order of their numbers.
fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for line in RULES.lines() {
        let Some(said) = line.strip_prefix("--! ") else {
            if let Some(rule) = rules.last_mut() {
                rule.query.push_str(line);
                rule.query.push('\n');
            }
            continue;
        };
        let words: Vec<&'static str> = said.split(' ').collect();
        if let &[number, name, level, category, ref needs @ ..] = words.as_slice()
            && let Some(level) = Level::by_name(level)
        {
            let needs = needs.first().copied();
            let query = String::new();
            rules.push(Rule { number, name, level, category, needs, title: "", description: "", query });
        } else if let Some(rule) = rules.last_mut() {
            let part = if rule.title.is_empty() { &mut rule.title } else { &mut rule.description };
            *part = said;
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_parts() {
        let rules = rules();
        assert_eq!(rules.len(), 28);
        for rule in &rules {
            assert!(!rule.title.is_empty() && rule.description.ends_with('.'), "{rule:?}");
            assert!(["SECURITY", "PERFORMANCE"].contains(&rule.category), "{rule:?}");
            assert!(rule.query.trim().starts_with("select "), "{rule:?}");
        }
        assert!(rules.iter().is_sorted_by(|a, b| a.number < b.number), "by number");
    }
}
