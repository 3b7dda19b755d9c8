//! SQL at every position of the REST grammar and in the inputs of the other APIs. A payload that is executed calls a
//! function whose effect survives a rollback: it advances a sequence. A payload that only breaks a statement is
//! detected by PostgreSQL's error messages.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{report, setting};
use crate::realtime::client::Client;
use crate::support::{Actor, PASSWORD, Reply, TestApp, send};

const SCHEMA: &str = "
create schema attack;
create sequence attack.hits;
create function attack.fired() returns text language sql volatile security definer as 'select nextval(''attack.hits'')::text';
grant usage on schema attack to public;
grant execute on function attack.fired() to public;
create table public.attack_houses (id int primary key, name text, note text default 'x');
create table public.attack_stars (id int primary key, name text, meta jsonb, tags text[], at timestamptz, words tsvector,
  house_id int references public.attack_houses (id));
insert into public.attack_houses values (1, 'lyra');
insert into public.attack_stars values (1, 'vega', '{\"a\": {\"b\": 1}}', '{x,y}', now(), 'vega', 1), (2, 'it''s', '{}', '{}', now(), '', 1);
grant all on public.attack_stars, public.attack_houses to anon, authenticated;
create function public.attack_plus(a int, b text default '') returns text language sql as 'select a::text || b';
create function public.attack_list(wanted text) returns setof public.attack_stars language sql as 'select * from public.attack_stars where name = wanted';
create function functions.\"attack-echo\"(input jsonb) returns jsonb language sql as 'select input';
grant execute on function functions.\"attack-echo\"(jsonb) to public;
insert into storage.buckets (id, name, public) values ('attack', 'attack', true);
create policy attack on storage.objects for all to anon, authenticated using (bucket_id = 'attack') with check (bucket_id = 'attack');
alter publication supabase_realtime add table public.attack_stars;
";

