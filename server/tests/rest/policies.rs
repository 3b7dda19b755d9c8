//! An oracle for row level security: random policies, claims and requests, compared with PostgreSQL's answer when the
//! role runs the same statement directly.
//!
//! `POLICY_CASES` sets how many (300; `just policies` uses 10,000), `POLICY_SEED` which.

#![allow(clippy::expect_used)]

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use tokio_postgres::Client;

use crate::rest::house::{Ground, House, connect};
use crate::rest::relay::{Relay, Rewrite};
use crate::support::wire::send;

const ROLES: [&str; 3] = ["sky_visitor", "sky_member", "sky_curator"];
const OWNERS: [&str; 4] = ["ann", "ben", "cat", "dan"];
/// Requests per set of policies.
const PER_ROUND: u64 = 25;

const TABLE: &str = "
    create table sky.papers (id integer primary key, owner text not null, team integer, level integer not null, open boolean not null);
    insert into sky.papers
      select i, (array['ann', 'ben', 'cat', 'dan'])[1 + i % 4], nullif(i % 5, 0), i * 7 % 10, i % 3 = 0
      from generate_series(1, 40) i;
    grant all on sky.papers to sky_open_gate;";

/// Removes the role switch from a statement, as if the server had forgotten it: the role goes into another setting.
const WITHOUT_ROLE_SWITCH: Rewrite = ("set_config('role', ", "set_config('forgotten.role', ");

/// The same statement for the API and for SQL.
struct Question {
    method: &'static str,
    target: String,
    prefer: String,
    body: String,
    /// The statement as SQL that the role runs directly.
    sql: String,
    /// Whether rows are returned.
    shows: bool,
    /// The filter without policies, to count how often policies hide rows.
    matching: String,
    writes: bool,
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Rows(Value),
    Done,
    Refused(String),
}

#[derive(Default, Debug)]
struct Tally {
    cases: u64,
    hidden: u64,
    writes: u64,
    refused_writes: u64,
    /// Differences that are leaks: reads that returned other rows, and writes that should have been refused.
    leaked: u64,
    unrefused: u64,
    differences: Vec<String>,
}

struct Maker(StdRng);

impl Maker {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        from.choose(&mut self.0).expect("something to choose from")
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    /// A condition on a row and the claims.
    fn condition(&mut self, depth: u32) -> String {
        const CLAIMS: &str = "nullif(current_setting('request.jwt.claims', true), '')::json";
        if depth < 2 && self.chance(35) {
            let (a, b) = (self.condition(depth + 1), self.condition(depth + 1));
            return match self.0.random_range(0..3) {
                0 => format!("({a} and {b})"),
                1 => format!("({a} or {b})"),
                _ => format!("(not {a})"),
            };
        }
        match self.0.random_range(0..6) {
            0 => format!("owner = {CLAIMS} ->> 'sub'"),
            1 => format!("team = ({CLAIMS} ->> 'team')::int"),
            2 => format!("level <= coalesce(({CLAIMS} ->> 'level')::int, 0)"),
            3 => "open".to_owned(),
            4 => format!("level > {}", self.0.random_range(0..9)),
            _ => format!("{CLAIMS} ->> 'role' = current_user and owner <> 'dan'"),
        }
    }

    /// New policies and privileges for the table.
    fn rules(&mut self) -> String {
        let mut sql = String::from(
            "do $$ declare p record; begin
               for p in select policyname from pg_policies where tablename = 'papers' loop
                 execute format('drop policy %I on sky.papers', p.policyname); end loop; end $$;
             alter table sky.papers enable row level security;
             revoke all on sky.papers from sky_visitor, sky_member, sky_curator;",
        );
        for role in ROLES {
            for verb in ["select", "insert", "update", "delete"] {
                if self.chance(if verb == "select" { 92 } else { 80 }) {
                    sql.push_str(&format!("grant {verb} on sky.papers to {role};"));
                }
            }
        }
        for index in 0..self.0.random_range(2..6) {
            let verb = *self.pick(&["all", "select", "select", "insert", "update", "delete"]);
            let kind = if self.chance(15) { "restrictive" } else { "permissive" };
            let whom = if self.chance(50) { "public".to_owned() } else { (*self.pick(&ROLES)).to_owned() };
            let using = self.condition(0);
            let check = self.condition(0);
            let clauses = match verb {
                "select" | "delete" => format!("using ({using})"),
                "insert" => format!("with check ({check})"),
                _ if self.chance(50) => format!("using ({using})"),
                _ => format!("using ({using}) with check ({check})"),
            };
            sql.push_str(&format!("create policy p{index} on sky.papers as {kind} for {verb} to {whom} {clauses};"));
        }
        sql
    }

