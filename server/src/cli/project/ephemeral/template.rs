//! The template of copies: a stopped cluster and the files of buckets, kept in the project's data folder under a hash of all
//! their inputs.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use sha2::{Digest, Sha256};

use super::folder::Folder;
use super::server_of;
use crate::cli::project::running::Place;
use crate::cli::project::start::follow;
use crate::cli::project::{PASSED, say};
use crate::embedded_pg::{self, Binaries};
use crate::migrate;
use crate::project::{CopyTarget, Project};

/// How many templates are kept, such as those of a few branches.
const KEPT: usize = 3;

/// The parts of a template.
const PARTS: [&str; 2] = ["db", "storage"];

/// Copies the template into `target`. Makes it first if there is none with this hash.
pub async fn copy_into(project: &Project, target: &Path) -> anyhow::Result<()> {
    let kept = project.own_dir().join("templates");
    std::fs::create_dir_all(&kept).with_context(|| format!("cannot create {}", kept.display()))?;
    let lock = File::create(kept.join("lock")).with_context(|| format!("cannot write in {}", kept.display()))?;
    let template = kept.join(hash(project)?);
    loop {
        lock.lock_shared()?;
        if is_complete(&template) {
            break;
        }
        lock.unlock()?;
        // Other processes that need the same template wait.
        lock.lock()?;
        if !is_complete(&template) {
            if template.exists() {
                say("The template of this project is incomplete; it is recreated.");
                std::fs::remove_dir_all(&template).with_context(|| format!("cannot remove {}", template.display()))?;
            }
            make(project, &template).await?;
            prune(&kept, &template);
        }
        lock.unlock()?;
    }
    // The modification time decides which template is removed first.
    let _ = File::open(&template).and_then(|folder| folder.set_modified(SystemTime::now()));
    for part in PARTS {
        let from = template.join(part);
        if from.exists() {
            embedded_pg::copy_folder(&from, &target.join(part))?;
        }
    }
    Ok(())
}

/// Whether it contains a cluster. A CI cache may have restored half of one.
fn is_complete(template: &Path) -> bool {
    ["db/PG_VERSION", "db/global/pg_control"].iter().all(|file| template.join(file).is_file())
}

