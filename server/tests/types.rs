//! `ferrobase types typescript` with schemas that have one of everything.
//!
//! For `types/shop.sql`, `types/views.sql` and `types/names.sql`, `types/expected.ts` is the output of postgres-meta 0.99.0,
//! `types/expected_098.ts` that of 0.98.0, and `types/expected_cli.ts` that of the Supabase CLI 3.1, formatted by oxfmt with 80 columns and
//! without semicolons. `just test-tools postgres-meta` compares with these programs themselves.

use ferrobase::cli::types::{Form, Language, SwiftAccess, Wanted, generate, typescript};

use crate::support::cluster::{Database, Template, connect};

fn wanted(schemas: &[&str], form: Form) -> Wanted {
    let schemas = schemas.iter().map(|&schema| schema.to_owned()).collect();
    Wanted { schemas, form, has_all_relationships: false, tells_one_to_one: true }
}

fn assert_same(made: &str, expected: &str) {
    for (number, (made, expected)) in made.lines().zip(expected.lines()).enumerate() {
        assert_eq!(made, expected, "line {}", number + 1);
    }
    assert_eq!(made.lines().count(), expected.lines().count());
}

#[tokio::test]
async fn the_generated_file_matches_that_of_supabases_tools() {
    let database = Database::new(Template::Empty).await;
    let client = connect(&database.url).await;
    for schema in [include_str!("types/shop.sql"), include_str!("types/views.sql"), include_str!("types/names.sql")] {
        client.batch_execute(schema).await.expect("a schema");
    }
    for (form, expected) in [
        (Form::PostgresMeta, include_str!("types/expected.ts")),
        (Form::PostgresMeta098, include_str!("types/expected_098.ts")),
        (Form::Cli, include_str!("types/expected_cli.ts")),
    ] {
        let made = typescript(&database.url, &wanted(&["views", "shop", "names"], form)).await.expect("types");
        assert_same(&made, expected);
        // For PostgREST 9 only the relationships of tables and views lose the line, not the options of functions.
        let wanted = Wanted { tells_one_to_one: false, ..wanted(&["views", "shop", "names"], form) };
        let made = typescript(&database.url, &wanted).await.expect("types");
        let mut before = "";
        let older: Vec<&str> = expected
            .lines()
            .filter(|line| {
                let is_relationships = before.trim_start().starts_with("columns: [") || before.trim() == "]";
                before = line;
                !(is_relationships && line.trim_start().starts_with("isOneToOne: "))
            })
            .collect();
        assert!(older.len() < expected.lines().count());
        assert_same(&made, &older.join("\n"));
    }

    let missing = typescript(&database.url, &wanted(&["nowhere"], Form::PostgresMeta)).await;
    assert_eq!(missing.expect_err("no such schema").to_string(), "there is no schema named 'nowhere' in the database");
}

/// The other files are what postgres-meta 0.99 prints for the same schema. The enums of the platform's schemas, which it adds in
/// Python, are left out.
#[tokio::test]
async fn types_of_other_languages_are_those_of_postgres_meta() {
    let database = Database::new(Template::Empty).await;
    connect(&database.url).await.batch_execute(include_str!("types/shop.sql")).await.expect("schema");
    let client = ferrobase::db::connect_client(&database.url.parse().expect("a URL")).await.expect("a client");
    for (language, expected) in [
        (Language::Go, include_str!("types/expected.go")),
        (Language::Swift, include_str!("types/expected.swift")),
        (Language::Python, include_str!("types/expected.py")),
    ] {
        let wanted = wanted(&["shop"], Form::PostgresMeta);
        let made = generate(&client, &wanted, language, SwiftAccess::Internal).await.expect("types");
        assert_same(&made, expected);
    }
}

#[tokio::test]
async fn relationships_through_other_schemas_are_printed_on_request() {
    let database = Database::new(Template::Empty).await;
    let sql = "create schema hidden; create table people (id int primary key);
        create table pets (id int primary key, owner int references people);
        create table hidden.notes (id int primary key, person int references people);
        create view notes as select id, person from hidden.notes; create view some_pets as select id, owner from pets;
        create view hidden.pets as select id, owner from pets; create view far_pets as select id, owner from hidden.pets";
    connect(&database.url).await.batch_execute(sql).await.expect("schema");
    for (form, has_all_relationships, expected) in [
        (Form::PostgresMeta, false, ["pets"; 2].as_slice()),
        (Form::PostgresMeta098, false, &["pets"; 3]),
        (Form::Cli, false, &["notes", "pets", "pets"]),
        (Form::PostgresMeta, true, &["notes", "pets", "pets", "pets"]),
        (Form::Cli, true, &["notes", "pets", "pets", "pets"]),
    ] {
        let wanted = Wanted { has_all_relationships, ..wanted(&["public"], form) };
        let made = typescript(&database.url, &wanted).await.expect("types");
        let mut keys: Vec<&str> = made
            .lines()
            .filter_map(|line| line.trim().strip_prefix("foreignKeyName: \"")?.strip_suffix("\""))
            .map(|key| key.split('_').next().unwrap_or(key))
            .collect();
        keys.sort_unstable();
        assert_eq!(keys, expected, "{form:?} {made}");
    }
}
