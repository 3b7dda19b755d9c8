use ferrobase::config::{RestConfig, Source, rest::OpenApiMode};
use ferrobase::rest::openapi;
use ferrobase::schema_cache::introspect::{Scope, load};
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (c, conn) = tokio_postgres::connect(&a[1], tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(conn);
    let scope = Scope {
        schemas: vec!["public".into(), "reporting".into()],
        extra_search_path: vec!["public".into(), "extensions".into()],
        hoisted_settings: vec!["statement_timeout".into()],
    };
    let cache = load(&c, &c, &scope).await.unwrap();
    let (mode, role, schema) = (&a[2], &a[3], &a[4]);
    let config = RestConfig::load(&Source::from_pairs([
        (
            "PGRST_OPENAPI_SERVER_PROXY_URI",
            if mode == "ignore" { "http://gardens.example/api" } else { "https://plants.example:8443/v2" },
        ),
        ("PGRST_OPENAPI_SECURITY_ACTIVE", if mode == "ignore" { "false" } else { "true" }),
    ]))
    .unwrap();
    c.batch_execute(&format!("begin; set local search_path = {schema}, public, extensions; set local role {role}"))
        .await
        .unwrap();
    let m = if mode == "ignore" { OpenApiMode::IgnorePrivileges } else { OpenApiMode::FollowPrivileges };
    let offer = openapi::load(&c, &cache, m, schema).await.unwrap();
    println!("{}", openapi::document(&offer, &cache, &config));
}
