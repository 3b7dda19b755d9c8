//! Refreshes that are written as a batch: a problem of one must not affect the others.

use crate::auth::sessions::{refresh, sign_in};
use crate::auth::text;
use crate::support::{PASSWORD, TestApp};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::Value;

/// Signs up and signs in `count` people, a few at a time, because a slow machine hashes few passwords before requests
/// time out. Returns their sessions.
async fn people(app: &TestApp, count: usize) -> Vec<Value> {
    let sessions = futures_util::stream::iter(0..count)
        .map(async |number| {
            let email = format!("person{number}@test.example");
            app.user(&email).await;
            sign_in(app, &email, PASSWORD).await
        })
        .buffered(3)
        .collect()
        .await;
    app.owner.batch_execute("delete from auth.audit_log_entries").await.expect("an empty log");
    sessions
}

fn token(session: &Value) -> &str {
    text(session, "refresh_token")
}

/// Refreshes all sessions at once. The person `odd` gets 500, everybody else 200.
async fn all_but_one_go_on(app: &TestApp, sessions: &[Value], odd: &str) {
    let replies = join_all(sessions.iter().map(|session| refresh(app, token(session)))).await;
    for (session, reply) in sessions.iter().zip(&replies) {
        let expected = if text(&session["user"], "id") == odd { 500 } else { 200 };
        assert_eq!(reply.status, expected, "{}", reply.body);
    }
}

/// Makes each refresh slow.
async fn slow_down(app: &TestApp) {
    app.owner
        .batch_execute(
            "create function public.slowly() returns trigger language plpgsql as
            $$ begin perform pg_sleep(0.5); return new; end $$;
            create trigger slowly before update on auth.sessions for each row execute function public.slowly()",
        )
        .await
        .expect("a trigger");
}

/// Waits until a refresh is being written in a database slowed by [`slow_down`].
async fn begun(app: &TestApp) {
    let asleep =
        "select count(*) > 0 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
    while !app.owner.query_one(asleep, &[]).await.expect("who sleeps").get::<_, bool>(0) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[actix_web::test]
async fn concurrent_refreshes_each_get_their_own_tokens() {
    let app = TestApp::start().await;
    let sessions = people(&app, 40).await;
    let replies = join_all(sessions.iter().map(|session| refresh(&app, token(session)))).await;
    let mut successors = std::collections::BTreeSet::new();
    for (session, reply) in sessions.iter().zip(&replies) {
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.body["user"]["email"], session["user"]["email"]);
        assert!(successors.insert(token(&reply.body)), "no two are given the same");
        let row = app
            .owner
            .query_one(
                "select s.user_id::text = $2 and new.user_id = $2 and new.parent = old.token and old.revoked and not new.revoked
                    and s.refreshed_at is not null and s.ip = '127.0.0.1',
                    (select string_agg(payload ->> 'action', ' ' order by created_at) from auth.audit_log_entries
                        where payload ->> 'actor_id' = $2)
                from auth.refresh_tokens old, auth.refresh_tokens new join auth.sessions s on s.id = new.session_id
                where old.token = $1 and new.token = $3 and old.session_id = new.session_id",
                &[&token(session), &text(&session["user"], "id"), &token(&reply.body)],
            )
            .await
            .expect("both tokens in one session");
        assert_eq!(row.get::<_, Option<bool>>(0), Some(true), "{}", reply.body);
        assert_eq!(row.get::<_, String>(1), "token_refreshed token_revoked", "in this order");
    }
}

#[actix_web::test]
async fn a_blocked_refresh_does_not_delay_others() {
    let app = TestApp::start().await;
    let sessions = people(&app, 2).await;
    let hold =
        format!("begin; select from auth.sessions where user_id = '{}' for update", text(&sessions[0]["user"], "id"));
    app.owner.batch_execute(&hold).await.expect("a session is held");
    let held = async {
        let reply = refresh(&app, token(&sessions[0])).await;
        assert_eq!(reply.status, 200, "once it is free: {}", reply.body);
    };
    let free = async {
        // Together with the blocked one, before it and after it.
        let mut session = sessions[1].clone();
        for _ in 0..3 {
            let reply = refresh(&app, token(&session)).await;
            assert_eq!(reply.status, 200, "while the other is held: {}", reply.body);
            session = reply.body;
        }
        app.owner.batch_execute("commit").await.expect("the session is free");
    };
    futures_util::join!(held, free);
}

#[actix_web::test]
async fn a_failing_refresh_does_not_affect_others() {
    let app = TestApp::start().await;
    let sessions = people(&app, 10).await;
    let unlucky = text(&sessions[3]["user"], "id");
    app.owner
        .batch_execute(&format!(
            "create function public.refuse() returns trigger language plpgsql as
            $$ begin if new.user_id = '{unlucky}' then raise exception 'not this one'; end if; return new; end $$;
            create trigger refuse before update on auth.sessions for each row execute function public.refuse()"
        ))
        .await
        .expect("a trigger");
    all_but_one_go_on(&app, &sessions, unlucky).await;
}

