//! Requests to SQL without a database: parsed, planned against a hand-made schema, written.

use crate::config::rest::ReadLimit;
use crate::rest::error::ApiError;
use crate::rest::plan::{self, Plan, PlanRules};
use crate::rest::request::{self, RawRequest, RequestRules};
use crate::schema_cache::{
    CacheParts, Cardinality, Column, Name, QualifiedName, Relationship, SchemaCache, Table, TableKind,
};

fn cache() -> SchemaCache {
    let table = |name: &str, key: &[&str], columns: &[(&str, &str)]| {
        Table::new(
            QualifiedName::new("api", name),
            &TableKind::TABLE,
            key.iter().map(|column| Name::from(*column)).collect(),
            columns.iter().map(|(column, data_type)| Column::plain(column, data_type)).collect(),
        )
    };
    let films = QualifiedName::new("api", "films");
    let directors = QualifiedName::new("api", "directors");
    let link = |origin: &QualifiedName, target: &QualifiedName, cardinality| Relationship::Detected {
        origin: origin.clone(),
        target: target.clone(),
        is_self: false,
        cardinality,
        origin_is_view: false,
        target_is_view: false,
    };
    let constraint: Name = "films_director_fkey".into();
    SchemaCache::assemble(CacheParts {
        tables: vec![
            table(
                "films",
                &["id"],
                &[("id", "integer"), ("title", "text"), ("director_id", "integer"), ("info", "jsonb")],
            ),
            table("directors", &["id"], &[("id", "integer"), ("name", "text")]),
        ],
        relationships: vec![
            link(
                &films,
                &directors,
                Cardinality::ManyToOne {
                    constraint: constraint.clone(),
                    columns: vec![("director_id".into(), "id".into())],
                },
            ),
            link(
                &directors,
                &films,
                Cardinality::OneToMany { constraint, columns: vec![("id".into(), "director_id".into())] },
            ),
        ],
        ..CacheParts::default()
    })
}

/// The main statement of a request and its values, without the constant columns.
fn written(method: &str, target: &str, body: &str, prefer: &str) -> Result<(String, Vec<String>), ApiError> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let raw = RawRequest {
        method,
        path,
        query,
        headers: vec![("prefer", prefer.as_bytes())],
        body: bytes::Bytes::copy_from_slice(body.as_bytes()),
    };
    let schemas = ["api".to_owned()];
    let rules = RequestRules { schemas: &schemas, root_function: None, root_disabled: false, tx_override: true };
    let request = request::parse(&raw, &rules)?;
    let rules = PlanRules {
        max_rows: None,
        aggregates: true,
        legacy_target_names: true,
        plan_enabled: false,
        limit: ReadLimit { depth: 0, embeds: 0, cost: 0.0 },
    };
    let Plan::Database(plan) = plan::plan(&request, &cache(), &rules)? else { panic!("no statement") };
    let statement = super::statements(&plan, &request, None).main;
    let query = statement.query("");
    let values = query
        .params
        .iter()
        .map(|param| match param {
            crate::db::Param::Text(bytes) | crate::db::Param::Binary(bytes) => String::from_utf8_lossy(bytes).into(),
        })
        .collect();
    Ok((query.text.to_owned(), values))
}

/// What stands between the select list and the alias of the rows.
fn source(target: &str) -> (String, Vec<String>) {
    let (text, values) = written("GET", target, "", "").expect("a statement");
    let rows = text.split("response_inserted FROM (").nth(1).and_then(|rest| rest.strip_suffix(") _postgrest_t"));
    (rows.expect("rows").split_whitespace().collect::<Vec<_>>().join(" "), values)
}

