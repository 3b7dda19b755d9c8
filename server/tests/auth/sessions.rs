//! Sessions: refreshing, replay, and their end.

use crate::auth::{hash_of, meanwhile, meet, take_mail, text, until_waiting};
use crate::support::{PASSWORD, TestApp, send};
use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::{Value, json};

pub async fn sign_in(app: &TestApp, email: &str, password: &str) -> Value {
    let body = json!({ "email": email, "password": password });
    let reply = app.anon().post("/auth/v1/token?grant_type=password", body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

pub async fn refresh(app: &TestApp, token: &str) -> crate::support::Reply {
    app.anon().post("/auth/v1/token?grant_type=refresh_token", json!({ "refresh_token": token })).await
}

#[actix_web::test]
async fn a_hundred_refreshes_of_one_token_leave_one_token_family() {
    for version in ["1", "2"] {
        let app = TestApp::with_settings(&[
            ("GOTRUE_SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION", version),
            // Long, because this is a test of ordering and not of deadlines, even on a slow machine.
            ("GOTRUE_API_MAX_REQUEST_DURATION", "10m"),
            ("GOTRUE_DB_MAX_POOL_SIZE", "10"),
        ])
        .await;
        let user = app.user("ada@test.example").await;
        assert_eq!(user.actor.post("/auth/v1/logout", json!({})).await.status, 204);
        let session = sign_in(&app, "ada@test.example", PASSWORD).await;
        let token = text(&session, "refresh_token").to_owned();
        let replies = join_all((0..100).map(|_| refresh(&app, &token))).await;
        for reply in &replies {
            assert_eq!(reply.status, 200, "no request is refused: {}", reply.body);
        }
        let mut given: Vec<&str> = replies.iter().map(|reply| text(&reply.body, "refresh_token")).collect();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), 1, "all were given the same successor");
        // What remains: one session; of stored tokens, the successor; counted tokens are not stored.
        let row = app
            .owner
            .query_one(
                "select (select count(*) from auth.sessions), (select count(*) from auth.refresh_tokens),
                coalesce((select string_agg(token, ',') from auth.refresh_tokens where not revoked), ''),
                (select coalesce(max(refresh_token_counter), 0) from auth.sessions)",
                &[],
            )
            .await
            .expect("what is there");
        let seen: (i64, i64, String, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
        match version {
            "1" => assert_eq!(seen, (1, 2, given[0].to_owned(), 0)),
            _ => assert_eq!(seen, (1, 0, String::new(), 1)),
        }
        let next = refresh(&app, given[0]).await;
        assert_eq!(next.status, 200, "the next refresh works: {}", next.body);
    }
}

#[actix_web::test]
async fn refreshes_of_one_token_queue_without_timing_out() {
    let app = TestApp::with_settings(&[("GOTRUE_API_MAX_REQUEST_DURATION", "10m")]).await;
    app.user("ada@test.example").await;
    let token = text(&sign_in(&app, "ada@test.example", PASSWORD).await, "refresh_token").to_owned();
    // A database with slow writes: together, the refreshes need longer than a request may wait for another instance.
    app.owner
        .batch_execute(
            "create function public.slowly() returns trigger language plpgsql as
            $$ begin perform pg_sleep(0.4); return new; end $$;
            create trigger slowly before update on auth.sessions for each row execute function public.slowly()",
        )
        .await
        .expect("a trigger");
    let replies = join_all((0..20).map(|_| refresh(&app, &token))).await;
    for reply in &replies {
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
}

#[actix_web::test]
async fn refreshes_at_two_instances_stay_one_family() {
    let app = TestApp::start().await;
    let other = app.another(&[]).await;
    app.user("ada@test.example").await;
    let token = text(&sign_in(&app, "ada@test.example", PASSWORD).await, "refresh_token").to_owned();
    let instances = [&app, &other];
    let requests = join_all((0..20).map(|n| refresh(instances[n % 2], &token)));
    let replies = meet(&app, "select from auth.refresh_tokens", 2, requests).await;
    // A request that waits too long for the other instance gets a retryable error.
    let (taken, late): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert!(late.iter().all(|reply| reply.status == 409), "{late:?}");
    let mut given: Vec<&str> = taken.iter().map(|reply| text(&reply.body, "refresh_token")).collect();
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), 1, "{given:?}");
}

