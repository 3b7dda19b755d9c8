//! Mail from the database to the next hop: the outbox, SMTP and the development inbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ferrobase::config::Secret;
use ferrobase::db::{Pool, PoolOptions};
use ferrobase::mail::inbox::Receiver;
use ferrobase::mail::outbox::Channel;
use ferrobase::mail::{FromAddress, MailError, Memory, Message, Sender, Smtp, SmtpConfig, inbox, outbox};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::process::House;
use crate::support::cluster::{Database, Template, connect};
use crate::support::outside::{AUTHORITY, MailServer, mail_server, slow_mail_server};

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
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so().await {
        assert!(Instant::now() < deadline, "it never came about: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const SEND: &str =
    "select ferrobase.send_mail('ada@example.org', 'Hello', 'text', '<p>html</p>', '{\"X-Kind\": \"t\"}')";

/// What a test's sender waits for, and what it does not.
const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(60);

fn hello() -> Message {
    Message {
        to: "ada@example.org".to_owned(),
        subject: "Hello".to_owned(),
        text: "text".to_owned(),
        html: String::new(),
        headers: Vec::new(),
    }
}

/// Accepts every message but never confirms it.
struct Silent;

impl Sender for Silent {
    fn send<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_silent_mail_server_blocks_neither_connections_nor_rows_nor_shutdown() {
    let db = Fixture::new().await;
    let pool = Pool::new(&db.service_url, &PoolOptions { size: 1, ..PoolOptions::default() }).expect("pool");
    for _ in 0..5 {
        db.run(SEND).await;
    }
    let outbox = outbox::spawn(pool.clone(), db.service_url.clone(), Arc::new(Silent), Channel::Mail);
    let due = "select count(*) from _supavisor.outbox where next_attempt_at <= now()";
    until("four are being sent", async || db.number(due).await == 1).await;
    assert!(pool.lease().await.is_ok(), "the only connection is free");
    db.run("begin; set local lock_timeout = '1s'; select 1 from _supavisor.outbox for update; commit").await;
    let started = Instant::now();
    outbox.stop().await;
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(db.number(due).await, 5, "they are for the next start");
    assert_eq!(db.number("select max(attempts)::bigint from _supavisor.outbox").await, 0, "and were not refused");
}

#[tokio::test]
async fn an_smtp_conversation_times_out() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("address").port();
    tokio::spawn(async move {
        let mut taken = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            taken.push(stream);
        }
    });
    let sender = smtp(port).with_limits(SHORT, LONG);
    for sent in [sender.send(&hello()).await, sender.rehearse().await] {
        assert!(matches!(&sent, Err(MailError::Refused(told)) if told.text.contains("no end")), "{sent:?}");
    }
    let (port, _received) = slow_mail_server(LONG).await;
    let sent = smtp(port).with_limits(LONG, SHORT).send(&hello()).await;
    assert!(
        matches!(&sent, Err(MailError::Refused(told)) if told.text.contains("no answer to the content")),
        "{sent:?}"
    );
}

/// RFC 5321, 4.5.3.2.6: a server may work for minutes on a content that it delivers.
#[tokio::test]
async fn an_accepted_mail_is_sent_once_however_slow_the_server() {
    let db = Fixture::new().await;
    let servers = [
        MailServer { pause: 3 * SHORT, ..MailServer::default() },
        MailServer { answers_quit: false, ..MailServer::default() },
    ];
    for server in servers {
        db.run(SEND).await;
        let (port, mut received) = server.run().await;
        let sender = smtp(port).with_limits(SHORT, LONG);
        assert!(outbox::deliver_next(&db.pool, &sender, Channel::Mail).await.expect("a try"));
        assert!(received.recv().await.is_some(), "it was delivered");
        assert_eq!(db.number("select count(*) from _supavisor.outbox").await, 0, "and will not be sent again");
    }
}

#[tokio::test]
async fn a_refused_recipient_is_told_even_if_the_server_does_not_say_goodbye() {
    let (port, _received) =
        MailServer { recipient: "550 nobody", answers_quit: false, ..MailServer::default() }.run().await;
    let sent = smtp(port).with_limits(SHORT, LONG).send(&hello()).await;
    assert!(matches!(&sent, Err(MailError::Rejected(told)) if told.code == Some(550)), "{sent:?}");
}

/// A failure would undo the request whose mail arrives nevertheless.
#[tokio::test]
async fn within_a_request_a_mail_counts_as_sent_once_the_server_has_all_of_it() {
    let (port, mut received) = slow_mail_server(4 * SHORT).await;
    let begun = Instant::now();
    smtp(port).within_request(SHORT).send(&hello()).await.expect("counts as sent");
    assert!(begun.elapsed() < 4 * SHORT, "{:?}", begun.elapsed());
    assert!(received.recv().await.is_some(), "the conversation goes on");

    let (port, _received) = mail_server("550 nobody").await;
    let sent = smtp(port).within_request(SHORT).send(&hello()).await;
    assert!(matches!(&sent, Err(MailError::Rejected(_))), "{sent:?}");
}

/// As Supabase Auth does: the catcher of its `docker-compose.yml` offers no login, and the settings beside it name one.
#[tokio::test]
async fn a_login_is_used_where_the_server_offers_it_and_encryption_if_it_is_another_machine() {
    let sent_to = async |server: MailServer| {
        let (port, mut received) = server.run().await;
        let from = FromAddress { name: String::new(), address: "support@x.example".to_owned() };
        let login = Some(("postman".to_owned(), Secret::new("letters")));
        let config = SmtpConfig { host: server.address.to_owned(), port, login, from };
        let sent = Smtp::new(&config).expect("a sender").send(&hello()).await;
        (sent, received.try_recv().unwrap_or_default())
    };
    // To us 127.0.0.2 is another machine.
    let other = MailServer { address: "127.0.0.2", ..MailServer::default() };
    let (sent, heard) = sent_to(MailServer { extension: "8BITMIME", ..other }).await;
    assert!(sent.is_ok() && heard.contains("RCPT TO:") && !heard.contains("AUTH"), "{sent:?} {heard}");
    let (sent, heard) = sent_to(other).await;
    assert!(matches!(&sent, Err(MailError::Refused(told)) if told.text.contains("no encryption")), "{sent:?}");
    assert_eq!(heard, "");
    let (sent, heard) = sent_to(MailServer::default()).await;
    assert!(sent.is_ok() && heard.contains("AUTH PLAIN"), "{sent:?} {heard}");
}

/// What the last mail of a server came to whose mail server is `server`; also its log.
async fn mailed_by_process(name: &str, server: MailServer) -> (House, tokio_postgres::Client) {
    let (port, _received) = server.run().await;
    let mut house = House::started_before(name);
    house.serve_set(&[("SMTP_HOST", server.address), ("SMTP_PORT", &port.to_string()), ("SSL_CERT_FILE", AUTHORITY)]);
    let [_, database, _, admin] = house.ports;
    until("it is ready", async || house.get(admin, "/ready").0 == 200).await;
    let sql = connect(&format!("postgresql://postgres:postgres@127.0.0.1:{database}/postgres")).await;
    sql.batch_execute("select ferrobase.send_mail('bob@example.org', 'Hello', 'text', '')").await.expect("queued");
    (house, sql)
}

async fn count(sql: &tokio_postgres::Client, rows: &str) -> i64 {
    let sql_text = format!("select count(*) from _supavisor.outbox where {rows}");
    sql.query_one(&sql_text, &[]).await.expect("a count").get(0)
}

/// Regression: only Mozilla's were trusted, so a mail server of one's own authority got no mail.
#[tokio::test]
async fn the_systems_authorities_are_trusted() {
    let server = MailServer { is_encrypted: true, ..MailServer::default() };
    let (house, sql) = mailed_by_process("mail-tls", server).await;
    until("it is delivered", async || count(&sql, "true").await == 0).await;
    assert!(!house.log().contains("was not delivered"), "{}", house.log());
}

/// docs/privacy.md: no addresses. Mail servers quote them.
#[tokio::test]
async fn a_refusal_is_logged_by_its_code_and_kept_in_its_words() {
    let recipient = "550 5.1.1 <bob@example.org>: Recipient address rejected";
    let (house, sql) = mailed_by_process("mail-refused", MailServer { recipient, ..MailServer::default() }).await;
    until("it is given up", async || {
        count(&sql, "failed_at is not null and last_error like '%bob@example.org%'").await == 1
    })
    .await;
    until("it is logged", async || house.log().contains("was not delivered")).await;
    let log = house.log();
    let line = log.lines().find(|line| line.contains("was not delivered")).expect("a line");
    assert!(line.contains("rejected (550)") && !log.contains("bob@example.org"), "{line}");
}

/// Takes its time.
struct Slow {
    takes: Duration,
    taken: Memory,
}

impl Sender for Slow {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(async {
            tokio::time::sleep(self.takes).await;
            self.taken.send(message).await
        })
    }
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_mail_is_being_sent() {
    let db = Fixture::new().await;
    db.run(SEND).await;
    let length = Duration::from_secs(1);
    let (slow, other) = (Slow { takes: 3 * length, taken: Memory::default() }, Memory::default());
    let sending = async {
        assert!(outbox::deliver_leased(&db.pool, &slow, Channel::Mail, length).await.expect("a try"));
    };
    let meanwhile = async {
        tokio::time::sleep(2 * length).await;
        assert!(!outbox::deliver_next(&db.pool, &other, Channel::Mail).await.expect("a look"), "it is not due");
    };
    futures_util::join!(sending, meanwhile);
    assert_eq!((slow.taken.messages().len(), other.messages().len()), (1, 0));
    assert_eq!(db.number("select count(*) from _supavisor.outbox").await, 0, "the renewed lease is known");
}

#[tokio::test]
async fn mail_is_sent_after_commit_and_never_after_rollback() {
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
    until("the outbox is empty", async || db.number("select count(*) from _supavisor.outbox").await == 0).await;
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
            return Box::pin(async { Err(MailError::Refused("try later".into())) });
        }
        self.taken.send(message)
    }
}

