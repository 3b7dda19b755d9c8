//! Text messages: from `ferrobase.send_sms` to the provider, and back through the provider's webhook.

use std::sync::Arc;

use actix_web::HttpResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ferrobase::config::{AuthConfig, AuthMode, Reader, Source};
use ferrobase::db::{Pool, PoolOptions};
use ferrobase::mail::outbox::{Channel, deliver_next};
use ferrobase::mail::{FromAddress, MailConfig, Memory, Sender as _, inbox::Inbox};
use ferrobase::sms::{Outgoing, TextTransport};
use hmac::{Hmac, Mac as _};
use parking_lot::Mutex;
use serde_json::json;
use sha1::Sha1;

use crate::support::TestApp;
use crate::support::cluster::{Database, Template, connect};
use crate::support::outside;

const TWILIO: [(&str, &str); 4] = [
    ("GOTRUE_SMS_PROVIDER", "twilio"),
    ("GOTRUE_SMS_TWILIO_ACCOUNT_SID", "AC1"),
    ("GOTRUE_SMS_TWILIO_AUTH_TOKEN", "secret"),
    ("GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID", "+15550000000"),
];

/// The outbox for texts with these settings; mail goes to the inbox.
fn transport(settings: &[(&str, &str)]) -> TextTransport {
    let source = Source::from_pairs(settings.iter().copied());
    let auth = AuthConfig::read(&mut Reader::new(&source), AuthMode::Full);
    TextTransport::of(&auth.sms, &MailConfig::Inbox(sender()), reqwest::Client::new())
}

fn sender() -> FromAddress {
    FromAddress { name: String::new(), address: "a@b.example".to_owned() }
}

struct Texts {
    _database: Database,
    pool: Pool,
    owner: tokio_postgres::Client,
    outgoing: Outgoing,
}

impl Texts {
    async fn new(settings: &[(&str, &str)]) -> Self {
        let database = Database::new(Template::Platform).await;
        let pool = Pool::new(&database.logins().service_url, &PoolOptions::default()).expect("pool");
        let (transport, owner) = (transport(settings), connect(&database.url).await);
        transport.announce(&pool).await.expect("told");
        let outgoing = Outgoing::new(pool.clone(), transport, Arc::new(Inbox::new(pool.clone(), sender())));
        Self { _database: database, pool, owner, outgoing }
    }

    /// Whether `ferrobase.send_sms` accepted it.
    async fn queue(&self, number: &str) -> bool {
        let sql = "select ferrobase.send_sms($1, 'Hello') is not null";
        self.owner.query_one(sql, &[&number]).await.expect("queued or not").get(0)
    }

    async fn deliver(&self) -> bool {
        deliver_next(&self.pool, &self.outgoing, Channel::Sms).await.expect("a try")
    }

    async fn text(&self, sql: &str) -> String {
        self.owner.query_one(sql, &[]).await.expect(sql).get(0)
    }
}

#[actix_web::test]
async fn a_text_is_sent_by_twilio_but_not_to_numbers_that_stopped() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let twilio = outside::serve({
        let asked = Arc::clone(&asked);
        move |_, body| {
            asked.lock().push(body.clone());
            let (status, answer) = match asked.lock().len() {
                1 => (500, json!({ "message": "busy" })),
                2 => (201, json!({ "sid": "SM1", "status": "queued" })),
                3 => (400, json!({ "code": 21211, "message": "no such number" })),
                _ => (400, json!({ "code": 21610, "message": "unsubscribed" })),
            };
            async move { HttpResponse::build(status.try_into().expect("a status")).json(answer) }
        }
    });
    let texts = Texts::new(&[&TWILIO[..], &[("FERROBASE_SMS_TWILIO_URL", &twilio)]].concat()).await;
    let state = "select coalesce(max(attempts || ' ' || (failed_at is not null)), 'none') from _supavisor.outbox";

    assert!(texts.queue("+15551234567").await);
    assert!(texts.deliver().await);
    assert_eq!(texts.text(state).await, "1 false", "a busy provider is retried");
    texts.owner.batch_execute("update _supavisor.outbox set next_attempt_at = now()").await.expect("due");
    assert!(texts.deliver().await);
    assert_eq!(texts.text(state).await, "none");
    assert_eq!(asked.lock()[1], "Channel=sms&Body=Hello&To=%2B15551234567&From=%2B15550000000");

    assert!(texts.queue("+15551234567").await && texts.deliver().await);
    assert_eq!(texts.text(state).await, "1 true", "a permanent failure is not retried");
    texts.owner.batch_execute("delete from _supavisor.outbox").await.expect("tidy");

    assert!(texts.queue("+15557654321").await && texts.deliver().await);
    assert_eq!(texts.text(state).await, "none");
    assert!(!texts.queue("+15557654321").await, "Twilio said that it has stopped");

    // Queued by a transaction that had not seen STOP yet.
    assert!(texts.queue("+15551230000").await);
    texts.owner.batch_execute("insert into _supavisor.sms_stopped values ('+15551230000')").await.expect("stopped");
    assert!(texts.deliver().await);
    assert_eq!((texts.text(state).await.as_str(), asked.lock().len()), ("none", 4), "nothing was sent");
}

