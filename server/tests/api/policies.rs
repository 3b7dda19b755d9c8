//! The application's policies, role by role.

use crate::support::TestApp;

/// Each file of `sql/tests` raises an error if a check fails, and ends with the number of its checks.
#[actix_web::test]
async fn every_role_has_exactly_the_access_that_the_policies_grant() {
    let app = TestApp::start().await;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/tests");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("sql/tests").map(|e| e.expect("entry").path()).collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    let mut checks = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("SQL");
        let answers = app.owner.simple_query(&text).await.unwrap_or_else(|error| {
            let told = error.as_db_error().map_or_else(|| error.to_string(), |db| format!("{db:?}"));
            panic!("{}: {told}", file.display())
        });
        let last = answers.iter().rev().find_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).and_then(|text| text.parse::<u32>().ok()),
            _ => None,
        });
        checks += last.unwrap_or(0);
    }
    assert!(checks > 3000, "only {checks} checks ran");
}
