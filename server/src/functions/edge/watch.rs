//! What happens between requests: changed files are seen, idle processes end.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Inner;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often idle processes are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(15);

/// Counts a new generation whenever a file below `supabase/functions` changes, for as long as somebody serves them.
pub fn spawn(edge: Weak<Inner>) {
    tokio::spawn(async move {
        let mut last = None;
        while let Some(inner) = edge.upgrade() {
            let folder = inner.config.folder.clone();
            let now = tokio::task::spawn_blocking(move || fingerprint(&folder)).await.ok();
            if last.is_some() && now != last {
                inner.generation.fetch_add(1, Ordering::AcqRel);
                tracing::info!("the files of the edge functions have changed");
            }
            last = now;
            drop(inner);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
}

/// Ends processes that nobody has called for long.
pub fn end_idle(edge: Weak<Inner>) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            let Some(inner) = edge.upgrade() else { return };
            for function in inner.functions.values() {
                // One that is being started is not idle.
                let Ok(mut current) = function.current.try_lock() else { continue };
                let is_idle = current.worker.as_ref().is_some_and(|worker| worker.idle() > inner.config.limits.idle);
                if is_idle && let Some(worker) = current.worker.take() {
                    worker.retire("early_drop");
                }
            }
        }
    });
}

/// Of names, sizes and times of all files but installed packages.
fn fingerprint(folder: &Path) -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
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
