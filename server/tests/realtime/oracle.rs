//! Random tables, policies, claims and changes, compared with what PostgreSQL itself shows.
//!
//! `REALTIME_CASES=500 cargo test --test all realtime::oracle` runs a longer version; `REALTIME_SEED` chooses another
//! start.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio_postgres::Client as Owner;

use super::client::{Client, token};
use crate::support::TestApp;

const PEOPLE: [&str; 3] = ["ann", "ben", "cem"];
const ROLES: [&str; 3] = ["authenticated", "authenticated", "anon"];

/// Policies for a row; several may be combined.
const RULES: [&str; 8] = [
    "owner = auth.jwt() ->> 'sub'",
    "open",
    "level <= (auth.jwt() ->> 'level')::int",
    "owner in (select f.friend from public.friends f where f.me = auth.jwt() ->> 'sub')",
    "auth.role() = 'authenticated' and level > 2",
    "body like '%' || (auth.jwt() ->> 'sub') || '%'",
    "exists (select from public.friends f where f.me = owner and f.friend = auth.jwt() ->> 'sub')",
    "false",
];

const KEYS: [(&str, &str); 4] = [
    ("id int primary key", "id"),
    ("id uuid primary key", "id"),
    ("id text primary key", "id"),
    ("id int, kind text, primary key (id, kind)", "both"),
];

struct Subscriber {
    client: Client,
    /// Whether the subscriber asks for rows that leave its view.
    has_leaves: bool,
    role: &'static str,
    claims: String,
}

struct Case {
    rng: StdRng,
    table: String,
    key: &'static str,
    next: u32,
    rows: Vec<String>,
}

impl Case {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *from.choose(&mut self.rng).expect("a choice")
    }

    /// A condition that finds a new row, and its key values.
    fn new_key(&mut self) -> (String, String) {
        self.next += 1;
        let n = self.next;
        match self.key {
            "both" => (format!("id = {n} and kind = 'k\"{{,}} {n}'"), format!("{n}, 'k\"{{,}} {n}'")),
            "id int primary key" => (format!("id = {n}"), n.to_string()),
            "id uuid primary key" => {
                let id = format!("'00000000-0000-4000-8000-{n:012}'");
                (format!("id = {id}"), id)
            }
            _ => (format!("id = 'ü \\ \"{n}\"'"), format!("'ü \\ \"{n}\"'")),
        }
    }

    fn values(&mut self) -> (String, String, u8, bool) {
        let body = format!("for {} {}", self.pick(&PEOPLE), self.rng.random_range(0..9));
        (self.pick(&PEOPLE).to_owned(), body, self.rng.random_range(0..5), self.rng.random_bool(0.3))
    }

    /// A change, and a condition that finds its row; `None` for a deletion.
    fn change(&mut self) -> (String, &'static str, Option<String>) {
        let (owner, body, level, open) = self.values();
        let table = self.table.clone();
        let kind = if self.rows.is_empty() { 0 } else { self.rng.random_range(0..5) };
        match kind {
            0 | 1 => {
                let (finds, key) = self.new_key();
                self.rows.push(finds.clone());
                let columns = if self.key == "both" { "id, kind" } else { "id" };
                let sql = format!(
                    "insert into public.{table} ({columns}, owner, body, level, open)
                     values ({key}, '{owner}', '{body}', {level}, {open})"
                );
                (sql, "INSERT", Some(finds))
            }
            2 | 3 => {
                let finds = self.rows.choose(&mut self.rng).expect("a row").clone();
                let sql = format!(
                    "update public.{table} set owner = '{owner}', body = '{body}', level = {level}, open = {open} where {finds}"
                );
                (sql, "UPDATE", Some(finds))
            }
            _ => {
                let place = self.rng.random_range(0..self.rows.len());
                let finds = self.rows.remove(place);
                (format!("delete from public.{table} where {finds}"), "DELETE", None)
            }
        }
    }
}

async fn run(owner: &Owner, sql: &str) {
    owner.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// What PostgreSQL shows this caller of the row: the readable columns, if the row is visible.
async fn shown(owner: &Owner, table: &str, finds: &str, subscriber: &Subscriber) -> Option<Value> {
    let columns: Vec<String> = owner
        .query_one(
            "select array(select a.attname::text from pg_attribute a where a.attrelid = $1::text::regclass
             and a.attnum > 0 and has_column_privilege($2::text, a.attrelid, a.attnum, 'select'))",
            &[&format!("public.{table}"), &subscriber.role],
        )
        .await
        .expect("columns")
        .get(0);
    let list = columns.iter().map(|column| format!("'{column}', {column}")).collect::<Vec<_>>().join(", ");
    run(owner, "begin").await;
    owner
        .execute(
            "select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)",
            &[&subscriber.claims, &subscriber.role],
        )
        .await
        .expect("a caller");
    let sql = format!("select json_build_object({list})::text from public.{table} where {finds}");
    let row = owner.query_opt(&sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    run(owner, "rollback").await;
    row.map(|row| serde_json::from_str(row.get(0)).expect("JSON"))
}

#[actix_web::test]
async fn realtime_and_postgresql_agree_who_sees_what() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |n| n.parse().expect("a number"));
    let (cases, seed) = (number("REALTIME_CASES", 8), number("REALTIME_SEED", 1));
    let app = TestApp::logical(&[]).await;
    run(
        &app.owner,
        "create table public.friends (me text, friend text);
         insert into public.friends values ('ann', 'ben'), ('ben', 'cem');
         create table public.barrier (id serial primary key);
         alter publication supabase_realtime add table public.barrier;",
    )
    .await;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in seed..seed + cases {
        examine(&app, case, &mut counts).await;
    }
    println!("{cases} cases from seed {seed}: {counts:?}");
    assert!(counts["shown"] > 0 && counts["hidden"] > 0, "{counts:?}");
}