#[tokio::test]
async fn a_refused_mail_is_retried_even_by_another_server() {
    let db = Fixture::new().await;
    db.run(SEND).await;
    let flaky = Flaky { refusals: AtomicU32::new(1), taken: Memory::default() };
    assert!(outbox::deliver_next(&db.pool, &flaky, Channel::Mail).await.expect("first try"));
    assert!(!outbox::deliver_next(&db.pool, &flaky, Channel::Mail).await.expect("not due yet"), "a retry waits");
    assert_eq!(db.number("select attempts::bigint from _supavisor.outbox where last_error like '%try later'").await, 1);
    // Another server continues where this one stopped.
    let sent = Memory::default();
    let outbox = outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(sent.clone()), Channel::Mail);
    until("the retry is delivered", async || sent.messages().len() == 1).await;
    outbox.stop().await;
}

/// Hangs on mail to `stuck@…`, and refuses one with text that a text column cannot store.
struct Tarpit {
    taken: Memory,
}

impl Sender for Tarpit {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        match message.to.split('@').next() {
            Some("stuck") => Box::pin(std::future::pending()),
            Some("nul") => Box::pin(async { Err(MailError::Refused("550 \0\0".into())) }),
            _ => self.taken.send(message),
        }
    }
}

#[tokio::test]
async fn hanging_and_oddly_refused_mails_do_not_block_others() {
    let db = Fixture::new().await;
    let sent = Memory::default();
    let outbox =
        outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(Tarpit { taken: sent.clone() }), Channel::Mail);
    db.run(
        "select ferrobase.send_mail('stuck@x.example', '', '', ''), ferrobase.send_mail('nul@x.example', '', '', '')",
    )
    .await;
    until("the refusal is written down", async || {
        db.number("select count(*) from _supavisor.outbox where last_error like '%550%'").await == 1
    })
    .await;
    // Regression with a mail server that stopped answering: mail queued later waited for the timeout.
    for number in 1..=3 {
        db.run(SEND).await;
        until("the next mail is delivered", async || sent.messages().len() == number).await;
    }
    // The stuck delivery is not awaited: dropping the runtime has the effect of `kill -9`.
    drop(outbox);
}

