//! The making of the new cluster: a copy of the former one, what `pg_upgrade` makes of it, and its first start.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::super::facts::{Facts, connect, connect_to, databases_of};
use super::super::programs::{Programs, number};
use super::super::{UpgradeError, control};
use super::copy::copy;
use super::former::Former;
use super::place::{MARKER, STAGING, exchange, set_aside, sync_all, sync_folder};
use crate::embedded_pg::{self, Binaries, EmbeddedOptions, EmbeddedPostgres, Logins, Passwords, Site};
use crate::owner;

/// What the programs have said, if the upgrade failed.
const LOG: &str = "upgrade.log";
/// `pg_upgrade` names its sockets by it; nothing listens on it.
const SOCKET_PORT: u16 = 50432;

/// Files of the cluster that are not PostgreSQL's, or that its administrator has changed: they go with it.
const CARRIED: [&str; 6] =
    ["vault.key", "server.key", "server.crt", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"];
const CARRIED_FOLDER: &str = "tle";
/// The first role of each cluster.
const ADMIN: &str = "supabase_admin";

/// The folder in which the new cluster is made.
pub struct Staging<'a> {
    site: &'a Site,
    from: String,
    root: PathBuf,
    /// Data roots of the copy and of the new cluster.
    old: PathBuf,
    new: PathBuf,
    /// Where `pg_upgrade` works.
    work: PathBuf,
}

impl<'a> Staging<'a> {
    pub fn begin(site: &'a Site, from: &str) -> Result<Self, UpgradeError> {
        let root = site.root.join(STAGING);
        let staging = Self {
            old: root.join("old"),
            new: root.join("new"),
            work: root.join("work"),
            root,
            from: from.to_owned(),
            site,
        };
        for folder in [&staging.root, &staging.old, &staging.new, &staging.work] {
            std::fs::DirBuilder::new().mode(0o700).create(folder).map_err(UpgradeError::io("cannot create", folder))?;
            site.own(folder)?;
        }
        Ok(staging)
    }

    /// Copies the cluster, and the passwords that open it.
    pub async fn copy_cluster(&self) -> Result<(), UpgradeError> {
        copy(self.site.cluster(), self.old.join("db")).await?;
        for file in self.site.password_files() {
            for folder in [&self.old, &self.new] {
                let to = folder.join(file.file_name().unwrap_or_default());
                if file.exists() {
                    std::fs::copy(&file, &to).map_err(UpgradeError::io("cannot write", &to))?;
                }
            }
        }
        Ok(())
    }

    fn options(&self, data_root: &Path, bin_dir: Option<PathBuf>, embedded: &EmbeddedOptions) -> EmbeddedOptions {
        EmbeddedOptions {
            data_root: data_root.to_owned(),
            port: 0,
            bin_dir,
            settings: Vec::new(),
            passwords: Passwords::Keep,
            start_timeout: embedded.start_timeout,
        }
    }

    /// Starts the copy once, which recovers it, and stops it in order.
    pub async fn start_former(&self, programs: &Programs, embedded: &EmbeddedOptions) -> Result<Former, UpgradeError> {
        let options = self.options(&self.old, Some(programs.folder.clone()), embedded);
        let running = EmbeddedPostgres::start(&options).await?;
        let former = async {
            release_members(&running.admin_url).await?;
            clear_column_versions(&running.admin_url).await?;
            Former::read(&running.admin_url).await
        }
        .await;
        running.stop().await;
        former
    }

    /// Makes an empty cluster of the new version.
    pub async fn make_new(&self, programs: &Programs, former: &Former) -> Result<(), UpgradeError> {
        let password = self.work.join("password");
        self.write_private(&password, &former.password)?;
        let mut command = self.command(programs, "initdb");
        command.arg("-D").arg(self.new.join("db"));
        command.args(["-U", ADMIN, "-A", "scram-sha-256", "--encoding=UTF8", "--no-sync", "--pwfile"]).arg(&password);
        command.args(&former.locale).arg(format!("--wal-segsize={}", former.wal_segment_mib));
        if former.has_checksums {
            command.arg("--data-checksums");
        } else if number(&self.site.major) >= 18 {
            command.arg("--no-data-checksums");
        }
        self.finish(command, "initdb").await
    }

