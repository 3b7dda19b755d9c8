//! The REST contract over HTTP: a table of cases per section, each file against a server and database of its own.
//!
//! `RECORD=1` writes the answers into the files instead of comparing: to be read line by line before it is kept.

mod behaviour;
mod case;
mod house;
mod policies;
mod random;
mod wire;

use house::House;

async fn run(file: &str, text: &str) {
    let suite = case::parse(text);
    let settings: Vec<(&str, &str)> = suite.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let house = House::open(&settings).await;
    if std::env::var_os("RECORD").is_some() {
        return record(file, text, &suite, &house).await;
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

async fn record(file: &str, text: &str, suite: &case::Suite, house: &House) {
    let head: String =
        text.lines().take_while(|line| !line.starts_with("= ")).map(|line| format!("{line}\n")).collect();
    let mut written = head;
    for (index, case) in suite.cases.iter().enumerate() {
        if index > 0 {
            written.push('\n');
        }
        written.push_str(&case.recorded(&case.ask(house).await));
    }
    let path = format!("{}/tests/rest/cases/{file}.case", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, written).unwrap_or_else(|error| panic!("{file}: {error}"));
}

macro_rules! suites {
    ($($name:ident)*) => {
        $(
            #[actix_web::test]
            async fn $name() {
                run(stringify!($name), include_str!(concat!("cases/", stringify!($name), ".case"))).await;
            }
        )*
    };
}

suites! {
    routing select filters logic order_range embedding spread_aggregates writes bodies functions media preferences jwt
    settings cache cors cors_origins max_rows restricted closed openapi openapi_all
}
