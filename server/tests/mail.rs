//! Mail from the database to the next hop: the outbox, SMTP and the development inbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ferrobase::db::{Pool, PoolOptions};
use ferrobase::mail::outbox::Channel;
use ferrobase::mail::{FromAddress, MailError, Memory, Message, Sender, Smtp, SmtpConfig, inbox, outbox};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::cluster::{Database, Template, connect};
use crate::support::outside::mail_server;

struct Fixture {
    database: Database,
    pool: Pool,
    service_url: String,
}

impl Fixture {
    async fn new() -> Self {
        let database = Database::new(Template::Platform).await;
        let service_url = database.logins().service_url;
        let pool = Pool::new(&service_url, &PoolOptions::default()).expect("pool");
        Self { database, pool, service_url }
    }

    async fn run(&self, sql: &str) {
        connect(&self.database.url).await.batch_execute(sql).await.expect(sql);
    }

    async fn number(&self, sql: &str) -> i64 {
        let connection = self.pool.lease().await.expect("a connection");
        connection.query_one(sql, &[]).await.expect(sql).get(0)
    }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so().await {
        assert!(Instant::now() < deadline, "it never came about: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const SEND: &str =
    "select ferrobase.send_mail('ada@example.org', 'Hello', 'text', '<p>html</p>', '{\"X-Kind\": \"t\"}')";

/// Takes every message and never says whether it has arrived.
struct Silent;

impl Sender for Silent {
    fn send<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_mail_server_that_says_nothing_holds_neither_connections_nor_rows_nor_the_end() {
    let db = Fixture::new().await;
    let pool = Pool::new(&db.service_url, &PoolOptions { size: 1, ..PoolOptions::default() }).expect("pool");
    for _ in 0..5 {
        db.run(SEND).await;
    }
    let outbox = outbox::spawn(pool.clone(), db.service_url.clone(), Arc::new(Silent), Channel::Mail);
    let due = "select count(*) from ferrobase.outbox where next_attempt_at <= now()";
    until("four are being sent", async || db.number(due).await == 1).await;
    assert!(pool.lease().await.is_ok(), "the only connection is free");
    db.run("begin; set local lock_timeout = '1s'; select 1 from ferrobase.outbox for update; commit").await;
    let started = Instant::now();
    outbox.stop().await;
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert_eq!(db.number(due).await, 5, "they are for the next start");
    assert_eq!(db.number("select max(attempts)::bigint from ferrobase.outbox").await, 0, "and were not refused");
}

#[tokio::test]
async fn a_conversation_with_a_mail_server_has_an_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("address").port();
    tokio::spawn(async move {
        let mut taken = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            taken.push(stream);
        }
    });
    let message = Message {
        to: "ada@example.org".to_owned(),
        subject: "Hello".to_owned(),
        text: "text".to_owned(),
        html: String::new(),
        headers: Vec::new(),
    };
    let sent = smtp(port).with_deadline(Duration::from_millis(300)).send(&message).await;
    assert!(matches!(&sent, Err(MailError::Refused(text)) if text.contains("no end")), "{sent:?}");
}

#[tokio::test]
async fn a_mail_leaves_after_commit_and_never_after_rollback() {
    let db = Fixture::new().await;
    let sent = Memory::default();
    let outbox = outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(sent.clone()), Channel::Mail);
    db.run(&format!("begin; {SEND}; rollback")).await;
    db.run(&format!("begin; {SEND}; commit")).await;
    until("the mail is delivered", async || sent.messages().len() == 1).await;
    let expected = Message {
        to: "ada@example.org".to_owned(),
        subject: "Hello".to_owned(),
        text: "text".to_owned(),
        html: "<p>html</p>".to_owned(),
        headers: vec![("X-Kind".to_owned(), "t".to_owned())],
    };
    assert_eq!(sent.messages(), [expected]);
    until("the outbox is empty", async || db.number("select count(*) from ferrobase.outbox").await == 0).await;
    outbox.stop().await;
}

/// Refuses the first `refusals` messages.
struct Flaky {
    refusals: AtomicU32,
    taken: Memory,
}

impl Sender for Flaky {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        if self.refusals.load(Ordering::Relaxed) > 0 {
            self.refusals.fetch_sub(1, Ordering::Relaxed);
            return Box::pin(async { Err(MailError::Refused("try later".to_owned())) });
        }
        self.taken.send(message)
    }
}

