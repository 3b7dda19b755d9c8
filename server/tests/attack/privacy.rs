//! `docs/privacy.md` documents personal data: its map lists every table of AidBridge and of the server, and its
//! statements for export and erasure work.

use serde_json::Value;

use super::report;
use super::world::{ALL_ON, VICTIM, VICTIM_EMAIL, World};
use crate::support::TestApp;

fn page() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/privacy.md");
    std::fs::read_to_string(path).expect("docs/privacy.md")
}

#[actix_web::test]
async fn the_map_of_personal_data_lists_every_table() {
    let app = TestApp::start().await;
    let tables = app
        .owner
        .query(
            "select n.nspname || '.' || c.relname, c.relkind = 'v' from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ('r', 'p', 'v') and not c.relispartition
               and n.nspname in ('public', 'private', 'auth', '_supavisor', 'ferrobase', 'storage', 'realtime', 'vault') order by 1",
            &[],
        )
        .await
        .expect("tables");
    let page = page();
    let views: Vec<String> = tables.iter().filter(|row| row.get(1)).map(|row| row.get(0)).collect();
    let names: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    assert!(names.len() > 70, "{names:?}");
    // Views store nothing themselves.
    let (views, tables): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| views.contains(name));
    let missing: Vec<_> = tables.iter().filter(|table| !page.contains(&format!("`{table}`"))).collect();
    assert!(missing.is_empty(), "tables that docs/privacy.md does not know: {missing:?}");
    let named =
        regex::Regex::new(r"`((?:public|private|auth|_supavisor|ferrobase|storage|realtime|vault)\.[a-z0-9_]+)`")
            .expect("a pattern");
    let map = page.split("## Data map").nth(1).and_then(|rest| rest.split("## Export").next()).expect("the map");
    for part in named.captures_iter(map) {
        let table = &part[1];
        assert!(tables.iter().chain(&views).any(|known| *known == table), "{table} is in the map and in no database");
    }
}

/// The statements below a heading of the page, for this person.
fn statements(heading: &str) -> Vec<String> {
    let page = page();
    let part =
        page.split(&format!("## {heading}")).nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a heading");
    let blocks = part.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(|block| block.replace("person@example.org", VICTIM_EMAIL)).collect()
}

/// Where rows contain any of these words of the victim.
async fn traces(app: &TestApp, words: &[&str]) -> Vec<String> {
    let tables = app
        .owner
        .query(
            "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where c.relkind = 'r' and n.nspname in ('public', 'private', 'auth', '_supavisor', 'ferrobase', 'storage', 'realtime')",
            &[],
        )
        .await
        .expect("tables");
    let mut found = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        for row in app.owner.query(&format!("select t::text from {table} t"), &[]).await.expect("rows") {
            let text: String = row.get(0);
            if let Some(word) = words.iter().find(|word| text.contains(**word)) {
                found.push(format!("{table}: '{word}' in {text}"));
            }
        }
    }
    found
}

#[actix_web::test]
async fn the_documented_statements_export_and_erase_a_person() {
    let app = TestApp::with_settings(&ALL_ON).await;
    let _world = World::new(&app).await;
    let words = [
        VICTIM,
        VICTIM_EMAIL,
        "Désir-Beauvoir",
        "+1 207 555 0142",
        "X0000142",
        "Saint-Germain-en-Laye",
        "cleaning job",
        "kestrel",
    ];
    assert!(traces(&app, &words).await.len() > 20, "they are there before");

    let export = statements("Export").concat();
    let answers = app.owner.simple_query(&export).await.expect("the export runs");
    let told = answers.iter().find_map(|answer| match answer {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.try_get("my_data").ok().flatten().map(str::to_owned),
        _ => None,
    });
    let told: Value = serde_json::from_str(&told.expect("an answer")).expect("JSON");
    let text = told.to_string();
    for word in [VICTIM_EMAIL, "X0000142", "cleaning job"] {
        assert!(text.contains(word), "the export lacks '{word}'");
    }

    for statement in statements("Erasure") {
        app.owner.batch_execute(&statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    // The mail that confirms the erasure is removed once it is delivered.
    app.owner.batch_execute("delete from _supavisor.outbox; delete from _supavisor.inbox").await.expect("delivered");
    // Rows of an organization that mention the demo people, and the list of seeded users.
    let others = ["public.saved_replies", "public.budget_allocations", "_supavisor.seeded_users"];
    let left: Vec<String> = traces(&app, &words)
        .await
        .into_iter()
        .filter(|trace| !others.iter().any(|table| trace.starts_with(table)))
        .collect();
    assert!(left.is_empty(), "after erasure there is still:\n{}", left.join("\n"));
    report("a person's data in every table after erasure", words.len(), "none left");
}