#[tokio::test]
async fn two_servers_send_each_mail_once() {
    let db = Fixture::new().await;
    db.run(&format!("select count(m) from generate_series(1, 40) as n, lateral ({SEND}) as m")).await;
    db.run(
        "insert into _supavisor.outbox (recipient, subject, body_text, body_html)
            select 'n' || n || '@x.example', 's', 't', 'h' from generate_series(1, 40) as n",
    )
    .await;
    let before = db.number("select count(*) from _supavisor.outbox").await;
    let sent = Memory::default();
    let one = outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(sent.clone()), Channel::Mail);
    let two = outbox::spawn(db.pool.clone(), db.service_url.clone(), Arc::new(sent.clone()), Channel::Mail);
    until("everything is sent", async || db.number("select count(*) from _supavisor.outbox").await == 0).await;
    one.stop().await;
    two.stop().await;
    assert_eq!(i64::try_from(sent.messages().len()).expect("a count"), before);
}

#[tokio::test]
async fn mail_to_an_invalid_address_is_given_up_and_kept() {
    let db = Fixture::new().await;
    db.run("select ferrobase.send_mail('nobody', 's', 't', 'h')").await;
    let (port, _received) = mail_server("250 ok").await;
    assert!(outbox::deliver_next(&db.pool, &smtp(port), Channel::Mail).await.expect("a try"));
    assert_eq!(db.number("select count(*) from _supavisor.outbox where failed_at is not null").await, 1);
}

