//! `backup`: creates one encrypted archive of database, files and keys.

use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};

use super::database::{Database, block_on};
use super::project::Programs;
use super::stop::Stop;
use crate::backup::{
    self, Backup, BackupConfig, BackupError, BackupStore, Contents, Files, Identity, Local, LogFrom, Made, Parent,
    Recipient, RestorePoint, State, Turn,
};
use crate::config::{Reader, Source};
use crate::embedded_pg::{Binaries, EmbeddedOptions, Passwords};
use crate::storage::{BackendConfig, Mode, StorageConfig};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// Where to put the archive: a folder or s3://bucket/prefix [default: FERROBASE_BACKUP_TO]
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Only what has changed since the last archive of that place, if PostgreSQL can continue from it; else all
    #[arg(long)]
    incremental: bool,
    /// A public key whose owner can open the archive; may be repeated [default: FERROBASE_BACKUP_RECIPIENT]
    #[arg(long, value_name = "age1…")]
    recipient: Vec<String>,
    /// Keep this many archives there and remove older ones, except the last verified one [default: FERROBASE_BACKUP_KEEP]
    #[arg(long, value_name = "NUMBER")]
    keep: Option<NonZeroUsize>,
}

#[derive(Subcommand)]
enum BackupCommand {
    /// Generate a key pair: write the private key to a file and print the public one
    Key {
        /// A new file for the private key. Store it, and a copy, away from the backups
        file: PathBuf,
    },
    /// Verify a backup: restore it into a scratch database, count its rows and hash its files
    Verify {
        /// The archive: a file or s3://bucket/prefix/name
        archive: String,
        /// The file with the private key [default: FERROBASE_BACKUP_IDENTITY_FILE]
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
        /// Verify a point in time after the archive, such as 2026-03-04T05:06:07Z or 'latest', from the WAL archived beside it
        #[arg(long, value_name = "TIME", value_parser = moment)]
        to: Option<RestorePoint>,
        /// Where to restore it temporarily; needs as much space as the data [default: a folder in FERROBASE_DATA_DIR]
        #[arg(long, value_name = "FOLDER")]
        scratch: Option<PathBuf>,
    },
}

/// A point in time on the command line.
pub fn moment(text: &str) -> Result<RestorePoint, String> {
    if text == "latest" {
        return Ok(RestorePoint::Latest);
    }
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| RestorePoint::At(time.to_utc()))
        .map_err(|_| "a time such as 2026-03-04T05:06:07Z, or latest".to_owned())
}

pub fn run(args: BackupArgs, source: &Source) -> anyhow::Result<()> {
    match args.command {
        Some(BackupCommand::Key { file }) => make_key(&file),
        Some(BackupCommand::Verify { archive, identity, to, scratch }) => {
            verify(&archive, identity.as_deref(), to, scratch, source)
        }
        None => back_up(&args, source),
    }
}

fn back_up(args: &BackupArgs, source: &Source) -> anyhow::Result<()> {
    let mut reader = Reader::new(source);
    let external = reader.text(&["DATABASE_URL"]);
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = BackupConfig::read(&mut reader);
    let given = args.to.as_ref().and_then(|text| BackupStore::read(text, &mut reader));
    let config = reader.finish(config)?;
    let backup_store = given.or(config.to);
    let backup_store = backup_store.context(
        "no destination: name a folder, preferably on another disk, or s3://bucket/prefix with --to or FERROBASE_BACKUP_TO",
    )?;
    let mut recipients = args.recipient.iter().map(|text| text.parse()).collect::<Result<Vec<Recipient>, _>>()?;
    if recipients.is_empty() {
        recipients = config.recipients;
    }
    let keep = args.keep.or(config.keep);
    let files = files(&storage(source)?.backend);
    let keys = backup::keys::collect(source);
    // The server's requests get the processor first.
    let _ = rustix::process::nice(10);
    let (made, removed) = block_on(Database::with(source, async |logins| {
        let summarizes = external.is_none() && (args.incremental || config.full_every.is_some());
        let contents =
            Contents { admin_url: logins.admin_url, files: files.clone(), keys, summarizes, gives_way: false };
        let _turn = match &external {
            None => Some(Turn::wait(&data_dir).await?),
            Some(_) => Turn::wait_for_dump(&data_dir).await,
        };
        backup::warn_if_gone(&backup_store, &data_dir).await;
        let made = match &external {
            None if args.incremental => make_next(&contents, &backup_store, &recipients, &data_dir, None).await?,
            None => backup::make(&contents, &backup_store, &recipients).await?,
            Some(url) => make_dump(url, &contents, &backup_store, &recipients).await?,
        };
        if external.is_none() {
            Parent::record(&data_dir, &made)?;
        }
        State::record_made(&data_dir, Backup::new(&made.archive, made.made_at).in_chain(made.chain.clone()))?;
        let removed = backup::retain(&backup_store, keep, &made, &data_dir).await?;
        Ok((made, removed))
    }))?;
    let external = external.is_some();
    let what = if made.is_incremental() { "the changes of the database" } else { "the database" };
    let mut text = format!(
        "{}: {} MiB, {what} and {} files as of {}\n",
        made.archive,
        made.size.div_ceil(1 << 20),
        made.files,
        made.made_at.format("%Y-%m-%d %H:%M:%S UTC")
    );
    text.extend(removed.iter().map(|old| format!("removed {old}\n")));
    if external {
        text.push_str(
            "it is a dump of the database that DATABASE_URL names: only its provider, who has its log, can restore it to a point in time\n",
        );
    }
    if let Files::Elsewhere(place) = files {
        text.push_str(&format!(
            "the files of objects are not in it: they are in {place}, which has its own versions and copies\n"
        ));
    }
    super::print_all(&text)
}