#[actix_web::test]
async fn audit_entries_are_the_same_on_both_paths() {
    let app = TestApp::start().await;
    let sessions = people(&app, 4).await;
    for (session, change) in sessions.iter().zip([
        "raw_user_meta_data = '{\"full_name\": \"Ada \\\"Countess\\\" Lovelace\"}', phone = '4915100000000'",
        "raw_user_meta_data = '{\"full_name\": null}', is_sso_user = true",
        "raw_user_meta_data = '[\"full_name\"]', phone = ''",
        "raw_user_meta_data = null, email = null",
    ]) {
        let id = text(&session["user"], "id");
        app.owner
            .batch_execute(&format!("update auth.users set {change} where id = '{id}'"))
            .await
            .expect("a user with peculiarities");
        // The fast path, and the slow one: the answer to the first refresh was lost.
        for _ in 0..2 {
            assert_eq!(refresh(&app, token(session)).await.status, 200, "{change}");
        }
        let rows = app
            .owner
            .query(
                "select payload::text from auth.audit_log_entries where payload ->> 'actor_id' = $1
                and payload ->> 'action' = 'token_refreshed' order by created_at",
                &[&id],
            )
            .await
            .expect("entries");
        let entries: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(entries.len(), 2, "{change}");
        assert_eq!(entries[0], entries[1], "{change}");
    }
}

#[actix_web::test]
async fn with_the_process_log_only_no_audit_rows_are_written() {
    let app = TestApp::with_settings(&[("GOTRUE_AUDIT_LOG_DISABLE_POSTGRES", "true")]).await;
    let sessions = people(&app, 1).await;
    assert_eq!(refresh(&app, token(&sessions[0])).await.status, 200);
    let count = app.owner.query_one("select count(*) from auth.audit_log_entries", &[]).await.expect("a count");
    assert_eq!(count.get::<_, i64>(0), 0);
}

#[actix_web::test]
async fn with_a_missing_table_every_refresh_fails_at_once() {
    let app = TestApp::start().await;
    let sessions = people(&app, 3).await;
    app.owner.batch_execute("alter table auth.sessions rename to elsewhere").await.expect("no sessions");
    for reply in join_all(sessions.iter().map(|session| refresh(&app, token(session)))).await {
        assert_eq!(reply.status, 500, "{}", reply.body);
    }
    app.owner.batch_execute("alter table auth.elsewhere rename to sessions").await.expect("sessions");
    for reply in join_all(sessions.iter().map(|session| refresh(&app, token(session)))).await {
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
}

#[actix_web::test]
async fn hanging_statements_time_out() {
    let app = TestApp::start().await;
    let sessions = people(&app, 8).await;
    let (stuck, free) = sessions.split_at(4);
    let ids: Vec<&str> = stuck.iter().map(|session| text(&session["user"], "id")).collect();
    app.owner
        .batch_execute(&format!(
            "create function public.hang() returns trigger language plpgsql as
            $$ begin if new.user_id = any('{{{}}}') then perform pg_sleep(60); end if; return new; end $$;
            create trigger hang before update on auth.sessions for each row execute function public.hang()",
            ids.join(",")
        ))
        .await
        .expect("a trigger");
    let hanging = join_all(stuck.iter().map(async |session| {
        refresh(&app, token(session)).await;
    }));
    let going_on = async {
        // All statements that can be in progress hang by now.
        let hang =
            "select count(*) >= 3 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
        while !app.owner.query_one(hang, &[]).await.expect("who sleeps").get::<_, bool>(0) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for reply in join_all(free.iter().map(|session| refresh(&app, token(session)))).await {
            assert_eq!(reply.status, 200, "{}", reply.body);
        }
    };
    futures_util::pin_mut!(hanging, going_on);
    futures_util::future::select(hanging, going_on).await;
}

#[actix_web::test]
async fn an_unreadable_row_does_not_affect_others() {
    let app = TestApp::start().await;
    let sessions = people(&app, 6).await;
    let odd = text(&sessions[2]["user"], "id");
    app.owner
        .batch_execute(&format!("update auth.users set last_sign_in_at = 'infinity' where id = '{odd}'"))
        .await
        .expect("a time without end");
    all_but_one_go_on(&app, &sessions, odd).await;
    // One entry each, so no refresh was repeated.
    let counts = "select max(count) from (select count(*) from auth.audit_log_entries
        where payload ->> 'action' = 'token_refreshed' group by payload ->> 'actor_id') entries";
    assert_eq!(app.owner.query_one(counts, &[]).await.expect("entries").get::<_, i64>(0), 1);
}

