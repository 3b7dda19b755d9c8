//! Two accounts on every table, view and function of AidBridge in the database's catalog: an attacker can read nothing
//! of the victims, and no write changes anything of theirs. A new table needs a row in the demo data or in `world`.
//! Without one its case would prove nothing, so it fails.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::report;
use super::world::{ALL_ON, VICTIM, VICTIM_EMAIL, World};
use crate::support::{Actor, TestApp, send};

/// Tables without personal data.
const ABOUT_NOBODY: [&str; 3] = ["categories", "denial_reasons", "nonprofit_settings"];

struct Column {
    name: String,
    kind: String,
    readable: bool,
    updatable: bool,
    insertable: bool,
}

struct Relation {
    name: String,
    is_table: bool,
    key: Vec<String>,
    columns: Vec<Column>,
    /// Relations joined with it by a foreign key.
    neighbours: Vec<String>,
}

/// Everything in the exposed schema on which this role has a privilege.
async fn relations(app: &TestApp, role: &str) -> Vec<Relation> {
    let statement = "
        select c.relname::text, c.relkind in ('r', 'p'),
          coalesce((select array_agg(a.attname::text order by a.attnum) from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = any (i.indkey)
            where i.indrelid = c.oid and i.indisprimary), '{}'),
          array(select distinct r::text from (
            select f.confrelid::regclass::text from pg_constraint f where f.conrelid = c.oid and f.contype = 'f' and f.confrelid::regclass::text not like 'auth.%'
            union select f.conrelid::regclass::text from pg_constraint f where f.confrelid = c.oid and f.contype = 'f') t (r) where r not like 'private.%' and r not like '%.%')
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'public' and c.relkind in ('r', 'p', 'v', 'm')
          and (has_table_privilege($1, c.oid, 'select, insert, update, delete') or has_any_column_privilege($1, c.oid, 'select, insert, update'))
        order by 1";
    let mut found = Vec::new();
    for row in app.owner.query(statement, &[&role]).await.expect("relations") {
        let name: String = row.get(0);
        let columns = app
            .owner
            .query(
                "select a.attname::text, format_type(a.atttypid, null), has_column_privilege($2, a.attrelid, a.attnum, 'select'),
                   has_column_privilege($2, a.attrelid, a.attnum, 'update'), has_column_privilege($2, a.attrelid, a.attnum, 'insert')
                 from pg_attribute a where a.attrelid = format('public.%I', $1::text)::regclass and a.attnum > 0 and not a.attisdropped
                   and a.attgenerated = '' order by a.attnum",
                &[&name, &role],
            )
            .await
            .expect("columns");
        let columns = columns
            .iter()
            .map(|column| Column {
                name: column.get(0),
                kind: column.get(1),
                readable: column.get(2),
                updatable: column.get(3),
                insertable: column.get(4),
            })
            .collect();
        found.push(Relation { name, is_table: row.get(1), key: row.get(2), columns, neighbours: row.get(3) });
    }
    found
}

/// A valid value for a column that differs from the stored one.
fn other(kind: &str, me: &str) -> Value {
    match kind {
        "boolean" => json!(true),
        "uuid" => json!(me),
        "jsonb" | "json" => json!({ "taken": true }),
        "date" => json!("2001-01-01"),
        "text[]" => json!(["np-001"]),
        kind if kind.starts_with("timestamp") => json!("2001-01-01T00:00:00Z"),
        kind if kind.starts_with("int") || kind.starts_with("numeric") || kind == "bigint" => json!(1),
        _ => json!("taken over"),
    }
}

