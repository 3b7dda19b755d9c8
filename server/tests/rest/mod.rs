//! The REST contract over HTTP: a table of cases per section, with a server and database per file.
//!
//! `RECORD=1` adds answers to cases that have none instead of comparing. Check them line by line against the contract
//! before committing them.

mod behaviour;
mod case;
mod coverage;
mod house;
mod limits;
mod policies;
mod process;
mod random;
mod relay;

use house::{Ground, House};

fn read(file: &str) -> String {
    let path = format!("{}/tests/rest/cases/{file}.case", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn run(file: &str) {
    let text = read(file);
    let suite = case::parse(&text);
    let settings: Vec<(&str, &str)> = suite.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let ground = Ground::new(suite.statements.as_deref()).await;
    let house = House::build(&settings, &ground).await;
    if std::env::var_os("RECORD").is_some() {
        return record(file, &text, &suite, &house).await;
    }
    let mut failures = Vec::new();
    for case in &suite.cases {
        let reply = case.ask(&house).await;
        let faults = case.faults(&reply);
        if !faults.is_empty() {
            failures.push(format!("{file}.case:{}: {}\n    {}", case.line, case.name, faults.join("\n    ")));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases fail\n{}", failures.len(), suite.cases.len(), failures.join("\n"));
}

/// Adds answers to the cases that have none.
async fn record(file: &str, text: &str, suite: &case::Suite, house: &House) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (index, case) in suite.cases.iter().enumerate().rev() {
        if case.has_answer() {
            continue;
        }
        let answer = case.answer_of(&case.ask(house).await);
        let next = suite.cases.get(index + 1).map_or(lines.len(), |next| next.line - 1);
        let end = (case.line..next).find(|n| lines[*n].is_empty() || lines[*n].starts_with('§')).unwrap_or(next);
        lines.insert(end, answer);
    }
    let path = format!("{}/tests/rest/cases/{file}.case", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, lines.join("\n") + "\n").unwrap_or_else(|error| panic!("{file}: {error}"));
}

macro_rules! suites {
    ($($name:ident)*) => {
        /// The files of cases.
        const SUITES: &[&str] = &[$(stringify!($name),)*];
        $(
            #[actix_web::test]
            async fn $name() {
                run(stringify!($name)).await;
            }
        )*
    };
}

suites! {
    routing select filters logic order_range embedding spread_aggregates writes bodies functions media preferences jwt
    settings cache cors cors_origins max_rows restricted closed openapi openapi_all errors headers clients plans sql
    grammar corners strange inferred rare
}
