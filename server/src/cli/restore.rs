//! `restore`: a backup comes back into a data folder.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use chrono::DateTime;
use clap::Args;

use super::backup::{binaries, depot_of, identities, local, storage};
use super::database::block_on;
use super::project::Programs;
use super::stop::Stop;
use crate::backup::{self, BackupError, Depot, DumpTarget, Identity, LogFrom, Moment, Restored, Target};
use crate::config::{Reader, Source};

#[derive(Args)]
pub struct RestoreArgs {
    /// The archive that 'ferrobase backup' has made, a file or s3://bucket/prefix/name; with --to the folder or s3://bucket/prefix
    /// suffices, and the last archive before that moment is taken
    archive: String,
    /// The file of the private key [default: FERROBASE_BACKUP_IDENTITY_FILE]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Go on after the archive with the log of changes beside it, up to a moment such as 2026-03-04T05:06:07Z, or 'latest'
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Moment>,
    /// Take the place of the database that is there, which is set aside
    #[arg(long)]
    replace: bool,
}

fn moment(text: &str) -> Result<Moment, String> {
    if text == "latest" {
        return Ok(Moment::Latest);
    }
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| Moment::At(time.to_utc())).map_err(|_| "a time such as 2026-03-04T05:06:07Z, or latest".to_owned())
}

pub fn run(args: &RestoreArgs, source: &Source) -> anyhow::Result<()> {
    let identities = identities(args.identity.as_deref(), source)?;
    if let Some(url) = Reader::new(source).text(&["DATABASE_URL"]) {
        return into_external(args, &identities, url, source);
    }
    let embedded = binaries(source);
    let data_dir = embedded.data_root.clone();
    let files = storage(source)?.backend.folder().to_owned();
    let target = Target { embedded, files, replace: args.replace };
    let restored = block_on(async {
        let stop = Stop::watch()?;
        let work = bring_back(args, &identities, &target, source);
        stop.before(work).await.ok_or(BackupError::Stopped)?
    })?;
    let mut text = format!(
        "the database as of {} and {} files are in {}\n",
        restored.as_of.format("%Y-%m-%d %H:%M:%S UTC"),
        restored.files,
        restored.cluster.display()
    );
    if let Some(place) = &restored.manifest.files_elsewhere {
        text.push_str(&format!("the files of objects were not in the backup: they are in {place}\n"));
    }
    if let Some(former) = &restored.former {
        text.push_str(&format!("the former database is in {}: remove it when it is not needed\n", former.display()));
    }
    text.push_str(&about_keys(&data_dir, &restored.keys, source)?);
    super::print_all(&text)
}

async fn bring_back(
    args: &RestoreArgs,
    identities: &[Identity],
    target: &Target,
    source: &Source,
) -> anyhow::Result<Restored> {
    let room = &target.embedded.data_root;
    let Some(moment) = args.to else {
        let (local, _) = local(&args.archive, room, source).await?;
        return Ok(backup::restore(local.path(), identities, target, None).await?);
    };
    let (depot, candidates) = candidates(&args.archive, moment, source).await?;
    std::fs::create_dir_all(room).with_context(|| format!("cannot create {}", room.display()))?;
    let log = LogFrom { depot, moment };
    let mut refused = None;
    for name in &candidates {
        let local = log.depot.local(name, room).await?;
        match backup::restore(local.path(), identities, target, Some(&log)).await {
            // It was begun before that moment and ended after it.
            Err(error @ BackupError::TooEarly { .. }) => refused = Some(error),
            outcome => return Ok(outcome?),
        }
    }
    match refused {
        Some(error) => Err(error.into()),
        None => anyhow::bail!("{} holds no archive from before that moment", args.archive),
    }
}

/// A dump into the database of somebody else.
fn into_external(args: &RestoreArgs, identities: &[Identity], url: String, source: &Source) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.to.is_none(),
        "DATABASE_URL names a database that ferrobase does not run: its provider restores it to a point in time"
    );
    // pg_restore cannot drop everything that a dump makes, such as the keys of partitions.
    anyhow::ensure!(
        !args.replace,
        "nothing is replaced in a database that ferrobase does not run: make an empty one, set DATABASE_URL to that, and restore"
    );
    let data_dir = binaries(source).data_root;
    let files = storage(source)?.backend.folder().to_owned();
    let target = DumpTarget { url, files };
    let (manifest, files, keys) = block_on(async {
        let stop = Stop::watch()?;
        let work = async {
            let (local, _) = local(&args.archive, &data_dir, source).await?;
            let programs = Programs::for_restore(&target.url, backup::major_of(&target.url).await?)?;
            let done = backup::restore_dump(local.path(), identities, &target, programs.command("pg_restore")).await?;
            Ok::<_, anyhow::Error>(done)
        };
        stop.before(work).await.ok_or(BackupError::Stopped)?
    })?;
    let mut text = format!(
        "the dump of {} is in the database of DATABASE_URL, and {files} files are in {}\n",
        manifest.made_at.format("%Y-%m-%d %H:%M:%S UTC"),
        target.files.display()
    );
    text.push_str(&about_keys(&data_dir, &keys, source)?);
    super::print_all(&text)
}

/// What to do where the backup was made with other keys; nothing where it was not.
fn about_keys(data_dir: &Path, keys: &str, source: &Source) -> anyhow::Result<String> {
    let differing = backup::keys::differing(keys, source);
    if differing.is_empty() {
        return Ok(String::new());
    }
    let file = write_keys(data_dir, keys)?;
    Ok(format!(
        "the backup was made with other settings of {}: sessions and encrypted columns need those in {}; take them over \
         before the start and remove that file\n",
        differing.join(", "),
        file.display()
    ))
}

/// Archives that may lead to `moment`, the best first, and where they lie.
async fn candidates(given: &str, moment: Moment, source: &Source) -> anyhow::Result<(Depot, Vec<String>)> {
    if given.ends_with(backup::SUFFIX) {
        let (depot, name) = depot_of(given, source)?;
        return Ok((depot, vec![name]));
    }
    let mut reader = Reader::new(source);
    let depot = Depot::read(given, &mut reader);
    let depot = reader.finish(depot)?.context("that is no place")?;
    let mut archives = backup::archives(&depot).await?;
    archives.retain(|(begun, _)| match moment {
        Moment::At(time) => *begun < time,
        Moment::Latest => true,
    });
    Ok((depot, archives.into_iter().map(|(_, name)| name).collect()))
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
