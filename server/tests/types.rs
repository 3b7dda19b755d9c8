//! `ferrobase types typescript` against a schema with one of everything.
//!
//! `types/expected.ts` is what supabase/postgres-meta's generator makes of `types/shop.sql`, as the CLI calls it.

use ferrobase::cli::types::typescript;

use crate::support::cluster::{Database, Template, connect};

#[tokio::test]
async fn the_generated_file_is_the_one_that_the_supabase_cli_writes() {
    let database = Database::new(Template::Empty).await;
    connect(&database.url).await.batch_execute(include_str!("types/shop.sql")).await.expect("schema");
    let made = typescript(&database.url, &["shop".to_owned()]).await;
    let missing = typescript(&database.url, &["nowhere".to_owned()]).await;
    let (made, expected) = (made.expect("types"), include_str!("types/expected.ts"));
    for (number, (made, expected)) in made.lines().zip(expected.lines()).enumerate() {
        assert_eq!(made, expected, "line {}", number + 1);
    }
    assert_eq!(made.lines().count(), expected.lines().count());
    assert_eq!(missing.expect_err("no such schema").to_string(), "there is no schema named 'nowhere' in the database");
}