    fn claims(&mut self) -> (String, String) {
        let role = (*self.pick(&ROLES)).to_owned();
        let mut claims = serde_json::Map::from_iter([("role".to_owned(), Value::from(role.clone()))]);
        if self.chance(80) {
            claims.insert("sub".to_owned(), (*self.pick(&OWNERS)).into());
        }
        if self.chance(60) {
            claims.insert("team".to_owned(), self.0.random_range(1..5).into());
        }
        if self.chance(60) {
            claims.insert("level".to_owned(), self.0.random_range(0..10).into());
        }
        (role, Value::Object(claims).to_string())
    }

    /// (query string, SQL)
    fn filter(&mut self) -> (String, String) {
        let n = self.0.random_range(0..10);
        match self.0.random_range(0..6) {
            0 => (format!("level=gte.{n}"), format!("level >= {n}")),
            1 => {
                let owner = *self.pick(&OWNERS);
                (format!("owner=eq.{owner}"), format!("owner = '{owner}'"))
            }
            2 => (format!("or=(team.eq.{n},open.is.true)"), format!("(team = {n} or open is true)")),
            3 => (format!("id=in.({n},{},{})", n + 10, n + 20), format!("id in ({n}, {}, {})", n + 10, n + 20)),
            4 => ("team=is.null".to_owned(), "team is null".to_owned()),
            _ => (format!("id=gt.{}", n * 3), format!("id > {}", n * 3)),
        }
    }