/// Makes an incremental archive, or a full one if there is none to continue from, PostgreSQL cannot, or the last full one is older
/// than `full_every`. The caller has the [`Turn`] until the archive is recorded.
pub async fn make_next(
    contents: &Contents,
    backup_store: &BackupStore,
    recipients: &[Recipient],
    data_dir: &Path,
    full_every: Option<Duration>,
) -> anyhow::Result<Made> {
    let parent = Parent::find(data_dir, backup_store).await?;
    let is_recent = |parent: &Parent| {
        let age = (Utc::now() - parent.full_at).to_std().unwrap_or_default();
        full_every.is_none_or(|every| age < every)
    };
    if let Some(parent) = parent.filter(is_recent) {
        let major = backup::major_of(&contents.admin_url).await?;
        // Without it, nobody could restore the archive here.
        match Programs::combine(major) {
            Err(error) if full_every.is_some() => {
                tracing::warn!(%error, "this backup is a full one, because an incremental one could not be restored here");
                return Ok(backup::make(contents, backup_store, recipients).await?);
            }
            found => drop(found?),
        }
        let command = Programs::for_basebackup(&contents.admin_url, major)?.command("pg_basebackup");
        match backup::make_increment(contents, &parent, command, backup_store, recipients).await {
            // For example, the database has removed its summaries, or the cluster was restored or upgraded.
            Err(BackupError::Program { said, .. }) => {
                tracing::warn!(said, "this backup is a full one, because it cannot continue from the last one");
                // Part of the time for pauses is over.
                let contents = Contents { gives_way: false, ..contents.clone() };
                return Ok(backup::make(&contents, backup_store, recipients).await?);
            }
            made => return Ok(made?),
        }
    }
    Ok(backup::make(contents, backup_store, recipients).await?)
}

/// Makes a dump of an external database.
pub async fn make_dump(
    url: &str,
    contents: &Contents,
    backup_store: &BackupStore,
    recipients: &[Recipient],
) -> anyhow::Result<Made> {
    let programs = Programs::for_dump(url, backup::major_of(url).await?)?;
    Ok(backup::make_dump(contents, programs.command("pg_dump"), backup_store, recipients).await?)
}

/// `pg_combinebackup` of the version of the binaries, or why there is none.
pub async fn combine(embedded: &EmbeddedOptions) -> Result<PathBuf, String> {
    let found = async {
        let binaries = Binaries::find(embedded.bin_dir.as_deref())?;
        let major = binaries.major_version(None, Path::new("/")).await?;
        Programs::combine(major.parse().unwrap_or(0))
    };
    found.await.map_err(|error: anyhow::Error| format!("{error:#}"))
}

/// Where the configured backend stores the files of objects.
pub fn files(backend: &BackendConfig) -> Files {
    match backend {
        BackendConfig::Folder(folder) => Files::Folder(folder.clone()),
        BackendConfig::S3(store) => Files::Elsewhere(format!("bucket {} at {}", store.bucket, store.endpoint)),
    }
}