#[tokio::test]
async fn permanent_refusals_are_given_up_and_others_retried() {
    let db = Fixture::new().await;
    for (answer, given_up) in
        [("450 4.2.1 busy", 0), ("530 5.7.0 sign in first", 0), ("550 5.1.1 nobody of this name", 1)]
    {
        db.run(&format!("delete from _supavisor.outbox; {SEND}")).await;
        let (port, _received) = mail_server(answer).await;
        assert!(outbox::deliver_next(&db.pool, &smtp(port), Channel::Mail).await.expect("a try"));
        let tried = "select count(*) from _supavisor.outbox where attempts = 1";
        assert_eq!(db.number(tried).await, 1, "{answer}");
        assert_eq!(db.number(&format!("{tried} and failed_at is not null")).await, given_up, "{answer}");
    }
}

fn smtp(port: u16) -> Smtp {
    let from = FromAddress { name: "AidBridge".to_owned(), address: "support@x.example".to_owned() };
    Smtp::new(&SmtpConfig { host: "127.0.0.1".to_owned(), port, login: None, from }).expect("a sender")
}

#[tokio::test]
async fn mail_is_sent_over_smtp() {
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
async fn the_inbox_shows_mail_on_this_machine_only() {
    // The test's HTTP client needs a TLS provider.
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

    // A foreign host name that resolves to this machine, and a form on another site.
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
async fn the_inbox_has_mailpits_api() {
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

/// An inbox that takes mail by SMTP.
struct Receiving {
    receiver: Receiver,
    server: actix_web::dev::ServerHandle,
    base: String,
    port: u16,
}

impl Receiving {
    fn start(db: &Fixture) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let [pages, mails] = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a port"));
        let (base, port) =
            (format!("http://{}", pages.local_addr().expect("address")), mails.local_addr().expect("address").port());
        let receiver = Receiver::spawn(mails, db.pool.clone()).expect("the receiver");
        let server = inbox::spawn(pages, db.pool.clone()).expect("the inbox");
        Self { receiver, server, base, port }
    }

    async fn text(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("{}{path}", self.base)).await.expect("answer");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    }

    async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await.1).expect("JSON")
    }

    async fn connect(&self) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("a connection");
        Client(BufReader::new(stream))
    }

    async fn stop(self) {
        self.receiver.stop().await;
        self.server.stop(false).await;
    }
}