/// Starts the project once in a folder of its own and keeps the resulting state.
async fn make(project: &Project, template: &Path) -> anyhow::Result<()> {
    say("Preparing a template of this project; the next starts copy it...");
    let folder = Folder::make()?;
    let outcome = async {
        let mut server = server_of(project, &folder, true)?;
        let place = Place::at(&folder.path);
        let told = follow(&mut server, &place);
        // Closing the pipe ends the server if it still runs.
        drop(server.stdin.take());
        let status = server.wait()?;
        told?;
        anyhow::ensure!(status.success(), "the template could not be created ({status})");
        let partial = template.with_extension("partial");
        if partial.exists() {
            std::fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
        }
        std::fs::create_dir(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        for part in PARTS {
            let from = folder.path.join(part);
            // A rename fails across file systems; then copy.
            if from.exists() && std::fs::rename(&from, partial.join(part)).is_err() {
                embedded_pg::copy_folder(&from, &partial.join(part))?;
            }
        }
        std::fs::rename(&partial, template).with_context(|| format!("cannot create {}", template.display()))
    }
    .await;
    let removed = folder.remove().await;
    outcome.and(removed)
}

/// Removes all but the newest templates.
fn prune(kept: &Path, newest: &Path) {
    let Ok(entries) = std::fs::read_dir(kept) else { return };
    let mut others: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.path() != newest && entry.path().is_dir())
        // Half-made templates are abandoned, since we hold the lock.
        .filter(|entry| {
            let is_partial = entry.path().extension().is_some_and(|extension| extension == "partial");
            if is_partial {
                let _ = std::fs::remove_dir_all(entry.path());
            }
            !is_partial
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    others.sort();
    let too_many = (others.len() + 1).saturating_sub(KEPT);
    for (_, path) in others.into_iter().take(too_many) {
        let _ = std::fs::remove_dir_all(path);
    }
}

/// A hash of this program, its SQL, PostgreSQL, the configuration, and every file that is loaded at startup.
fn hash(project: &Project) -> anyhow::Result<String> {
    let mut hash = Inputs(Sha256::new());
    hash.text("version", env!("CARGO_PKG_VERSION"));
    hash.stamp(&std::env::current_exe()?)?;
    for file in migrate::embedded_files()? {
        hash.text(&file.file, &file.text);
    }
    embedded_pg::each_extension_file(|name, data| hash.bytes(name.as_bytes(), data));
    let bin_dir = std::env::var_os("PG_BIN_DIR").map(PathBuf::from);
    let binaries = Binaries::find(bin_dir.as_deref())?;
    hash.stamp(&binaries.dir.join("postgres"))?;
    for part in ["extension", "lib"] {
        let Some(folder) = binaries.extensions().map(|folder| folder.join(part)) else { continue };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            hash.stamp(&path)?;
        }
    }
    hash.text("configuration", &project.configuration());
    let elsewhere = CopyTarget { data_dir: PathBuf::new(), api: 0, db: 0, inbox: 0, smtp: 0 };
    for (name, value) in project.served_at(elsewhere).settings()? {
        hash.text(&name, &value);
    }
    let mut given: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name != "RUST_LOG" && !name.starts_with("FERROBASE_TEST_"))
        .filter(|(name, _)| PASSED.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    given.sort();
    for (name, value) in given {
        hash.text(&name, &value);
    }
    let mut files = vec![project.folder().join("roles.sql")];
    files.extend(project.migrations()?.paths);
    files.extend(project.seeds()?.0.into_iter().map(|seed| seed.path));
    files.extend(project.buckets().iter().flat_map(|bucket| bucket.files()).map(|(_, path)| path));
    for path in files {
        let data = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            data => data.with_context(|| format!("cannot read {}", path.display()))?,
        };
        hash.bytes(path.as_os_str().as_encoded_bytes(), &data);
    }
    Ok(hex::encode(&hash.0.finalize()[..12]))
}

struct Inputs(Sha256);

impl Inputs {
    /// Hashes the lengths too, so that no two lists of inputs hash alike.
    fn bytes(&mut self, name: &[u8], data: &[u8]) {
        for part in [name, data] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        self.bytes(name.as_bytes(), text.as_bytes());
    }

    /// Hashes a large file's size and time, because reading it would take as long as a start.
    fn stamp(&mut self, path: &Path) -> anyhow::Result<()> {
        let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        let stamp = format!("{} {}.{}", metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        self.text(&path.display().to_string(), &stamp);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::project::Project;

    #[test]
    fn every_file_that_a_start_loads_belongs_to_the_hash() {
        let config = "project_id = \"hashed\"\n[storage.buckets.avatars]\nobjects_path = \"./avatars\"\n";
        let files = [
            ("supabase/config.toml", config),
            ("supabase/roles.sql", "create role reporter;"),
            ("supabase/migrations/1_tasks.sql", "create table tasks ();"),
            ("supabase/seed.sql", "select 1;"),
            ("supabase/avatars/one.txt", "a picture"),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        for (path, text) in files {
            write(path, text);
        }
        let load = || Project::load(folder.path(), std::collections::BTreeMap::new()).expect("a project");
        let hash = || super::hash(&load()).expect("a hash");
        let mut known = vec![hash()];
        assert_eq!(hash(), known[0]);
        let more = [("supabase/migrations/2_more.sql", "")];
        for (path, text) in files.into_iter().chain(more) {
            let addition = if path.ends_with(".toml") { "[api]\nmax_rows = 7\n" } else { "\n" };
            write(path, &format!("{text}{addition}"));
            let changed = hash();
            assert!(!known.contains(&changed), "{path}");
            known.push(changed);
        }
        write("supabase/functions/hello/index.ts", "// served from the project's folder");
        assert_eq!(known.last(), Some(&hash()), "functions are not copied");
    }
}
