//! `serve --only storage`: a drop-in Supabase Storage for one project at `/`, with its settings.
//!
//! `DATABASE_URL` (with `DATABASE_POOL_URL` for requests) must log in as a role that may become the roles of tokens. Schema
//! `storage` must exist: Supabase's own, or the one that `ferrobase migrate` creates. Tokens are verified with `JWT_JWKS` and
//! `AUTH_JWT_SECRET`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::listen::{self, DRAIN_SECONDS, until_stopped};
use crate::admin::{self, Admin};
use crate::app;
use crate::cli::stop::Stop;
use crate::config::{self, Reader, Source};
use crate::db::{self, Pool, PoolOptions};
use crate::http::bodies::Bodies;
use crate::http::traffic::Traffic;
use crate::jwt::KeySet;
use crate::jwt::bearer::Bearer;
use crate::storage::{Mode, Storage, StorageConfig, sweep};

/// Tables for resumable uploads, in addition to Supabase's.
const OWN_TABLES: [&str; 2] = [
    include_str!("../../../../sql/platform/05_bookkeeping.sql"),
    include_str!("../../../../sql/platform/61_storage_work.sql"),
];

/// Serves until stopped.
pub async fn run(source: Source, stop: &Stop) -> anyhow::Result<()> {
    let mut reader = Reader::new(&source);
    let admin_listen = reader.parse::<SocketAddr>(&["FERROBASE_ADMIN_LISTEN"], "an address with a port");
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = StorageConfig::read(&mut reader, &data_dir, Mode::DropIn);
    let host = reader.text_or(&["SERVER_HOST", "HOST"], "0.0.0.0");
    let port: u16 = reader.parse_or(&["SERVER_PORT", "PORT"], "a port", 5000);
    let size = reader.parse_or(&["DATABASE_MAX_CONNECTIONS"], "a number of connections", 20);
    // Supabase Storage lets everybody wait.
    let refuses_under_overload = reader.flag(&["FERROBASE_REFUSE_OVERLOAD"], false);
    let owner_url = reader.text(&["DATABASE_URL"]);
    let request_url = reader.text(&["DATABASE_POOL_URL", "DATABASE_URL"]);
    if request_url.is_none() {
        reader.problem("DATABASE_URL is not set");
    }
    let secret = reader.secret(&["AUTH_JWT_SECRET", "PGRST_JWT_SECRET"]);
    if secret.is_none() {
        reader.problem("AUTH_JWT_SECRET is not set");
    }
    if reader.flag(&["MULTI_TENANT", "IS_MULTITENANT"], false) {
        reader.problem("MULTI_TENANT is not supported: one server has one project");
    }
    let jwks = reader.text(&["JWT_JWKS"]);
    let anon_key = reader.text(&["ANON_KEY"]);
    let bodies = config::bodies(&mut reader);
    let config = reader.finish(config)?;
    let bodies = Bodies::new(bodies);
    let (Some(request_url), Some(secret)) = (request_url, secret) else { return Ok(()) };
    let keys = key_set(secret.reveal(), jwks.as_deref())?;
    let listeners = listen::bind_host(&host, port).with_context(|| format!("cannot listen on {host}:{port}"))?;
    if let Some(url) = owner_url {
        let Some(prepared) = stop.before(prepare(&url)).await else { return Ok(()) };
        prepared?;
    }
    let pool = Pool::new(&request_url, &PoolOptions { size, refuses_under_overload, ..PoolOptions::default() })?;
    let mut storage = Storage::new(&config, pool.clone(), Bearer::new(Arc::new(keys)), &secret)?;
    if let Some(key) = anon_key {
        storage = storage.with_anon_key(&key);
    }
    let housekeeping = sweep::spawn(storage.clone(), Vec::new());
    let traffic = Traffic::of("storage");
    let admin = match admin_listen {
        Some(address) => {
            let traffic = traffic.clone();
            let admin = Admin::alone("storage", pool, traffic);
            Some(admin::spawn(listen::bind(address, "FERROBASE_ADMIN_LISTEN")?, admin)?)
        }
        None => None,
    };
    let server = app::serve_storage(storage, bodies, traffic, listeners, DRAIN_SECONDS)?;
    tracing::info!(host, port, "serving storage");
    let outcome = until_stopped(server, stop.clone()).await;
    if let Some(admin) = admin {
        admin.stop(false).await;
    }
    housekeeping.abort();
    db::cancel_all().await;
    outcome
}

/// The keys of the set, plus the secret.
fn key_set(secret: &str, jwks: Option<&str>) -> anyhow::Result<KeySet> {
    let Some(jwks) = jwks else { return KeySet::parse(secret.as_bytes()).context("AUTH_JWT_SECRET") };
    let mut set: Value = serde_json::from_str(jwks).context("JWT_JWKS")?;
    let keys = set.get_mut("keys").and_then(Value::as_array_mut).context("JWT_JWKS has no keys")?;
    keys.push(json!({ "kty": "oct", "alg": "HS256", "k": URL_SAFE_NO_PAD.encode(secret) }));
    KeySet::parse(set.to_string().as_bytes()).context("JWT_JWKS")
}

/// Creates our own tables if they are missing.
async fn prepare(url: &str) -> anyhow::Result<()> {
    let client = db::connect_client(&url.parse()?).await.context("the database")?;
    let found =
        "select to_regclass('storage.objects') is not null, to_regclass('_supavisor.emptied_buckets') is not null";
    let found = client.query_one(found, &[]).await?;
    anyhow::ensure!(found.get::<_, bool>(0), "the database has no schema storage: run 'ferrobase migrate' on it first");
    if !found.get::<_, bool>(1) {
        let [bookkeeping, tables] = OWN_TABLES;
        let schemas =
            "create schema if not exists ferrobase; grant usage on schema ferrobase, _supavisor to service_role;";
        let all = format!("begin; {bookkeeping} {schemas} {tables}; commit");
        client.batch_execute(&all).await.context("the storage server's own tables")?;
    }
    Ok(())
}