#[tokio::test]
async fn a_refused_mail_is_tried_again_also_by_the_next_server() {
    let db = Fixture::new().await;
    db.run(SEND).await;
    let flaky = Flaky { refusals: AtomicU32::new(1), taken: Memory::default() };
    assert!(outbox::deliver_next(&db.pool, &flaky, Channel::Mail).await.expect("first try"));
    assert!(!outbox::deliver_next(&db.pool, &flaky, Channel::Mail).await.expect("not due yet"), "a retry waits");
    assert_eq!(db.number("select attempts::bigint from ferrobase.outbox where last_error like '%try later'").await, 1);
    // Another server takes over where this one stopped.
    let sent = Memory::default();
    let outbox = outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(sent.clone()), Channel::Mail);
    until("the retry is delivered", async || sent.messages().len() == 1).await;
    outbox.stop().await;
}

/// Never done with the mail to `stuck@…`, and refuses one with words that no text column takes.
struct Tarpit {
    taken: Memory,
}

impl Sender for Tarpit {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        match message.to.split('@').next() {
            Some("stuck") => Box::pin(std::future::pending()),
            Some("nul") => Box::pin(async { Err(MailError::Refused("550 \0\0".to_owned())) }),
            _ => self.taken.send(message),
        }
    }
}

#[tokio::test]
async fn a_mail_that_hangs_and_one_that_is_refused_in_strange_words_hold_up_no_other() {
    let db = Fixture::new().await;
    let sent = Memory::default();
    let outbox =
        outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(Tarpit { taken: sent.clone() }), Channel::Mail);
    db.run(
        "select ferrobase.send_mail('stuck@x.example', '', '', ''), ferrobase.send_mail('nul@x.example', '', '', '')",
    )
    .await;
    until("the refusal is written down", async || {
        db.number("select count(*) from ferrobase.outbox where last_error like '%550%'").await == 1
    })
    .await;
    // Found with a mail server that stopped answering: what was queued next waited for the time-out.
    for number in 1..=3 {
        db.run(SEND).await;
        until("the next mail is delivered", async || sent.messages().len() == number).await;
    }
    // The stuck one is not waited for: dropping the runtime is what a `kill -9` would do.
    drop(outbox);
}

#[tokio::test]
async fn two_servers_send_each_mail_once() {
    let db = Fixture::new().await;
    db.run(&format!("select count(m) from generate_series(1, 40) as n, lateral ({SEND}) as m")).await;
    db.run(
        "insert into ferrobase.outbox (recipient, subject, body_text, body_html)
            select 'n' || n || '@x.example', 's', 't', 'h' from generate_series(1, 40) as n",
    )
    .await;
    let before = db.number("select count(*) from ferrobase.outbox").await;
    let sent = Memory::default();
    let one = outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(sent.clone()), Channel::Mail);
    let two = outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(sent.clone()), Channel::Mail);
    until("everything is sent", async || db.number("select count(*) from ferrobase.outbox").await == 0).await;
    one.stop().await;
    two.stop().await;
    assert_eq!(i64::try_from(sent.messages().len()).expect("a count"), before);
}

#[tokio::test]
async fn an_address_that_is_none_is_given_up_and_kept_for_a_person_to_see() {
    let db = Fixture::new().await;
    db.run("select ferrobase.send_mail('nobody', 's', 't', 'h')").await;
    let (port, _received) = mail_server("250 ok").await;
    assert!(outbox::deliver_next(&db.pool, &smtp(port), Channel::Mail).await.expect("a try"));
    assert_eq!(db.number("select count(*) from ferrobase.outbox where failed_at is not null").await, 1);
}

