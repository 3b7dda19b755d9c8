//! `ferrobase types typescript` against a schema with one of everything.
//!
//! `types/expected.ts` is what supabase/postgres-meta's generator makes of `types/shop.sql`, as the CLI calls it.

#![allow(clippy::expect_used)]

use ferrobase::cli::types::typescript;
use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use tokio_postgres::NoTls;

#[tokio::test]
async fn the_generated_file_is_the_one_that_the_supabase_cli_writes() {
    let root = std::env::temp_dir().join(format!("ferrobase-types-{}", std::process::id()));
    let options = EmbeddedOptions { data_root: root.clone(), port: 0, ..EmbeddedOptions::default() };
    let postgres = EmbeddedPostgres::start(&options).await.expect("PostgreSQL");
    let (client, connection) = tokio_postgres::connect(&postgres.url, NoTls).await.expect("connect");
    tokio::spawn(connection);
    client.batch_execute(include_str!("types/shop.sql")).await.expect("schema");
    let made = typescript(&postgres.url, &["shop".to_owned()]).await;
    let missing = typescript(&postgres.url, &["nowhere".to_owned()]).await;
    postgres.stop().await;
    let _ = std::fs::remove_dir_all(&root);
    let (made, expected) = (made.expect("types"), include_str!("types/expected.ts"));
    for (number, (made, expected)) in made.lines().zip(expected.lines()).enumerate() {
        assert_eq!(made, expected, "line {}", number + 1);
    }
    assert_eq!(made.lines().count(), expected.lines().count());
    assert_eq!(missing.expect_err("no such schema").to_string(), "there is no schema named 'nowhere' in the database");
}
