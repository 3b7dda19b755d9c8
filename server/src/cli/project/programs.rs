//! PostgreSQL's programs such as `pg_dump` and `psql`: where to find them, and how to connect them to the database.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::connection;
use crate::config::{PG_TOOLS, conninfo};
use crate::db::{KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_RETRIES};

/// Any later version will do.
const NEWEST: u32 = u32::MAX;

/// The oldest `psql` with the options and meta-commands used here. The server may be newer.
const OLDEST_PSQL: u32 = 12;

/// The programs of one PostgreSQL release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    folder: PathBuf,
    /// Connection string without the password.
    database: String,
    password: Option<String>,
}

impl Programs {
    /// Programs with a `pg_dump` that can dump a server of version `major`, for the database at `url`.
    pub fn for_dump(url: &str, major: u32) -> anyhow::Result<Self> {
        Self::of(find("pg_dump", major..=NEWEST, major)?, url)
    }

    /// Programs with a `psql`.
    pub fn for_psql(url: &str, major: u32) -> anyhow::Result<Self> {
        Self::of(find("psql", OLDEST_PSQL..=NEWEST, major)?, url)
    }

    /// Programs with a `pg_restore` that reads dumps of version `major`, for the database at `url`.
    pub fn for_restore(url: &str, major: u32) -> anyhow::Result<Self> {
        Self::of(find("pg_restore", major..=NEWEST, major)?, url)
    }

    /// A `pg_restore` of version `major` or later that writes a dump as SQL and does not connect.
    pub fn restore(major: u32) -> anyhow::Result<Command> {
        Ok(Command::new(find("pg_restore", major..=NEWEST, major)?.join("pg_restore")))
    }

    /// Those with a `pg_basebackup` of version `major`, for the cluster at `url`.
    pub fn for_basebackup(url: &str, major: u32) -> anyhow::Result<Self> {
        Self::of(find("pg_basebackup", major..=NEWEST, major)?, url)
    }

    /// `pg_combinebackup` of `major`, which connects to nothing. One of a later version cannot read the cluster's control file.
    pub fn combine(major: u32) -> anyhow::Result<PathBuf> {
        Ok(find("pg_combinebackup", major..=major, major)?.join("pg_combinebackup"))
    }

    fn of(folder: PathBuf, url: &str) -> anyhow::Result<Self> {
        // They notice a machine that dies silently as early as our own connections do. No tcp_user_timeout: a server that builds an
        // index while it is sent rows is not dead.
        let alive = [
            ("keepalives_idle", KEEPALIVE_IDLE.as_secs()),
            ("keepalives_interval", KEEPALIVE_INTERVAL.as_secs()),
            ("keepalives_count", KEEPALIVE_RETRIES.into()),
        ];
        let (database, password) = conninfo::for_programs(&connection::for_programs(url), &alive)
            .map_err(|error| anyhow::anyhow!("the database cannot be reached by this connection string: {error}"))?;
        Ok(Self { folder, database, password })
    }

    /// `program` with its connection. The password is passed in the environment, because any user of the machine can read
    /// arguments.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join(program));
        for name in ["PGOPTIONS", "PGPASSWORD", "PGSERVICE"] {
            command.env_remove(name);
        }
        command.arg("--dbname").arg(&self.database).envs(self.password.iter().map(|password| ("PGPASSWORD", password)));
        command
    }
}

/// The folder of the first `program` of one of these versions. The error says what to install.
fn find(program: &str, versions: RangeInclusive<u32>, major: u32) -> anyhow::Result<PathBuf> {
    let set = std::env::var_os(PG_TOOLS).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let (oldest, or_later) = (*versions.start(), if *versions.end() == NEWEST { " or later" } else { "" });
    let others =
        match first(program, versions, set.as_ref().map_or_else(|| folders(major), |folder| vec![folder.clone()])) {
            Ok(folder) => return Ok(folder),
            Err(others) => others,
        };
    let found = match (others.is_empty(), set) {
        (true, Some(folder)) => format!("; {} ({PG_TOOLS}) has none that runs", folder.display()),
        (true, None) => String::new(),
        (false, _) => format!("; {}", others.join(", ")),
    };
    anyhow::bail!(
        "{program} of PostgreSQL {oldest}{or_later} is needed{found}. Install it: {}; or name its folder in {PG_TOOLS}",
        advice(major)
    )
}

/// The first of these folders with a `program` of one of these versions; otherwise which versions there are.
fn first(program: &str, versions: RangeInclusive<u32>, folders: Vec<PathBuf>) -> Result<PathBuf, Vec<String>> {
    let mut others = Vec::new();
    for folder in folders {
        let path = folder.join(program);
        match version(&path) {
            Some(version) if versions.contains(&version) => return Ok(folder),
            Some(version) => others.push(format!("{} is of version {version}", path.display())),
            None => {}
        }
    }
    Err(others)
}

/// What to install on this platform.
fn advice(major: u32) -> String {
    let checkout = "'just pg-tools' in Ferrobase's checkout";
    if cfg!(target_os = "macos") {
        format!("'brew install postgresql@{major}'")
    } else {
        format!(
            "postgresql-client-{major} from apt.postgresql.org on Debian and Ubuntu, postgresql{major} from \
             yum.postgresql.org on Fedora and RHEL, postgresql{major}-client on Alpine, {checkout} on Linux on x86-64"
        )
    }
}

/// Folders to search, in order of preference.
pub fn folders(major: u32) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("PG_BIN_DIR").map(PathBuf::from).into_iter().collect();
    let starts = [std::env::current_exe().ok(), std::env::current_dir().ok()];
    for around in starts.iter().flatten().flat_map(|start| start.ancestors()) {
        folders.push(around.join("tools/postgres/client/bin"));
    }
    folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    // Installed, but not on PATH.
    for place in ["/usr/lib/postgresql/MAJOR/bin", "/usr/pgsql-MAJOR/bin", "/usr/libexec/postgresqlMAJOR"] {
        folders.push(PathBuf::from(place.replace("MAJOR", &major.to_string())));
    }
    for brew in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        folders.push(Path::new(brew).join(format!("postgresql@{major}/bin")));
        folders.push(Path::new(brew).join("libpq/bin"));
    }
    folders
}

/// The major version of `program`; `None` if it cannot be run.
fn version(program: &Path) -> Option<u32> {
    if !program.is_file() {
        return None;
    }
    let output = Command::new(program).arg("--version").output().ok()?;
    major_of(&String::from_utf8_lossy(&output.stdout))
}

/// `pg_dump (PostgreSQL) 18.4 (Debian 18.4-1)` → 18.
fn major_of(text: &str) -> Option<u32> {
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_program_output() {
        for (text, major) in [
            ("pg_dump (PostgreSQL) 18.4\n", Some(18)),
            ("psql (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some(15)),
            ("pg_dump (PostgreSQL) 19beta1", Some(19)),
            ("no such thing", None),
        ] {
            assert_eq!(major_of(text), major, "{text}");
        }
    }

    #[test]
    fn a_program_that_reads_a_clusters_files_has_to_be_of_its_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("pg_combinebackup");
        std::fs::write(&program, "#!/bin/sh\necho 'pg_combinebackup (PostgreSQL) 18.4'\n").expect("a program");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, executable).expect("its mode");
        let look = |versions| first("pg_combinebackup", versions, vec![folder.path().to_owned()]);
        assert_eq!(look(17..=NEWEST).as_deref(), Ok(folder.path()));
        assert_eq!(look(17..=17), Err(vec![format!("{} is of version 18", program.display())]));
    }
}
