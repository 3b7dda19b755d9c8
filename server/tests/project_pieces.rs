//! What migrations of public projects have in them, piece by piece (`project_pieces/*.sql`): dumps, hooks, storage, realtime, cron,
//! queues, webhooks, roles, extensions, seeded accounts.

use std::path::Path;

use serde_json::{Value, json};

use crate::project::Project;

#[actix_web::test]
async fn the_pieces_of_public_projects_run() {
    let project = Project::new(
        "pieces",
        "[auth.hook.custom_access_token]\nenabled = true\nuri = \"pg-functions://postgres/public/custom_access_token_hook\"\n",
        &[],
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/project_pieces");
    let mut pieces = 0;
    for entry in std::fs::read_dir(folder).expect("the pieces") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a piece");
        let place =
            if name.contains("seed") { "supabase/seed.sql".to_owned() } else { format!("supabase/migrations/{name}") };
        project.write(&place, &text);
        pieces += 1;
    }
    assert!(pieces > 15, "{pieces}");
    project.ok(&["start"]);
    for (sql, told) in [
        ("select string_agg(username, ' ' order by username) from profiles where username !~ 'user'", "bare changed"),
        ("select count(*) from auth.identities", "1"),
        ("select string_agg(jobname || active, ' ') from cron.job", "invokefalse"),
        ("select count(*) from vault.decrypted_secrets where decrypted_secret in ('key', 's')", "2"),
        // The webhook, the function that calls `net.http_post`, and the upload's trigger.
        ("select count(*) from supabase_functions.hooks", "2"),
        ("select relrowsecurity from pg_class where oid = 'public.auto_rls'::regclass", "t"),
        (
            "select string_agg(tablename, ' ' order by tablename) from pg_publication_tables where pubname = 'supabase_realtime'",
            "messages rooms",
        ),
        ("select count(*) from realtime.messages where topic = 'topic'", "1"),
        ("select string_agg(id::text, ' ' order by id) from rooms", "1 2"),
        ("select count(*) from pgmq.q_jobs", "1"),
        ("select count(*) from storage.buckets", "2"),
        ("select m from dumped", "happy"),
        ("select rolconfig @> array['statement_timeout=15s'] from pg_roles where rolname = 'authenticated'", "t"),
        ("select indisvalid from pg_index where indexrelid = 'posts_title_idx'::regclass", "t"),
        ("select slugify('Äpfel und Birnen')", "apfel-und-birnen"),
    ] {
        assert_eq!(project.one(sql).await, told, "{sql}");
    }
    // A seeded account signs in, and the project's hook writes into its token.
    let status = project.status();
    let text = |key: &str| status[key].as_str().expect("a text").to_owned();
    let answer = reqwest::Client::new()
        .post(format!("{}/auth/v1/token?grant_type=password", text("API_URL")))
        .header("apikey", text("ANON_KEY"))
        .json(&json!({ "email": "seed@example.com", "password": "password123" }))
        .send()
        .await
        .expect("an answer");
    let session: Value = answer.json().await.expect("JSON");
    assert_eq!(session["user"]["user_metadata"]["username"], "seeded", "{session}");
    let payload = session["access_token"].as_str().expect("a token").split('.').nth(1).expect("claims");
    let claims = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, payload).expect("base64");
    let claims: Value = serde_json::from_slice(&claims).expect("JSON");
    assert_eq!(claims.get("user_role"), Some(&Value::Null), "{claims}");
}