#[actix_web::test]
async fn a_token_used_or_deleted_concurrently_is_not_rotated() {
    for (what, statement, code, left) in [
        ("the family was revoked", "update auth.refresh_tokens set revoked = true", "refresh_token_already_used", 1),
        ("the token was taken away", "delete from auth.refresh_tokens", "refresh_token_not_found", 0),
        ("the session was ended", "delete from auth.sessions", "refresh_token_not_found", 0),
    ] {
        let app = TestApp::with_settings(&[("GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL", "0")]).await;
        app.user("ada@test.example").await;
        app.owner.batch_execute("delete from auth.sessions").await.expect("no session yet");
        let token = text(&sign_in(&app, "ada@test.example", PASSWORD).await, "refresh_token").to_owned();
        // The refresh reads a valid token whose row is locked, and checks it again once the other change is committed.
        let reply = meanwhile(&app, statement, 1, refresh(&app, &token)).await;
        assert_eq!((reply.status, text(&reply.body, "error_code")), (400, code), "{what}: {}", reply.body);
        let counts = "select (select count(*) from auth.refresh_tokens),
            (select count(*) from auth.refresh_tokens where not revoked),
            (select count(*) from auth.audit_log_entries where payload ->> 'action' in ('token_refreshed', 'token_revoked'))";
        let row = app.owner.query_one(counts, &[]).await.expect("counts");
        let seen: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(seen, (left, 0, 0), "{what}: nothing was issued, and nothing noted as if it were");
    }
}

#[actix_web::test]
async fn an_old_token_ends_its_family_even_if_sent_twice_at_once() {
    let app = TestApp::with_settings(&[("GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL", "0")]).await;
    app.user("ada@test.example").await;
    let first = text(&sign_in(&app, "ada@test.example", PASSWORD).await, "refresh_token").to_owned();
    let second = text(&refresh(&app, &first).await.body, "refresh_token").to_owned();
    let third = text(&refresh(&app, &second).await.body, "refresh_token").to_owned();
    let replays = join_all([&first, &first, &first].map(|token| refresh(&app, token))).await;
    for reply in &replays {
        assert_eq!(text(&reply.body, "error_code"), "refresh_token_already_used");
    }
    let thief = refresh(&app, &third).await;
    assert_eq!(text(&thief.body, "error_code"), "refresh_token_already_used", "the family is revoked");
}

#[actix_web::test]
async fn within_the_interval_a_revoked_family_stays_revoked() {
    let app = TestApp::with_settings(&[("GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL", "10")]).await;
    app.user("ada@test.example").await;
    let token = text(&sign_in(&app, "ada@test.example", PASSWORD).await, "refresh_token").to_owned();
    app.owner
        .batch_execute("update auth.refresh_tokens set revoked = true, updated_at = now()")
        .await
        .expect("revoked");
    assert_eq!(refresh(&app, &token).await.status, 400);
}

#[actix_web::test]
async fn logout_ends_its_scope_including_access_tokens() {
    let app = TestApp::start().await;
    app.user("ada@test.example").await;
    for (scope, survivors) in [("local", [false, true]), ("others", [true, false]), ("global", [false, false])] {
        let sessions =
            [sign_in(&app, "ada@test.example", PASSWORD).await, sign_in(&app, "ada@test.example", PASSWORD).await];
        let mut me = app.anon();
        me.token = Some(text(&sessions[0], "access_token").to_owned());
        let reply = me.post(&format!("/auth/v1/logout?scope={scope}"), json!({})).await;
        assert_eq!(reply.status, 204);
        for (session, survives) in sessions.iter().zip(survivors) {
            let mut actor = app.anon();
            actor.token = Some(text(session, "access_token").to_owned());
            let reply = actor.get("/auth/v1/user").await;
            assert_eq!(reply.status == 200, survives, "{scope}: {}", reply.body);
            if !survives {
                assert_eq!((reply.status, text(&reply.body, "error_code")), (403, "session_not_found"));
            }
            assert_eq!(refresh(&app, text(session, "refresh_token")).await.status == 200, survives, "{scope}");
        }
    }
}

