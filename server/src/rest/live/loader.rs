//! The loader thread. It has its own runtime and connections and, after the first load, a lower priority, so that a reload takes
//! no CPU time from requests. Caches that a load replaces are freed on this thread too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Live, listener};
use crate::config::Problems;
use crate::schema_cache::SchemaCache;

/// The `nice` value of reloads.
const NICENESS: i32 = 10;

/// How often, and how many times, to check whether the last request has dropped a replaced cache.
const RELEASE: (Duration, u32) = (Duration::from_millis(50), 200);

/// Starts the thread and returns after its first attempt to load. The thread then serves reloads until the caller's runtime ends.
pub async fn start(live: &Arc<Live>) -> Result<(), Problems> {
    let unstartable = |error: std::io::Error| Problems(vec![format!("the loading thread cannot be started: {error}")]);
    let (attempted, first_attempt) = oneshot::channel();
    let (alive, ended) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unstartable)?;
    let live = live.clone();
    let work = move || {
        runtime.block_on(async {
            tokio::select! {
                () = run(live, attempted) => {}
                _ = ended => {}
            }
        });
    };
    std::thread::Builder::new().name("schema loader".to_owned()).spawn(work).map_err(unstartable)?;
    tokio::spawn(async move {
        let _alive = alive;
        std::future::pending::<()>().await;
    });
    first_attempt.await.unwrap_or(Ok(()))
}

async fn run(live: Arc<Live>, attempted: oneshot::Sender<Result<(), Problems>>) {
    let outcome = live.load_first().await;
    let is_hopeless = outcome.is_err();
    if attempted.send(outcome).is_err() || is_hopeless {
        return;
    }
    yield_to_requests();
    live.serve_reloads().await;
}

impl Live {
    async fn load_first(self: &Arc<Self>) -> Result<(), Problems> {
        // Listen before loading, so that no change between the two is missed. Steps that do not depend on each other run
        // concurrently: most of the start is spent waiting for sessions to open.
        let listening = async {
            if self.settings().config.channel_enabled {
                tokio::spawn(listener::run(self.clone()));
                let _ = tokio::time::timeout(super::LISTEN_TIMEOUT, self.listening.notified()).await;
            }
        };
        let (configured, (), ()) =
            futures_util::future::join3(self.load_first_configuration(), listening, self.open_ahead()).await;
        configured?;
        if let Err(error) = self.load_schema().await {
            tracing::error!(%error, "the schema cache could not be loaded, retrying");
            self.request(super::Reload::Schema);
        }
        Ok(())
    }
}

/// On Linux a thread has its own priority. Elsewhere this would change the whole process.
fn yield_to_requests() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the loading thread keeps its priority");
    }
}

/// Waits for the last request that uses a replaced cache, so that the cache is freed here. Freeing takes milliseconds if there are
/// thousands of tables.
pub fn release(replaced: Arc<SchemaCache>) {
    tokio::spawn(async move {
        for _ in 0..RELEASE.1 {
            if Arc::strong_count(&replaced) == 1 {
                return;
            }
            tokio::time::sleep(RELEASE.0).await;
        }
    });
}
