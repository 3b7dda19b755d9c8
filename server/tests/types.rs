//! `ferrobase types typescript` against a schema with one of everything.
//!
//! `types/expected.ts` is what supabase/postgres-meta's generator makes of `types/shop.sql`, as the CLI calls it, and
//! `types/expected_cli.ts` what the Supabase CLI 3.1 prints, formatted by oxfmt with 80 columns and without semicolons.

use ferrobase::cli::types::{Form, Wanted, typescript};

use crate::support::cluster::{Database, Template, connect};

fn wanted(schemas: &[&str], form: Form) -> Wanted {
    let has_all_relationships = form == Form::Cli;
    Wanted { schemas: schemas.iter().map(|&schema| schema.to_owned()).collect(), form, has_all_relationships }
}

fn assert_same(made: &str, expected: &str) {
    for (number, (made, expected)) in made.lines().zip(expected.lines()).enumerate() {
        assert_eq!(made, expected, "line {}", number + 1);
    }
    assert_eq!(made.lines().count(), expected.lines().count());
}

#[tokio::test]
async fn the_generated_file_is_the_one_that_the_supabase_cli_writes() {
    let database = Database::new(Template::Empty).await;
    let client = connect(&database.url).await;
    client.batch_execute(include_str!("types/shop.sql")).await.expect("schema");
    let made = typescript(&database.url, &wanted(&["shop"], Form::PostgresMeta)).await.expect("types");
    assert_same(&made, include_str!("types/expected.ts"));
    client.batch_execute(include_str!("types/views.sql")).await.expect("views");
    let made = typescript(&database.url, &wanted(&["views", "shop"], Form::Cli)).await.expect("types");
    assert_same(&made, include_str!("types/expected_cli.ts"));

    let missing = typescript(&database.url, &wanted(&["nowhere"], Form::PostgresMeta)).await;
    assert_eq!(missing.expect_err("no such schema").to_string(), "there is no schema named 'nowhere' in the database");
}

#[tokio::test]
async fn relationships_through_schemas_that_were_not_asked_for_are_printed_on_request() {
    let database = Database::new(Template::Empty).await;
    let sql = "create schema hidden; create table people (id int primary key);
        create table pets (id int primary key, owner int references people);
        create table hidden.notes (id int primary key, person int references people);
        create view notes as select id, person from hidden.notes; create view some_pets as select id, owner from pets";
    connect(&database.url).await.batch_execute(sql).await.expect("schema");
    for (has_all_relationships, expected) in [(false, ["pets", "pets"].as_slice()), (true, &["notes", "pets", "pets"])]
    {
        let wanted = Wanted { has_all_relationships, ..wanted(&["public"], Form::PostgresMeta) };
        let made = typescript(&database.url, &wanted).await.expect("types");
        let mut keys: Vec<&str> = made
            .lines()
            .filter_map(|line| line.trim().strip_prefix("foreignKeyName: \"")?.strip_suffix("\""))
            .map(|key| key.split('_').next().unwrap_or(key))
            .collect();
        keys.sort_unstable();
        assert_eq!(keys, expected, "{made}");
    }
}
