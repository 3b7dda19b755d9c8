//! The state of the REST API.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::costs::Costs;
use super::live::Live;
use super::spool::Spools;
use crate::config::RestConfig;
use crate::db::replica::{ReadReplica, ReplicaOptions};
use crate::db::{DbError, ExclusiveOptions, ExclusivePool, Pulse};
use crate::http::bodies::Bodies;
use crate::schema_cache::SchemaCache;

/// Version of the reference that this API is compatible with; part of `Warning` and `application_name`.
pub const COMPATIBLE_VERSION: &str = "16.2";

/// How long a read waits for a connection to the replica before the primary answers it.
const REPLICA_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(1);

/// The REST API's state. Cheap to clone.
#[derive(Clone)]
pub struct Rest {
    pub live: Arc<Live>,
    pub pool: ExclusivePool,
    /// Answers reads, if there is one.
    pub replica: Option<ReadReplica>,
    /// What statements cost.
    pub costs: Arc<Costs>,
    /// The budget of request bodies, for all APIs of this server.
    pub bodies: Bodies,
    /// Buffers long answers while their clients read them.
    pub spools: Spools,
    /// The path under which the API is mounted, without a slash at its end; empty for the root.
    pub mount: Arc<str>,
    /// [`Live::session_epoch`] of the pool's connections.
    epoch: Arc<AtomicU64>,
}

impl Rest {
    /// `live` loaded or loading; nothing is connected here. `pooler` is the login of requests at a pooler that hands connections on
    /// between transactions, if they go there, and the check of that pooler.
    pub fn new(live: Arc<Live>, mount: &str, pooler: Option<(&str, Pulse)>) -> Result<Self, DbError> {
        let settings = live.settings();
        let config: &RestConfig = &settings.config;
        let (spools, bodies) = (Spools::new(&config.spill), Bodies::new(config.bodies));
        let pool = {
            let (url, pulse) = pooler.as_ref().map_or_else(
                || (config.db_uri.reveal(), live.pool().pulse().clone()),
                |(url, pulse)| (*url, pulse.clone()),
            );
            let options = ExclusiveOptions {
                size: config.pool.size,
                acquire_timeout: config.pool.acquisition_timeout,
                max_lifetime: config.pool.max_lifetime,
                max_idle: config.pool.max_idle_time,
                application_name: format!("PostgREST {COMPATIBLE_VERSION}"),
                prepare: config.prepared_statements && pooler.is_none(),
                refuses_under_overload: config.pool.refuses_under_overload,
                pulse: Some(pulse),
                ..ExclusiveOptions::default()
            };
            ExclusivePool::new(url, options)?
        };
        let mount = mount.trim_end_matches('/').into();
        let costs = Arc::default();
        Ok(Self { live, pool, replica: None, costs, bodies, spools, mount, epoch: Arc::new(AtomicU64::new(0)) })
    }

    /// The same; reads go to the replica at `url` where it has come far enough.
    pub fn with_replica(self, url: &str, max_age: Duration) -> Result<Self, DbError> {
        let settings = self.live.settings();
        let config = &settings.config;
        let pool = ExclusiveOptions {
            size: config.pool.size,
            acquire_timeout: REPLICA_ACQUIRE_TIMEOUT,
            max_lifetime: config.pool.max_lifetime,
            max_idle: config.pool.max_idle_time,
            application_name: format!("PostgREST {COMPATIBLE_VERSION}"),
            prepare: config.prepared_statements,
            ..ExclusiveOptions::default()
        };
        let options = ReplicaOptions { primary_url: config.db_uri.reveal(), url, max_age, pool };
        let replica = ReadReplica::new(options)?;
        replica.spawn();
        Ok(Self { replica: Some(replica), ..self })
    }

    /// The current schema cache. When it changes, connections stay, unlike in PostgREST, because a new one must load
    /// the catalogs at a request's expense; their statements are prepared again. Connections are replaced if a new one
    /// would start with other settings.
    pub fn cache(&self) -> Option<Arc<SchemaCache>> {
        let cache = self.live.cache()?;
        let replicas = self.replica.as_ref().map(ReadReplica::pool);
        let pools = || std::iter::once(&self.pool).chain(replicas);
        pools().for_each(|pool| pool.renew_statements(self.live.schema_epoch()));
        let sessions = self.live.session_epoch();
        if self.epoch.load(Ordering::Relaxed) != sessions && self.epoch.swap(sessions, Ordering::Relaxed) != sessions {
            pools().for_each(ExclusivePool::flush);
        }
        Some(cache)
    }
}
