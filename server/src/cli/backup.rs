//! `backup`: one encrypted archive of database, files and keys.

use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};

use super::database::{Database, block_on};
use super::stop::Stop;
use crate::backup::{self, Backup, BackupConfig, BackupError, Contents, Files, Identity, Recipient, State};
use crate::config::{Reader, Source};
use crate::embedded_pg::{EmbeddedOptions, Passwords};
use crate::storage::{BackendConfig, Mode, StorageConfig};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// The folder for the archive [default: FERROBASE_BACKUP_TO]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// A public key whose owner can open it; may be repeated [default: FERROBASE_BACKUP_RECIPIENT]
    #[arg(long, value_name = "age1…")]
    recipient: Vec<String>,
    /// Keep so many archives in that folder and remove older ones; the last proved one stays [default:
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
        /// The archive that 'ferrobase backup' has made
        archive: PathBuf,
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
    embedded_only(&reader)?;
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = BackupConfig::read(&mut reader);
    let config = reader.finish(config)?;
    let folder = args.to.clone().or(config.to);
    let folder = folder.context("where to? Name a folder, best on another disk, by --to or FERROBASE_BACKUP_TO")?;
    let mut recipients = args.recipient.iter().map(|text| text.parse()).collect::<Result<Vec<Recipient>, _>>()?;
    if recipients.is_empty() {
        recipients = config.recipients;
    }
    let keep = args.keep.or(config.keep);
    let files = files(&storage(source)?.backend);
    let keys = backup::keys::collect(source);
    // The server's requests go first.
    let _ = rustix::process::nice(10);
    let made = block_on(Database::with(source, async |logins| {
        let contents = Contents { admin_url: logins.admin_url, files: files.clone(), keys };
        Ok(backup::make(&contents, &folder, &recipients).await?)
    }))?;
    State::record_made(&data_dir, Backup::new(&made.archive, made.made_at))?;
    let removed = backup::retain(&folder, keep, &data_dir)?;
    let mut text = format!(
        "{}: {} MiB, the database and {} files as of {}\n",
        made.archive.display(),
        made.size.div_ceil(1 << 20),
        made.files,
        made.made_at.format("%Y-%m-%d %H:%M:%S UTC")
    );
    text.extend(removed.iter().map(|old| format!("removed {}\n", old.display())));
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

fn verify(archive: &Path, identity: Option<&Path>, scratch: Option<PathBuf>, source: &Source) -> anyhow::Result<()> {
    let identities = identities(identity, source)?;
    let embedded = embedded(source)?;
    let scratch = scratch.map_or_else(|| embedded.data_root.join("verify"), |folder| folder.join("ferrobase-verify"));
    let proof = block_on(async {
        let stop = Stop::watch()?;
        let work = backup::verify(archive, &identities, &scratch, embedded.bin_dir.clone());
        Ok(stop.before(work).await.ok_or(BackupError::Stopped)??)
    })?;
    let manifest = &proof.restored.manifest;
    let mut text = format!(
        "{}: {} tables with {} rows and {} files, as of {}\n",
        archive.display(),
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
    State::record_proved(&embedded.data_root, Backup::new(archive, manifest.made_at))?;
    super::print_all("proved: all of it came back\n")
}

/// An external database is its provider's to copy.
fn embedded_only(reader: &Reader<'_>) -> anyhow::Result<()> {
    anyhow::ensure!(
        reader.text(&["DATABASE_URL"]).is_none(),
        "DATABASE_URL names a database that ferrobase does not run: back it up with pg_dump or by its provider's means (points in \
         time are the provider's), and copy the folder of files after that"
    );
    Ok(())
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
pub fn embedded(source: &Source) -> anyhow::Result<EmbeddedOptions> {
    let reader = Reader::new(source);
    embedded_only(&reader)?;
    Ok(EmbeddedOptions {
        data_root: PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase")),
        port: 0,
        bin_dir: reader.text(&["PG_BIN_DIR"]).map(PathBuf::from),
        passwords: Passwords::Keep,
        ..EmbeddedOptions::default()
    })
}

pub fn storage(source: &Source) -> anyhow::Result<StorageConfig> {
    let mut reader = Reader::new(source);
    let data_dir = PathBuf::from(reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase"));
    let config = StorageConfig::read(&mut reader, &data_dir, Mode::Full);
    Ok(reader.finish(config)?)
}
