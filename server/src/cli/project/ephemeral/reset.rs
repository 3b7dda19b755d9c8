//! Resets a copy to its seed state, without a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::db::replaced;
use crate::embedded_pg;
use crate::rest::live::Loaded;

/// The files of buckets. Beside them are the original files, and a copy of those for the next reset.
const FILES: &str = "storage";
const SEED_FILES: &str = "storage.seed";
const NEXT_FILES: &str = "storage.next";
const FORMER_FILES: &str = "storage.former";

/// What a reset needs. Created before the copy is used.
pub struct Seed {
    database: embedded_pg::Seed,
    files: Files,
    /// The schema as loaded at startup, if that succeeded.
    loaded: Option<Loaded>,
    /// The running preparation of the next reset.
    preparing: Mutex<Option<JoinHandle<anyhow::Result<()>>>>,
}

impl Seed {
    pub async fn keep(admin_url: &str, folder: &Path, app: &App) -> anyhow::Result<Self> {
        let files = Files(folder.to_owned());
        in_files(&files, Files::keep).await?;
        let database = embedded_pg::Seed::of(admin_url).await?;
        Ok(Self { database, files, loaded: app.rest.live.loaded(), preparing: Mutex::default() })
    }

    /// Prepares a reset in the background.
    pub async fn prepare(self: &Arc<Self>) {
        let seed = Arc::clone(self);
        let mut preparing = self.preparing.lock().await;
        *preparing = Some(tokio::spawn(async move {
            in_files(&seed.files, Files::prepare).await?;
            Ok(seed.database.prepare().await?)
        }));
    }

    /// Resets database, roles, files and the server's caches. The APIs must be idle.
    pub async fn restore(self: &Arc<Self>, app: &App) -> anyhow::Result<()> {
        if let Some(preparing) = self.preparing.lock().await.take() {
            // Anything not prepared yet is made now.
            if let Err(error) = preparing.await.map_err(anyhow::Error::from).flatten() {
                tracing::warn!(error = format!("{error:#}"), "a reset could not be prepared");
            }
        }
        let replacement = replaced::begin().await;
        self.database.replace().await?;
        let files = in_files(&self.files, Files::replace).await;
        drop(replacement);
        app.auth.forget();
        app.functions.renew();
        let schema = async {
            match &self.loaded {
                Some(loaded) => app.rest.live.put_back(loaded).await,
                None => app.rest.live.reload().await,
            }
        };
        let ((), renewed) = futures_util::join!(schema, app.realtime.renew());
        self.prepare().await;
        // The database has been replaced, so the caches are renewed before a failure of the files is returned.
        files?;
        Ok(renewed?)
    }
}

/// Copies and moves files on a blocking thread.
async fn in_files(files: &Files, work: fn(&Files) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let files = files.clone();
    tokio::task::spawn_blocking(move || work(&files)).await?
}

/// The folders of files within the copy's folder.
#[derive(Clone)]
struct Files(PathBuf);

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn keep(&self) -> anyhow::Result<()> {
        if self.path(FILES).exists() {
            embedded_pg::copy_folder(&self.path(FILES), &self.path(SEED_FILES))?;
        }
        Ok(())
    }

    fn prepare(&self) -> anyhow::Result<()> {
        for name in [FORMER_FILES, NEXT_FILES] {
            match std::fs::remove_dir_all(self.path(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", self.path(name).display()));
                }
                _ => {}
            }
        }
        if self.path(SEED_FILES).exists() {
            embedded_pg::copy_folder(&self.path(SEED_FILES), &self.path(NEXT_FILES))?;
        }
        Ok(())
    }

    fn replace(&self) -> anyhow::Result<()> {
        let is_prepared =
            !self.path(FORMER_FILES).exists() && self.path(NEXT_FILES).exists() == self.path(SEED_FILES).exists();
        if !is_prepared {
            self.prepare()?;
        }
        for (from, to) in [(FILES, FORMER_FILES), (NEXT_FILES, FILES)] {
            match std::fs::rename(self.path(from), self.path(to)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot rename {}", self.path(from).display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