#[actix_web::test]
async fn a_new_password_ends_other_sessions_and_an_administrators_ends_all() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let other = sign_in(&app, "ada@test.example", PASSWORD).await;
    let reply = user.actor.put("/auth/v1/user", json!({ "password": "another-Horse-8" })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(user.actor.get("/auth/v1/user").await.status, 200, "the own session stays");
    assert_eq!(refresh(&app, text(&other, "refresh_token")).await.status, 400);
    let path = format!("/auth/v1/admin/users/{}", user.id);
    assert_eq!(app.service().put(&path, json!({ "password": "third-Horse-9" })).await.status, 200);
    assert_eq!(user.actor.get("/auth/v1/user").await.status, 403);
}

/// The sign-ins have compared the password and wait for the account's row behind the change.
#[actix_web::test]
async fn a_sign_in_under_way_is_refused_after_a_new_password_a_ban_or_a_soft_deletion() {
    for (change, code, left) in
        [("password", "invalid_credentials", 1), ("ban", "user_banned", 1), ("deletion", "invalid_credentials", 0)]
    {
        let app = TestApp::start().await;
        let user = app.user("ada@test.example").await;
        let path = format!("/auth/v1/admin/users/{}", user.id);
        let service = app.service();
        let changing = async {
            match change {
                "password" => user.actor.put("/auth/v1/user", json!({ "password": "another-Horse-8" })).await,
                "ban" => service.put(&path, json!({ "ban_duration": "24h" })).await,
                _ => send(service.request(Method::DELETE, &path).json(&json!({ "should_soft_delete": true }))).await,
            }
        };
        let signing_in = async {
            until_waiting(&app, 1).await;
            let body = json!({ "email": "ada@test.example", "password": PASSWORD });
            join_all(
                (0..4).map(|_| async { app.anon().post("/auth/v1/token?grant_type=password", body.clone()).await }),
            )
            .await
        };
        let (changed, replies) = meet(&app, "select from auth.users", 5, join(changing, signing_in)).await;
        assert_eq!(changed.status, 200, "{change}: {}", changed.body);
        for reply in replies {
            assert_eq!((reply.status, text(&reply.body, "error_code")), (400, code), "{change}: {}", reply.body);
        }
        let sessions = app.owner.query_one("select count(*) from auth.sessions", &[]).await.expect("a number");
        assert_eq!(sessions.get::<_, i64>(0), left, "{change}");
    }
}

#[actix_web::test]
async fn sealing_a_hash_anew_neither_refuses_a_sign_in_nor_restores_a_former_password() {
    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    let plain = TestApp::start().await;
    plain.user("ada@test.example").await;
    let sealing = plain
        .another(&[
            ("GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPT", "true"),
            ("GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPTION_KEY_ID", "now"),
            ("GOTRUE_SECURITY_DATABASE_ENCRYPTION_ENCRYPTION_KEY", KEY),
            ("GOTRUE_SECURITY_DATABASE_ENCRYPTION_DECRYPTION_KEYS", &format!("now:{KEY}")),
        ])
        .await;
    let stored = "select encrypted_password from auth.users";
    let hash: String = plain.owner.query_one(stored, &[]).await.expect("a hash").get(0);
    let signing_in = join_all((0..3).map(|_| sign_in(&sealing, "ada@test.example", PASSWORD)));
    meet(&plain, "select from auth.users", 3, signing_in).await;
    let set = format!("update auth.users set encrypted_password = '{hash}'");
    plain.owner.batch_execute(&set).await.expect("not sealed");
    let body = json!({ "email": "ada@test.example", "password": PASSWORD });
    let signing_in = async { sealing.anon().post("/auth/v1/token?grant_type=password", body).await };
    let reply = meanwhile(&plain, "update auth.users set encrypted_password = 'another'", 1, signing_in).await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "invalid_credentials"), "{}", reply.body);
    assert_eq!(plain.owner.query_one(stored, &[]).await.expect("a hash").get::<_, &str>(0), "another");
}

