//! PostgreSQL's programs that an upgrade needs: those of the version that made the database, and `pg_upgrade` with all that it calls.

use std::path::{Path, PathBuf};

use tokio::process::Command;

/// What `pg_upgrade` calls of the former version.
const FORMER: [&str; 2] = ["postgres", "pg_ctl"];
/// What it asks for the state of the former cluster; the npm packages lack them.
const FORMER_CONTROL: [&str; 2] = ["pg_controldata", "pg_resetwal"];
const CURRENT: [&str; 11] = [
    "pg_upgrade",
    "postgres",
    "initdb",
    "pg_ctl",
    "pg_controldata",
    "pg_resetwal",
    "pg_dump",
    "pg_dumpall",
    "pg_restore",
    "psql",
    "vacuumdb",
];

/// A major version as a number; 0 if it is none.
pub fn number(major: &str) -> u32 {
    major.parse().unwrap_or(0)
}

/// A folder of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    pub folder: PathBuf,
    /// Whether those are there that read a cluster's control file.
    pub reads_control: bool,
}

/// Where programs of each kind may lie, the best place first.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Of the version that made the database.
    pub former: Vec<PathBuf>,
    /// Of the version of the binaries.
    pub current: Vec<PathBuf>,
}

impl Places {
    /// The programs of `major` that made the database; else what was found instead, for a message.
    pub async fn former(&self, major: &str) -> Result<Programs, String> {
        let folder = find(&self.former, major, &FORMER).await?;
        let reads_control = FORMER_CONTROL.iter().all(|program| folder.join(program).is_file());
        Ok(Programs { folder, reads_control })
    }

    /// `pg_upgrade` of `major` with its companions; else what was found instead, for a message.
    pub async fn current(&self, major: &str) -> Result<Programs, String> {
        let folder = find(&self.current, major, &CURRENT).await?;
        Ok(Programs { folder, reads_control: true })
    }
}

/// The first folder that has all of `wanted` in version `major`.
async fn find(folders: &[PathBuf], major: &str, wanted: &[&str]) -> Result<PathBuf, String> {
    let mut nearly = String::new();
    for folder in folders {
        if version(&folder.join("postgres")).await.as_deref() != Some(major) {
            continue;
        }
        let missing: Vec<&str> = wanted.iter().filter(|name| !folder.join(name).is_file()).copied().collect();
        if missing.is_empty() {
            return Ok(folder.clone());
        }
        if nearly.is_empty() {
            nearly = format!(" ({} lacks {})", folder.display(), missing.join(", "));
        }
    }
    Err(nearly)
}

/// The major version that `program` says it is of; `None` where it does not run.
async fn version(program: &Path) -> Option<String> {
    if !program.is_file() {
        return None;
    }
    let mut tries = 0;
    let output = loop {
        tries += 1;
        match Command::new(program).arg("--version").output().await {
            // Still open for writing in a child that another thread has forked.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy && tries < 100 => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            output => break output.ok()?,
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(number.chars().take_while(char::is_ascii_digit).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_folder_counts_only_with_all_programs_of_that_version() {
        let root = tempfile::tempdir().expect("a folder");
        let place = |name: &str, major: u32, programs: &[&str]| {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).expect("a folder");
            for program in programs {
                let path = folder.join(program);
                std::fs::write(&path, format!("#!/bin/sh\necho '{program} (PostgreSQL) {major}.4 (Debian)'\n"))
                    .expect("a program");
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
            }
            folder
        };
        let all = [&FORMER[..], &FORMER_CONTROL].concat();
        let (other, partial) = (place("other", 16, &all), place("partial", 17, &["postgres"]));
        let (npm, whole) = (place("npm", 17, &FORMER), place("whole", 17, &all));
        let places = |former: &[&PathBuf]| Places {
            former: former.iter().map(|folder| (*folder).clone()).collect(),
            current: Vec::new(),
        };
        let found = places(&[&other, &partial, &npm, &whole]).former("17").await.expect("found");
        assert_eq!(found, Programs { folder: npm, reads_control: false });
        let found = places(&[&whole]).former("17").await.expect("found");
        assert_eq!(found, Programs { folder: whole, reads_control: true });
        let missing = places(&[&other, &partial]).former("17").await.expect_err("missing");
        assert_eq!(missing, format!(" ({} lacks pg_ctl)", partial.display()));
        assert_eq!(places(&[&other]).former("17").await, Err(String::new()));
    }
}
