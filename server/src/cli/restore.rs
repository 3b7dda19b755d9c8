//! `restore`: a backup comes back into a data folder.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::backup::{embedded, identities, storage};
use super::database::block_on;
use super::stop::Stop;
use crate::backup::{self, BackupError, Target};
use crate::config::Source;

#[derive(Args)]
pub struct RestoreArgs {
    /// The archive that 'ferrobase backup' has made
    archive: PathBuf,
    /// The file of the private key [default: FERROBASE_BACKUP_IDENTITY_FILE]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Take the place of the database that is there, which is set aside
    #[arg(long)]
    replace: bool,
}

pub fn run(args: &RestoreArgs, source: &Source) -> anyhow::Result<()> {
    let identities = identities(args.identity.as_deref(), source)?;
    let embedded = embedded(source)?;
    let data_dir = embedded.data_root.clone();
    let files = storage(source)?.backend.folder().to_owned();
    let target = Target { embedded, files, replace: args.replace };
    let restored = block_on(async {
        let stop = Stop::watch()?;
        let outcome = stop.before(backup::restore(&args.archive, &identities, &target)).await;
        Ok(outcome.ok_or(BackupError::Stopped)??)
    })?;
    let mut text = format!(
        "the database as of {} and {} files are in {}\n",
        restored.manifest.made_at.format("%Y-%m-%d %H:%M:%S UTC"),
        restored.files,
        restored.cluster.display()
    );
    if let Some(place) = &restored.manifest.files_elsewhere {
        text.push_str(&format!("the files of objects were not in the backup: they are in {place}\n"));
    }
    if let Some(former) = &restored.former {
        text.push_str(&format!("the former database is in {}: remove it when it is not needed\n", former.display()));
    }
    let differing = backup::keys::differing(&restored.keys, source);
    if !differing.is_empty() {
        let file = write_keys(&data_dir, &restored.keys)?;
        text.push_str(&format!(
            "the backup was made with other settings of {}: sessions and encrypted columns need those in {}; take them over \
             before the start and remove that file\n",
            differing.join(", "),
            file.display()
        ));
    }
    super::print_all(&text)
}

/// Writes the keys that came with the backup for nobody else to read.
fn write_keys(data_dir: &Path, keys: &str) -> anyhow::Result<PathBuf> {
    let file = data_dir.join("restored-keys.env");
    let _ = std::fs::remove_file(&file);
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut out| out.write_all(keys.as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}