#[actix_web::test]
async fn a_ban_ends_access_at_once_and_refreshing_too() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let session = sign_in(&app, "ada@test.example", PASSWORD).await;
    let path = format!("/auth/v1/admin/users/{}", user.id);
    assert_eq!(app.service().put(&path, json!({ "ban_duration": "24h" })).await.status, 200);
    let reply = user.actor.get("/auth/v1/user").await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (403, "user_banned"));
    assert_eq!(text(&refresh(&app, text(&session, "refresh_token")).await.body, "error_code"), "user_banned");
    app.service().put(&path, json!({ "ban_duration": "none" })).await;
    assert_eq!(user.actor.get("/auth/v1/user").await.status, 200);
}

#[actix_web::test]
async fn with_a_second_factor_aal1_cannot_change_credentials() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    app.owner
        .batch_execute(
            "insert into auth.mfa_factors (id, user_id, factor_type, status, created_at, updated_at, secret)
            select gen_random_uuid(), id, 'totp', 'verified', now(), now(), 'x' from auth.users
            where email = 'ada@test.example'",
        )
        .await
        .expect("a factor");
    for change in [json!({ "password": "another-Horse-8" }), json!({ "email": "x@test.example" })] {
        let reply = user.actor.put("/auth/v1/user", change).await;
        assert_eq!((reply.status, text(&reply.body, "error_code")), (401, "insufficient_aal"));
    }
    assert_eq!(user.actor.put("/auth/v1/user", json!({ "data": { "a": 1 } })).await.status, 200);
}

#[actix_web::test]
async fn banned_users_cannot_sign_in_by_any_flow() {
    let settings = [
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
        ("GOTRUE_MAILER_SUBJECTS_RECOVERY", "{{ .Token }}"),
        ("GOTRUE_MAILER_SUBJECTS_MAGIC_LINK", "{{ .Token }}"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": true });
    app.service().post("/auth/v1/admin/users", body).await;
    let session = sign_in(&app, "ada@test.example", PASSWORD).await;
    let verifier = "a-verifier-that-is-long-enough-for-the-rules-0123456789";
    let body = json!({ "email": "ada@test.example", "code_challenge": verifier, "code_challenge_method": "plain" });
    app.anon().post("/auth/v1/otp", body).await;
    let link = crate::auth::take_link(&app, "ada@test.example").await;
    let followed = app.plain(reqwest::Method::GET, &link[link.find("/auth/v1").expect("a path")..]);
    let followed = crate::support::send(followed).await;
    let auth_code = followed.header("location").split_once("code=").expect("a code").1.to_owned();
    app.anon().post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await;
    let (_, mail) = take_mail(&app, "ada@test.example").await.expect("a mail");
    let hash = hash_of(mail.split_whitespace().find(|word| word.contains("/verify?")).expect("a link"));
    app.owner.batch_execute("update auth.users set banned_until = now() + interval '1 hour'").await.expect("banned");
    let by_auth_code = json!({ "auth_code": auth_code, "code_verifier": verifier });
    let mut ada = app.anon();
    ada.token = Some(text(&session, "access_token").to_owned());
    let by_link = json!({ "type": "recovery", "token_hash": hash });
    let by_password = json!({ "email": "ada@test.example", "password": PASSWORD });
    for (what, reply) in [
        ("an access token", ada.get("/auth/v1/user").await),
        ("a second factor", ada.post("/auth/v1/factors", json!({ "factor_type": "totp" })).await),
        ("a refresh token", refresh(&app, text(&session, "refresh_token")).await),
        ("a password", app.anon().post("/auth/v1/token?grant_type=password", by_password).await),
        ("a link", app.anon().post("/auth/v1/verify", by_link).await),
        ("an auth code", app.anon().post("/auth/v1/token?grant_type=pkce", by_auth_code).await),
    ] {
        assert!(matches!(reply.status, 400 | 403), "{what}: {}", reply.body);
        assert_eq!(text(&reply.body, "error_code"), "user_banned", "{what}");
    }
    // A code that was sent anyway is refused too.
    app.anon().post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await;
    let (code, _) = take_mail(&app, "ada@test.example").await.expect("a mail");
    let by_code = json!({ "type": "recovery", "email": "ada@test.example", "token": code });
    let reply = app.anon().post("/auth/v1/verify", by_code).await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (403, "user_banned"));
}