#[actix_web::test]
async fn two_valid_tokens_of_one_session_both_work() {
    let app = TestApp::start().await;
    let sessions = people(&app, 1).await;
    let token = token(&sessions[0]);
    app.owner
        .batch_execute(&format!(
            "insert into auth.refresh_tokens (instance_id, token, user_id, session_id, revoked, created_at, updated_at)
            select instance_id, 'aaaabbbbcccc', user_id, session_id, false, now(), now() from auth.refresh_tokens
            where token = '{token}'"
        ))
        .await
        .expect("a second token");
    for reply in join_all([token, "aaaabbbbcccc"].map(|token| refresh(&app, token))).await {
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
}

#[actix_web::test]
async fn unknown_tokens_are_refused() {
    let app = TestApp::start().await;
    for (what, change) in [
        ("another instance", "update auth.users set instance_id = gen_random_uuid()"),
        ("another user's token", "update auth.refresh_tokens set user_id = gen_random_uuid()"),
    ] {
        let sessions = people(&app, 1).await;
        app.owner.batch_execute(change).await.expect(what);
        let reply = refresh(&app, token(&sessions[0])).await;
        assert_eq!(reply.status, 400, "{what}: {}", reply.body);
        app.owner.batch_execute("delete from auth.users").await.expect("nobody");
    }
}

#[actix_web::test]
async fn a_disconnected_client_gets_the_successor_on_retry() {
    let app = TestApp::start().await;
    let sessions = people(&app, 1).await;
    slow_down(&app).await;
    let first = Box::pin(refresh(&app, token(&sessions[0])));
    match futures_util::future::select(first, Box::pin(begun(&app))).await {
        // Closes the connection.
        futures_util::future::Either::Right(((), first)) => drop(first),
        futures_util::future::Either::Left(_) => panic!("the refresh takes its time"),
    }
    let reply = refresh(&app, token(&sessions[0])).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    // The session of the sign-up continues beside this one.
    let living = "select string_agg(token, ' ') from auth.refresh_tokens where not revoked and session_id =
                  (select session_id from auth.refresh_tokens where token = $1)";
    let living: String = app.owner.query_one(living, &[&token(&reply.body)]).await.expect("the living").get(0);
    assert_eq!(living, token(&reply.body), "one family");
}

#[actix_web::test]
async fn a_session_signed_out_during_a_refresh_stays_ended() {
    let app = TestApp::start().await;
    let sessions = people(&app, 3).await;
    slow_down(&app).await;
    let id = text(&sessions[1]["user"], "id");
    let refreshing = join_all(sessions.iter().map(|session| refresh(&app, token(session))));
    let ending = async {
        begun(&app).await;
        let end = format!("delete from auth.sessions where user_id = '{id}'");
        app.owner.batch_execute(&end).await.expect("the end of all sessions");
    };
    let (replies, ()) = futures_util::join!(refreshing, ending);
    assert_eq!((replies[0].status, replies[2].status), (200, 200));
    let left = app
        .owner
        .query_one("select count(*) from auth.refresh_tokens where user_id = $1", &[&id])
        .await
        .expect("a count");
    assert_eq!(left.get::<_, i64>(0), 0, "nothing of the session is left");
    if replies[1].status == 200 {
        assert_eq!(
            refresh(&app, token(&replies[1].body)).await.status,
            400,
            "what was given just before is worth nothing"
        );
    }
}

#[actix_web::test]
async fn a_locked_table_does_not_accumulate_statements() {
    let app = TestApp::start().await;
    let sessions = people(&app, 12).await;
    app.owner.batch_execute("begin; lock table auth.refresh_tokens in access exclusive mode").await.expect("the lock");
    let refreshing = join_all(sessions.iter().map(|session| refresh(&app, token(session))));
    let looking = async {
        let old = "select count(*) from pg_stat_activity where datname = current_database() and state = 'active' \
                   and wait_event_type = 'Lock' and query like '%successor%' and query_start < now() - interval '5 s'";
        for _ in 0..8 {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            app.owner.batch_execute("select pg_stat_clear_snapshot()").await.expect("what is true now");
            assert_eq!(app.owner.query_one(old, &[]).await.expect("who waits").get::<_, i64>(0), 0);
        }
        app.owner.batch_execute("commit").await.expect("the table is free");
    };
    futures_util::join!(refreshing, looking);
    // Refused clients can continue with the same token.
    all_but_one_go_on(&app, &sessions, "").await;
}

#[actix_web::test]
async fn one_connection_is_enough() {
    let app = TestApp::with_settings(&[("GOTRUE_DB_MAX_POOL_SIZE", "1")]).await;
    let sessions = people(&app, 12).await;
    all_but_one_go_on(&app, &sessions, "").await;
}