#[tokio::test]
async fn development_shows_texts_in_the_inbox_beside_mails() {
    let texts = Texts::new(&[]).await;
    assert!(texts.queue("+15551234567").await);
    assert!(!deliver_next(&texts.pool, &Memory::default(), Channel::Mail).await.expect("a look"));
    assert!(texts.deliver().await);
    let shown = "select recipient || ' ' || body_text from _supavisor.inbox";
    assert_eq!(texts.text(shown).await, "+15551234567@sms.invalid Hello");
}

#[tokio::test]
async fn texts_are_limited_per_number_and_day_and_need_a_provider() {
    let texts = Texts::new(&[]).await;
    for number in ["555 123", "15551234567", "+0555123456", ""] {
        assert!(!texts.queue(number).await, "{number} is no number");
    }
    texts.owner.batch_execute("update _supavisor.sms_rules set per_number = 2, per_day = 3").await.expect("rules");
    let mut queued = Vec::new();
    for number in ["+15551234567", "+15551234567", "+15551234567", "+15551230000", "+15551230001"] {
        queued.push(texts.queue(number).await);
    }
    assert_eq!(queued, [true, true, false, true, false], "two for a number, three on a day");
    texts.owner.batch_execute("update _supavisor.sms_counts set day = day - 2").await.expect("another day");
    assert!(texts.queue("+15551234567").await);
    assert_eq!(
        texts.text("select count(*)::text from _supavisor.sms_counts").await,
        "1",
        "counts of old days are removed"
    );

    let unserved = transport(&[("GOTRUE_SMS_PROVIDER", "twilio")]);
    unserved.announce(&texts.pool).await.expect("told");
    assert!(!texts.queue("+15551230009").await);
    let message = ferrobase::sms::Text { to: "15551230009", body: "", channel: "sms", code: "" }.as_mail();
    let refused = Outgoing::new(texts.pool.clone(), unserved, Arc::new(Memory::default())).send(&message).await;
    assert!(refused.is_err(), "texts queued before are kept");
}

/// A signature as Twilio makes it.
fn signature(token: &str, signed: &str) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(token.as_bytes()).expect("a key");
    mac.update(signed.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

#[actix_web::test]
async fn stop_and_start_are_accepted_only_if_signed_by_twilio() {
    let app = TestApp::with_settings(&[&TWILIO[..], &[("API_EXTERNAL_URL", "https://aid.example")]].concat()).await;
    let number = "+15551234567";
    let call = |path: &'static str, body: &'static str, signature: String| {
        let request = app.plain(reqwest::Method::POST, path).header("X-Twilio-Signature", signature);
        let fields = [("From", number), ("Body", body), ("AccountSid", "AC1")];
        async move { request.form(&fields).send().await.expect("an answer") }
    };
    let signed = |tail: &str, body: &str, token: &str| {
        signature(token, &format!("https://aid.example/sms/v1/twilio{tail}AccountSidAC1Body{body}From{number}"))
    };
    let stopped = async || -> bool {
        let sql = "select exists (select from _supavisor.sms_stopped)";
        app.owner.query_one(sql, &[]).await.expect("a look").get(0)
    };

    for (body, bad) in [
        ("STOP", String::new()),
        ("STOP", "no base64".to_owned()),
        ("STOP", signed("", "STOP", "another")),
        ("STOP", signed("", "START", "secret")),
        ("STOP", signed("?a=b", "STOP", "secret")),
    ] {
        let answer = call("/sms/v1/twilio", body, bad).await;
        assert_eq!(answer.status(), 403);
        assert!(!stopped().await);
    }
    let sql = "select ferrobase.send_sms('+15551234567', 'Hello') is not null";
    assert!(app.owner.query_one(sql, &[]).await.expect("queued").get::<_, bool>(0));

    for (path, tail, body, expected) in [
        ("/sms/v1/twilio", "", "Hello", false),
        ("/sms/v1/twilio?a=b", "?a=b", "Arrêt", true),
        ("/sms/v1/twilio", "", "Start", false),
        ("/sms/v1/twilio", "", "STOP", true),
    ] {
        let answer = call(path, body, signed(tail, body, "secret")).await;
        assert_eq!((answer.status().as_u16(), stopped().await), (200, expected), "{body}");
        assert!(answer.text().await.expect("a body").ends_with("<Response/>"));
    }
    let waiting: i64 = app.owner.query_one("select count(*) from _supavisor.outbox", &[]).await.expect("count").get(0);
    assert_eq!(waiting, 0, "waiting texts are no longer sent");
    assert!(!app.owner.query_one(sql, &[]).await.expect("refused").get::<_, bool>(0));

    let config: serde_json::Value =
        app.plain(reqwest::Method::GET, "/app-config.json").send().await.expect("settings").json().await.expect("json");
    assert_eq!(config["sms"], true);
}

#[actix_web::test]
async fn without_twilio_there_is_no_webhook() {
    let app = TestApp::start().await;
    let answer = app.plain(reqwest::Method::POST, "/sms/v1/twilio").form(&[("Body", "STOP")]).send().await;
    assert_eq!(answer.expect("an answer").status(), 401, "an unknown API");
}
