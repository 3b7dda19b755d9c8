//! `storage`: the objects of `/storage/v1` (`ls`, `cp`, `mv`, `rm`: see `project::objects`) and the files behind it.
//!
//! `storage migrate` and `storage sweep` log in as the database's owner and then act as
//! service_role, like the server, because a project may have put its own functions on the tables that are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::database::Database;
use super::project;
use crate::audit::note_command;
use crate::config::{Reader, Secret, Source};
use crate::db::{Pool, PoolOptions};
use crate::embedded_pg;
use crate::jwt::KeySet;
use crate::jwt::bearer::Bearer;
use crate::storage::migrate::{Moved, move_files};
use crate::storage::{BackendConfig, Mode, Storage, StorageConfig, sweep};

#[derive(Subcommand)]
pub enum StorageCommand {
    /// List objects: ls ss:///bucket/docs
    Ls(project::ListArgs),
    /// Copy objects to files or files to objects: cp -r docs ss:///bucket/docs
    Cp(project::CopyArgs),
    /// Move objects in a bucket: mv -r ss:///bucket/docs ss:///bucket/www/docs
    Mv(project::MoveArgs),
    /// Delete objects: rm ss:///bucket/readme.md
    Rm(project::RemoveArgs),
    /// Copy every file from one store to another and compare hashes; run again, it copies what is new
    Migrate(MigrateArgs),
    /// Remove files without a row, as the server does every hour
    Sweep(SweepArgs),
}

#[derive(Args)]
pub struct MigrateArgs {
    /// Where the files are: 'file' or 's3' as in the settings, or a folder
    #[arg(long, value_name = "STORE")]
    from: String,
    /// Where to copy them
    #[arg(long, value_name = "STORE")]
    to: String,
}

#[derive(Args)]
pub struct SweepArgs {
    /// Keep files younger than this, in seconds: an upload's row comes after its file
    #[arg(long, default_value_t = 3600, value_name = "SECONDS")]
    min_age: u64,
}

pub fn run(command: StorageCommand, source: &Source) -> anyhow::Result<()> {
    // TLS to a store. A second installation has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match command {
        StorageCommand::Ls(args) => project::list(&args),
        StorageCommand::Cp(args) => project::copy(&args),
        StorageCommand::Mv(args) => project::rename(&args),
        StorageCommand::Rm(args) => project::remove(&args),
        StorageCommand::Migrate(args) => actix_web::rt::System::new().block_on(migrate(&args, source)),
        StorageCommand::Sweep(args) => actix_web::rt::System::new().block_on(sweep_once(&args, source)),
    }
}

async fn migrate(args: &MigrateArgs, source: &Source) -> anyhow::Result<()> {
    let (from, to) = (store(&args.from, source)?, store(&args.to, source)?);
    let moved = Database::with(source, async |logins| {
        let pool = Pool::new(&logins.url, &PoolOptions { size: 1, ..PoolOptions::default() })?;
        let tell = |moved: &Moved| {
            eprintln!("{} copied, {} already there, {} bytes", moved.copied, moved.already_there, moved.bytes);
        };
        let moved = move_files(&pool, &from, &to, tell).await;
        let target = format!("{} to {}", args.from, args.to);
        let is_whole = moved.as_ref().is_ok_and(Moved::is_whole);
        note_command(&logins.admin_url, "storage migrate", &target, is_whole).await;
        Ok(moved?)
    })
    .await?;
    let mut text = format!(
        "{} copied ({} bytes), {} already there, {} missing, {} differing\n",
        moved.copied,
        moved.bytes,
        moved.already_there,
        moved.missing.len(),
        moved.differing.len()
    );
    text.extend(moved.missing.iter().map(|place| format!("missing in the source: {place}\n")));
    text.extend(moved.differing.iter().map(|place| format!("differs from its row: {place}\n")));
    super::print_all(&text)?;
    anyhow::ensure!(moved.is_whole(), "not every row has its file in the new store");
    Ok(())
}

/// A store by its name: one of the settings, or a folder.
fn store(name: &str, source: &Source) -> anyhow::Result<BackendConfig> {
    if !["file", "s3"].contains(&name) {
        let path = PathBuf::from(name);
        anyhow::ensure!(path.is_dir(), "{name} is not a folder; 'file' and 's3' name the configured stores");
        return Ok(BackendConfig::Folder(path));
    }
    let mut source = source.clone();
    source.set("STORAGE_BACKEND", name);
    Ok(settings(&source)?.backend)
}

fn settings(source: &Source) -> anyhow::Result<StorageConfig> {
    let mut reader = Reader::new(source);
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = StorageConfig::read(&mut reader, &data_dir, Mode::Full);
    Ok(reader.finish(config)?)
}

async fn sweep_once(args: &SweepArgs, source: &Source) -> anyhow::Result<()> {
    let config = settings(source)?;
    let reader = Reader::new(source);
    if reader.text(&["DATABASE_URL"]).is_none() {
        let data_dir = reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase");
        if let Some(folder) = embedded_pg::set_aside(Path::new(&data_dir))?.first() {
            anyhow::bail!(
                "{} holds a database that was set aside, and its files have no row in the current one: remove that folder first",
                folder.display()
            );
        }
    }
    let removed = Database::with(source, async |logins| {
        let pool = Pool::new(&logins.url, &PoolOptions { size: 2, ..PoolOptions::default() })?;
        // No token is read, so any key will do.
        let secret = Secret::new(uuid::Uuid::new_v4().simple().to_string());
        let tokens = Bearer::new(Arc::new(KeySet::parse(secret.reveal().as_bytes())?));
        let storage = Storage::new(&config, pool, tokens, &secret)?;
        let swept = sweep::sweep(&storage, Duration::from_secs(args.min_age)).await;
        note_command(&logins.admin_url, "storage sweep", "", swept.is_ok()).await;
        Ok(swept?)
    })
    .await?;
    super::print_all(&format!("{removed} files without a row were removed\n"))
}