async fn examine(app: &TestApp, seed: u64, counts: &mut BTreeMap<&'static str, usize>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let (key_columns, kind) = *KEYS.choose(&mut rng).expect("a key");
    let key = if kind == "both" { "both" } else { key_columns };
    let mut case = Case { rng, table: format!("t{seed}"), key, next: 0, rows: Vec::new() };
    let table = case.table.clone();
    let has_rls = case.rng.random_bool(0.85);
    let mut sql =
        format!("create table public.{table} (owner text, body text, level int, open boolean, {key_columns});");
    for n in 0..case.rng.random_range(1..4) {
        let rule = case.pick(&RULES);
        let restrictive = if n > 0 && case.rng.random_bool(0.3) { "as restrictive" } else { "" };
        let role = case.pick(&["public", "authenticated", "anon"]);
        sql += &format!("create policy p{n} on public.{table} {restrictive} for select to {role} using ({rule});");
    }
    if has_rls {
        sql += &format!("alter table public.{table} enable row level security;");
    }
    if case.rng.random_bool(0.4) {
        sql += &format!("alter table public.{table} replica identity full;");
    }
    if case.rng.random_bool(0.3) {
        let keys = if key == "both" { "id, kind" } else { "id" };
        sql += &format!(
            "revoke select on public.{table} from anon; grant select ({keys}, owner) on public.{table} to anon;"
        );
    }
    sql += &format!("alter publication supabase_realtime add table public.{table};");
    run(&app.owner, &sql).await;

    let mut subscribers = Vec::new();
    for _ in 0..5 {
        let mut client = Client::open(app).await;
        let role = case.pick(&ROLES);
        let level: u8 = case.rng.random_range(0..5);
        let exp = chrono::Utc::now().timestamp() + 3600;
        let claims = json!({ "role": role, "sub": case.pick(&PEOPLE), "level": level, "exp": exp });
        let has_leaves = case.rng.random_bool(0.5);
        let config = json!({ "postgres_changes": [
            { "event": "*", "schema": "public", "table": table, "leaves": has_leaves },
            { "event": "INSERT", "schema": "public", "table": "barrier" },
        ] });
        client.join_as("x", config, Some(&token(claims.clone()))).await;
        client.wait_for_event("system").await;
        subscribers.push(Subscriber { client, has_leaves, role, claims: claims.to_string() });
    }
    for _ in 0..8 {
        let (sql, action, finds) = case.change();
        let mut had = Vec::new();
        for subscriber in &subscribers {
            had.push(match &finds {
                Some(finds) if action == "UPDATE" => shown(&app.owner, &table, finds, subscriber).await.is_some(),
                _ => false,
            });
        }
        run(&app.owner, &sql).await;
        // Later WAL entries arrive later.
        let mut expected = Vec::new();
        for subscriber in &subscribers {
            expected.push(match &finds {
                Some(finds) => shown(&app.owner, &table, finds, subscriber).await,
                None => None,
            });
        }
        run(&app.owner, "insert into public.barrier default values").await;
        for ((subscriber, expected), had) in subscribers.iter_mut().zip(expected).zip(had) {
            let mut told = Vec::new();
            loop {
                let data = subscriber.client.change().await["data"].clone();
                if data["table"] == "barrier" {
                    break;
                }
                told.push(data);
            }
            let who = format!("case {seed}, {} {}: {sql}", subscriber.role, subscriber.claims);
            if finds.is_none() {
                assert_eq!(told.len(), 1, "{who}");
                let old = told[0]["old_record"].as_object().expect("an old record");
                if has_rls {
                    assert!(old.keys().all(|name| name == "id" || name == "kind"), "{who}: {old:?}");
                }
                *counts.entry("deleted").or_default() += 1;
                continue;
            }
            match expected {
                Some(row) => {
                    assert_eq!(told.len(), 1, "missed: {who}");
                    assert_eq!((&told[0]["type"], &told[0]["record"]), (&json!(action), &row), "{who}");
                    *counts.entry("shown").or_default() += 1;
                }
                None if had && subscriber.has_leaves => {
                    assert_eq!(told.len(), 1, "left without a word: {who}");
                    let old = told[0]["old_record"].as_object().expect("an old record");
                    assert!(told[0]["type"] == "DELETE" && told[0].get("record").is_none(), "{who}: {told:?}");
                    assert!(old.keys().all(|name| name == "id" || name == "kind"), "{who}: {old:?}");
                    *counts.entry("left").or_default() += 1;
                }
                None => {
                    assert!(told.is_empty(), "leaked: {who}: {told:?}");
                    *counts.entry("hidden").or_default() += 1;
                }
            }
        }
    }
}