async fn read(world: &mut World<'_>, who: &str, actor: &Actor<'_>, relation: &Relation) {
    let readable: Vec<&str> = relation.columns.iter().filter(|c| c.readable).map(|c| c.name.as_str()).collect();
    let name = &relation.name;
    let base = format!("/rest/v1/{name}");
    let whole = actor.get(&base).await;
    world.tells_nothing(&format!("{who}: GET {name}"), &whole);
    if readable.is_empty() {
        assert!(matches!(whole.status, 401 | 403), "{who}: GET {name}: {} {}", whole.status, whole.body);
    } else {
        let columns = readable.join(",");
        let rows = actor.get(&format!("{base}?select={columns}")).await;
        assert_eq!(rows.status, 200, "{who}: {name}: {}", rows.body);
        world.tells_nothing(&format!("{who}: GET {name}?select={columns}"), &rows);
        let count =
            send(actor.request(Method::HEAD, &format!("{base}?select={columns}")).header("prefer", "count=exact"))
                .await;
        world.tells_nothing(&format!("{who}: HEAD {name}"), &count);
        // Through neighbouring tables, in both directions.
        for neighbour in &relation.neighbours {
            for embed in
                [format!("{neighbour}(*)"), format!("...{neighbour}(*)"), format!("x:{neighbour}!inner({name}(*))")]
            {
                let reply = actor.get(&format!("{base}?select={columns},{embed}")).await;
                world.tells_nothing(&format!("{who}: GET {name}?select={columns},{embed}"), &reply);
            }
        }
    }
    // A column that may not be read can be used in no filter, order or aggregate either, since each would leak it bit
    // by bit.
    for column in relation.columns.iter().filter(|column| !column.readable) {
        for query in [
            format!("select=count&{}=not.is.null", column.name),
            format!("select=count&or=({}.is.null,{0}.not.is.null)", column.name),
            format!("select=x:{}", column.name),
            format!("select=x:{}.max()", column.name),
            format!("select={}&order={}", readable.first().unwrap_or(&"id"), column.name),
        ] {
            let reply = actor.get(&format!("{base}?{query}")).await;
            world.tells_nothing(&format!("{who}: GET {name}?{query}"), &reply);
            assert!(reply.status >= 400, "{who}: GET {name}?{query}: {} {}", reply.status, reply.body);
        }
    }
}

/// Rows of the victims as JSON.
async fn rows_of(app: &TestApp, relation: &Relation, me: &str, most: u32) -> Vec<Map<String, Value>> {
    let statement =
        format!("select to_jsonb(t) from public.{} t where t::text not like '%{me}%' limit {most}", relation.name);
    let rows = app.owner.query(&statement, &[]).await.expect("rows");
    rows.iter().filter_map(|row| row.get::<_, Value>(0).as_object().cloned()).collect()
}

async fn write(world: &mut World<'_>, who: &str, actor: &Actor<'_>, relation: &Relation) {
    let (name, me) = (&relation.name, world.stranger.id.clone());
    let key = relation.key.first().map_or("id", String::as_str);
    for filter in [format!("{key}=not.is.null"), format!("or=({key}.is.null,{key}.not.is.null)")] {
        let path = format!("/rest/v1/{name}?{filter}");
        for column in &relation.columns {
            let change = json!({ &column.name: other(&column.kind, &me) });
            let patch = actor.request(Method::PATCH, &path).header("prefer", "return=minimal").json(&change);
            let reply = send(patch).await;
            world.tells_nothing(&format!("{who}: PATCH {name} {change}"), &reply);
            if !column.updatable {
                assert!(reply.status >= 400, "{who}: PATCH {name} {change}: {} {}", reply.status, reply.body);
            }
        }
        let reply = send(actor.request(Method::DELETE, &path)).await;
        world.tells_nothing(&format!("{who}: DELETE {name}"), &reply);
    }
    world.nothing_changed(&format!("{who}: PATCH and DELETE of {name}"), &[]).await;
    let rows = rows_of(world.app, relation, &me, 6).await;
    for row in rows {
        let mut allowed = row.clone();
        allowed.retain(|column, _| relation.columns.iter().any(|c| &c.name == column && c.insertable));
        let conflict = relation.key.join(",");
        for (prefer, path) in [
            ("resolution=merge-duplicates", format!("/rest/v1/{name}?on_conflict={conflict}")),
            ("resolution=ignore-duplicates", format!("/rest/v1/{name}?on_conflict={conflict}")),
            ("return=representation", format!("/rest/v1/{name}")),
        ] {
            for taken in [false, true] {
                let mut row = allowed.clone();
                if taken {
                    // With the same key, but otherwise the attacker's.
                    for column in ["user_id", "donor_user_id", "admin_user_id"] {
                        if row.contains_key(column) {
                            row.insert(column.to_owned(), json!(me));
                        }
                    }
                }
                let post = actor.request(Method::POST, &path).header("prefer", prefer).json(&row);
                let reply = send(post).await;
                world.tried += 1;
                assert!(reply.status < 500, "{who}: POST {name}: {} {}", reply.status, reply.body);
            }
        }
        let of_key: Vec<String> = relation
            .key
            .iter()
            .filter_map(|column| Some(format!("{column}=eq.{}", row.get(column)?.as_str()?)))
            .collect();
        if !of_key.is_empty() && of_key.len() == relation.key.len() {
            let put = actor.request(Method::PUT, &format!("/rest/v1/{name}?{}", of_key.join("&")));
            let reply = send(put.json(&row)).await;
            world.tried += 1;
            assert!(reply.status < 500, "{who}: PUT {name}: {} {}", reply.status, reply.body);
        }
    }
    world.nothing_changed(&format!("{who}: POST and PUT of {name}"), &[]).await;
}

