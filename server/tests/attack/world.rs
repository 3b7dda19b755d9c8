//! AidBridge with its demo data, whose people are the victims, and an attacker with an account and an organization of
//! their own. No answer to the attacker may contain the victims' data, and no row of theirs may change.

use std::collections::{BTreeMap, BTreeSet};

use ferrobase::migrate;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Actor, Reply, TestApp, User, send};

/// Everything is enabled, since disabled features cannot be attacked.
pub const ALL_ON: [(&str, &str); 9] = [
    ("GOTRUE_OAUTH_SERVER_ENABLED", "true"),
    ("GOTRUE_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION", "true"),
    ("GOTRUE_OAUTH_SERVER_AUTHORIZATION_PATH", "/oauth/consent"),
    ("GOTRUE_PASSKEY_ENABLED", "true"),
    ("GOTRUE_WEBAUTHN_RP_ID", "app.example"),
    ("GOTRUE_WEBAUTHN_RP_DISPLAY_NAME", "App"),
    ("GOTRUE_WEBAUTHN_RP_ORIGINS", "https://app.example"),
    // Requests to many endpoints are not guesses of one password.
    ("FERROBASE_GUESS_LIMITS", "false"),
    ("GOTRUE_SECURITY_MANUAL_LINKING_ENABLED", "true"),
];

/// The victim whose ids are used in requests.
pub const VICTIM: &str = "de300000-0000-4000-8000-000000000001";
pub const VICTIM_EMAIL: &str = "requester@demo.aidbridge.test";
pub const FACTOR: &str = "fac70000-0000-4000-8000-000000000001";
pub const PASSKEY: &str = "9a550000-0000-4000-8000-000000000001";
/// Content of the victim's file.
pub const IN_FILE: &str = "%PDF-1.4 kestrel-of-the-victim";

/// Rows that the demo data lacks.
const REST_OF_CAST: &str = r#"
insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at, secret)
values ('fac70000-0000-4000-8000-000000000001', 'de300000-0000-4000-8000-000000000001', 'kestrel-of-the-victim', 'totp', 'verified', now(), now(), 'JBSWY3DPEHPK3PXP');
insert into auth.webauthn_credentials (id, user_id, credential_id, public_key, friendly_name)
values ('9a550000-0000-4000-8000-000000000001', 'de300000-0000-4000-8000-000000000001', '\x01', '\x02', 'kestrel-of-the-victim');
insert into public.budget_allocations (nonprofit_id, category, amount) values ('np-001', 'kestrel-of-the-victim', 5);
insert into public.saved_replies (nonprofit_id, kind, title, body) values ('np-001', 'info', 'kestrel-of-the-victim', 'kestrel-of-the-victim');
"#;

/// Rows of others, identified by table and text.
type Rows = BTreeMap<(String, String), usize>;

/// Tables that change by design: counters, and sums over all users.
const COUNTERS: [&str; 5] = [
    "private.rate_limits",
    "private.app_settings",
    "private.incoming_tally",
    "private.budget_tally",
    "auth.message_counts",
];

pub struct World<'a> {
    pub app: &'a TestApp,
    pub stranger: User<'a>,
    /// The attacker's own organization.
    organization: String,
    marks: Vec<String>,
    rows: Rows,
    /// Number of answers that were checked.
    pub tried: usize,
}

impl<'a> World<'a> {
    /// For an app with [`ALL_ON`].
    pub async fn new(app: &'a TestApp) -> Self {
        migrate::seed(&app.owner_url, &migrate::Source::Demo).await.expect("demo data");
        app.owner.batch_execute(REST_OF_CAST).await.expect("the rest of the cast");
        app.owner
            .batch_execute("update private.app_settings set value = '100000' where key = 'rate_limit_factor'")
            .await
            .expect("no limits");
        let upload =
            app.service().request(Method::POST, "/storage/v1/object/request-documents/demo-req-001/letter.pdf");
        let stored = send(upload.header("content-type", "application/pdf").body(IN_FILE)).await;
        assert_eq!(stored.status, 200, "{}", stored.body);
        app.owner
            .batch_execute(
                "insert into public.request_documents (id, request_id, name, path, mime_type, size_bytes)
                 values ('demo-doc', 'demo-req-001', 'kestrel-of-the-victim', 'demo-req-001/letter.pdf', 'application/pdf', 30)",
            )
            .await
            .expect("a document");
        let stranger = app.user("stranger@elsewhere.example").await;
        let input = json!({ "name": "Of the stranger", "legal_status": "charity", "registration_number": "9",
            "employee_count": "1", "mission": "To look around" });
        let made = stranger.actor.post("/rest/v1/rpc/create_organization", json!({ "input": input })).await;
        let organization = made.body["id"].as_str().unwrap_or_else(|| panic!("{}", made.body)).to_owned();
        let mut world = Self { app, stranger, organization, marks: Vec::new(), rows: Rows::new(), tried: 0 };
        world.marks = world.find_marks().await;
        assert!(world.marks.len() > 40, "{:?}", world.marks);
        world.rows = world.read_rows().await;
        assert!(world.rows.len() > 300, "{} rows", world.rows.len());
        world
    }

    /// The attackers: with an account, and with only the public key.
    pub fn attackers(&self) -> [(&'static str, Actor<'a>); 2] {
        [("stranger", self.stranger.actor.clone()), ("anon", self.app.anon())]
    }

