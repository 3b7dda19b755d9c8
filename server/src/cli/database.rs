//! The database that a command works on: `DATABASE_URL`, the running embedded one, or the embedded one started for it.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Reader, Source};
use crate::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};

/// An open road to the database, and what has to be stopped afterwards.
pub struct Database {
    /// Logs in as the owner.
    pub url: String,
    embedded: Option<EmbeddedPostgres>,
}

impl Database {
    pub async fn open(source: &Source) -> anyhow::Result<Self> {
        let mut reader = Reader::new(source);
        let url = reader.text(&["DATABASE_URL"]);
        let options = EmbeddedOptions {
            data_root: PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase")),
            port: reader.parse_or(&["FERROBASE_DB_PORT"], "a port", 54322),
            bin_dir: reader.text(&["PG_BIN_DIR"]).map(PathBuf::from),
            ..EmbeddedOptions::default()
        };
        let options = reader.finish(options)?;
        if let Some(url) = url {
            return Ok(Self { url, embedded: None });
        }
        // A server of this checkout that runs has the embedded database open; this command then shares it.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
            return Ok(Self { url: crate::embedded_pg::url(options.port), embedded: None });
        }
        let embedded = EmbeddedPostgres::start(&options).await?;
        Ok(Self { url: embedded.url.clone(), embedded: Some(embedded) })
    }

    /// Runs `work` on the database and stops what was started for it, whatever came of the work.
    pub async fn with<T, F, W>(source: &Source, work: W) -> anyhow::Result<T>
    where
        F: Future<Output = anyhow::Result<T>>,
        W: FnOnce(String) -> F,
    {
        let database = Self::open(source).await?;
        let outcome = work(database.url.clone()).await;
        if let Some(embedded) = database.embedded {
            embedded.stop().await;
        }
        outcome
    }
}

/// A command's own runtime; it needs no more than one thread.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
