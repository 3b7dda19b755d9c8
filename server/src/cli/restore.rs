//! `restore`: restores a backup into a data folder or an external database.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::Context;
use clap::Args;

use super::backup::{binaries, combine, depot_of, identities, local, locals, moment, paths, storage};
use super::database::block_on;
use super::project::Programs;
use super::stop::Stop;
use crate::backup::{
    self, BackupError, BackupStore, Catalog, DumpTarget, Identity, LogFrom, Parent, Placing, RestorePoint, Restored,
    State, Target,
};
use crate::config::{Reader, Source};
use crate::storage::BackendConfig;

#[derive(Args)]
pub struct RestoreArgs {
    /// The archive: a file or s3://bucket/prefix/name. With --to, the folder or s3://bucket/prefix is enough; the last archive
    /// before that time is used
    archive: String,
    /// The file with the private key [default: FERROBASE_BACKUP_IDENTITY_FILE]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Also replay the archived WAL, up to a time such as 2026-03-04T05:06:07Z, or 'latest'
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<RestorePoint>,
    /// Replace the existing database, which is moved aside
    #[arg(long)]
    replace: bool,
}

pub fn run(args: &RestoreArgs, source: &Source) -> anyhow::Result<()> {
    let identities = identities(args.identity.as_deref(), source)?;
    if let Some(url) = Reader::new(source).text(&["DATABASE_URL"]) {
        return into_external(args, &identities, url, source);
    }
    let embedded = binaries(source);
    let data_dir = embedded.data_root.clone();
    let backend = storage(source)?.backend;
    let files = backend.folder().to_owned();
    let restored = block_on(async {
        let stop = Stop::watch()?;
        let combine = combine(&embedded).await;
        let target = Target { embedded, files, replace: args.replace, combine };
        let placing = Placing::default();
        let mut work = pin!(bring_back(args, &identities, &target, source, &placing));
        match stop.before(&mut work).await {
            Some(outcome) => outcome,
            // The database may be replaced already.
            None if placing.stop() => work.await,
            None => Err(BackupError::Stopped.into()),
        }
    })?;
    Parent::forget(&data_dir);
    let mut text = format!(
        "restored the database as of {} and {} files to {}\n",
        restored.as_of.format("%Y-%m-%d %H:%M:%S UTC"),
        restored.files,
        restored.cluster.display()
    );
    if let Some(place) = &restored.manifest.files_elsewhere {
        text.push_str(&format!("the files of objects were not in the backup: they are in {place}\n"));
    }
    text.push_str(&about_files(&backend, restored.files));
    if let Some(former) = &restored.former {
        text.push_str(&format!(
            "the former database is in {}: remove it when you no longer need it\n",
            former.display()
        ));
    }
    text.push_str(&about_keys(&data_dir, &restored.keys, source)?);
    super::print_all(&text)
}

async fn bring_back(
    args: &RestoreArgs,
    identities: &[Identity],
    target: &Target,
    source: &Source,
    placing: &Placing,
) -> anyhow::Result<Restored> {
    let room = &target.embedded.data_root;
    let Some(moment) = args.to else {
        let (backup_store, name) = depot_of(&args.archive, source)?;
        let locals = locals(&backup_store, &name, room).await?;
        return Ok(backup::restore(&paths(&locals), identities, target, None, placing).await?);
    };
    let (backup_store, candidates) = candidates(&args.archive, moment, source).await?;
    std::fs::create_dir_all(room).with_context(|| format!("cannot create {}", room.display()))?;
    let log = LogFrom { backup_store, moment };
    let mut refused = None;
    for name in &candidates {
        let locals = locals(&log.backup_store, name, room).await?;
        match backup::restore(&paths(&locals), identities, target, Some(&log), placing).await {
            // This archive was started before that time and finished after it.
            Err(error @ BackupError::TooEarly { .. }) => refused = Some(error),
            outcome => return Ok(outcome?),
        }
    }
    match refused {
        Some(error) => Err(error.into()),
        None => anyhow::bail!("{} holds no archive from before that time", args.archive),
    }
}

/// Restores a dump into an external database.
fn into_external(args: &RestoreArgs, identities: &[Identity], url: String, source: &Source) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.to.is_none(),
        "DATABASE_URL names an external database: only its provider can restore it to a point in time"
    );
    // pg_restore cannot drop everything that a dump creates, such as the keys of partitions.
    anyhow::ensure!(
        !args.replace,
        "an external database is not replaced: create an empty one, set DATABASE_URL to it, and restore"
    );
    let data_dir = binaries(source).data_root;
    let backend = storage(source)?.backend;
    let target = DumpTarget { url, files: backend.folder().to_owned() };
    let (manifest, files, keys, missing) = block_on(async {
        let stop = Stop::watch()?;
        let work = async {
            let (local, _) = local(&args.archive, &data_dir, source).await?;
            let programs = Programs::for_restore(&target.url, backup::major_of(&target.url).await?)?;
            let done = backup::restore_dump(local.path(), identities, &target, programs.command("pg_restore")).await?;
            Ok::<_, anyhow::Error>(done)
        };
        stop.before(work).await.ok_or(BackupError::StoppedAmongFiles)?
    })?;
    let mut text = format!(
        "the dump of {} was restored to the database in DATABASE_URL, and {files} files to {}\n",
        manifest.made_at.format("%Y-%m-%d %H:%M:%S UTC"),
        target.files.display()
    );
    text.push_str(&about_files(&backend, files));
    text.extend(missing.iter().map(|missing| format!("{missing}\n")));
    text.push_str(&about_keys(&data_dir, &keys, source)?);
    super::print_all(&text)
}

/// What to do if the server would not read the files where they are now; empty if it does.
fn about_files(backend: &BackendConfig, files: usize) -> String {
    match backend {
        BackendConfig::S3(store) if files > 0 => {
            let folder = store.spool.display();
            format!(
                "with STORAGE_BACKEND=s3 the server reads files from bucket {}: copy them there by 'ferrobase storage migrate --from {folder} --to s3'\n",
                store.bucket
            )
        }
        _ => String::new(),
    }
}

/// What to do if the backup was made with other keys; empty if they are the same.
fn about_keys(data_dir: &Path, keys: &str, source: &Source) -> anyhow::Result<String> {
    let keys = backup::keys::given(keys);
    let differing = backup::keys::differing(&keys, source);
    if differing.is_empty() {
        return Ok(String::new());
    }
    let file = write_keys(data_dir, &keys)?;
    Ok(format!(
        "the backup was made with other settings of {}: sessions and encrypted columns need those in {}; take them over \
         before the start and remove that file\n",
        differing.join(", "),
        file.display()
    ))
}

/// Archives from which `moment` may be reached, the best first, and where they are stored.
async fn candidates(given: &str, moment: RestorePoint, source: &Source) -> anyhow::Result<(BackupStore, Vec<String>)> {
    if given.ends_with(backup::SUFFIX) {
        let (backup_store, name) = depot_of(given, source)?;
        return Ok((backup_store, vec![name]));
    }
    let mut reader = Reader::new(source);
    let backup_store = BackupStore::read(given, &mut reader);
    let backup_store = reader.finish(backup_store)?.context("that is not a destination")?;
    let mut archives = Catalog::read(&backup_store, &State::default()).await?.archives;
    archives.retain(|(begun, _)| match moment {
        RestorePoint::At(time) => *begun < time,
        RestorePoint::Latest => true,
    });
    Ok((backup_store, archives.into_iter().map(|(_, name)| name).collect()))
}

/// Writes the backup's keys to a file that only its owner can read.
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
