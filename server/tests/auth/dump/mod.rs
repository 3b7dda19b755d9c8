//! Projects that move here with pg_dump: their rows in our schema, and a whole database created by Supabase Auth.

use serde_json::json;

use crate::auth::import::{counted_token, holder};
use crate::auth::sessions::refresh;
use crate::auth::text;
use crate::auth::tokens::{claims_of, signed};
use crate::support::TestApp;
use crate::support::dump::restore;

const BEFORE: &str = include_str!("before.sql");
const ROWS: &str = include_str!("rows.sql");
const AFTER: &str = include_str!("after.sql");

/// These tests use tokens that were revoked long ago, so cleanup is off.
const SETTINGS: [(&str, &str); 3] = [
    ("GOTRUE_EXTERNAL_PHONE_ENABLED", "true"),
    ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
    ("GOTRUE_DB_CLEANUP_ENABLED", "false"),
];

/// The ids in `rows.sql`: users have ids below 100, the session of user `n` has `200 + n`.
fn id(number: u32) -> String {
    format!("{number:08}-0000-4000-8000-{number:012}")
}

/// Asserts that the users in the dump can continue as before.
async fn everybody_goes_on(app: &TestApp) {
    everybody_signs_in(app).await;
    sessions_go_on(app).await;
    factors_prove_themselves(app).await;
    what_was_pending_is_met(app).await;
    let list = app.service().get("/auth/v1/admin/users?page=1&per_page=50").await;
    assert_eq!((list.status, list.header("x-total-count")), (200, "10"), "{}", list.body);
    let google = app.service().get(&format!("/auth/v1/admin/users/{}", id(4))).await.body;
    assert_eq!((text(&google["identities"][0], "id"), text(&google, "email")), ("117", "google@old.example"));
}

async fn everybody_signs_in(app: &TestApp) {
    let sign_in = async |name: &str, value: &str, password: &str| {
        app.anon().post("/auth/v1/token?grant_type=password", json!({ name: value, "password": password })).await
    };
    for (number, name, value, password) in [
        (1, "email", "bcrypt@old.example", "old-Password-1"),
        (2, "email", "argon@old.example", "old-Password-2"),
        (3, "phone", "15550001234", "old-Password-1"),
        // A manually inserted user, with NULL in every nullable column.
        (7, "email", "seeded@old.example", "old-Password-1"),
    ] {
        let reply = sign_in(name, value, password).await;
        assert_eq!((reply.status, &reply.body["user"]["id"]), (200, &json!(id(number))), "{}", reply.body);
        assert_eq!(sign_in(name, value, "not-Their-Password").await.status, 400, "{value}");
    }
    let banned = sign_in("email", "banned@old.example", "old-Password-1").await;
    assert_eq!(text(&banned.body, "error_code"), "user_banned");
}

async fn sessions_go_on(app: &TestApp) {
    // The parent of the current token is accepted, because the answer with the current one may have been lost.
    let again = refresh(app, "aaaaaaaaaaa2").await;
    assert_eq!((again.status, text(&again.body, "refresh_token")), (200, "aaaaaaaaaaa3"), "{}", again.body);
    let reply = refresh(app, "aaaaaaaaaaa3").await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let claims = claims_of(text(&reply.body, "access_token"));
    assert_eq!((text(&claims, "session_id"), text(&claims, "sub")), (id(201).as_str(), id(1).as_str()));
    assert_eq!(claims["amr"][0]["method"], "password");
    let newest: i64 = app
        .owner
        .query_one("select id from auth.refresh_tokens where token = $1", &[&text(&reply.body, "refresh_token")])
        .await
        .expect("the new token")
        .get(0);
    assert!(newest > 46, "{newest}: the sequence goes on");

    // Counted tokens, signed with the session's key: the current one, the previous one, the next.
    let session = id(204);
    for (counter, next) in [(6, 7), (6, 7), (7, 8)] {
        let reply = refresh(app, &counted_token(&session, counter, &[9; 32])).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(text(&reply.body, "refresh_token"), counted_token(&session, next, &[9; 32]));
    }
    let nobody = refresh(app, "ddddddddddd2").await;
    assert_eq!((nobody.status, &nobody.body["user"]["is_anonymous"]), (200, &json!(true)), "{}", nobody.body);
    assert_eq!(text(&refresh(app, "ccccccccccc2").await.body, "error_code"), "user_banned");
}

