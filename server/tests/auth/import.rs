//! Projects that move here: users with old passwords, live sessions, and rows as seeds and dumps contain them.

use crate::auth::text;
use crate::support::TestApp;
use serde_json::json;

/// Rows of a dump from Supabase. Passwords: bcrypt as `$2y$`, argon2id; token columns missing or NULL.
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

/// From the same dump: a session with counted tokens, one at aal2, and the factor that raised it.
const DUMP_OF_FACTORS: &str = r#"
    insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at, secret) values
    ('55555555-5555-4555-8555-555555555555', '22222222-2222-4222-8222-222222222222', 'phone app', 'totp', 'verified',
     now() - interval '30 days', now() - interval '30 days', 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
    insert into auth.sessions (id, user_id, created_at, updated_at, factor_id, aal, refreshed_at, user_agent, ip,
      refresh_token_hmac_key, refresh_token_counter) values
    ('66666666-6666-4666-8666-666666666666', '11111111-1111-4111-8111-111111111111', now(), now(), null, 'aal1', null, null,
     null, '$KEY', 6),
    ('77777777-7777-4777-8777-777777777777', '22222222-2222-4222-8222-222222222222', now(), now(),
     '55555555-5555-4555-8555-555555555555', 'aal2', now(), 'node', '192.0.2.7', null, null);
    insert into auth.mfa_amr_claims (id, session_id, created_at, updated_at, authentication_method) values
    (gen_random_uuid(), '66666666-6666-4666-8666-666666666666', now(), now(), 'password'),
    (gen_random_uuid(), '77777777-7777-4777-8777-777777777777', now(), now(), 'password'),
    (gen_random_uuid(), '77777777-7777-4777-8777-777777777777', now(), now(), 'totp');
    insert into auth.refresh_tokens (instance_id, id, token, user_id, revoked, created_at, updated_at, parent, session_id) values
    ('00000000-0000-0000-0000-000000000000', 902, 'aaaaaaaaaaaa', '22222222-2222-4222-8222-222222222222', true,
     now() - interval '1 hour', now() - interval '1 hour', null, '77777777-7777-4777-8777-777777777777'),
    ('00000000-0000-0000-0000-000000000000', 903, 'bbbbbbbbbbbb', '22222222-2222-4222-8222-222222222222', false,
     now(), now(), 'aaaaaaaaaaaa', '77777777-7777-4777-8777-777777777777');
    select setval('auth.refresh_tokens_id_seq', 903);
"#;

/// A token of the second format: version, session, counter as a varint, signature, checksum.
pub fn counted_token(session: &str, counter: u8, key: &[u8]) -> String {
    use base64::Engine as _;
    use hmac::{Hmac, Mac as _};
    use sha2::{Digest as _, Sha256};
    let mut bytes = vec![0];
    bytes.extend_from_slice(uuid::Uuid::parse_str(session).expect("uuid").as_bytes());
    bytes.push(counter);
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("key");
    mac.update(&bytes);
    bytes.extend_from_slice(&mac.finalize().into_bytes()[..16]);
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum[..4]);
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

pub fn holder<'a>(app: &'a TestApp, token: &str) -> crate::support::Actor<'a> {
    let mut actor = app.anon();
    actor.token = Some(token.to_owned());
    actor
}

#[actix_web::test]
async fn sessions_of_both_formats_continue_and_factors_work() {
    use base64::Engine as _;
    let app = TestApp::start().await;
    let key = [9_u8; 32];
    let sealed = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(key);
    app.owner.batch_execute(&dump()).await.expect("dump");
    app.owner.batch_execute(&DUMP_OF_FACTORS.replace("$KEY", &sealed)).await.expect("dump of factors");

    // An existing access token, signed with the same secret.
    let claims = json!({ "sub": "22222222-2222-4222-8222-222222222222", "aud": "authenticated", "role": "authenticated",
        "exp": chrono::Utc::now().timestamp() + 600, "session_id": "77777777-7777-4777-8777-777777777777", "aal": "aal2" });
    let header = json!({ "alg": "HS256", "typ": "JWT" });
    let old = crate::auth::tokens::signed(&header, &claims, ferrobase::config::DEVELOPMENT_JWT_SECRET);
    let me = holder(&app, &old).get("/auth/v1/user").await;
    assert_eq!((me.status, text(&me.body["factors"][0], "friendly_name")), (200, "phone app"), "{}", me.body);

    // Counted tokens: the current one and the previous one; then the stored ones of the aal2 session.
    let session = "66666666-6666-4666-8666-666666666666";
    for (counter, next) in [(6, 7), (6, 7), (7, 8)] {
        let token = counted_token(session, counter, &key);
        let reply = crate::auth::sessions::refresh(&app, &token).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(text(&reply.body, "refresh_token"), counted_token(session, next, &key));
    }
    let forged = crate::auth::sessions::refresh(&app, &counted_token(session, 8, &[8; 32])).await;
    assert_eq!(text(&forged.body, "error_code"), "refresh_token_not_found");
    // The parent of the current token is accepted, because the answer with the current one may have been lost.
    for token in ["aaaaaaaaaaaa", "bbbbbbbbbbbb"] {
        let reply = crate::auth::sessions::refresh(&app, token).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let claims = crate::auth::tokens::claims_of(text(&reply.body, "access_token"));
        assert_eq!(claims["aal"], "aal2");
        assert_eq!(claims["amr"].as_array().map(Vec::len), Some(2), "{claims}");
    }

    // The factor raises a new session.
    let body = json!({ "email": "argon@test.example", "password": "old-Password-2" });
    let signed_in = app.anon().post("/auth/v1/token?grant_type=password", body).await.body;
    let factor = crate::auth::factors::Totp {
        id: "55555555-5555-4555-8555-555555555555".to_owned(),
        secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ".to_owned(),
    };
    let raised = factor.raise(&holder(&app, text(&signed_in, "access_token"))).await;
    assert_eq!(crate::auth::tokens::claims_of(text(&raised, "access_token"))["aal"], "aal2");
    let identities = app.service().get("/auth/v1/admin/users/11111111-1111-4111-8111-111111111111").await;
    assert_eq!(identities.body["identities"][0]["provider"], "email");
}

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
async fn users_sign_in_with_old_passwords_and_sessions_continue() {
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
    ferrobase::migrate::auth(&app.auth_url).await.expect("every file may run again");
    let again: i64 =
        app.owner.query_one("select count(*) from auth.schema_migrations", &[]).await.expect("count").get(0);
    assert_eq!(versions, again);
}

