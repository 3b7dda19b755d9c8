//! Work that the database asks the server to do: HTTP requests queued by pg_net (`net`), those of statements that wait (`calls`), and
//! jobs of pg_cron (`cron`).
//!
//! The extensions are our own SQL (`sql/extensions`): their functions write tables and notify, and this module does what a
//! background worker inside PostgreSQL does elsewhere. It does nothing where the real extensions are installed. It reconnects after
//! a lost connection. A database without the extensions is checked every 30 seconds.

mod calls;
mod cron;
mod listen;
mod metrics;
mod minutes;
mod net;
mod outbound;
mod pending;
mod schedule;

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use calls::{Calls, SOCKET as CALLS_SOCKET};
pub use metrics::as_text as metrics;
pub use outbound::Outbound;

/// How often to look for work without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long running work may take after a stop.
const GRACE: Duration = Duration::from_secs(5);

/// Settings of the workers.
#[derive(Clone, Debug)]
pub struct JobsConfig {
    /// Logs in as `supabase_ferrobase_admin`: a project may have put triggers on the tables that are written here, and a superuser
    /// would run them.
    pub service_url: String,
    /// Logs in as the owner, whose jobs are run.
    pub owner_url: String,
    pub outbound: Outbound,
}

/// The running workers.
pub struct Jobs {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Jobs {
    pub fn start(config: JobsConfig) -> anyhow::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let client = net::client(&config.outbound, net::REDIRECTS)?;
        let tasks = vec![
            tokio::spawn(net::run(config.clone(), client, stopped.clone())),
            tokio::spawn(cron::run(config, stopped)),
        ];
        Ok(Self { stop, tasks })
    }

    /// Accepts no more work; gives running work 5 seconds to end and to be recorded.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let deadline = tokio::time::Instant::now() + GRACE;
        for mut task in self.tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}
