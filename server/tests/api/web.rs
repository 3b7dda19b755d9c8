//! The embedded web app and its settings.

use crate::support::{TestApp, send};

#[actix_web::test]
async fn the_app_reads_its_public_key_but_no_secret_at_run_time() {
    let app = TestApp::start().await;
    let reply = send(app.plain(reqwest::Method::GET, "/app-config.json")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("cache-control"), "no-cache");
    assert_eq!(reply.body["publishableKey"], app.anon_key.as_str());
    assert!(!reply.body.to_string().contains(&app.service_key));
}

#[actix_web::test]
async fn a_missing_file_is_a_404_and_not_the_app() {
    let app = TestApp::start().await;
    for path in ["/assets/none.js", "/nothing.png"] {
        assert_eq!(send(app.plain(reqwest::Method::GET, path)).await.status, 404, "{path}");
    }
    assert_eq!(send(app.plain(reqwest::Method::POST, "/anything")).await.status, 405);
}