#[tokio::test]
async fn what_a_mail_server_refuses_for_good_is_given_up_and_the_rest_tried_again() {
    let db = Fixture::new().await;
    for (answer, given_up) in
        [("450 4.2.1 busy", 0), ("530 5.7.0 sign in first", 0), ("550 5.1.1 nobody of this name", 1)]
    {
        db.run(&format!("delete from ferrobase.outbox; {SEND}")).await;
        let (port, _received) = mail_server(answer).await;
        assert!(outbox::deliver_next(&db.pool, &smtp(port), Channel::Mail).await.expect("a try"));
        let tried = "select count(*) from ferrobase.outbox where attempts = 1";
        assert_eq!(db.number(tried).await, 1, "{answer}");
        assert_eq!(db.number(&format!("{tried} and failed_at is not null")).await, given_up, "{answer}");
    }
}

fn smtp(port: u16) -> Smtp {
    let from = FromAddress { name: "AidBridge".to_owned(), address: "support@x.example".to_owned() };
    Smtp::new(&SmtpConfig { host: "127.0.0.1".to_owned(), port, login: None, from }).expect("a sender")
}

#[tokio::test]
async fn smtp_hands_the_mail_to_the_server() {
    let (port, mut received) = mail_server("250 ok").await;
    let message = Message {
        to: "ada@example.org".to_owned(),
        subject: "Hello".to_owned(),
        text: "the text".to_owned(),
        html: "<p>the html</p>".to_owned(),
        headers: Vec::new(),
    };
    smtp(port).send(&message).await.expect("accepted");
    let data = received.recv().await.expect("a message");
    for expected in ["From: AidBridge <support@x.example>", "To: ada@example.org", "the text", "<p>the html</p>"] {
        assert!(data.contains(expected), "{expected} is missing in\n{data}");
    }
}

#[actix_web::test]
async fn the_inbox_keeps_mail_shows_it_and_answers_this_machine_only() {
    // The HTTP client of the test wants to know who would do TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let db = Fixture::new().await;
    let from = FromAddress { name: "AidBridge".to_owned(), address: "support@x.example".to_owned() };
    let catcher = inbox::Inbox::new(db.pool.clone(), from);
    for (to, subject) in [("ada@example.org", "First"), ("bob@example.org", "Second"), ("ada@example.org", "Third")] {
        let message = Message {
            to: to.to_owned(),
            subject: subject.to_owned(),
            text: "see http://127.0.0.1/verify?a=1".to_owned(),
            html: "<script>alert(1)</script><a href=\"/x\">link</a>".to_owned(),
            headers: Vec::new(),
        };
        catcher.send(&message).await.expect("caught");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("address"));
    let server = inbox::spawn(listener, db.pool.clone()).expect("the inbox");
    let http = reqwest::Client::new();
    let json = async |path: &str| -> serde_json::Value {
        http.get(format!("{base}{path}")).send().await.expect("answer").json().await.expect("JSON")
    };

    let all = json("/api/messages").await;
    let subjects: Vec<&str> = all.as_array().expect("array").iter().filter_map(|m| m["subject"].as_str()).collect();
    assert_eq!(subjects, ["Third", "Second", "First"]);
    let adas = json("/api/messages?to=ADA@example.org").await;
    assert_eq!(adas.as_array().expect("array").len(), 2);
    let id = adas[0]["id"].as_str().expect("an id is a text");
    let one = json(&format!("/api/messages/{id}")).await;
    assert_eq!((&one["to"], &one["subject"]), (&"ada@example.org".into(), &"Third".into()));
    assert_eq!(one["from"], "AidBridge, support@x.example");

    let page = http.get(format!("{base}/?id={id}&view=text")).send().await.expect("page").text().await.expect("text");
    assert!(page.contains("Third") && page.contains("<a href=\"http://127.0.0.1/verify?a=1\""), "{page}");
    let part = http.get(format!("{base}/messages/{id}/html")).send().await.expect("part");
    let policy = part.headers()["content-security-policy"].to_str().expect("text").to_owned();
    assert!(
        policy.starts_with("sandbox") && !policy.contains("allow-scripts") && !policy.contains("allow-same-origin")
    );

    // A name of somebody else's that resolves to this machine, and another site's form.
    let rebound = http.get(format!("{base}/api/messages")).header("host", "evil.example").send().await.expect("answer");
    assert_eq!(rebound.status(), 403);
    for (name, value) in [("x-forwarded-host", "localhost"), ("forwarded", "host=localhost")] {
        let rebound = http.get(format!("{base}/api/messages")).header("host", "evil.example").header(name, value);
        assert_eq!(rebound.send().await.expect("answer").status(), 403, "{name}");
    }
    let foreign = http.post(format!("{base}/delete")).header("origin", "https://evil.example").send().await;
    assert_eq!(foreign.expect("answer").status(), 403);
    assert_eq!(http.get(format!("{base}/api/messages/999999")).send().await.expect("answer").status(), 404);

    assert_eq!(http.delete(format!("{base}/api/messages")).send().await.expect("answer").status(), 204);
    assert_eq!(json("/api/messages").await, serde_json::json!([]));
    server.stop(false).await;
    let open = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    assert!(inbox::spawn(open, db.pool.clone()).is_err());
}