    /// Has `pg_upgrade` bring the copy's content into the new cluster. Files are linked: the copy is not needed afterwards.
    pub async fn run(&self, former: &Programs, current: &Programs, known: &Former) -> Result<(), UpgradeError> {
        let former_folder = if former.reads_control {
            former.folder.clone()
        } else {
            control::stand_in(&former.folder, &self.old.join("db"), &self.work.join("former-bin"))?
        };
        let libraries = Binaries::find(Some(&former.folder))?;
        self.add_settings(&self.old, &libraries, &self.from)?;
        self.add_settings(&self.new, &self.site.binaries, &self.site.major)?;
        let passwords = self.work.join("pgpass");
        self.write_private(&passwords, &format!("*:*:*:*:{}\n", known.password))?;
        let sockets = self.site.socket_folder(&self.work, SOCKET_PORT)?;
        let jobs = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
        let mut command = self.command(current, "pg_upgrade");
        command.arg("--old-bindir").arg(&former_folder).arg("--new-bindir").arg(&current.folder);
        command.arg("--old-datadir").arg(self.old.join("db")).arg("--new-datadir").arg(self.new.join("db"));
        command.args(["--username", ADMIN, "--link", "--jobs", &jobs.to_string(), "--socketdir"]).arg(&sockets);
        command.env("PGPASSFILE", &passwords);
        self.finish(command, "pg_upgrade").await
    }

