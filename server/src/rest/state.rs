//! What a REST request needs to be answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;

use super::live::Live;
use crate::config::RestConfig;
use crate::db::{DbError, ExclusiveOptions, ExclusivePool};
use crate::schema_cache::SchemaCache;

/// Version of the reference that this API is compatible with; part of `Warning` and `application_name`.
pub const COMPATIBLE_VERSION: &str = "16.2";

/// The REST API's state. Cheap to clone.
#[derive(Clone)]
pub struct Rest {
    pub live: Arc<Live>,
    pub pool: ExclusivePool,
    /// One permit for each connection that may serve a result as slowly as its client reads: half of them, so that clients
    /// that hardly read keep nobody else from the database.
    pub streams: Arc<Semaphore>,
    /// The path under which the API is mounted, without a slash at its end; empty for the root.
    pub mount: Arc<str>,
    /// [`Live::session_epoch`] of the pool's connections.
    epoch: Arc<AtomicU64>,
}

impl Rest {
    /// `live` loaded or loading; nothing is connected here.
    pub fn new(live: Arc<Live>, mount: &str) -> Result<Self, DbError> {
        let settings = live.settings();
        let config: &RestConfig = &settings.config;
        let streams = Arc::new(Semaphore::new(config.pool.size / 2));
        let pool = {
            let options = ExclusiveOptions {
                size: config.pool.size,
                acquire_timeout: config.pool.acquisition_timeout,
                max_lifetime: config.pool.max_lifetime,
                max_idle: config.pool.max_idle_time,
                application_name: format!("PostgREST {COMPATIBLE_VERSION}"),
                prepare: config.prepared_statements,
                ..ExclusiveOptions::default()
            };
            ExclusivePool::new(config.db_uri.reveal(), options)?
        };
        Ok(Self { live, pool, streams, mount: mount.trim_end_matches('/').into(), epoch: Arc::new(AtomicU64::new(0)) })
    }

    /// The schema cache as of now. Connections stay when it changes, other than PostgREST's: PostgreSQL itself finds out
    /// which prepared statements no longer fit, and one opened anew has to learn the catalogs at some request's cost.
    /// They are replaced when a new one would begin with other settings.
    pub fn cache(&self) -> Option<Arc<SchemaCache>> {
        let cache = self.live.cache()?;
        let sessions = self.live.session_epoch();
        if self.epoch.load(Ordering::Relaxed) != sessions && self.epoch.swap(sessions, Ordering::Relaxed) != sessions {
            self.pool.flush();
        }
        Some(cache)
    }
}