/// Ends a word, string, name or statement and continues with SQL.
const PAYLOADS: [&str; 38] = [
    "'",
    "''",
    "\"",
    "\"\"",
    "\\",
    "\\'",
    "$1",
    "$$",
    "'; select attack.fired(); --",
    "\"; select attack.fired(); --",
    "'; select attack.fired() where '1'='1",
    "' or attack.fired() is not null or '1'='2",
    "\" or attack.fired() is not null or \"id\"=\"id",
    "' || attack.fired() || '",
    "(select attack.fired())",
    "attack.fired()",
    "1; select attack.fired()",
    "1 or attack.fired() is not null",
    "1) or attack.fired() is not null --",
    "1) union select attack.fired(), null --",
    "$$; select attack.fired(); $$",
    "*/ ; select attack.fired(); /*",
    "E'\\'' || attack.fired() --",
    "\\'; select attack.fired(); --",
    "\u{2019}; select attack.fired(); --",
    "\u{ff07}; select attack.fired(); --",
    "\u{bf}'; select attack.fired(); --",
    "\n; select attack.fired();\n--",
    "name\"::text); select attack.fired(); --",
    "name->>'a'||attack.fired()",
    "text); select attack.fired(); --",
    "a\",attack.fired(),\"b",
    "a.b.c",
    "%27; select attack.fired(); --",
    "{\"a\":\"'; select attack.fired(); --\"}",
    "{x,'; select attack.fired(); --}",
    "0 limit 1; select attack.fired()",
    "public'; select attack.fired(); --",
];

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// An input position in a request, and how a payload is put there.
struct Position {
    name: &'static str,
    request: fn(&Actor<'_>, &str) -> RequestBuilder,
}

macro_rules! get {
    ($name:literal, $path:literal) => {
        Position {
            name: $name,
            request: |actor, payload| actor.request(Method::GET, &format!($path, escaped(payload))),
        }
    };
}
macro_rules! header {
    ($name:literal, $method:ident, $path:literal, $header:literal, $value:literal) => {
        Position {
            name: $name,
            request: |actor, payload| {
                let value = format!($value, payload).replace(['\n', '\0'], " ");
                let value = reqwest::header::HeaderValue::from_bytes(value.as_bytes()).expect("a header");
                let request = actor.request(Method::$method, concat!("/rest/v1/", $path)).header($header, value);
                if Method::$method == Method::POST { request.json(&json!({ "id": 3 })) } else { request }
            },
        }
    };
}
macro_rules! json_body {
    ($name:literal, $method:ident, $path:literal, |$payload:ident| $body:expr) => {
        Position { name: $name, request: |actor, $payload| actor.request(Method::$method, $path).json(&$body) }
    };
}
macro_rules! text_body {
    ($name:literal, $path:literal, $type:literal, |$payload:ident| $body:expr) => {
        Position {
            name: $name,
            request: |actor, $payload| actor.request(Method::POST, $path).header("content-type", $type).body($body),
        }
    };
}

/// Every position of the grammar that takes client input.
const REST: &[Position] = &[
    get!("table", "/rest/v1/{}"),
    get!("function", "/rest/v1/rpc/{}"),
    get!("select: column", "/rest/v1/attack_stars?select={}"),
    get!("select: alias", "/rest/v1/attack_stars?select={}:name"),
    get!("select: cast", "/rest/v1/attack_stars?select=name::{}"),
    get!("select: arrow", "/rest/v1/attack_stars?select=meta->{}"),
    get!("select: double arrow", "/rest/v1/attack_stars?select=meta->a->>{}"),
    get!("select: aggregate", "/rest/v1/attack_stars?select=id.{}()"),
    get!("select: cast of an aggregate", "/rest/v1/attack_stars?select=id.sum()::{}"),
    get!("select: embedded table", "/rest/v1/attack_stars?select=id,{}(*)"),
    get!("select: embedded column", "/rest/v1/attack_stars?select=attack_houses({})"),
    get!("select: alias of an embedded table", "/rest/v1/attack_stars?select={}:attack_houses(id)"),
    get!("select: hint", "/rest/v1/attack_stars?select=attack_houses!{}(id)"),
    get!("select: spread", "/rest/v1/attack_stars?select=...attack_houses({}:name)"),
    get!("filter: column", "/rest/v1/attack_stars?{}=eq.1"),
    get!("filter: json path", "/rest/v1/attack_stars?meta->>{}=eq.1"),
    get!("filter: operator", "/rest/v1/attack_stars?name={}.1"),
    get!("filter: eq", "/rest/v1/attack_stars?name=eq.{}"),
    get!("filter: eq of a number", "/rest/v1/attack_stars?id=eq.{}"),
    get!("filter: not", "/rest/v1/attack_stars?name=not.eq.{}"),
    get!("filter: in", "/rest/v1/attack_stars?name=in.({})"),
    get!("filter: in, quoted", "/rest/v1/attack_stars?name=in.(\"{}\")"),
    get!("filter: like", "/rest/v1/attack_stars?name=like.*{}*"),
    get!("filter: like any", "/rest/v1/attack_stars?name=like(any).{{{}}}"),
    get!("filter: match", "/rest/v1/attack_stars?name=match.{}"),
    get!("filter: imatch", "/rest/v1/attack_stars?name=imatch.{}"),
    get!("filter: is", "/rest/v1/attack_stars?name=is.{}"),
    get!("filter: isdistinct", "/rest/v1/attack_stars?name=isdistinct.{}"),
    get!("filter: contains", "/rest/v1/attack_stars?tags=cs.{}"),
    get!("filter: contained", "/rest/v1/attack_stars?tags=cd.{{{}}}"),
    get!("filter: overlaps", "/rest/v1/attack_stars?tags=ov.{{{}}}"),
    get!("filter: range", "/rest/v1/attack_stars?at=sl.{}"),
    get!("filter: fts", "/rest/v1/attack_stars?words=fts.{}"),
    get!("filter: fts language", "/rest/v1/attack_stars?words=fts({}).vega"),
    get!("filter: plfts", "/rest/v1/attack_stars?words=plfts.{}"),
    get!("filter: wfts", "/rest/v1/attack_stars?words=wfts(english).{}"),
    get!("filter: date", "/rest/v1/attack_stars?at=gte.{}"),
    get!("filter: embedded", "/rest/v1/attack_stars?select=attack_houses(id)&attack_houses.name=eq.{}"),
    get!("filter: embedded column", "/rest/v1/attack_stars?select=attack_houses(id)&attack_houses.{}=eq.1"),
    get!("filter: twice named", "/rest/v1/attack_stars?name=eq.vega&name=eq.{}"),
    get!("logic: value", "/rest/v1/attack_stars?or=(id.eq.9,name.eq.{})"),
    get!("logic: quoted value", "/rest/v1/attack_stars?or=(id.eq.9,name.eq.\"{}\")"),
    get!("logic: column", "/rest/v1/attack_stars?and=({}.eq.1)"),
    get!("logic: operator", "/rest/v1/attack_stars?not.or=(id.{}.1)"),
    get!("logic: whole", "/rest/v1/attack_stars?or={}"),
    get!("order: column", "/rest/v1/attack_stars?order={}"),
    get!("order: direction", "/rest/v1/attack_stars?order=id.{}"),
    get!("order: json path", "/rest/v1/attack_stars?order=meta->{}"),
    get!("order: embedded", "/rest/v1/attack_stars?select=attack_houses(id)&order=attack_houses({})"),
    get!("limit", "/rest/v1/attack_stars?limit={}"),
    get!("offset", "/rest/v1/attack_stars?offset={}"),
    get!("argument: name", "/rest/v1/rpc/attack_plus?a=1&{}=2"),
    get!("argument: value", "/rest/v1/rpc/attack_plus?a=1&b={}"),
    get!("argument: number", "/rest/v1/rpc/attack_plus?a={}"),
    get!("function: select", "/rest/v1/rpc/attack_list?wanted=vega&select={}"),
    get!("function: filter", "/rest/v1/rpc/attack_list?wanted=vega&name=eq.{}"),
    header!("Accept-Profile", GET, "attack_stars", "accept-profile", "{}"),
    header!("Content-Profile", POST, "attack_stars", "content-profile", "{}"),
    header!("Prefer: timezone", GET, "attack_stars", "prefer", "handling=lenient, timezone={}"),
    header!("Prefer: resolution", POST, "attack_stars", "prefer", "resolution={}"),
    header!("Prefer: count", GET, "attack_stars", "prefer", "count={}"),
    header!("Prefer: max-affected", POST, "attack_stars", "prefer", "handling=strict, max-affected={}"),
    header!("Range", GET, "attack_stars", "range", "{}"),
    header!("Range-Unit", GET, "attack_stars", "range-unit", "{}"),
    header!("Accept", GET, "attack_stars", "accept", "{}"),
    header!("Accept: plan", GET, "attack_stars", "accept", "application/vnd.pgrst.plan+json; for=\"{}\""),
    header!("Content-Type", POST, "attack_stars", "content-type", "{}"),
    header!("Cookie", GET, "attack_stars", "cookie", "a={}"),
    header!("a header of one's own", GET, "attack_stars", "x-anything", "{}"),
    header!("User-Agent", GET, "attack_stars", "user-agent", "{}"),
    header!("X-Forwarded-For", GET, "attack_stars", "x-forwarded-for", "{}"),
    Position {
        name: "a header's name is kept from SQL by its grammar; its value travels",
        request: |actor, payload| {
            actor.request(Method::GET, "/rest/v1/attack_stars").header("x-client-info", escaped(payload))
        },
    },
    Position {
        name: "columns",
        request: |actor, payload| {
            let path = format!("/rest/v1/attack_stars?columns={}", escaped(payload));
            actor.request(Method::POST, &path).json(&json!([{ "id": 3 }]))
        },
    },
    Position {
        name: "on_conflict",
        request: |actor, payload| {
            let path = format!("/rest/v1/attack_stars?on_conflict={}", escaped(payload));
            actor.request(Method::POST, &path).header("prefer", "resolution=merge-duplicates").json(&json!({ "id": 1 }))
        },
    },
    json_body!("insert: key", POST, "/rest/v1/attack_stars", |payload| json!({ "id": 3, payload: "x" })),
    json_body!("insert: value", POST, "/rest/v1/attack_stars", |payload| json!({ "id": 3, "name": payload })),
    json_body!("insert: number", POST, "/rest/v1/attack_stars", |payload| json!({ "id": payload })),
    json_body!(
        "insert: json",
        POST,
        "/rest/v1/attack_stars",
        |payload| json!({ "id": 3, "meta": { payload: payload } })
    ),
    json_body!("insert: array", POST, "/rest/v1/attack_stars", |payload| json!({ "id": 3, "tags": [payload] })),
    json_body!("update: key", PATCH, "/rest/v1/attack_stars?id=eq.2", |payload| json!({ payload: "x" })),
    json_body!("update: value", PATCH, "/rest/v1/attack_stars?id=eq.2", |payload| json!({ "name": payload })),
    json_body!("put: value", PUT, "/rest/v1/attack_stars?id=eq.2", |payload| json!({ "id": 2, "name": payload })),
    json_body!("call: value", POST, "/rest/v1/rpc/attack_plus", |payload| json!({ "a": 1, "b": payload })),
    json_body!("call: name", POST, "/rest/v1/rpc/attack_plus", |payload| json!({ "a": 1, payload: "x" })),
    text_body!("csv: column", "/rest/v1/attack_stars", "text/csv", |payload| format!(
        "id,{}\n3,x\n",
        quoted_csv(payload)
    )),
    text_body!("csv: value", "/rest/v1/attack_stars", "text/csv", |payload| format!(
        "id,name\n3,{}\n",
        quoted_csv(payload)
    )),
    text_body!("form: name", "/rest/v1/attack_stars", "application/x-www-form-urlencoded", |payload| format!(
        "id=3&{}=x",
        escaped(payload)
    )),
    text_body!("form: value", "/rest/v1/attack_stars", "application/x-www-form-urlencoded", |payload| format!(
        "id=3&name={}",
        escaped(payload)
    )),
    Position {
        name: "delete: filter",
        request: |actor, payload| {
            actor.request(Method::DELETE, &format!("/rest/v1/attack_stars?name=eq.{}&id=eq.99", escaped(payload)))
        },
    },
];

fn quoted_csv(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Inputs of the other APIs that end up in statements.
const OTHERS: &[Position] = &[
    json_body!(
        "auth: sign-up, address",
        POST,
        "/auth/v1/signup",
        |payload| json!({ "email": format!("{payload}@x.example"), "password": PASSWORD })
    ),
    json_body!(
        "auth: sign-up, password",
        POST,
        "/auth/v1/signup",
        |payload| json!({ "email": "p@x.example", "password": format!("{payload}aA1-long-enough") })
    ),
    json_body!(
        "auth: sign-up, metadata",
        POST,
        "/auth/v1/signup",
        |payload| json!({ "email": "m@x.example", "password": PASSWORD, "data": { payload: payload, "full_name": payload, "role": payload } })
    ),
    json_body!(
        "auth: sign-in, address",
        POST,
        "/auth/v1/token?grant_type=password",
        |payload| json!({ "email": payload, "password": payload })
    ),
    json_body!(
        "auth: refresh token",
        POST,
        "/auth/v1/token?grant_type=refresh_token",
        |payload| json!({ "refresh_token": payload })
    ),
    json_body!(
        "auth: auth code",
        POST,
        "/auth/v1/token?grant_type=pkce",
        |payload| json!({ "auth_code": payload, "code_verifier": payload })
    ),
    json_body!(
        "auth: code",
        POST,
        "/auth/v1/verify",
        |payload| json!({ "type": "recovery", "email": "a@x.example", "token": payload })
    ),
    json_body!("auth: hash", POST, "/auth/v1/verify", |payload| json!({ "type": "recovery", "token_hash": payload })),
    json_body!("auth: recovery", POST, "/auth/v1/recover", |payload| json!({ "email": payload })),
    json_body!("auth: own metadata", PUT, "/auth/v1/user", |payload| json!({ "data": { payload: payload } })),
    json_body!(
        "auth: factor's name",
        POST,
        "/auth/v1/factors",
        |payload| json!({ "factor_type": "totp", "friendly_name": payload })
    ),
    get!("auth: link", "/auth/v1/verify?type=recovery&token={}"),
    get!("auth: redirect", "/auth/v1/verify?type=recovery&token=x&redirect_to={}"),
    get!("auth: provider", "/auth/v1/authorize?provider={}"),
    get!("auth: state", "/auth/v1/callback?state={}&code=x"),
    get!("auth: factor's id", "/auth/v1/factors/{}/x"),
    get!("auth: client", "/auth/v1/oauth/authorize?client_id={}&response_type=code"),
    get!("admin: page", "/auth/v1/admin/users?page={}"),
    get!("admin: filter", "/auth/v1/admin/users?filter={}"),
    get!("admin: sort", "/auth/v1/admin/users?sort={}"),
    get!("admin: audit", "/auth/v1/admin/audit?query=author:{}"),
    get!("admin: audit, field", "/auth/v1/admin/audit?query={}:x"),
    get!("admin: user", "/auth/v1/admin/users/{}"),
    get!("admin: provider", "/auth/v1/admin/custom-providers/{}"),
    get!("admin: sso", "/auth/v1/admin/sso/providers/{}"),
    get!("storage: bucket", "/storage/v1/bucket/{}"),
    get!("storage: buckets, search", "/storage/v1/bucket?search={}"),
    get!("storage: buckets, column", "/storage/v1/bucket?sortColumn={}"),
    get!("storage: buckets, order", "/storage/v1/bucket?sortColumn=id&sortOrder={}"),
    get!("storage: object", "/storage/v1/object/attack/{}"),
    get!("storage: public object", "/storage/v1/object/public/attack/{}"),
    get!("storage: bucket of an object", "/storage/v1/object/public/{}/x"),
    get!("storage: token", "/storage/v1/object/sign/attack/x?token={}"),
    json_body!("storage: list, prefix", POST, "/storage/v1/object/list/attack", |payload| json!({ "prefix": payload })),
    json_body!(
        "storage: list, search",
        POST,
        "/storage/v1/object/list/attack",
        |payload| json!({ "prefix": "", "search": payload })
    ),
    json_body!(
        "storage: list, column",
        POST,
        "/storage/v1/object/list/attack",
        |payload| json!({ "prefix": "", "sortBy": { "column": payload, "order": "asc" } })
    ),
    json_body!(
        "storage: list, order",
        POST,
        "/storage/v1/object/list/attack",
        |payload| json!({ "prefix": "", "sortBy": { "column": "name", "order": payload } })
    ),
    json_body!(
        "storage: list 2",
        POST,
        "/storage/v1/object/list-v2/attack",
        |payload| json!({ "prefix": payload, "cursor": payload })
    ),
    json_body!(
        "storage: list 2, column",
        POST,
        "/storage/v1/object/list-v2/attack",
        |payload| json!({ "prefix": "", "sortBy": { "column": payload, "order": payload } })
    ),
    json_body!(
        "storage: copy",
        POST,
        "/storage/v1/object/copy",
        |payload| json!({ "bucketId": "attack", "sourceKey": payload, "destinationKey": payload })
    ),
    json_body!(
        "storage: move",
        POST,
        "/storage/v1/object/move",
        |payload| json!({ "bucketId": payload, "sourceKey": "x", "destinationKey": "y" })
    ),
    json_body!("storage: delete many", DELETE, "/storage/v1/object/attack", |payload| json!({ "prefixes": [payload] })),
    json_body!(
        "storage: new bucket",
        POST,
        "/storage/v1/bucket",
        |payload| json!({ "name": payload, "allowed_mime_types": [payload] })
    ),
    Position {
        name: "storage: metadata of an upload",
        request: |actor, payload| {
            use base64::Engine as _;
            let metadata = base64::engine::general_purpose::STANDARD.encode(json!({ payload: payload }).to_string());
            let request = actor.request(Method::POST, "/storage/v1/object/attack/a.txt");
            request.header("x-metadata", metadata).header("x-upsert", "true").body("x")
        },
    },
    Position {
        name: "storage: resumable upload",
        request: |actor, payload| {
            use base64::Engine as _;
            let encoded = base64::engine::general_purpose::STANDARD.encode(payload);
            let metadata =
                format!("bucketName {encoded},objectName {encoded},contentType {encoded},metadata {encoded}");
            let request = actor.request(Method::POST, "/storage/v1/upload/resumable").header("tus-resumable", "1.0.0");
            request.header("upload-length", "1").header("upload-metadata", metadata)
        },
    },
    get!("functions: name", "/functions/v1/{}"),
    get!("functions: argument", "/functions/v1/attack-echo?a={}"),
    json_body!("functions: body", POST, "/functions/v1/attack-echo", |payload| json!({ payload: payload })),
    json_body!(
        "realtime: topic",
        POST,
        "/realtime/v1/api/broadcast",
        |payload| json!({ "messages": [{ "topic": payload, "event": payload, "payload": { "a": payload }, "private": true }] })
    ),
    get!("gateway: another API", "/{}/v1/x"),
];

async fn hits(app: &TestApp) -> i64 {
    let statement = "select case when is_called then last_value else 0 end from attack.hits";
    app.owner.query_one(statement, &[]).await.expect("hits").get(0)
}

/// PostgreSQL's error messages for a statement that a payload broke.
fn is_broken(reply: &Reply) -> bool {
    let text = reply.body.to_string();
    [
        "syntax error at or near",
        "unterminated quoted",
        "syntax error at end of input",
        "cannot insert multiple commands",
        "there is no parameter $",
    ]
    .iter()
    .any(|words| text.contains(words))
}

/// Type names are not quoted, as in PostgREST. Only a word gets through, which may name no type.
fn is_about_type(position: &str, reply: &Reply) -> bool {
    let message = reply.body["message"].as_str().unwrap_or_default();
    let near = message.split('"').nth(1).unwrap_or("'");
    position.contains("cast") && near.chars().all(|c| c.is_alphanumeric() || "_$ ".contains(c))
}

/// Repeats requests that were refused because the server was busy.
async fn patiently(request: impl Fn() -> RequestBuilder) -> Reply {
    for _ in 0..20 {
        let reply = send(request()).await;
        if !matches!(reply.status, 503 | 504) {
            return reply;
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    send(request()).await
}

/// Tries every `step`th payload at each position, starting with a different one at each.
async fn attacked(
    app: &TestApp,
    actors: &[Actor<'_>],
    positions: &[Position],
    payloads: &[String],
    step: usize,
) -> usize {
    let mut tried = 0;
    let first = setting("ATTACK_SEED", 7) as usize;
    for (number, position) in positions.iter().enumerate() {
        for payload in payloads.iter().skip((number + first) % step).step_by(step) {
            for actor in actors {
                let reply = patiently(|| (position.request)(actor, payload)).await;
                tried += 1;
                assert!(
                    !is_broken(&reply) || is_about_type(position.name, &reply),
                    "{}: {payload:?} broke a statement: {}",
                    position.name,
                    reply.body
                );
                assert!(reply.status < 500, "{}: {payload:?}: {} {}", position.name, reply.status, reply.body);
            }
        }
        assert_eq!(hits(app).await, 0, "{}: a payload was run", position.name);
    }
    tried
}

async fn app_under_attack() -> TestApp {
    let settings = [
        ("FERROBASE_GUESS_LIMITS", "false"),
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
        ("GOTRUE_RATE_LIMIT_EMAIL_SENT", "1000000"),
        ("GOTRUE_OAUTH_SERVER_ENABLED", "true"),
        ("PGRST_DB_PLAN_ENABLED", "true"),
        ("PGRST_DB_AGGREGATES_ENABLED", "true"),
    ];
    let app = TestApp::logical(&settings).await;
    app.owner.batch_execute(SCHEMA).await.expect("schema");
    crate::support::valve::until("the schema is known", async || {
        app.anon().get("/rest/v1/attack_stars?select=id,attack_houses(name)").await.status == 200
    })
    .await;
    app
}

fn all() -> Vec<String> {
    PAYLOADS.iter().map(|payload| (*payload).to_owned()).collect()
}

#[actix_web::test]
async fn an_executed_payload_is_detected() {
    let app = app_under_attack().await;
    let naive = format!("select * from public.attack_stars where name = '{}'", PAYLOADS[8]);
    app.owner.simple_query(&naive).await.expect("it runs");
    assert_eq!(hits(&app).await, 1);
    let broken = format!("select * from public.attack_stars where name = '{}'", PAYLOADS[0]);
    let error = app.owner.simple_query(&broken).await.expect_err("it breaks");
    let told = error.as_db_error().expect("PostgreSQL's").message().to_owned();
    let reply = Reply { status: 400, headers: reqwest::header::HeaderMap::new(), body: Value::String(told) };
    assert!(is_broken(&reply), "{}", reply.body);
}

#[actix_web::test]
async fn nothing_is_injected_at_any_position_of_the_rest_grammar() {
    let app = app_under_attack().await;
    let tried = attacked(&app, &[app.anon()], REST, &all(), 1).await;
    report(
        "SQL at the positions of the REST grammar",
        tried,
        &format!("{} positions, nothing executed, no statement broken", REST.len()),
    );
}

#[actix_web::test]
async fn nothing_is_injected_into_the_other_apis() {
    let app = app_under_attack().await;
    let user = app.user("ada@test.example").await;
    let actors = [user.actor.clone(), app.service()];
    // Some of these hash a password.
    let step = if setting("ATTACK_ROUNDS", 200) < 1000 { 6 } else { 1 };
    let mut tried = attacked(&app, &actors, OTHERS, &all(), step).await;
    // Realtime: names and filters of subscriptions.
    for payload in PAYLOADS.iter().copied().step_by(step) {
        let mut client = Client::open(&app).await;
        for change in [
            json!({ "event": "*", "schema": "public", "table": "attack_stars", "filter": format!("name=eq.{payload}") }),
            json!({ "event": "*", "schema": "public", "table": "attack_stars", "filter": format!("{payload}=eq.1") }),
            json!({ "event": "*", "schema": "public", "table": "attack_stars", "filter": format!("name=in.({payload})") }),
            json!({ "event": "*", "schema": "public", "table": payload }),
            json!({ "event": "*", "schema": payload, "table": "attack_stars" }),
            json!({ "event": payload, "schema": "public", "table": "attack_stars" }),
        ] {
            client.try_join(&format!("room {tried}"), json!({ "postgres_changes": [change] }), None).await;
            tried += 1;
        }
        client.try_join(payload, json!({ "private": true }), None).await;
    }
    // Realtime queries the database with the subscriptions' filters for each change.
    app.owner.batch_execute("insert into public.attack_stars (id, name) values (50, 'deneb')").await.expect("a change");
    let mut last = Client::open(&app).await;
    last.try_join("last", json!({ "private": true }), None).await;
    assert_eq!(hits(&app).await, 0, "a payload was run");
    report(
        "SQL in the inputs of auth, storage, realtime, functions",
        tried,
        &format!("{} positions, nothing executed, no statement broken", OTHERS.len() + 7),
    );
}

/// Combined payloads at several positions of one request.
#[actix_web::test]
async fn random_combinations_inject_nothing() {
    let (seed, rounds) = (setting("ATTACK_SEED", 7), setting("ATTACK_ROUNDS", 200));
    let app = app_under_attack().await;
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..rounds {
        let mut payload = || {
            let parts = random.random_range(1..4);
            (0..parts).filter_map(|_| PAYLOADS.choose(&mut random)).copied().collect::<String>()
        };
        let path = format!(
            "/rest/v1/attack_stars?select=id,{}:name,meta->>{},attack_houses({})&name=eq.{}&or=(name.like.{},id.eq.1)&order={}",
            escaped(&payload()),
            escaped(&payload()),
            ["name", "*", "id"][round as usize % 3],
            escaped(&payload()),
            escaped(&format!("\"{}\"", payload().replace('\\', "\\\\").replace('"', "\\\""))),
            ["id", "name.desc", "meta->a"][round as usize % 3],
        );
        let reply = app.anon().get(&path).await;
        assert!(
            !is_broken(&reply) && reply.status < 500,
            "seed {seed}, round {round}: {path}: {} {}",
            reply.status,
            reply.body
        );
    }
    assert_eq!(hits(&app).await, 0, "a payload was run");
    report(
        "random combinations of payloads",
        rounds as usize,
        &format!("seed {seed}, nothing executed, no statement broken"),
    );
}
