//! The thread that loads: a runtime and connections of its own, and once the first load is done a lower priority, so that
//! a reload takes no time that a request could use. Whatever a load makes or replaces is freed here too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Live, listener};
use crate::config::Problems;
use crate::schema_cache::SchemaCache;

/// How much less urgent reloads are than requests, in steps of `nice`.
const NICENESS: i32 = 10;

/// How often and how many times it is looked whether the last request has let go of a replaced cache.
const RELEASE: (Duration, u32) = (Duration::from_millis(50), 200);

/// Starts the thread, which makes the first attempt to load and then serves reloads until the runtime of the caller
/// ends; returns when the first attempt has been made.
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
        // Listening comes before loading, so that no change falls between the two unnoticed. What neither needs of the
        // other is done at once: most of a start is spent waiting for sessions to open.
        let listening = async {
            if self.settings().config.channel_enabled {
                tokio::spawn(listener::run(self.clone()));
                let _ = tokio::time::timeout(super::LISTEN_PATIENCE, self.listening.notified()).await;
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

/// On Linux a priority is a thread's own; elsewhere it would be the whole process's.
fn yield_to_requests() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the loading thread keeps its priority");
    }
}

/// Waits for the last request that reads a replaced cache: who lets go of it last frees all of it, which takes
/// milliseconds where there are thousands of tables.
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