    /// Settings by which PostgreSQL finds extensions, in the cluster's own file: `pg_upgrade` starts it itself.
    fn add_settings(&self, root: &Path, binaries: &Binaries, major: &str) -> Result<(), UpgradeError> {
        let settings = self.site.extension_settings(root, binaries, major)?;
        let lines: String =
            settings.iter().map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''"))).collect();
        let path = root.join("db/postgresql.auto.conf");
        let file = std::fs::OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(lines.as_bytes())).map_err(UpgradeError::io("cannot write", &path))
    }

    /// Takes along what `pg_upgrade` does not know of, from the former cluster itself.
    pub fn carry_over(&self) -> Result<(), UpgradeError> {
        let (from, to) = (self.site.cluster(), self.new.join("db"));
        for name in CARRIED {
            let (source, target) = (from.join(name), to.join(name));
            if source.exists() {
                let _ = std::fs::remove_file(&target);
                std::fs::copy(&source, &target).map_err(UpgradeError::io("cannot write", &target))?;
                self.site.own(&target)?;
            }
        }
        let (source, target) = (from.join(CARRIED_FOLDER), to.join(CARRIED_FOLDER));
        if source.exists() {
            // Settings of the new cluster have made an empty one.
            let _ = std::fs::remove_dir_all(&target);
            embedded_pg::copy_folder(&source, &target)?;
        }
        Ok(())
    }

    /// Starts the new cluster as it will be served, and compares it with the former.
    pub async fn answer(
        &self,
        embedded: &EmbeddedOptions,
        before: &Facts,
        bring_up: impl AsyncFnOnce(&Logins) -> Result<(), UpgradeError>,
    ) -> Result<Vec<String>, UpgradeError> {
        let options = self.options(&self.new, embedded.bin_dir.clone(), embedded);
        let running = EmbeddedPostgres::start(&options).await?;
        let answered = async {
            let differences = before.differences(&Facts::read(&running.admin_url).await?);
            if !differences.is_empty() {
                return Err(UpgradeError::Differs { differences });
            }
            let notes = settle_in(&running.admin_url).await?;
            bring_up(&running.logins()).await?;
            Ok(notes)
        }
        .await;
        running.stop().await;
        answered
    }

    /// Exchanges the names of the two clusters. Yields where the former one is.
    pub async fn put_in_place(self) -> Result<PathBuf, UpgradeError> {
        for name in ["run", "extensions"] {
            let _ = std::fs::remove_dir_all(self.new.join(name));
        }
        for name in ["postgres.log", "embedded.lock"] {
            let _ = std::fs::remove_file(self.new.join(name));
        }
        // This folder becomes the former cluster's, whose passwords stay beside it: the server's may change before it is put back.
        for file in self.site.password_files() {
            let Some(beside) = file.file_name().map(|name| self.new.join(name)) else { continue };
            let _ = std::fs::remove_file(&beside);
            if file.exists() {
                std::fs::copy(&file, &beside)
                    .and_then(|_| owner::hand_over(&beside))
                    .map_err(UpgradeError::io("cannot write", &beside))?;
            }
        }
        let marker = self.root.join(MARKER);
        let text = format!("{} {}\n", self.from, self.site.major);
        std::fs::write(&marker, text).map_err(UpgradeError::io("cannot write", &marker))?;
        let root = self.root.clone();
        tokio::task::spawn_blocking(move || sync_all(&root)).await.map_err(|_| UpgradeError::Stopped)??;
        exchange(&self.new.join("db"), &self.site.cluster())?;
        sync_folder(&self.site.root)?;
        sync_folder(&self.new)?;
        set_aside(&self.site.root, &self.from)
    }

    fn command(&self, programs: &Programs, program: &str) -> tokio::process::Command {
        let mut command = self.site.command(&programs.folder.join(program));
        // libpq's settings would lead elsewhere.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").current_dir(&self.work).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a program to its end. If it fails, what it has said is kept beside the cluster.
    async fn finish(&self, mut command: tokio::process::Command, program: &'static str) -> Result<(), UpgradeError> {
        let failed = |source| UpgradeError::Io { action: "cannot run", path: program.into(), source };
        let output = command.output().await.map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let mut text = said.clone();
        let mut lists = String::new();
        for path in logs_below(&self.new.join("db/pg_upgrade_output.d")) {
            let content = std::fs::read_to_string(&path).unwrap_or_default();
            text.push_str(&format!("\n== {}\n{content}", path.display()));
            // Lists of what prevents the upgrade.
            if path.extension().is_some_and(|extension| extension == "txt") {
                lists.push_str(&format!(" [{}]", content.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
        }
        let log = self.site.root.join(LOG);
        let written = std::fs::write(&log, text).is_ok();
        Err(UpgradeError::Program { program, said: telling(&said) + &lists, log: written.then_some(log) })
    }

    fn write_private(&self, path: &Path, text: &str) -> Result<(), UpgradeError> {
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(UpgradeError::io("cannot write", path))?;
        Ok(self.site.own(path)?)
    }
}

/// Takes our functions out of an extension, in every database of the copy.
async fn release_members(admin_url: &str) -> Result<(), UpgradeError> {
    for name in databases_of(&connect(admin_url).await?).await? {
        connect_to(admin_url, &name).await?.batch_execute(include_str!("release_members.sql")).await?;
    }
    Ok(())
}

/// Clears the option that PostgreSQL sets on columns itself since its releases of November 2026, in every database of the copy: `pg_upgrade`
/// of a release before them takes it for a user's, and fails. Columns from before them have none either.
async fn clear_column_versions(admin_url: &str) -> Result<(), UpgradeError> {
    let clear = "update pg_catalog.pg_attribute
                 set attoptions = nullif(array(select option from unnest(attoptions) option where option !~ '^pg_attver='), '{}')
                 where exists (select from unnest(attoptions) option where option ~ '^pg_attver=')";
    for name in databases_of(&connect(admin_url).await?).await? {
        connect_to(admin_url, &name).await?.batch_execute(clear).await?;
    }
    Ok(())
}

/// What `pg_upgrade` leaves to others: newer versions of extensions, and statistics.
async fn settle_in(admin_url: &str) -> Result<Vec<String>, UpgradeError> {
    let mut notes = Vec::new();
    let names = databases_of(&connect(admin_url).await?).await?;
    for name in names {
        let client = connect_to(admin_url, &name).await?;
        client
            .batch_execute(
                "set search_path = pg_catalog, pg_temp; set statement_timeout = 0;
                 do $$ begin
                   if current_setting('event_triggers', true) is not null then set event_triggers = off; end if;
                 end $$",
            )
            .await?;
        let older = "select quote_ident(name), name::text from pg_available_extensions
                     where installed_version <> default_version order by 1";
        for row in client.query(older, &[]).await? {
            let (quoted, extension): (String, String) = (row.get(0), row.get(1));
            if let Err(error) = client.batch_execute(&format!("alter extension {quoted} update")).await {
                let reason = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
                notes.push(format!("extension {extension} of {name} keeps its version: {reason}"));
            }
        }
        client.batch_execute("analyze").await?;
        // The platform's files adapt to the version; they run again, as if each had changed.
        let ledger =
            "select coalesce(to_regclass('_supavisor.platform_files'), to_regclass('ferrobase.platform_files'))::text";
        if let Some(ledger) = client.query_one(ledger, &[]).await?.get::<_, Option<String>>(0) {
            client.batch_execute(&format!("update {ledger} set checksum = 'of the former version'")).await?;
        }
    }
    Ok(notes)
}

/// Text files that `pg_upgrade` has left.
fn logs_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(logs_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "txt" || extension == "log") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What a program says about its failure, in one line: its last paragraph.
fn telling(said: &str) -> String {
    let paragraphs = said.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    let last = paragraphs.last().unwrap_or("it said nothing");
    let text = last.split_whitespace().collect::<Vec<_>>().join(" ");
    text.rsplit_once("fatal ").or_else(|| text.rsplit_once("error: ")).map_or(text.clone(), |(_, rest)| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_on_one_line() {
        let said = "Performing Consistency Checks\n-----\nChecking for x   fatal\n\n\
                    Your installation references loadable libraries that are missing from the\nnew installation.\n";
        assert_eq!(
            telling(said),
            "Your installation references loadable libraries that are missing from the new installation."
        );
        assert_eq!(telling("initdb: error: directory exists\n"), "directory exists");
        assert_eq!(telling(""), "it said nothing");
    }
}
