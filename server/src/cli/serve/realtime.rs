//! `serve --only realtime`: a drop-in Supabase Realtime for one project, at `/`.
//!
//! `DATABASE_URL` must log in as a role that may become the roles of tokens and may replicate. Schema `realtime` must exist
//! (`ferrobase migrate` creates it). Tokens are verified with `API_JWT_JWKS`, else `API_JWT_SECRET`, else `JWT_SECRET`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;

use super::listen::{self, DRAIN_SECONDS, until_stopped};
use crate::admin::{self, Admin};
use crate::app;
use crate::cli::stop::Stop;
use crate::config::{Reader, Source};
use crate::db::{self, Pool, PoolOptions};
use crate::http::listen::Listener;
use crate::http::traffic::Traffic;
use crate::jwt::KeySet;
use crate::realtime::{Mode, Realtime, RealtimeConfig, Setting};

/// Serves until stopped.
pub async fn run(source: Source, stop: &Stop) -> anyhow::Result<()> {
    let mut reader = Reader::new(&source);
    let admin_listen = reader.parse::<SocketAddr>(&["FERROBASE_ADMIN_LISTEN"], "an address with a port");
    let config = RealtimeConfig::read(&mut reader, Mode::DropIn);
    let listen = reader.parse::<SocketAddr>(&["FERROBASE_LISTEN"], "an address with a port");
    let port: u16 = reader.parse_or(&["PORT"], "a port", 4000);
    let url = reader.secret(&["DATABASE_URL"]);
    if url.is_none() {
        reader.problem("DATABASE_URL is not set");
    }
    let secret = reader.secret(&["API_JWT_JWKS", "API_JWT_SECRET", "JWT_SECRET"]);
    if secret.is_none() {
        reader.problem("API_JWT_SECRET is not set");
    }
    let replication = reader.secret(&["FERROBASE_REPLICATION_URL"]).or_else(|| url.clone());
    let search_path = reader.text_or(&["PGRST_DB_EXTRA_SEARCH_PATH"], "public, extensions");
    let config = reader.finish(config)?;
    let [url, secret, replication] =
        [url, secret, replication].map(|text| text.map(|text| text.reveal().to_owned()).unwrap_or_default());
    let listen = listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], port)));
    let listener = listen::bind(listen, "PORT")?;
    let setting = Setting {
        request_url: &url,
        replication_url: &replication,
        pulse: None,
        keys: Arc::new(KeySet::parse(secret.as_bytes()).context("API_JWT_SECRET")?),
        secret: &secret,
        search_path,
    };
    let realtime = Realtime::new(config, Mode::DropIn, setting)?;
    realtime.spawn();
    let traffic = Traffic::of("realtime");
    let admin = match admin_listen {
        Some(address) => {
            let database = Pool::new(&url, &PoolOptions { size: 1, ..PoolOptions::default() })?;
            let (realtime, traffic) = (Some(realtime.clone()), traffic.clone());
            let admin = Admin { realtime, ..Admin::alone("realtime", database, traffic) };
            Some(admin::spawn(listen::bind(address, "FERROBASE_ADMIN_LISTEN")?, admin)?)
        }
        None => None,
    };
    let server = app::serve_realtime(realtime.clone(), traffic, vec![Listener::Tcp(listener)], DRAIN_SECONDS)?;
    tracing::info!(%listen, "serving realtime");
    let asked = stop.clone();
    actix_web::rt::spawn(async move {
        asked.asked().await;
        // WebSockets never end by themselves.
        realtime.stop();
    });
    let outcome = until_stopped(server, stop.clone()).await;
    if let Some(admin) = admin {
        admin.stop(false).await;
    }
    db::cancel_all().await;
    outcome
}