#[actix_web::test]
async fn no_table_or_view_reveals_rows_of_others() {
    let app = TestApp::with_settings(&ALL_ON).await;
    let mut world = World::new(&app).await;
    let me = world.stranger.id.clone();
    let mut looked_at = 0;
    for (who, actor) in world.attackers() {
        let role = if who == "anon" { "anon" } else { "authenticated" };
        for relation in relations(&app, role).await {
            if relation.is_table {
                let is_known = ABOUT_NOBODY.contains(&relation.name.as_str());
                let rows = rows_of(&app, &relation, &me, 10_000).await;
                let is_told = rows.iter().any(|row| !world.marks_in(&json!(row).to_string()).is_empty());
                assert!(
                    is_told || (is_known && !rows.is_empty()),
                    "{}: give a victim a row in attack/world.rs, else nothing is proven",
                    relation.name
                );
            }
            read(&mut world, who, &actor, &relation).await;
            if relation.is_table {
                write(&mut world, who, &actor, &relation).await;
            }
            looked_at += 1;
        }
        // Schemas that are not exposed do not exist for clients.
        for schema in [
            "private",
            "auth",
            "storage",
            "ferrobase",
            "_supavisor",
            "vault",
            "pg_catalog",
            "information_schema",
            "extensions",
        ] {
            for (method, header) in [(Method::GET, "accept-profile"), (Method::POST, "content-profile")] {
                let reply = send(actor.request(method, "/rest/v1/users").header(header, schema).json(&json!({}))).await;
                assert_eq!((reply.status, &reply.body["code"]), (406, &json!("PGRST106")), "{who}: {schema}");
                world.tried += 1;
            }
        }
    }
    assert!(looked_at >= 28, "{looked_at} relations");
    report(
        "tables and views, by another user and with the public key",
        world.tried,
        "nothing revealed, nothing changed",
    );
}

struct Function {
    name: String,
    arguments: Vec<(String, String)>,
}

/// Every function that this role may call through the API.
async fn functions(app: &TestApp, role: &str) -> Vec<Function> {
    let statement = "
        select p.proname::text, coalesce(p.proargnames, '{}')::text[],
          array(select format_type(t, null) from unnest(p.proargtypes) t)
        from pg_proc p where p.pronamespace = 'public'::regnamespace and has_function_privilege($1, p.oid, 'execute')
          and p.prorettype <> 'trigger'::regtype
          and not exists (select from unnest(p.proargtypes) t join pg_type y on y.oid = t where y.typtype = 'c') order by 1";
    let rows = app.owner.query(statement, &[&role]).await.expect("functions");
    let functions = rows.iter().map(|row| {
        let (names, kinds): (Vec<String>, Vec<String>) = (row.get(1), row.get(2));
        Function { name: row.get(0), arguments: names.into_iter().zip(kinds).collect() }
    });
    functions.collect()
}