    fn question(&mut self) -> Question {
        const COLUMNS: &str = "id,owner,team,level,open";
        let (query, condition) = self.filter();
        let matching = format!("select count(*) from sky.papers where {condition}");
        let shows = self.chance(60);
        let returns = if shows { format!("select={COLUMNS}&") } else { String::new() };
        let prefer = if shows { "return=representation" } else { "return=minimal" }.to_owned();
        let returning = if shows { format!(" returning {COLUMNS}") } else { String::new() };
        let (owner, team, level, open) =
            (*self.pick(&OWNERS), self.0.random_range(1..5), self.0.random_range(0..10), self.chance(50));
        let question = |method, target, prefer, body, sql, shows, writes| Question {
            method,
            target,
            prefer,
            body,
            sql,
            shows,
            matching: matching.clone(),
            writes,
        };
        match self.0.random_range(0..10) {
            0..=4 => {
                let target = format!("/papers?select={COLUMNS}&{query}");
                let sql = format!("select {COLUMNS} from sky.papers where {condition}");
                question("GET", target, String::new(), String::new(), sql, true, false)
            }
            5 | 6 => {
                let (body, assignment) = match self.0.random_range(0..3) {
                    0 => (format!(r#"{{"owner": "{owner}"}}"#), format!("owner = '{owner}'")),
                    1 => {
                        (format!(r#"{{"level": {level}, "open": {open}}}"#), format!("level = {level}, open = {open}"))
                    }
                    _ => (format!(r#"{{"team": {team}}}"#), format!("team = {team}")),
                };
                let sql = format!("update sky.papers set {assignment} where {condition}{returning}");
                question("PATCH", format!("/papers?{returns}{query}"), prefer, body, sql, shows, true)
            }
            7 => {
                let sql = format!("delete from sky.papers where {condition}{returning}");
                question("DELETE", format!("/papers?{returns}{query}"), prefer, String::new(), sql, shows, true)
            }
            insert => {
                let merges = insert == 9;
                let id = if merges { self.0.random_range(1..60) } else { self.0.random_range(41..60) };
                let body =
                    format!(r#"{{"id": {id}, "owner": "{owner}", "team": {team}, "level": {level}, "open": {open}}}"#);
                let conflict = if merges {
                    " on conflict (id) do update set id = excluded.id, owner = excluded.owner, team = excluded.team, \
                     level = excluded.level, open = excluded.open"
                } else {
                    ""
                };
                let prefer = if merges { format!("{prefer}, resolution=merge-duplicates") } else { prefer };
                let sql = format!(
                    "insert into sky.papers ({COLUMNS}) values ({id}, '{owner}', {team}, {level}, {open}){conflict}{returning}"
                );
                let target = format!("/papers?{}", returns.trim_end_matches('&'));
                question("POST", target, prefer, body, sql, shows, true)
            }
        }
    }
}

/// PostgreSQL's answer to the role directly; rolled back.
async fn directly(client: &Client, role: &str, claims: &str, question: &Question) -> Outcome {
    client.batch_execute("begin").await.expect("begin");
    client.query("select set_config('request.jwt.claims', $1, true)", &[&claims]).await.expect("claims");
    client.batch_execute(&format!("set local role {role}")).await.expect("role");
    let outcome = if question.shows {
        let sql = format!(
            "with answer as ({}) select coalesce(json_agg(answer order by answer.id), '[]')::text from answer",
            question.sql
        );
        client.query_one(&sql, &[]).await.map(|row| Outcome::Rows(serde_json::from_str(row.get(0)).expect("json")))
    } else {
        client.execute(&question.sql, &[]).await.map(|_| Outcome::Done)
    };
    client.batch_execute("rollback").await.expect("rollback");
    outcome.unwrap_or_else(|error| Outcome::Refused(error.code().map_or("none", |code| code.code()).to_owned()))
}

/// The server's answer; also rolled back.
async fn through_the_server(house: &House, claims: &str, question: &Question) -> Outcome {
    let headers = [
        ("Authorization".to_owned(), format!("Bearer {}", House::token(claims))),
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("Prefer".to_owned(), question.prefer.clone()),
    ];
    let reply = send(&house.address, question.method, &question.target, &headers, question.body.as_bytes()).await;
    let mut body: Value = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
    if reply.status >= 400 {
        return Outcome::Refused(body["code"].as_str().unwrap_or("none").to_owned());
    }
    if let Value::Array(rows) = &mut body {
        rows.sort_by_key(|row| row["id"].as_i64());
        return Outcome::Rows(body);
    }
    Outcome::Done
}

/// `login`: the role that the server logs in as.
async fn compare(cases: u64, seed: u64, ground: &Ground, login: &str) -> Tally {
    let house = House::build(&[("PGRST_DB_URI", &ground.login_url(login, "gate"))], ground).await;
    let direct = connect(&house.owner_url).await;
    let mut maker = Maker(StdRng::seed_from_u64(seed));
    let mut tally = Tally::default();
    while tally.cases < cases {
        let rules = maker.rules();
        house.owner.batch_execute(&rules).await.expect("policies");
        for _ in 0..PER_ROUND {
            let (role, claims) = maker.claims();
            let question = maker.question();
            let wanted = directly(&direct, &role, &claims, &question).await;
            let found = through_the_server(&house, &claims, &question).await;
            tally.cases += 1;
            let all: i64 = house.owner.query_one(&question.matching, &[]).await.expect("count").get(0);
            match &wanted {
                Outcome::Rows(Value::Array(rows)) if question.method != "POST" => {
                    tally.hidden += u64::from((rows.len() as i64) < all);
                }
                Outcome::Refused(_) if question.writes => tally.refused_writes += 1,
                _ => {}
            }
            tally.writes += u64::from(question.writes);
            if found != wanted {
                tally.leaked += u64::from(question.method == "GET" && matches!(found, Outcome::Rows(_)));
                tally.unrefused += u64::from(question.writes && matches!(wanted, Outcome::Refused(_)));
                tally.differences.push(format!(
                    "case {} of seed {seed}: {} {} {} as {claims}\n  server {found:?}\n  direct {wanted:?}\n  {rules}",
                    tally.cases, question.method, question.target, question.body
                ));
            }
        }
    }
    tally
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[actix_web::test]
async fn policies_apply_as_for_the_role_itself() {
    let ground = Ground::new(Some(TABLE)).await;
    let tally = compare(number("POLICY_CASES", 300), number("POLICY_SEED", 42), &ground, "sky_gate").await;
    println!(
        "{} cases, {} hid rows, {} of {} writes were refused, {} differences",
        tally.cases,
        tally.hidden,
        tally.refused_writes,
        tally.writes,
        tally.differences.len()
    );
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert!(tally.hidden * 10 >= tally.cases * 3, "{} of {} cases hid rows", tally.hidden, tally.cases);
    assert!(tally.refused_writes * 10 >= tally.cases, "{} of {} cases refused", tally.refused_writes, tally.cases);
}

/// Differences in a run through a relay that removes the role switch from the server's statements.
async fn without_role_switch(login: &str) -> Tally {
    let ground = Ground::new(Some(TABLE)).await.behind_relay(Some(WITHOUT_ROLE_SWITCH)).await;
    let tally = compare(200, number("POLICY_SEED", 42), &ground, login).await;
    let rewritten = ground.relay.as_ref().map_or(0, Relay::rewritten);
    assert!(rewritten > 0, "the server no longer sets the role as this control expects: mend the control");
    tally
}

#[actix_web::test]
async fn the_comparison_detects_a_missing_role_switch() {
    // Logged in as a role that may do everything: hidden rows are shown, and refused writes succeed.
    let tally = without_role_switch("sky_open_gate").await;
    println!(
        "{} of {} cases differ: {} reads showed other rows, {} writes were not refused",
        tally.differences.len(),
        tally.cases,
        tally.leaked,
        tally.unrefused
    );
    assert!(tally.differences.len() > 60, "only {} of {} cases differ", tally.differences.len(), tally.cases);
    assert!(tally.leaked > 20 && tally.unrefused > 20, "{} leaked, {} unrefused", tally.leaked, tally.unrefused);
}

#[actix_web::test]
async fn the_comparison_detects_a_missing_role_switch_even_for_a_login_without_rights() {
    let tally = without_role_switch("sky_gate").await;
    assert!(tally.differences.len() > 100, "only {} of {} cases differ", tally.differences.len(), tally.cases);
}