fn verify(
    archive: &str,
    identity: Option<&Path>,
    to: Option<RestorePoint>,
    scratch: Option<PathBuf>,
    source: &Source,
) -> anyhow::Result<()> {
    let identities = identities(identity, source)?;
    let embedded = binaries(source);
    let scratch = scratch.map_or_else(|| embedded.data_root.join("verify"), |folder| folder.join("ferrobase-verify"));
    let (backup_store, name) = depot_of(archive, source)?;
    let (proof, full_name) = block_on(async {
        let stop = Stop::watch()?;
        let work = async {
            let full_name = backup_store.full_name(&name);
            let locals = locals(&backup_store, &name, &embedded.data_root).await?;
            let paths = paths(&locals);
            let last = paths.last().context("there is no archive")?;
            let manifest = backup::inspect(last, &identities).await?;
            let bin_dir = embedded.bin_dir.clone();
            let proof = if manifest.dump {
                anyhow::ensure!(
                    to.is_none(),
                    "{full_name} is a dump without a log of changes: only the database's provider can restore it to a point in time"
                );
                let major = manifest.postgres.parse().unwrap_or(0);
                // Checked before a scratch database is started.
                Programs::restore(major)?;
                let connected = |url: &str| {
                    let programs = Programs::for_restore(url, major);
                    let command = programs.map(|programs| programs.command("pg_restore"));
                    command.map_err(|error| BackupError::Database(error.to_string()))
                };
                backup::verify_dump(last, &identities, &scratch, bin_dir, connected).await?
            } else {
                let log = to.map(|moment| LogFrom { backup_store: backup_store.clone(), moment });
                let combine = combine(&embedded).await;
                backup::verify(&paths, &identities, &scratch, bin_dir, combine, log.as_ref()).await?
            };
            Ok::<_, anyhow::Error>((proof, full_name))
        };
        stop.before(work).await.ok_or(BackupError::Stopped)?
    })?;
    let manifest = &proof.restored.manifest;
    let mut text = format!(
        "{}: {} tables with {} rows and {} files, as of {}\n",
        archive,
        proof.tables,
        proof.rows,
        proof.files,
        proof.restored.as_of.format("%Y-%m-%d %H:%M:%S UTC")
    );
    if let Some(place) = &manifest.files_elsewhere {
        text.push_str(&format!("the files of objects were not in the backup: they are in {place}\n"));
    }
    let locks = manifest.locks_needed(backup::SESSIONS);
    if locks > backup::LOCKS {
        text.push_str(&format!(
            "to restore it, a PostgreSQL with max_connections = {} needs max_locks_per_transaction = {locks}\n",
            backup::SESSIONS
        ));
    }
    text.extend(proof.differences.iter().map(|difference| format!("{difference}\n")));
    super::print_all(&text)?;
    let count = proof.differences.len();
    anyhow::ensure!(
        count == 0,
        "{count} difference(s) between the backup and its restored copy: make another backup and verify it"
    );
    State::record_proved(&embedded.data_root, Backup::new(&full_name, manifest.made_at))?;
    // Whoever may only read there can verify, too.
    if let Err(error) = block_on(async { Ok(backup::note_proved(&backup_store, &name).await?) }) {
        tracing::warn!(%error, "other servers are not told that this archive was verified, and may remove it");
    }
    super::print_all("verified: everything was restored\n")
}

/// The local file of an archive named on the command line, and its full name. An archive in a bucket is copied below `room`.
pub async fn local(archive: &str, room: &Path, source: &Source) -> anyhow::Result<(Local, String)> {
    let (backup_store, name) = depot_of(archive, source)?;
    std::fs::create_dir_all(room).with_context(|| format!("cannot create {}", room.display()))?;
    Ok((backup_store.local(&name, room).await?, backup_store.full_name(&name)))
}

/// The local files of all archives that restoring `name` needs, the full one first.
pub async fn locals(backup_store: &BackupStore, name: &str, room: &Path) -> anyhow::Result<Vec<Local>> {
    std::fs::create_dir_all(room).with_context(|| format!("cannot create {}", room.display()))?;
    let mut locals = Vec::new();
    for name in backup::lineage(backup_store, name).await? {
        locals.push(backup_store.local(&name, room).await?);
    }
    Ok(locals)
}

pub fn paths(locals: &[Local]) -> Vec<PathBuf> {
    locals.iter().map(|local| local.path().to_owned()).collect()
}

/// Splits the name of an archive into its location and its name there.
pub fn depot_of(archive: &str, source: &Source) -> anyhow::Result<(BackupStore, String)> {
    let (place, name) = archive.rsplit_once('/').unwrap_or((".", archive));
    let place = if place.is_empty() { "/" } else { place };
    let mut reader = Reader::new(source);
    let backup_store = BackupStore::read(place, &mut reader);
    Ok((reader.finish(backup_store)?.context("that is not a destination")?, name.to_owned()))
}

fn make_key(file: &Path) -> anyhow::Result<()> {
    let identity = Identity::generate()?;
    let recipient = identity.recipient();
    let text = format!("# public key: {recipient}\n{}\n", identity.reveal());
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut out| out.write_all(text.as_bytes()).and_then(|()| out.sync_all()))
        .with_context(|| format!("cannot write the private key to {}", file.display()))?;
    super::print_all(&format!("FERROBASE_BACKUP_RECIPIENT={recipient}\n"))
}

/// The private keys for opening archives.
pub fn identities(given: Option<&Path>, source: &Source) -> anyhow::Result<Vec<Identity>> {
    let setting = Reader::new(source).text(&["FERROBASE_BACKUP_IDENTITY_FILE"]).map(PathBuf::from);
    let Some(file) = given.map(Path::to_owned).or(setting) else {
        return Err(BackupError::NoIdentity.into());
    };
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Identity::read_all(&text).map_err(|reason| BackupError::Identity { file, reason })?)
}

/// Options for the embedded PostgreSQL of the settings, on any free port.
pub fn binaries(source: &Source) -> EmbeddedOptions {
    let reader = Reader::new(source);
    EmbeddedOptions {
        data_root: PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase")),
        port: 0,
        bin_dir: reader.text(&["PG_BIN_DIR"]).map(PathBuf::from),
        passwords: Passwords::Keep,
        ..EmbeddedOptions::default()
    }
}

pub fn storage(source: &Source) -> anyhow::Result<StorageConfig> {
    let mut reader = Reader::new(source);
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = StorageConfig::read(&mut reader, &data_dir, Mode::Full);
    Ok(reader.finish(config)?)
}