async fn factors_prove_themselves(app: &TestApp) {
    let raised = refresh(app, "bbbbbbbbbbb2").await;
    assert_eq!(raised.status, 200, "{}", raised.body);
    let claims = claims_of(text(&raised.body, "access_token"));
    assert_eq!((text(&claims, "aal"), claims["amr"].as_array().map(Vec::len)), ("aal2", Some(2)), "{claims}");

    // An existing access token, signed with the same secret.
    let claims = json!({ "sub": id(2), "aud": "authenticated", "role": "authenticated", "aal": "aal2",
        "exp": chrono::Utc::now().timestamp() + 600, "session_id": id(202) });
    let old = signed(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, ferrobase::config::DEVELOPMENT_JWT_SECRET);
    let me = holder(app, &old).get("/auth/v1/user").await;
    assert_eq!((me.status, text(&me.body["factors"][0], "status")), (200, "verified"), "{}", me.body);

    let body = json!({ "email": "argon@old.example", "password": "old-Password-2" });
    let signed_in = app.anon().post("/auth/v1/token?grant_type=password", body).await.body;
    assert_eq!(claims_of(text(&signed_in, "access_token"))["aal"], "aal1");
    let factor = crate::auth::factors::Totp { id: id(301), secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ".to_owned() };
    let raised = factor.raise(&holder(app, text(&signed_in, "access_token"))).await;
    assert_eq!(claims_of(text(&raised, "access_token"))["aal"], "aal2");
}

async fn what_was_pending_is_met(app: &TestApp) {
    let late = json!({ "type": "signup", "email": "waiting@old.example", "token": "123456" });
    let reply = app.anon().post("/auth/v1/verify", late.clone()).await;
    assert_eq!(text(&reply.body, "error_code"), "otp_expired", "it was mailed long ago");
    app.owner
        .execute("update auth.users set confirmation_sent_at = now() where email = 'waiting@old.example'", &[])
        .await
        .expect("as if it had been mailed just now");
    let reply = app.anon().post("/auth/v1/verify", late).await;
    assert_eq!((reply.status, &reply.body["user"]["id"]), (200, &json!(id(5))), "{}", reply.body);
}

#[actix_web::test]
async fn rows_of_a_dump_can_be_loaded_into_our_schema() {
    let app = TestApp::with_settings(&SETTINGS).await;
    restore(&app.owner, ROWS).await;
    everybody_goes_on(&app).await;
}

#[actix_web::test]
async fn a_database_of_supabase_auth_is_upgraded() {
    let made = TestApp::with_settings(&SETTINGS).await;
    made.owner.batch_execute("drop schema auth cascade").await.expect("nothing of ours is left");
    for part in [BEFORE, ROWS, AFTER] {
        restore(&made.owner, part).await;
    }
    ferrobase::migrate::auth(&made.auth_url).await.expect("it is brought up to date");
    let app = made.another(&SETTINGS).await;
    everybody_goes_on(&app).await;

    let newcomer = json!({ "email": "new@old.example", "password": "new-Password-1" });
    let reply = app.anon().post("/auth/v1/signup", newcomer).await;
    assert_eq!(reply.status, 200, "newcomers come in: {}", reply.body);
    let gone = app.service().delete(&format!("/auth/v1/admin/users/{}", id(2))).await;
    assert_eq!(gone.status, 200, "{}", gone.body);
    let left: i64 = app
        .owner
        .query_one(
            "select (select count(*) from auth.sessions where user_id::text = $1)
                + (select count(*) from auth.mfa_factors where user_id::text = $1)
                + (select count(*) from auth.refresh_tokens where user_id = $1)",
            &[&id(2)],
        )
        .await
        .expect("count")
        .get(0);
    assert_eq!(left, 0, "the references of the old schema clear up behind a user");
}