/// The tables of 2018, which Supabase's PostgreSQL image creates before the first start of Supabase Auth.
const OF_2018: &str = "
    drop schema auth cascade;
    create schema auth authorization supabase_auth_admin;
    set role supabase_auth_admin;
    create table auth.users (
      instance_id uuid, id uuid not null unique, aud varchar(255), role varchar(255), email varchar(255) unique,
      encrypted_password varchar(255), confirmed_at timestamptz, invited_at timestamptz,
      confirmation_token varchar(255), confirmation_sent_at timestamptz, recovery_token varchar(255),
      recovery_sent_at timestamptz, email_change_token varchar(255), email_change varchar(255),
      email_change_sent_at timestamptz, last_sign_in_at timestamptz, raw_app_meta_data jsonb, raw_user_meta_data jsonb,
      is_super_admin bool, created_at timestamptz, updated_at timestamptz, constraint users_pkey primary key (id));
    create index users_instance_id_email_idx on auth.users (instance_id, email);
    create index users_instance_id_idx on auth.users (instance_id);
    create table auth.refresh_tokens (
      instance_id uuid, id bigserial not null, token varchar(255), user_id varchar(255), revoked bool,
      created_at timestamptz, updated_at timestamptz, constraint refresh_tokens_pkey primary key (id));
    create index refresh_tokens_token_idx on auth.refresh_tokens (token);
    create table auth.instances (id uuid not null constraint instances_pkey primary key, uuid uuid, raw_base_config text,
      created_at timestamptz, updated_at timestamptz);
    create table auth.audit_log_entries (instance_id uuid, id uuid not null constraint audit_log_entries_pkey primary key,
      payload json, created_at timestamptz);
    create table auth.schema_migrations (version varchar(255) not null constraint schema_migrations_pkey primary key);
    insert into auth.schema_migrations values ('20171026211738'), ('20180125194653');
    create function auth.uid() returns uuid language sql stable as
      $$ select nullif(current_setting('request.jwt.claim.sub', true), '')::uuid $$;
    insert into auth.users (instance_id, id, aud, role, email, encrypted_password, confirmed_at, created_at) values
      ('00000000-0000-0000-0000-000000000000', '11111111-1111-4111-8111-111111111111', 'authenticated', 'authenticated',
       'old@test.example', '$BCRYPT', now(), now());
    reset role;";

#[actix_web::test]
async fn the_schema_of_2018_is_upgraded() {
    let app = TestApp::start().await;
    let hash = bcrypt::hash("secret-of-2018", 4).expect("hash");
    app.owner.batch_execute(&OF_2018.replace("$BCRYPT", &hash)).await.expect("the tables of 2018");
    ferrobase::migrate::auth(&app.auth_url).await.expect("it is brought up to date");
    let app = app.another(&[]).await;
    let body = json!({ "email": "OLD@test.example", "password": "secret-of-2018" });
    let session = app.anon().post("/auth/v1/token?grant_type=password", body).await;
    assert_eq!(session.status, 200, "{}", session.body);
    assert!(session.body["user"]["email_confirmed_at"].is_string(), "{}", session.body);
    let body = json!({ "refresh_token": session.body["refresh_token"] });
    assert_eq!(app.anon().post("/auth/v1/token?grant_type=refresh_token", body).await.status, 200);
    let added = app.user("new@test.example").await;
    assert_eq!(added.actor.post("/auth/v1/logout", json!({})).await.status, 204);
    let living = "select count(*) from auth.refresh_tokens t join auth.sessions s on s.id = t.session_id";
    assert_eq!(
        app.owner.query_one(living, &[]).await.expect("tokens").get::<_, i64>(0),
        2,
        "they end with their session"
    );
}
