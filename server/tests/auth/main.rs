//! The authentication API over HTTP: its flows, and every guard of its safety.

#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../rest/wire.rs"]
mod wire;

mod contract;
mod enumeration;
mod factors;
mod import;
mod keys;
mod limits;
mod links;
mod logs;
mod outside;
mod passwords;
mod sessions;
mod settings;
mod tokens;

use serde_json::Value;
use support::TestApp;

/// The newest queued mail to `address`, as (subject, text); taken out of the queue.
pub async fn take_mail(app: &TestApp, address: &str) -> Option<(String, String)> {
    let sql = "with newest as (select id from ferrobase.outbox where recipient = $1 order by id desc limit 1)
               delete from ferrobase.outbox using newest where outbox.id = newest.id returning subject, body_text";
    let inbox = "with newest as (select id from ferrobase.inbox where recipient = $1 order by id desc limit 1)
               delete from ferrobase.inbox using newest where inbox.id = newest.id returning subject, body_text";
    for statement in [sql, inbox] {
        if let Some(row) = app.owner.query_opt(statement, &[&address]).await.expect("mail") {
            return Some((row.get(0), row.get(1)));
        }
    }
    None
}

/// The link of the newest mail to `address`.
pub async fn take_link(app: &TestApp, address: &str) -> String {
    let (_, text) = take_mail(app, address).await.expect("a mail");
    text.split_whitespace().find(|word| word.contains("/verify?")).expect("a link").to_owned()
}

/// The hash a link carries.
pub fn hash_of(link: &str) -> String {
    let url = url::Url::parse(link).expect("url");
    url.query_pairs().find(|(name, _)| name == "token").map(|(_, value)| value.into_owned()).expect("token")
}

/// A text of an answer.
pub fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}"))
}
