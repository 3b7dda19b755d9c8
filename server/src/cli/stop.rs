//! Requests to stop: SIGTERM, Ctrl-C, or a closed terminal.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How often this process was asked to stop. Cheap to clone. Create it before anything that has to be stopped in order, because
/// from then on the signals no longer end the process.
#[derive(Clone)]
pub struct Stop {
    asked: watch::Receiver<u32>,
}

impl Stop {
    /// Starts watching signals. Must be called on a runtime.
    pub fn watch() -> anyhow::Result<Self> {
        Self::watch_with(std::future::pending())
    }

    /// Starts watching signals and `other`, whose completion counts as a signal.
    pub fn watch_with(other: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signal handlers cannot be installed");
        let mut terminate = listen(SignalKind::terminate())?;
        let mut interrupt = listen(SignalKind::interrupt())?;
        // Under `nohup` the server is meant to outlive its terminal.
        let mut hangup = if ignores_hangup() { None } else { Some(listen(SignalKind::hangup())?) };
        let (tell, asked) = watch::channel(0);
        tokio::spawn(async move {
            let mut other = Box::pin(other);
            let mut has_ended = false;
            loop {
                let came = tokio::select! {
                    () = &mut other, if !has_ended => {
                        has_ended = true;
                        Some(())
                    }
                    came = terminate.recv() => came,
                    came = interrupt.recv() => came,
                    came = next(&mut hangup) => came,
                };
                if came.is_none() {
                    return;
                }
                tell.send_modify(|times| *times += 1);
            }
        });
        Ok(Self { asked })
    }

    /// Resolves when asked to stop.
    pub async fn asked(&self) {
        self.times(1).await;
    }

    /// Resolves when asked a second time; then everything optional is skipped.
    pub async fn urged(&self) {
        self.times(2).await;
    }

    /// The output of `work`, or `None` if the stop comes first; `work` is then dropped.
    pub async fn before<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.asked() => None,
            outcome = work => Some(outcome),
        }
    }

    async fn times(&self, wanted: u32) {
        let mut asked = self.asked.clone();
        if asked.wait_for(|times| *times >= wanted).await.is_err() {
            // The watcher has ended, so no signal will come.
            std::future::pending::<()>().await;
        }
    }
}

async fn next(signal: &mut Option<Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether we were started with SIGHUP ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
