//! `backup`: one encrypted archive of database, files and keys.

use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};

use super::database::{Database, block_on};
use super::project::Programs;
use super::stop::Stop;
use crate::backup::{
    self, Backup, BackupConfig, BackupError, Contents, Depot, Files, Identity, Local, Recipient, State,
};
use crate::config::{Reader, Source};
use crate::embedded_pg::{EmbeddedOptions, Passwords};
use crate::storage::{BackendConfig, Mode, StorageConfig};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// The place for the archive, a folder or s3://bucket/prefix [default: FERROBASE_BACKUP_TO]
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// A public key whose owner can open it; may be repeated [default: FERROBASE_BACKUP_RECIPIENT]
    #[arg(long, value_name = "age1…")]
    recipient: Vec<String>,
    /// Keep so many archives in that place and remove older ones; the last proved one stays [default:
    /// FERROBASE_BACKUP_KEEP]
    #[arg(long, value_name = "NUMBER")]
    keep: Option<NonZeroUsize>,
}

#[derive(Subcommand)]
enum BackupCommand {
    /// Make a pair of keys: the private one goes to a file, the public one is printed
    Key {
        /// A new file for the private key. Keep it, and a copy, somewhere else than the backups
        file: PathBuf,
    },
    /// Prove a backup: restore it aside, count its rows, compare the hashes of its files, and remove that again
    Verify {
        /// The archive that 'ferrobase backup' has made, a file or s3://bucket/prefix/name
        archive: String,
        /// The file of the private key [default: FERROBASE_BACKUP_IDENTITY_FILE]
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
        /// Where to restore it to; as much room is needed as the data takes [default: a folder in FERROBASE_DATA_DIR]
        #[arg(long, value_name = "FOLDER")]
        scratch: Option<PathBuf>,
    },
}

pub fn run(args: BackupArgs, source: &Source) -> anyhow::Result<()> {
    match args.command {
        Some(BackupCommand::Key { file }) => make_key(&file),
        Some(BackupCommand::Verify { archive, identity, scratch }) => {
            verify(&archive, identity.as_deref(), scratch, source)
        }
        None => back_up(&args, source),
    }
}

fn back_up(args: &BackupArgs, source: &Source) -> anyhow::Result<()> {
    let mut reader = Reader::new(source);
    let external = reader.text(&["DATABASE_URL"]);
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = BackupConfig::read(&mut reader);
    let given = args.to.as_ref().and_then(|text| Depot::read(text, &mut reader));
    let config = reader.finish(config)?;
    let depot = given.or(config.to);
    let depot = depot.context(
        "where to? Name a folder, best on another disk, or s3://bucket/prefix by --to or FERROBASE_BACKUP_TO",
    )?;
    let mut recipients = args.recipient.iter().map(|text| text.parse()).collect::<Result<Vec<Recipient>, _>>()?;
    if recipients.is_empty() {
        recipients = config.recipients;
    }
    let keep = args.keep.or(config.keep);
    let files = files(&storage(source)?.backend);
    let keys = backup::keys::collect(source);
    // The server's requests go first.
    let _ = rustix::process::nice(10);
    let (made, removed) = block_on(Database::with(source, async |logins| {
        let contents = Contents { admin_url: logins.admin_url, files: files.clone(), keys };
        let made = match &external {
            None => backup::make(&contents, &depot, &recipients).await?,
            Some(url) => {
                let programs = Programs::for_dump(url, backup::major_of(url).await?)?;
                backup::make_dump(&contents, programs.command("pg_dump"), &depot, &recipients).await?
            }
        };
        State::record_made(&data_dir, Backup::new(&made.archive, made.made_at).in_chain(made.chain.clone()))?;
        let removed = backup::retain(&depot, keep, &data_dir).await?;
        Ok((made, removed))
    }))?;
    let external = external.is_some();
    let mut text = format!(
        "{}: {} MiB, the database and {} files as of {}\n",
        made.archive,
        made.size.div_ceil(1 << 20),
        made.files,
        made.made_at.format("%Y-%m-%d %H:%M:%S UTC")
    );
    text.extend(removed.iter().map(|old| format!("removed {old}\n")));
    if external {
        text.push_str(
            "it is a dump of the database that DATABASE_URL names: restores to a point in time are its provider's, who has its log\n",
        );
    }
    if let Files::Elsewhere(place) = files {
        text.push_str(&format!(
            "the files of objects are not in it: they are in {place}, which has versions and copies of its own\n"
        ));
    }
    super::print_all(&text)
}

/// Where the files of objects are, as a backup sees it.
pub fn files(backend: &BackendConfig) -> Files {
    match backend {
        BackendConfig::Folder(folder) => Files::Folder(folder.clone()),
        BackendConfig::S3(store) => Files::Elsewhere(format!("bucket {} at {}", store.bucket, store.endpoint)),
    }
}

fn verify(archive: &str, identity: Option<&Path>, scratch: Option<PathBuf>, source: &Source) -> anyhow::Result<()> {
    let identities = identities(identity, source)?;
    let embedded = binaries(source);
    let scratch = scratch.map_or_else(|| embedded.data_root.join("verify"), |folder| folder.join("ferrobase-verify"));
    let (proof, full_name) = block_on(async {
        let stop = Stop::watch()?;
        let work = async {
            let (local, full_name) = local(archive, &embedded.data_root, source).await?;
            let manifest = backup::inspect(local.path(), &identities).await?;
            let bin_dir = embedded.bin_dir.clone();
            let proof = if manifest.dump {
                let major = manifest.postgres.parse().unwrap_or(0);
                // Looked for before a scratch database is started.
                Programs::restore(major)?;
                let connected = |url: &str| {
                    let programs = Programs::for_restore(url, major);
                    let command = programs.map(|programs| programs.command("pg_restore"));
                    command.map_err(|error| BackupError::Database(error.to_string()))
                };
                backup::verify_dump(local.path(), &identities, &scratch, bin_dir, connected).await?
            } else {
                backup::verify(local.path(), &identities, &scratch, bin_dir).await?
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
        manifest.made_at.format("%Y-%m-%d %H:%M:%S UTC")
    );
    if let Some(place) = &manifest.files_elsewhere {
        text.push_str(&format!("the files of objects were not in the backup: they are in {place}\n"));
    }
    text.extend(proof.differences.iter().map(|difference| format!("{difference}\n")));
    super::print_all(&text)?;
    let count = proof.differences.len();
    anyhow::ensure!(count == 0, "{count} thing(s) did not come back as they were: make another backup and verify that");
    State::record_proved(&embedded.data_root, Backup::new(&full_name, manifest.made_at))?;
    super::print_all("proved: all of it came back\n")
}

/// The file of an archive that is named on the command line, and its full name; `room` is for a copy of one in a bucket.
pub async fn local(archive: &str, room: &Path, source: &Source) -> anyhow::Result<(Local, String)> {
    let (depot, name) = depot_of(archive, source)?;
    std::fs::create_dir_all(room).with_context(|| format!("cannot create {}", room.display()))?;
    Ok((depot.local(&name, room).await?, depot.full_name(&name)))
}

/// Where an archive lies, and its name there.
pub fn depot_of(archive: &str, source: &Source) -> anyhow::Result<(Depot, String)> {
    let (place, name) = archive.rsplit_once('/').unwrap_or((".", archive));
    let place = if place.is_empty() { "/" } else { place };
    let mut reader = Reader::new(source);
    let depot = Depot::read(place, &mut reader);
    Ok((reader.finish(depot)?.context("that is no place")?, name.to_owned()))
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

/// The embedded PostgreSQL of the settings, on any port.
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
