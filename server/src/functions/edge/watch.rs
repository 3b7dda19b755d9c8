//! Background tasks: watches files for changes, and ends idle processes.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Weak;
use std::time::Duration;

use super::Inner;
use crate::project::{Served, ServedLock};

/// How often files are checked.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often idle and old processes are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(15);

/// Reloads the project whenever a file below `supabase/functions` or its configuration changes, for as long as it is served.
pub fn spawn(edge: Weak<Inner>) {
    tokio::spawn(async move {
        // At first, nothing has changed, and no `functions serve` has options.
        let mut last = (None, None);
        while let Some(inner) = edge.upgrade() {
            let seen = tokio::task::spawn_blocking(move || {
                let (files, served) = last;
                let now = (Some(fingerprint(&inner.config.folder)), Served::current(&inner.config.data_dir));
                if (files.is_some() && files != now.0) || served != now.1 {
                    inner.read_again(now.1.clone());
                    if served == now.1 {
                        tracing::info!("the files of the edge functions have changed");
                    } else if now.1.is_some() {
                        tracing::info!("{}", ServedLock::NOTICED);
                    } else {
                        tracing::info!("the functions are served with the project's own settings again");
                    }
                }
                now
            });
            last = seen.await.unwrap_or_default();
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
}

/// Ends processes that have been idle for too long, and those that are too old, whose background work would go on otherwise until
/// the next request.
pub fn end_idle(edge: Weak<Inner>) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            let Some(inner) = edge.upgrade() else { return };
            let catalog = std::sync::Arc::clone(&inner.catalog.read());
            for function in catalog.functions.values() {
                let mut current = function.current.lock();
                let reason = match &current.worker {
                    Some(worker) if worker.age() >= worker.limits.wall_clock => "wall_clock",
                    Some(worker) if worker.idle() > worker.limits.idle => "early_drop",
                    _ => continue,
                };
                let worker = current.worker.take();
                drop(current);
                if let Some(worker) = worker {
                    inner.retire(&worker, reason);
                }
            }
        }
    });
}

/// A hash of the names, sizes and times of all files except installed packages, and of the configuration.
fn fingerprint(folder: &Path) -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
    let configuration = folder.parent().map(|supabase| supabase.join("config.toml"));
    let configuration = configuration.and_then(|path| std::fs::metadata(path).ok());
    configuration.map(|metadata| (metadata.len(), metadata.modified().ok())).hash(&mut hash);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            if name == "node_modules" || name == ".git" || name.to_string_lossy().ends_with('~') {
                continue;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                (entry.path(), metadata.len(), metadata.modified().ok()).hash(&mut hash);
            }
        }
    }
    hash.finish()
}
