//! A project that moves here: users with old passwords, live sessions, rows as seeds and dumps have them.

use crate::support::TestApp;
use crate::text;
use serde_json::json;

/// Rows of a dump in Supabase's shape. Passwords: bcrypt as `$2y$`, argon2id; token columns missing or NULL.
const DUMP: &str = r#"
    insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data,
      raw_user_meta_data, created_at, updated_at) values
    ('00000000-0000-0000-0000-000000000000', '11111111-1111-4111-8111-111111111111', 'authenticated', 'authenticated',
     'bcrypt@test.example', '$BCRYPT', now(), '{"provider":"email","providers":["email"]}', '{}', now(), now()),
    ('00000000-0000-0000-0000-000000000000', '22222222-2222-4222-8222-222222222222', 'authenticated', 'authenticated',
     'argon@test.example', '$ARGON', now(), null, null, null, null),
    (null, '33333333-3333-4333-8333-333333333333', 'authenticated', 'authenticated',
     'unseen@test.example', '$BCRYPT', now(), '{}', '{}', now(), now());
    insert into auth.identities (provider_id, user_id, identity_data, provider, created_at) values
    ('11111111-1111-4111-8111-111111111111', '11111111-1111-4111-8111-111111111111',
     '{"sub":"11111111-1111-4111-8111-111111111111","email":"bcrypt@test.example"}', 'email', now());
    insert into auth.sessions (id, user_id, created_at, updated_at, aal) values
    ('44444444-4444-4444-8444-444444444444', '11111111-1111-4111-8111-111111111111', now(), now(), 'aal1');
    insert into auth.mfa_amr_claims (id, session_id, created_at, updated_at, authentication_method) values
    (gen_random_uuid(), '44444444-4444-4444-8444-444444444444', now(), now(), 'password');
    insert into auth.refresh_tokens (instance_id, id, token, user_id, revoked, created_at, updated_at, session_id) values
    ('00000000-0000-0000-0000-000000000000', 900, 'AbCdEfGhIjKlMnOpQrStUv', '11111111-1111-4111-8111-111111111111', false,
     now(), now(), '44444444-4444-4444-8444-444444444444'),
    ('00000000-0000-0000-0000-000000000000', 901, 'abcdefghijk2', '11111111-1111-4111-8111-111111111111', false,
     now(), now(), '44444444-4444-4444-8444-444444444444');
    select setval('auth.refresh_tokens_id_seq', 901);
"#;

fn dump() -> String {
    let bcrypt = bcrypt::hash("old-Password-1", 4).expect("hash").replacen("$2b$", "$2y$", 1);
    let argon = {
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::STANDARD_NO_PAD;
        let params = argon2::Params::new(256, 2, 1, Some(32)).expect("params");
        let argon = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        let mut hash = [0; 32];
        argon.hash_password_into(b"old-Password-2", b"some-salt-bytes!", &mut hash).expect("hash");
        format!("$argon2id$v=19$m=256,t=2,p=1${}${}", engine.encode("some-salt-bytes!"), engine.encode(hash))
    };
    DUMP.replace("$BCRYPT", &bcrypt).replace("$ARGON", &argon)
}

#[actix_web::test]
async fn users_sign_in_with_their_old_passwords_and_sessions_go_on() {
    let app = TestApp::start().await;
    app.owner.batch_execute(&dump()).await.expect("dump");
    for (email, password) in [("bcrypt@test.example", "old-Password-1"), ("argon@test.example", "old-Password-2")] {
        let body = json!({ "email": email, "password": password });
        let reply = app.anon().post("/auth/v1/token?grant_type=password", body).await;
        assert_eq!(reply.status, 200, "{email}: {}", reply.body);
        assert!(reply.body["user"]["user_metadata"].is_object());
        let body = json!({ "email": email, "password": "not-Their-Password" });
        assert_eq!(app.anon().post("/auth/v1/token?grant_type=password", body).await.status, 400);
    }
    let refreshed =
        app.anon().post("/auth/v1/token?grant_type=refresh_token", json!({ "refresh_token": "abcdefghijk2" })).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.body);
    assert_eq!(text(&refreshed.body["user"], "email"), "bcrypt@test.example");
    let body = json!({ "email": "unseen@test.example", "password": "old-Password-1" });
    assert_eq!(app.anon().post("/auth/v1/token?grant_type=password", body).await.status, 400, "no instance, no user");
}

#[actix_web::test]
async fn rows_with_nulls_are_read_and_listed() {
    let app = TestApp::start().await;
    app.owner.batch_execute(&dump()).await.expect("dump");
    let list = app.service().get("/auth/v1/admin/users?page=1&per_page=2").await;
    assert_eq!((list.status, list.header("x-total-count")), (200, "2"));
    let reply = app.service().get("/auth/v1/admin/users/22222222-2222-4222-8222-222222222222").await;
    assert_eq!((reply.status, &reply.body["identities"]), (200, &json!([])));
    let deleted = app.service().delete("/auth/v1/admin/users/11111111-1111-4111-8111-111111111111").await;
    assert_eq!(deleted.status, 200);
    let left: i64 = app
        .owner
        .query_one(
            "select (select count(*) from auth.sessions) + (select count(*) from auth.refresh_tokens)
            + (select count(*) from auth.identities)",
            &[],
        )
        .await
        .expect("count")
        .get(0);
    assert_eq!(left, 0, "a deleted user leaves no rows");
}

#[actix_web::test]
async fn migrating_again_changes_nothing() {
    let app = TestApp::start().await;
    let versions: i64 =
        app.owner.query_one("select count(*) from auth.schema_migrations", &[]).await.expect("count").get(0);
    app.owner
        .batch_execute("delete from auth.schema_migrations where version like 'ferrobase%'")
        .await
        .expect("forgotten");
    ferrobase::auth::migrate(&app.auth_url).await.expect("every file may run again");
    let again: i64 =
        app.owner.query_one("select count(*) from auth.schema_migrations", &[]).await.expect("count").get(0);
    assert_eq!(versions, again);
}
