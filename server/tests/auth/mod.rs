//! The auth API over HTTP: its flows and its protections.

mod accounts;
mod contract;
mod drop_in;
mod dump;
mod enumeration;
mod factors;
mod guesses;
mod hooks;
mod import;
mod keys;
mod limits;
mod links;
pub mod logs;
mod outbound;
mod outside;
mod passwords;
mod recovery_codes;
mod rotations;
mod sessions;
mod settings;
mod slow;
pub mod tokens;

use serde_json::Value;

use crate::support::TestApp;

/// The newest queued mail to `address` as (subject, text), removed from the queue.
pub async fn take_mail(app: &TestApp, address: &str) -> Option<(String, String)> {
    let sql = "with newest as (select id from _supavisor.outbox where recipient = $1 order by id desc limit 1)
               delete from _supavisor.outbox using newest where outbox.id = newest.id returning subject, body_text";
    let inbox = "with newest as (select id from _supavisor.inbox where recipient = $1 order by id desc limit 1)
               delete from _supavisor.inbox using newest where inbox.id = newest.id returning subject, body_text";
    for statement in [sql, inbox] {
        if let Some(row) = app.owner.query_opt(statement, &[&address]).await.expect("mail") {
            return Some((row.get(0), row.get(1)));
        }
    }
    None
}

/// Makes requests overlap: locks the rows that `select` names until `count` requests wait for them, or for a second if
/// requests bypass locked rows, then unlocks them.
pub async fn meet<T>(app: &TestApp, select: &str, count: i64, requests: impl Future<Output = T>) -> T {
    meanwhile(app, &format!("{select} for update"), count, requests).await
}

/// Like [`meet`], but with another transaction's statement, which is committed once `count` requests wait for it.
pub async fn meanwhile<T>(app: &TestApp, statement: &str, count: i64, requests: impl Future<Output = T>) -> T {
    app.owner.batch_execute(&format!("begin; {statement}")).await.expect("the rows are held");
    let letting_go = async {
        // Requests that skip locked rows never wait, and give up after five seconds.
        until_waiting(app, count).await;
        app.owner.batch_execute("commit").await.expect("the rows are free");
    };
    futures_util::join!(requests, letting_go).0
}

/// Returns once `count` requests wait for locks, or after a second.
pub async fn until_waiting(app: &TestApp, count: i64) {
    let waiting =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    for _ in 0..100 {
        app.owner.batch_execute("select pg_stat_clear_snapshot()").await.expect("what is true now");
        if app.owner.query_one(waiting, &[]).await.expect("who waits").get::<_, i64>(0) >= count {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// The link in the newest mail to `address`.
pub async fn take_link(app: &TestApp, address: &str) -> String {
    let (_, text) = take_mail(app, address).await.expect("a mail");
    text.split_whitespace().find(|word| word.contains("/verify?")).expect("a link").to_owned()
}

/// The token hash in a link.
pub fn hash_of(link: &str) -> String {
    let url = url::Url::parse(link).expect("url");
    url.query_pairs().find(|(name, _)| name == "token").map(|(_, value)| value.into_owned()).expect("token")
}

/// A string in an answer.
pub fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}"))
}