/// A client that says what it likes.
struct Client(BufReader<TcpStream>);

impl Client {
    async fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).await.expect("sent");
    }

    /// The last line of an answer; empty at the end of the connection.
    async fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read =
                tokio::time::timeout(Duration::from_secs(20), self.0.read_line(&mut line)).await.expect("in time");
            if read.is_err() || line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }
}

#[actix_web::test]
async fn mail_of_an_app_comes_by_smtp_and_mailpits_api_shows_it() {
    let db = Fixture::new().await;
    let inbox = Receiving::start(&db);
    let message = Message {
        to: "ada@example.org".to_owned(),
        subject: "Grüße".to_owned(),
        text: "the text\n.\n..dots".to_owned(),
        html: "<p>the html</p>".to_owned(),
        headers: Vec::new(),
    };
    smtp(inbox.port).send(&message).await.expect("accepted");
    let one = inbox.json("/api/v1/message/latest").await;
    assert_eq!((&one["Subject"], one["HTML"].as_str().map(str::trim)), (&json!("Grüße"), Some("<p>the html</p>")));
    assert_eq!(
        one["Text"].as_str().map(|text| text.trim().replace("\r\n", "\n")),
        Some("the text\n.\n..dots".to_owned())
    );
    assert_eq!(one["From"], json!({"Name": "AidBridge", "Address": "support@x.example"}));
    assert_eq!(one["To"], json!([{"Name": "", "Address": "ada@example.org"}]));

    let mut client = inbox.connect().await;
    assert!(client.hear().await.starts_with("220 "));
    client.say("EHLO me\r\nMAIL FROM:<app@x.example>\r\nRCPT TO:<ada@example.org>\r\nRCPT TO:<hidden@example.org>\r\nDATA\r\n").await;
    for code in ["250", "250", "250", "250", "354"] {
        let heard = client.hear().await;
        assert!(heard.starts_with(code), "{code} {heard}");
    }
    let source = "From: App <app@x.example>\r\nTo: Ada <ada@example.org>\r\nCc: carl@example.org\r\nSubject: Papers\r\n\
                  Message-ID: <m1@x.example>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nsee below\r\n--b\r\n\
                  Content-Type: text/html; name=page.html\r\nContent-Disposition: attachment; filename=page.html\r\n\r\n\
                  <script>alert(1)</script>\r\n--b--\r\n";
    client.say(&format!("{source}.\r\nQUIT\r\n")).await;
    assert!(client.hear().await.starts_with("250 2.0.0 Ok: queued as "));
    assert!(client.hear().await.starts_with("221 "));
    assert_eq!(client.hear().await, "", "the connection has ended");

    let found =
        inbox.json("/api/v1/search?query=subject:papers%20has:attachment%20cc:carl%20bcc:hidden%20larger:100").await;
    assert_eq!(found["messages_count"], 1, "{found}");
    let summary = &found["messages"][0];
    assert_eq!((&summary["Attachments"], &summary["MessageID"]), (&json!(1), &json!("m1@x.example")));
    assert_eq!((&summary["Size"], &summary["Snippet"]), (&json!(source.len()), &json!("see below")));
    for (query, count) in
        [("has:attachment", 1), ("to:carl", 0), ("addressed:carl", 1), ("message-id:m1@x.example", 1), ("-cc:carl", 1)]
    {
        assert_eq!(inbox.json(&format!("/api/v1/search?query={query}")).await["messages_count"], count, "{query}");
    }
    let id = summary["ID"].as_str().expect("an id");
    let whole = inbox.json(&format!("/api/v1/message/{id}")).await;
    assert_eq!(whole["Cc"], json!([{"Name": "", "Address": "carl@example.org"}]));
    assert_eq!(whole["Bcc"], json!([{"Name": "", "Address": "hidden@example.org"}]));
    assert_eq!((&whole["ReturnPath"], &whole["Attachments"][0]["PartID"]), (&json!("app@x.example"), &json!("2")));
    assert_eq!(inbox.text(&format!("/api/v1/message/{id}/raw")).await, (200, source.to_owned()));
    assert_eq!(inbox.json(&format!("/api/v1/message/{id}/headers")).await["Message-Id"], json!(["<m1@x.example>"]));
    let part = reqwest::get(format!("{}/api/v1/message/{id}/part/2", inbox.base)).await.expect("the part");
    assert_eq!(part.headers()["content-disposition"], "attachment; filename=\"page.html\"");
    assert!(part.headers()["content-security-policy"].to_str().expect("text").starts_with("sandbox"));
    assert_eq!(part.text().await.expect("text"), "<script>alert(1)</script>");
    assert_eq!(inbox.text(&format!("/api/v1/message/{id}/part/9")).await.0, 404);
    // Recipients in Bcc have it in their mails, too.
    for to in ["ADA@example.org", "hidden@example.org"] {
        let mails = inbox.json(&format!("/api/messages?to={to}")).await;
        assert_eq!(mails[0]["subject"], "Papers", "{to} {mails}");
    }
    let page = inbox.text(&format!("/?id={id}&view=source")).await.1;
    assert!(page.contains("Message-ID: &lt;m1@x.example&gt;") && !page.contains("<script>alert"), "{page}");
    inbox.stop().await;
    let open = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    assert!(Receiver::spawn(open, db.pool.clone()).is_err());
}