/// A value for an argument that refers to something of the victims.
fn argument(name: &str, kind: &str, id: &str, input: &Value) -> Value {
    match (kind, name) {
        ("jsonb" | "json", _) => input.clone(),
        ("uuid", _) => json!(VICTIM),
        ("boolean", _) => json!(true),
        ("text[]", _) => json!([id]),
        (kind, _) if kind.starts_with("int") || kind == "bigint" || kind.starts_with("numeric") => json!(1),
        (kind, _) if kind.starts_with("timestamp") || kind == "date" => json!("2026-01-01"),
        (_, name) if name.contains("nonprofit") => json!("np-001"),
        (_, name) if name.contains("email") || name == "address" => json!(VICTIM_EMAIL),
        (_, name) if name.contains("number") => json!("REQ-001"),
        (_, name) if name.contains("code") => json!("123456"),
        (_, name) if name.contains("token") || name.contains("access") || name.contains("proof") => json!("guessed"),
        (_, name) if name.contains("language") => json!("en"),
        (_, name) if name.contains("id") => json!(id),
        _ => json!("A sentence that is long enough."),
    }
}

/// Functions through which anybody may affect the victims, and where: a mail with a requested code, a pledge or request
/// to an organization, a search for an invitation.
const MAY_TOUCH: [(&str, &[&str]); 8] = [
    ("send_request_code", &["private.request_codes"]),
    ("check_request_code", &["private.request_codes"]),
    ("send_address_code", &["private.address_codes"]),
    ("check_address_code", &["private.address_codes"]),
    ("subscribe_newsletter", &["private.subscriptions"]),
    ("pledge_donation", &["public.donations", "public.notifications"]),
    (
        "submit_request",
        &["public.requests", "public.notifications", "public.request_nonprofits", "public.request_events"],
    ),
    ("create_guest_upload_slot", &["private.guest_upload_slots"]),
];

#[actix_web::test]
async fn no_function_exceeds_the_callers_rights() {
    let app = TestApp::with_settings(&ALL_ON).await;
    let mut world = World::new(&app).await;
    // One of everything that has an id.
    let mut ids = vec!["np-001".to_owned()];
    for table in [
        "requests",
        "donations",
        "donor_messages",
        "nonprofit_team_members",
        "request_documents",
        "saved_replies",
        "notifications",
    ] {
        let statement = format!(
            "select id::text from public.{table} t where t::text not like '%' || $1 || '%' order by (id::text like 'demo%') desc limit 2"
        );
        ids.extend(
            app.owner
                .query(&statement, &[&world.stranger.id])
                .await
                .expect("ids")
                .iter()
                .map(|row| row.get::<_, String>(0)),
        );
    }
    ids.extend(["demo-draft-001", "demo-req-004", "demo-req-006"].map(str::to_owned));
    let mut called = 0;
    for (who, actor) in world.attackers() {
        let role = if who == "anon" { "anon" } else { "authenticated" };
        for function in functions(&app, role).await {
            let takes_id = function.arguments.iter().any(|(name, kind)| kind == "text" && name.contains("id"))
                || function.arguments.iter().any(|(_, kind)| kind == "jsonb");
            let touched =
                MAY_TOUCH.iter().find(|(name, _)| *name == function.name).map_or(&[][..], |(_, tables)| tables);
            let what = format!("{who}: rpc {}", function.name);
            for id in ids.iter().take(if takes_id { ids.len() } else { 1 }) {
                let input = json!({ "id": id, "draft_id": id, "request_id": id, "nonprofit_id": "np-001", "account_id": VICTIM,
                    "user_id": VICTIM, "email": VICTIM_EMAIL, "nonprofits": ["np-001"], "description": "taken over by somebody else",
                    "photo_path": format!("{VICTIM}/me.png"), "logo_path": "np-001/logo.png", "name": "taken over", "first_name": "Taken",
                    "last_name": "Over" });
                let arguments: Map<String, Value> = function
                    .arguments
                    .iter()
                    .map(|(name, kind)| (name.clone(), argument(name, kind, id, &input)))
                    .collect();
                let reply =
                    actor.post(&format!("/rest/v1/rpc/{}", function.name), Value::Object(arguments.clone())).await;
                // Answers may repeat the input.
                let told = reply.body.to_string().replace(VICTIM_EMAIL, "").replace(VICTIM, "");
                let told =
                    crate::support::Reply { status: reply.status, headers: reply.headers, body: Value::String(told) };
                world.tells_nothing(&format!("{what} {}", Value::Object(arguments)), &told);
                called += 1;
            }
            world.nothing_changed(&what, touched).await;
        }
    }
    assert!(called > 300, "{called} calls");
    report("functions, by another user and with the public key", called, "nothing revealed, nothing changed");
}