    /// Data that only the victims have: account ids, addresses, names, words.
    async fn find_marks(&self) -> Vec<String> {
        let statement = "
            select distinct m from (
              select id::text from auth.users where email like '%@demo.aidbridge.test' union all
              select email from auth.users where email like '%@demo.aidbridge.test' union all
              select phone from auth.users union all
              select raw_user_meta_data ->> 'full_name' from auth.users where email like '%@demo.aidbridge.test' union all
              select raw_user_meta_data ->> 'phone' from auth.users where email like '%@demo.aidbridge.test' union all
              select left(bio, 40) from public.profiles union all select id_number from public.profile_identities union all
              select left(description, 40) from public.requests union all select address from public.requests union all
              select left(pending_notes, 40) from public.requests union all select left(denial_reason, 40) from public.requests union all
              select email from public.requests union all select phone from public.requests union all
              select left(note, 40) from public.request_events union all
              select left(message, 40) from public.notifications union all
              select email from public.nonprofit_team_members where nonprofit_id like 'np-%' union all
              select full_name from public.nonprofit_team_members where nonprofit_id like 'np-%' union all
              select donor_name from public.donations union all select donor_email from public.donations union all
              select left(message, 40) from public.donor_messages union all select left(message, 40) from public.donor_message_replies union all
              select left(encrypted_password, 60) from auth.users where email like '%@demo.aidbridge.test' union all
              select 'kestrel-of-the-victim'
            ) t (m) where length(m) >= 7 and m not like '%elsewhere.example%' and m <> 'Of the stranger'";
        let rows = self.app.owner.query(statement, &[]).await.expect("marks");
        rows.iter().map(|row| row.get::<_, String>(0)).collect()
    }

    async fn read_rows(&self) -> Rows {
        let tables = self
            .app
            .owner
            .query(
                "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where c.relkind = 'r' and n.nspname in ('public', 'private', 'auth', 'storage', 'vault')",
                &[],
            )
            .await
            .expect("tables");
        let mut rows = Rows::new();
        for table in tables {
            let table: String = table.get(0);
            if COUNTERS.contains(&table.as_str()) {
                continue;
            }
            let statement = format!(
                "select t::text from {table} t where t::text not like '%' || $1 || '%' and t::text not like '%' || $2 || '%'"
            );
            for row in self.app.owner.query(&statement, &[&self.stranger.id, &self.organization]).await.expect("rows") {
                *rows.entry((table.clone(), row.get(0))).or_default() += 1;
            }
        }
        rows
    }

    /// The victims' data in a text.
    pub fn marks_in(&self, text: &str) -> Vec<&str> {
        self.marks.iter().map(String::as_str).filter(|mark| text.contains(mark)).collect()
    }

    /// Asserts that the answer contains none of the victims' data.
    pub fn tells_nothing(&mut self, what: &str, reply: &Reply) {
        self.tried += 1;
        let mut text = reply.body.to_string();
        // JSON inside a JSON string.
        if let Value::String(inner) = &reply.body {
            text.push_str(inner);
        }
        for (name, value) in &reply.headers {
            text.push_str(&format!("\n{name}: {}", String::from_utf8_lossy(value.as_bytes())));
        }
        if let Some(mark) = self.marks.iter().find(|mark| text.contains(mark.as_str())) {
            panic!("{what} tells '{mark}': {} {text}", reply.status);
        }
        assert!(reply.status < 500, "{what}: {} {text}", reply.status);
    }

    /// Asserts that no row of the victims was changed, removed or added, except in the tables `touched` by design.
    pub async fn nothing_changed(&mut self, what: &str, touched: &[&str]) {
        let now = self.read_rows().await;
        let mut faults = BTreeSet::new();
        for (row, count) in &self.rows {
            if !touched.contains(&row.0.as_str()) && now.get(row).copied().unwrap_or(0) < *count {
                faults.insert(format!("{} lost {}", row.0, row.1));
            }
        }
        for (row, count) in &now {
            let is_new = self.rows.get(row).copied().unwrap_or(0) < *count;
            if is_new && !touched.contains(&row.0.as_str()) && self.marks.iter().any(|mark| row.1.contains(mark)) {
                faults.insert(format!("{} gained {}", row.0, row.1));
            }
        }
        assert!(faults.is_empty(), "{what} changed what is the victims':\n{faults:#?}");
        self.rows = now;
    }
}

/// The checks detect what they should: an answer with a victim's row, and a changed row.
#[actix_web::test]
async fn leaks_and_changes_are_detected() {
    let app = TestApp::with_settings(&ALL_ON).await;
    let world = World::new(&app).await;
    let told = app.service().get("/rest/v1/requests?select=description&id=eq.demo-req-001").await;
    assert_eq!(told.status, 200);
    let text = told.body.to_string();
    assert!(world.marks.iter().any(|mark| text.contains(mark.as_str())), "{text}");
    for (change, undone) in [
        ("update public.profiles set bio = 'taken' where id = 'de300000-0000-4000-8000-000000000001'", "bio"),
        ("delete from public.saved_replies where nonprofit_id = 'np-001'", "saved_replies"),
    ] {
        app.owner.batch_execute("begin").await.expect("begun");
        app.owner.batch_execute(change).await.expect(change);
        let now = world.read_rows().await;
        app.owner.batch_execute("rollback").await.expect("undone");
        assert!(world.rows.iter().any(|(row, count)| now.get(row).copied().unwrap_or(0) < *count), "{undone} is seen");
    }
}