#[actix_web::test]
async fn hostile_inbox_clients_do_not_delay_others() {
    let db = Fixture::new().await;
    let inbox = Receiving::start(&db);
    // Bytes of no protocol, the form of a web page, and a mail cut off.
    let mut noise = inbox.connect().await;
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| u8::try_from(n * 7919 % 251).unwrap_or(0)).collect();
    // The server may close first.
    let _ = noise.0.get_mut().write_all(&bytes).await;
    let mut form = inbox.connect().await;
    assert!(form.hear().await.starts_with("220 "));
    form.say("POST / HTTP/1.1\r\nHost: x\r\n\r\nEHLO me\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\nx\r\n.\r\n").await;
    assert!(form.hear().await.starts_with("421 "));
    let mut cut = inbox.connect().await;
    cut.say("EHLO me\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\nSubject: half").await;
    drop((noise, form, cut));

    // A client that does not read: its messages do not pile up.
    let mut deaf = inbox.connect().await;
    deaf.say("EHLO me\r\n").await;
    let lines = "NOOP\r\n".repeat(10_000);
    let mut sent = 0;
    while let Ok(Ok(())) =
        tokio::time::timeout(Duration::from_secs(2), deaf.0.get_mut().write_all(lines.as_bytes())).await
    {
        sent += lines.len();
        assert!(sent < 200 << 20, "the server reads on");
    }

    // More connections than allowed: the last ones are refused, until others close.
    let mut many = Vec::new();
    let told = loop {
        let mut client = inbox.connect().await;
        let heard = client.hear().await;
        if !heard.starts_with("220 ") {
            break heard;
        }
        many.push(client);
        assert!(many.len() < 100, "no limit of connections");
    };
    assert!(told.starts_with("421 4.3.2") && many.len() >= 15, "{told} after {}", many.len());
    drop((many, deaf));
    let message = Message {
        to: "ada@example.org".to_owned(),
        subject: "Still there".to_owned(),
        text: "text".to_owned(),
        html: String::new(),
        headers: Vec::new(),
    };
    until("there is room again", async || smtp(inbox.port).send(&message).await.is_ok()).await;
    let all = inbox.json("/api/v1/messages").await;
    assert_eq!(
        (&all["total"], &all["messages"][0]["Subject"]),
        (&json!(1), &json!("Still there")),
        "only whole mails count"
    );
    inbox.stop().await;
}
