//! Edits a settings file of `NAME=value` lines and leaves everything else in it unchanged.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::backup::keys::quoted;
use crate::config::Source;

/// New values of settings. An empty value removes the line.
pub type Settings = Vec<(&'static str, String)>;

/// The settings, one per line.
pub fn lines(settings: &Settings) -> String {
    settings.iter().map(|(name, value)| format!("{name}={}\n", quoted(value))).collect()
}

/// A settings file and its content.
#[derive(Debug)]
pub struct EnvFile {
    path: PathBuf,
    text: String,
}

impl EnvFile {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::ensure!(
            path.extension().is_none_or(|extension| extension != "toml"),
            "{} is not a file of NAME=value lines: omit --write, and copy the printed settings yourself",
            path.display()
        );
        // A link stays one, and what it leads to is replaced.
        let path = std::fs::canonicalize(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = Self { path, text };
        file.values()?;
        Ok(file)
    }

    fn values(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let pairs = dotenvy::from_read_iter(self.text.as_bytes()).collect::<Result<_, _>>();
        // The parser's own error quotes the line, which may contain a secret.
        pairs.map_err(|_| anyhow::anyhow!("{} has a line that is not NAME=value", self.path.display()))
    }

    pub fn value(&self, name: &str) -> Option<String> {
        self.values().ok()?.remove(name)
    }

    /// `source` overridden by the file's values.
    pub fn over(&self, source: &Source) -> Source {
        let mut source = source.clone();
        for (name, value) in self.values().unwrap_or_default() {
            source.set(&name, value);
        }
        source
    }

    /// The file with these values.
    ///
    /// Errors: a setting is written in a form that cannot be edited, such as over several lines.
    pub fn with(&self, settings: &Settings) -> anyhow::Result<Self> {
        let mut left = settings.clone();
        let mut text = String::new();
        for line in self.text.lines() {
            let name = line.trim_start().trim_start_matches("export ").split('=').next().unwrap_or_default().trim();
            let is_one = line.contains('=') && settings.iter().any(|(changed, _)| *changed == name);
            if !is_one {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            let at = left.iter().position(|(changed, _)| *changed == name);
            // A second line of the same name would override the first.
            if let Some((name, value)) = at.map(|at| left.remove(at)).filter(|(_, value)| !value.is_empty()) {
                let export = if line.trim_start().starts_with("export ") { "export " } else { "" };
                text.push_str(&format!("{export}{name}={}\n", quoted(&value)));
            }
        }
        left.retain(|(_, value)| !value.is_empty());
        text.push_str(&lines(&left));
        let changed = Self { path: self.path.clone(), text };
        let mut expected = self.values()?;
        for (name, value) in settings {
            expected.remove(*name);
            if !value.is_empty() {
                expected.insert((*name).to_owned(), value.clone());
            }
        }
        anyhow::ensure!(
            changed.values().is_ok_and(|values| values == expected),
            "{} cannot be edited without changing other parts: write each setting on one line, or omit --write",
            self.path.display()
        );
        Ok(changed)
    }

    /// The file for a change that is not in effect yet.
    pub fn next(&self) -> PathBuf {
        self.path.with_added_extension("next")
    }

    /// Refuses while there is a staged change, which may alone have the database's password.
    pub fn ensure_nothing_staged(&self) -> anyhow::Result<()> {
        let next = self.next();
        anyhow::ensure!(
            !next.exists(),
            "{} is left from an interrupted change and may alone have the database's new password: 'ferrobase keys rotate --database \
             --write {}' finishes that change. Remove it only if the database accepts the password in the latter",
            next.display(),
            self.path.display()
        );
        Ok(())
    }

    /// Writes the content beside the file and syncs it to disk.
    pub fn stage(&self) -> anyhow::Result<()> {
        self.write_to(&self.next())
    }

    fn write_to(&self, next: &Path) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", next.display());
        let former = std::fs::metadata(&self.path).with_context(context)?;
        match std::fs::remove_file(next) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(context),
            _ => {}
        }
        let mode = former.mode() & 0o777;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(next).with_context(context)?;
        file.write_all(self.text.as_bytes()).and_then(|()| file.sync_all()).with_context(context)?;
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(next, Some(former.uid()), Some(former.gid())).with_context(context)?;
        }
        Ok(())
    }

    /// Moves the staged file into place.
    pub fn put_staged(&self) -> anyhow::Result<()> {
        self.put_from(&self.next())
    }

    fn put_from(&self, written: &Path) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", self.path.display());
        std::fs::rename(written, &self.path).with_context(context)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).with_context(context)
    }

    /// Replaces the file atomically: it has either the former or the new content. Uses a name of its own, so that nothing of it is
    /// taken for a staged change.
    pub fn put(&self) -> anyhow::Result<()> {
        let written = self.path.with_added_extension("new");
        self.write_to(&written)?;
        self.put_from(&written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> EnvFile {
        EnvFile { path: "x.env".into(), text: text.to_owned() }
    }

    #[test]
    fn lines_are_edited_in_place_and_nothing_else_changes() {
        let before = "# keys\nA=1\nexport JWT_SECRET='old one' # comment\n\nB=\"x y\"\nJWT_SECRET=older\nGONE=1";
        let settings =
            vec![("JWT_SECRET", "new $one".to_owned()), ("GONE", String::new()), ("MORE", "[\"a\"]".to_owned())];
        let after = file(before).with(&settings).expect("changed");
        assert_eq!(after.text, "# keys\nA=1\nexport JWT_SECRET='new $one'\n\nB=\"x y\"\nMORE='[\"a\"]'\n");
    }

    #[test]
    fn a_multi_line_value_is_refused_and_the_file_kept() {
        let before = "KEYS='[\n1]'\nA=1\n";
        assert!(file(before).with(&vec![("KEYS", "[2]".to_owned())]).is_err());
        assert!(file(before).with(&vec![("A", "2".to_owned())]).is_ok());
    }

    /// Regression: a rotation of keys removed the file that alone had the database's new password, and replaced links.
    #[test]
    fn a_staged_change_is_kept_and_so_are_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("keys.env"), folder.path().join("link.env"));
        std::fs::write(&path, "A=1\n").expect("a file");
        std::os::unix::fs::symlink("keys.env", &link).expect("a link");
        let file = EnvFile::open(&link).expect("a file");
        file.with(&vec![("A", "2".to_owned())]).and_then(|file| file.stage()).expect("staged");
        let refused = file.ensure_nothing_staged().expect_err("staged").to_string();
        assert!(refused.contains("keys.env.next") && refused.contains("keys rotate --database"), "{refused}");
        file.with(&vec![("A", "3".to_owned())]).and_then(|file| file.put()).expect("put");
        assert_eq!(std::fs::read_to_string(folder.path().join("keys.env.next")).expect("kept"), "A=2\n");
        file.put_staged().expect("put");
        file.ensure_nothing_staged().expect("nothing");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "A=2\n");
    }

    #[test]
    fn the_file_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.env");
        std::fs::write(&path, "A=1\n").expect("a file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).expect("its mode");
        EnvFile::open(&path)
            .and_then(|file| file.with(&vec![("A", "2".to_owned())]))
            .and_then(|file| file.put())
            .expect("put");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "A=2\n");
        assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o777, 0o640);
    }
}