/// Mailpit's API, as used by end-to-end tests for `supabase start`.
#[actix_web::test]
async fn the_inbox_answers_as_mailpit_does() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let db = Fixture::new().await;
    let from = FromAddress { name: "AidBridge".to_owned(), address: "support@x.example".to_owned() };
    let catcher = inbox::Inbox::new(db.pool.clone(), from);
    for (to, subject) in
        [("ada@example.org", "Your code"), ("bob@example.org", "Your code"), ("ada@example.org", "News")]
    {
        let message = Message {
            to: to.to_owned(),
            subject: subject.to_owned(),
            text: "Your code: 123456".to_owned(),
            html:
                "<h1>Hello</h1><p>Your code: <b>123456</b> &amp; <a href=\"http://127.0.0.1/verify?a=1\">link</a></p>"
                    .to_owned(),
            headers: vec![(
                "List-Unsubscribe".to_owned(),
                "<https://x.example/off>, <mailto:off@x.example>".to_owned(),
            )],
        };
        catcher.send(&message).await.expect("caught");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("address"));
    let server = inbox::spawn(listener, db.pool.clone()).expect("the inbox");
    let http = reqwest::Client::new();
    let text = async |path: &str| -> (u16, String) {
        let answer = http.get(format!("{base}{path}")).send().await.expect("answer");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    };
    let json = async |path: &str| -> Value { serde_json::from_str(&text(path).await.1).expect("JSON") };
    let subjects = |list: &Value| -> Vec<String> {
        list["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .map(|m| m["Subject"].as_str().expect("a subject").to_owned())
            .collect()
    };

    let mut all = json("/api/v1/messages").await;
    let id = all["messages"][0]["ID"].as_str().expect("an id").to_owned();
    let newest = all["messages"][0].as_object_mut().expect("a summary");
    for member in ["Created", "Size", "MessageID", "ID"] {
        assert!(newest.remove(member).is_some(), "{member}");
    }
    assert_eq!(
        all["messages"][0],
        json!({
            "Read": false, "From": {"Name": "AidBridge", "Address": "support@x.example"},
            "To": [{"Name": "", "Address": "ada@example.org"}], "Cc": null, "Bcc": null, "ReplyTo": [], "Subject": "News",
            "Username": "", "Tags": [], "Attachments": 0, "Snippet": "Hello Your code: 123456 & link",
        })
    );
    all.as_object_mut().expect("an object").remove("messages");
    assert_eq!(
        all,
        json!({"total": 3, "unread": 3, "count": 3, "messages_count": 3, "messages_unread": 3, "start": 0, "tags": []})
    );
    assert_eq!(subjects(&json("/api/v1/messages?start=1&limit=1").await), ["Your code"]);

    for (query, found) in [
        ("to:ADA@example.org", vec!["News", "Your code"]),
        ("to:%22ada@example.org%22%20subject:%22your%20code%22", vec!["Your code"]),
        ("from:support@x.example%20-to:ada", vec!["Your code"]),
        ("123456%20!subject:code", vec!["News"]),
        ("has:attachment", vec![]),
        ("after:2020-01-01%20before:2020-01-02", vec![]),
        ("larger:1k", vec![]),
        ("is:unread%20addressed:bob", vec!["Your code"]),
        ("message-id:nobody", vec![]),
    ] {
        let list = json(&format!("/api/v1/search?query={query}")).await;
        assert_eq!(subjects(&list), found, "{query}");
        assert_eq!((&list["total"], &list["messages_count"]), (&json!(3), &json!(found.len())), "{query}");
    }
    assert_eq!(text("/api/v1/search?query=").await, (400, "Error: no search query".to_owned()));

    let one = json("/api/v1/message/latest").await;
    assert_eq!((&one["ID"], &one["Text"]), (&json!(id), &json!("Your code: 123456")));
    assert_eq!(
        (&one["Cc"], &one["ReturnPath"], &one["Attachments"]),
        (&json!([]), &json!("support@x.example"), &json!([]))
    );
    assert_eq!(one["ListUnsubscribe"]["Links"], json!(["https://x.example/off", "mailto:off@x.example"]));
    assert!(one["HTML"].as_str().expect("HTML").starts_with("<h1>"));
    assert_eq!(json(&format!("/api/v1/message/{id}")).await, one);
    assert_eq!(json("/api/v1/message/latest?query=to:bob").await["To"][0]["Address"], "bob@example.org");
    let unread = json("/api/v1/search?query=is:unread").await;
    assert_eq!((&unread["unread"], subjects(&unread)), (&json!(1), vec!["Your code".to_owned()]));
    assert_eq!(text("/api/v1/message/999999").await, (404, "404 page not found".to_owned()));
    assert_eq!(json(&format!("/api/v1/message/{id}/headers")).await["Subject"], json!(["News"]));
    let (_, source) = text(&format!("/api/v1/message/{id}/raw")).await;
    assert!(source.contains("From: \"AidBridge\" <support@x.example>\r\n") && source.contains("text/html"), "{source}");

    let page = http.get(format!("{base}/view/latest.html")).send().await.expect("answer");
    let policy = page.headers()["content-security-policy"].to_str().expect("text").to_owned();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("script"), "{policy}");
    assert!(page.text().await.expect("text").contains("verify?a=1"));
    assert_eq!(text(&format!("/view/{id}.txt")).await.1, "Your code: 123456");
    assert_eq!(text("/view/999999.html").await.0, 404);
    assert_eq!(json("/api/v1/info").await["Messages"], 3);

    let marked = http.put(format!("{base}/api/v1/messages")).json(&json!({"Read": true})).send().await.expect("answer");
    assert_eq!(marked.text().await.expect("text"), "ok");
    assert_eq!(json("/api/v1/messages").await["unread"], 0);
    let deleted =
        http.delete(format!("{base}/api/v1/messages")).json(&json!({"IDs": [id]})).send().await.expect("answer");
    assert_eq!((deleted.status().as_u16(), deleted.text().await.expect("text")), (200, "ok".to_owned()));
    http.delete(format!("{base}/api/v1/search?query=to:bob")).send().await.expect("answer");
    assert_eq!(subjects(&json("/api/v1/messages").await), ["Your code"]);
    http.delete(format!("{base}/api/v1/messages")).send().await.expect("answer");
    assert_eq!(json("/api/v1/messages").await["total"], 0);
    assert_eq!(json("/api/v1/messages").await["messages"], json!([]));
    assert_eq!(text("/api/v1/message/latest").await.0, 404);
    server.stop(false).await;
}
