//! `serve --only rest`: a drop-in PostgREST at `/`, configured by `PGRST_*` alone.

use actix_server::Server;
use actix_web::App as ActixApp;
use actix_web::web::Data;
use anyhow::Context;

use super::serve::{DRAIN_SECONDS, asked_to_stop};
use crate::config::rest::RestServer;
use crate::config::{RestConfig, Source};
use crate::db::{Pool, PoolOptions};
use crate::http::listen::{Listener, serve};
use crate::rest::live::Live;
use crate::rest::{self, Rest};

/// Runs until stopped. A database that cannot be reached is waited for; requests get 503 meanwhile.
pub async fn run(source: Source) -> anyhow::Result<()> {
    let config = RestConfig::load(&source)?;
    let pool = Pool::new(
        config.db_uri.reveal(),
        &PoolOptions {
            size: 2,
            acquire_timeout: config.pool.acquisition_timeout,
            application_name: "PostgREST".to_owned(),
        },
    )?;
    let live = Live::new(source, pool)?;
    live.start().await?;
    let rest = Rest::new(live, "")?;
    let server = bind(rest, &config.server)?;
    tracing::info!(host = config.server.host, port = config.server.port, "serving the REST API");
    let handle = server.handle();
    actix_web::rt::spawn(async move {
        asked_to_stop().await;
        tracing::info!("stopping: requests in flight are finished first");
        handle.stop(true).await;
    });
    server.await?;
    Ok(())
}

fn bind(rest: Rest, listen: &RestServer) -> anyhow::Result<Server> {
    let listener = match &listen.unix_socket {
        Some((path, mode)) => {
            use std::os::unix::fs::PermissionsExt;
            // A socket left behind by a process that is gone.
            let _ = std::fs::remove_file(path);
            let listener = std::os::unix::net::UnixListener::bind(path)
                .with_context(|| format!("cannot listen on {}", path.display()))?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
            Listener::Unix(listener)
        }
        None => {
            let host = RestServer::bind_host(&listen.host);
            let listener = std::net::TcpListener::bind((host, listen.port))
                .with_context(|| format!("cannot listen on {host}:{}", listen.port))?;
            Listener::Tcp(listener)
        }
    };
    let app = move || ActixApp::new().app_data(Data::new(rest.clone())).configure(rest::configure);
    Ok(serve(vec![listener], DRAIN_SECONDS, app)?)
}
