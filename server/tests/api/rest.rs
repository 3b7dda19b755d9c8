//! The REST API in the full server, through the `postgrest` crate.

use crate::support::{TestApp, send};
use postgrest::Postgrest;
use serde_json::{Value, json};

/// A client of the `postgrest` crate, with the gateway's key and a token.
fn client(app: &TestApp, token: Option<&str>) -> Postgrest {
    let bearer = format!("Bearer {}", token.unwrap_or(&app.anon_key));
    Postgrest::new(format!("{}/rest/v1", app.base))
        .insert_header("apikey", &app.anon_key)
        .insert_header("authorization", bearer)
}

async fn rows(request: postgrest::Builder) -> Value {
    let text = request.execute().await.expect("an answer").text().await.expect("a body");
    serde_json::from_str(&text).expect("JSON")
}

const NOTES: &str = "
    create table public.notes (id bigint generated always as identity primary key, owner uuid not null default auth.uid(), body text not null);
    alter table public.notes enable row level security;
    create policy own on public.notes for all to authenticated using (owner = auth.uid()) with check (owner = auth.uid());
    notify pgrst, 'reload schema';
";

#[actix_web::test]
async fn rows_of_one_user_are_neither_visible_nor_writable_for_another() {
    let app = TestApp::start().await;
    app.owner.batch_execute(NOTES).await.expect("table");
    let (alice, bob) = (app.user("alice@test.example").await, app.user("bob@test.example").await);
    let (as_alice, as_bob) = (client(&app, alice.actor.token.as_deref()), client(&app, bob.actor.token.as_deref()));
    let mut made = json!({ "code": "PGRST205" });
    // The new table becomes visible after the schema cache is reloaded.
    for _ in 0..1200 {
        if made["code"] != "PGRST205" {
            break;
        }
        made = rows(as_alice.from("notes").insert(r#"{"body":"mine"}"#)).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(made[0]["owner"], alice.id, "{made}");
    assert_eq!(rows(as_bob.from("notes").select("*")).await, json!([]));
    assert_eq!(rows(as_bob.from("notes").update(r#"{"body":"theirs"}"#).eq("body", "mine")).await, json!([]));
    assert_eq!(rows(as_bob.from("notes").delete().eq("body", "mine")).await, json!([]));
    let forged = format!(r#"{{"body":"x","owner":"{}"}}"#, alice.id);
    assert_eq!(rows(as_bob.from("notes").insert(forged)).await["code"], "42501");
    assert_eq!(
        rows(as_alice.from("notes").select("body").order("id.desc").limit(1)).await,
        json!([{ "body": "mine" }])
    );
}

#[actix_web::test]
async fn functions_embeds_and_filters_work_through_the_crate() {
    let app = TestApp::start().await;
    let anon = client(&app, None);
    assert_eq!(rows(anon.rpc("me", "{}")).await, Value::Null);
    assert_eq!(
        rows(anon.from("denial_reasons").select("code,label").eq("code", "funding_limit")).await,
        json!([
            { "code": "funding_limit", "label": "Funding limit reached" }
        ])
    );
    let unknown = rows(anon.from("denial_reason").select("*")).await;
    assert_eq!(
        (&unknown["code"], &unknown["hint"]),
        (&json!("PGRST205"), &json!("Perhaps you meant the table 'public.denial_reasons'"))
    );
}

#[actix_web::test]
async fn forged_and_expired_tokens_are_refused_by_both_apis() {
    let app = TestApp::start().await;
    let alice = app.user("alice@test.example").await;
    let token = alice.actor.token.clone().expect("token");
    let mut forged = token.clone();
    let last = if forged.ends_with("AAAA") { "BBBB" } else { "AAAA" };
    forged.replace_range(forged.len() - 4.., last);
    for (path, code) in [("/rest/v1/nonprofits", "PGRST301"), ("/auth/v1/user", "bad_jwt")] {
        let reply = send(
            app.plain(reqwest::Method::GET, path)
                .header("apikey", &app.anon_key)
                .header("x-supabase-api-version", "2024-01-01")
                .bearer_auth(&forged),
        )
        .await;
        assert_eq!(reply.body["code"], code, "{path}: {}", reply.body);
    }
    // Signed with the well-known secret, but long expired.
    let key = jsonwebtoken::EncodingKey::from_secret(ferrobase::config::DEVELOPMENT_JWT_SECRET.as_bytes());
    let claims = json!({ "role": "authenticated", "sub": alice.id, "aud": "authenticated", "exp": 1_000_000_000 });
    let expired = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("token");
    let reply = send(
        app.plain(reqwest::Method::GET, "/rest/v1/nonprofits").header("apikey", &app.anon_key).bearer_auth(&expired),
    )
    .await;
    assert_eq!((reply.status, &reply.body["message"]), (401, &json!("JWT expired")));
}

#[actix_web::test]
async fn a_lost_database_is_reported_everywhere() {
    let app = TestApp::start().await;
    assert_eq!(app.anon().get("/rest/v1/categories").await.status, 200);
    app.lose_database().await;
    let rest = app.anon().get("/rest/v1/categories").await;
    assert!(rest.status == 503 && rest.body["code"].as_str().is_some_and(|c| c.starts_with("PGRST00")), "{rest:?}");
    let auth = app
        .anon()
        .post("/auth/v1/token?grant_type=password", json!({ "email": "a@test.example", "password": "correct-Horse-7" }))
        .await;
    assert!((500..=504).contains(&auth.status), "a client must keep its session: {auth:?}");
    let list = app.service().get("/storage/v1/bucket").await;
    assert_eq!((list.status, &list.body["statusCode"]), (503, &json!("503")), "{list:?}");
    assert_eq!(list.header("retry-after"), "1");
    let upload = app.service().request(reqwest::Method::POST, "/storage/v1/object/b/a").body("a");
    let upload = send(upload).await;
    assert_eq!((upload.status, upload.header("retry-after")), (503, "1"), "{upload:?}");
    assert_eq!(app.anon().get("/health").await.status, 503);
}