#[test]
fn reads_are_written_with_values_beside_them() {
    let cases: [(&str, &str, &[&str]); 8] = [
        (
            "/films?select=id,title&id=eq.1",
            r#"SELECT "api"."films"."id", "api"."films"."title" FROM "api"."films" WHERE "api"."films"."id" = $1"#,
            &["1"],
        ),
        (
            "/films?select=t:title::text&order=id.desc.nullslast&limit=5&offset=2",
            r#"SELECT CAST( "api"."films"."title" AS text ) AS "t" FROM "api"."films" ORDER BY "api"."films"."id" DESC NULLS LAST LIMIT $1 OFFSET $2"#,
            &["5", "2"],
        ),
        (
            "/films?select=info->a->>0&title=like.a*&title=not.in.(x,\"y,z\")",
            r#"SELECT "api"."films"."info"->$1->>$2::int AS "a" FROM "api"."films" WHERE "api"."films"."title" like $3 AND NOT "api"."films"."title" = ANY ($4)"#,
            &["a", "+0", "a%", r#"{"x","y,z"}"#],
        ),
        (
            "/films?select=title->x&or=(id.gt.1,not.and(id.is.null,title.is.not_null))",
            r#"SELECT to_jsonb("api"."films"."title")->$1 AS "x" FROM "api"."films" WHERE ("api"."films"."id" > $2 OR NOT ("api"."films"."id" IS NULL AND "api"."films"."title" IS NOT NULL))"#,
            &["x", "1"],
        ),
        (
            "/films?select=title,directors(name)&directors.name=eq.x",
            r#"SELECT "api"."films"."title", row_to_json("films_directors_1".*)::jsonb AS "directors" FROM "api"."films" LEFT JOIN LATERAL ( SELECT "directors_1"."name" FROM "api"."directors" AS "directors_1" WHERE "directors_1"."name" = $1 AND "directors_1"."id" = "api"."films"."director_id" ) AS "films_directors_1" ON TRUE"#,
            &["x"],
        ),
        (
            "/directors?select=name,films!inner(id)",
            r#"SELECT "api"."directors"."name", COALESCE( "directors_films_1"."directors_films_1", '[]') AS "films" FROM "api"."directors" INNER JOIN LATERAL ( SELECT json_agg("directors_films_1")::jsonb AS "directors_films_1" FROM (SELECT "films_1"."id" FROM "api"."films" AS "films_1" WHERE "films_1"."director_id" = "api"."directors"."id" ) AS "directors_films_1" ) AS "directors_films_1" ON "directors_films_1" IS NOT NULL"#,
            &[],
        ),
        (
            "/films?select=director_id,count()",
            r#"SELECT "api"."films"."director_id", COUNT("api"."films".*) FROM "api"."films" GROUP BY "api"."films"."director_id""#,
            &[],
        ),
        (
            "/films?select=title&title=fts(english).a&id=eq(any).{1,2}",
            r#"SELECT "api"."films"."title" FROM "api"."films" WHERE to_tsvector($1, "api"."films"."title") @@ to_tsquery($2, $3) AND "api"."films"."id" = ANY($4)"#,
            &["english", "english", "a", "{1,2}"],
        ),
    ];
    for (target, text, values) in cases {
        let (got, bound) = source(target);
        assert_eq!(got, text, "{target}");
        assert_eq!(bound, values, "{target}");
    }
}

#[test]
fn no_text_of_a_request_reaches_the_statement() {
    let nasty = "x');drop table films;--";
    let encoded = "x%27%29%3Bdrop%20table%20films%3B--";
    let targets = [
        format!("/films?title=eq.{encoded}"),
        format!("/films?title=in.({encoded})"),
        format!("/films?info->>{encoded}=eq.1"),
        format!("/films?title=fts({encoded}).a"),
        format!("/films?or=(title.eq.\"{encoded}\",id.eq.1)"),
        format!("/films?limit={encoded}"),
    ];
    for target in targets {
        if let Ok((text, _)) = written("GET", &target, "", "") {
            assert!(!text.contains("drop table"), "{target}: {text}");
        }
    }
    let (text, _) = written("GET", &format!("/films?select=\"{encoded}\""), "", "").expect("a statement");
    assert!(text.contains(&format!("\"{nasty}\"")), "quoted as an identifier: {text}");
}

#[test]
fn a_body_of_any_length_is_one_parameter() {
    let (text, values) =
        written("POST", "/films?select=id", r#"[{"id":1,"title":"a"},{"id":2,"title":"b"}]"#, "return=representation")
            .expect("a statement");
    assert!(text.starts_with(
        r#"WITH pgrst_source AS (INSERT INTO "api"."films"("id", "title") SELECT "pgrst_body"."id", "pgrst_body"."title" FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "id", "title" FROM json_to_recordset(pgrst_payload.json_data) AS _("id" integer, "title" text) ) pgrst_body  RETURNING "api"."films"."id")"#
    ), "{text}");
    assert_eq!(values.len(), 1);
}

#[test]
fn upserts_count_what_they_insert() {
    let (text, _) = written("POST", "/films", r#"{"id":1}"#, "resolution=merge-duplicates").expect("a statement");
    for part in [
        "ON CONFLICT(\"id\") DO UPDATE SET \"id\" = EXCLUDED.\"id\" WHERE set_config('pgrst.inserted'",
        "WHERE set_config('pgrst.inserted', (coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0) + 1)",
        "RETURNING 1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (text, _) = written("POST", "/films", r#"{"id":1}"#, "resolution=ignore-duplicates").expect("a statement");
    assert!(text.contains("ON CONFLICT(\"id\") DO NOTHING") && !text.contains("set_config("), "{text}");
}

#[test]
fn names_that_the_cache_answers_for_are_refused_without_a_statement() {
    let cases = [
        ("GET", "/nope", "", "PGRST205"),
        ("GET", "/films?select=actors(name)", "", "PGRST200"),
        ("GET", "/films?directors.name=eq.x", "", "PGRST108"),
        ("GET", "/directors?select=films(id)&order=films(id)", "", "PGRST118"),
        ("GET", "/directors?select=...films(id.sum())", "", "PGRST127"),
        ("POST", "/films", r#"{"nope":1}"#, "PGRST204"),
        ("PUT", "/films?title=eq.x", r#"{"id":1}"#, "PGRST105"),
        ("POST", "/rpc/nope", "{}", "PGRST202"),
    ];
    for (method, target, body, code) in cases {
        let error = written(method, target, body, "").expect_err("refused");
        assert_eq!(error.code(), code, "{method} {target}");
    }
}
