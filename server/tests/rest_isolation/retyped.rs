//! Columns whose type changes under prepared statements: filters read values in the current type.

use crate::rest_isolation::fixture::Fixture;

/// Often enough for every connection to have prepared the statement.
async fn repeat(fixture: &Fixture, target: &str) -> (u16, String) {
    let mut last = (0, String::new());
    for _ in 0..6 {
        let reply = fixture.send(fixture.request("anon", "GET", target)).await;
        last = (reply.status, reply.body);
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_read_values_in_the_columns_current_type() {
    let fixture = Fixture::start(&[("DB_POOL", "1")]).await;
    let begin = "create table typed (id int primary key, number int, day date, word text, other int); \
                 grant select on typed to studio_visitor; \
                 insert into typed values (1, 7, '2024-03-01', 'Ada', 5)";
    fixture.reload_with(begin, "/typed").await;
    let cases = [
        ("number=gt.6", "number=lt.3000000000", "alter column number type bigint"),
        (
            "day=eq.2024-03-01",
            "day=eq.2024-03-01T12:00:00Z",
            "alter column day type timestamptz using '2024-03-01 12:00Z'",
        ),
        ("word=eq.Ada", "word=eq.ada", "alter column word type citext"),
        ("other=eq.5", "other=eq.x", "drop column other, add column other text default 'x'"),
    ];
    // `citext` is one of PostgreSQL's contrib modules; a case-insensitive collation does the same.
    let is_citext = fixture.one("select count(*) from pg_available_extensions where name = 'citext'").await == "1";
    if is_citext {
        fixture.one("create extension citext").await;
    }
    for (number, (before, after, change)) in cases.into_iter().enumerate() {
        let change = if is_citext {
            change.to_owned()
        } else {
            fixture.one("create collation if not exists caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)").await;
            change.replace("type citext", "type text collate caseless")
        };
        let select = "select=id&";
        assert_eq!(repeat(&fixture, &format!("/typed?{select}{before}")).await, (200, r#"[{"id":1}]"#.to_owned()));
        let probe =
            format!("create view probe_{number} as select 1 as x; grant select on probe_{number} to studio_visitor");
        fixture.reload_with(&format!("alter table typed {change}; {probe}"), &format!("/probe_{number}")).await;
        let found = repeat(&fixture, &format!("/typed?{select}{after}")).await;
        assert_eq!(found, (200, r#"[{"id":1}]"#.to_owned()), "{change}");
    }
    fixture.stop().await;
}

/// Until the reload, PostgreSQL refuses outdated statements, which are then prepared again.
#[tokio::test(flavor = "multi_thread")]
async fn statements_that_cannot_be_bound_any_more_are_prepared_again() {
    let fixture = Fixture::start(&[("DB_POOL", "1"), ("DB_CHANNEL_ENABLED", "false")]).await;
    for (long, target) in
        [("", "/clients?select=id&id=eq."), ("&limit=20000", "/clients?select=id,name&name=neq.x&id=eq.")]
    {
        let ask =
            async |value: &str| fixture.send(fixture.request("anon", "GET", &format!("{target}{value}{long}"))).await;
        for _ in 0..4 {
            assert_eq!(ask("1").await.status, 200);
        }
        fixture.one("alter table projects drop constraint if exists projects_client_id_fkey").await;
        fixture.one("alter table clients alter column id type bigint").await;
        let reply = ask("3000000000").await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "[]"));
        let wrong = ask("x").await;
        assert_eq!((wrong.status, wrong.json()["code"].as_str()), (400, Some("22P02")));
        assert_eq!(ask("1").await.json().as_array().map(Vec::len), Some(1));
        fixture.one("alter table clients alter column id type int").await;
    }
    fixture.stop().await;
}
