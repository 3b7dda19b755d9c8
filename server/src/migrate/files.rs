//! Sources of SQL files: folders, and files compiled into the binary.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use super::MigrateError;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../../sql/platform"]
struct PlatformSql;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../../sql/auth"]
struct AuthSql;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../../sql/app"]
#[allow_missing = true]
struct AppSql;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../../sql/seed"]
#[allow_missing = true]
struct DemoSql;

/// A set of SQL files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The application's migrations in this binary (`sql/app`).
    App,
    /// The demo data in this binary (`sql/seed`).
    Demo,
    /// A folder of migrations, `*.sql`, or a project with `supabase/migrations`.
    Folder(PathBuf),
    /// A folder of demo data, `*.sql`, or a project with `supabase/seed.sql`.
    SeedFolder(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App => f.write_str("the migrations of this binary"),
            Self::Demo => f.write_str("the demo data of this binary"),
            Self::Folder(path) | Self::SeedFolder(path) => path.display().fmt(f),
        }
    }
}

/// One file of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlFile {
    /// File name with extension.
    pub file: String,
    /// Digits before the first underscore (`20240101000000_users.sql`), else the whole stem.
    pub version: String,
    /// The part after the version's underscore, else the stem.
    pub name: String,
    pub text: String,
}

impl SqlFile {
    pub fn new(file: &str, text: String) -> Self {
        let stem = file.strip_suffix(".sql").unwrap_or(file);
        let (version, name) = match stem.split_once('_') {
            Some((digits, name)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => (digits, name),
            _ => (stem, stem),
        };
        Self { file: file.to_owned(), version: version.to_owned(), name: name.to_owned(), text }
    }

    /// SHA-256 of the text in lower-case hex, independent of the kind of line ends.
    pub fn checksum(&self) -> String {
        hex::encode(Sha256::digest(self.text.replace("\r\n", "\n").as_bytes()))
    }
}

/// The platform's own files, in name order.
pub fn platform() -> Result<Vec<SqlFile>, MigrateError> {
    embedded::<PlatformSql>()
}

/// The files of schema `auth`, in name order.
pub fn auth() -> Result<Vec<SqlFile>, MigrateError> {
    embedded::<AuthSql>()
}

/// The names of definition files, in the order in which they run: views call functions, policies and grants name both. Among files
/// of one name, the one beside the numbered files runs first, then those of the subjects by name.
const DEFINITIONS: [&str; 5] = ["functions.sql", "views.sql", "triggers.sql", "policies.sql", "rights.sql"];

/// Lists the application's earlier files that the current ones replace, with their checksums.
const SUPERSEDED: &str = "superseded.sha256";

/// Holds the earlier files that came after the last release. A database of that release has not run them.
const HISTORY: &str = "history/";

/// The earlier files of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// Checksum and name, in name order; without their text.
    pub files: Vec<(String, SqlFile)>,
    /// Those after the last release, with their text.
    pub unreleased: Vec<SqlFile>,
}

impl Superseded {
    /// `list` has the lines of `sha256sum`.
    fn new(list: &str, files: Vec<SqlFile>) -> Self {
        let line = |line: &str| {
            let (checksum, name) = line.split_once("  ")?;
            Some((checksum.to_owned(), SqlFile::new(name.trim(), String::new())))
        };
        let unreleased = files
            .into_iter()
            .filter_map(|file| Some(SqlFile::new(file.file.strip_prefix(HISTORY)?, file.text)))
            .collect();
        Self { files: list.lines().filter_map(line).collect(), unreleased }
    }
}

/// The sort key of a definition file; `None` if it is not one.
fn definition_order(path: &str) -> Option<(usize, &str)> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    Some((DEFINITIONS.iter().position(|name| *name == file)?, folder))
}

/// Refuses two files of one version: the second would count as applied. Each is a version and a name.
pub(super) fn one_per_version<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), MigrateError> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for (version, second) in files {
        if let Some(first) = seen.insert(version, second) {
            let (version, first, second) = (version.to_owned(), first.to_owned(), second.to_owned());
            return Err(MigrateError::SameVersion { version, first, second });
        }
    }
    Ok(())
}

fn is_numbered(path: &str) -> bool {
    !path.contains('/') && path.starts_with(|c: char| c.is_ascii_digit())
}

impl Source {
    /// The files in name order, no two of the same version. An empty folder is an error; an embedded set may
    /// be empty.
    pub fn read(&self) -> Result<Vec<SqlFile>, MigrateError> {
        let files = match self {
            Self::App => embedded::<AppSql>()?.into_iter().filter(|file| is_numbered(&file.file)).collect(),
            Self::Demo => embedded::<DemoSql>()?,
            Self::Folder(dir) => {
                let supabase = dir.join("supabase/migrations");
                folder(if supabase.is_dir() { &supabase } else { dir })?
            }
            Self::SeedFolder(dir) => {
                let supabase = dir.join("supabase/seed.sql");
                if supabase.is_file() { vec![file(&supabase)?] } else { folder(dir)? }
            }
        };
        one_per_version(files.iter().map(|file| (file.version.as_str(), file.file.as_str())))?;
        Ok(files)
    }
}

impl Source {
    /// The application's functions, views, triggers, policies and rights, in the order in which they run. Folders have none.
    pub fn definitions(&self) -> Result<Vec<SqlFile>, MigrateError> {
        match self {
            Self::App => in_order(embedded::<AppSql>()?),
            Self::Demo | Self::Folder(_) | Self::SeedFolder(_) => Ok(Vec::new()),
        }
    }

    /// The earlier files that those of [`read`](Self::read) replace.
    pub(super) fn superseded(&self) -> Result<Option<Superseded>, MigrateError> {
        if *self != Self::App {
            return Ok(None);
        }
        let Some(file) = AppSql::get(SUPERSEDED) else { return Ok(None) };
        let text = std::str::from_utf8(&file.data).map_err(|e| unreadable(SUPERSEDED, &e.to_string()))?;
        Ok(Some(Superseded::new(text, embedded::<AppSql>()?)))
    }
}

/// The definitions among the files of a folder and its subfolders.
fn in_order(files: Vec<SqlFile>) -> Result<Vec<SqlFile>, MigrateError> {
    let is_definition = |file: &SqlFile| !is_numbered(&file.file) && !file.file.starts_with(HISTORY);
    let mut definitions: Vec<SqlFile> = files.into_iter().filter(is_definition).collect();
    if let Some(unknown) = definitions.iter().find(|file| definition_order(&file.file).is_none()) {
        return Err(MigrateError::UnknownFile(unknown.file.clone()));
    }
    definitions.sort_by(|a, b| definition_order(&a.file).cmp(&definition_order(&b.file)));
    Ok(definitions)
}

fn embedded<E: RustEmbed>() -> Result<Vec<SqlFile>, MigrateError> {
    let mut names: Vec<_> = E::iter().filter(|name| name.ends_with(".sql")).collect();
    names.sort();
    names
        .iter()
        .filter_map(|name| Some((name, E::get(name)?)))
        .map(|(name, file)| {
            let text = String::from_utf8(file.data.into_owned()).map_err(|e| unreadable(name, &e.to_string()))?;
            Ok(SqlFile::new(name, text))
        })
        .collect()
}

fn unreadable(path: &str, reason: &str) -> MigrateError {
    MigrateError::Read { path: path.to_owned(), reason: reason.to_owned() }
}

fn folder(dir: &Path) -> Result<Vec<SqlFile>, MigrateError> {
    let shown = dir.display().to_string();
    let entries = std::fs::read_dir(dir).map_err(|e| unreadable(&shown, &e.to_string()))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql") && path.is_file())
        .collect();
    paths.sort();
    if paths.is_empty() {
        return Err(MigrateError::NoFiles(shown));
    }
    paths.iter().map(|path| file(path)).collect()
}

/// Reads a file, also one that gzip has compressed (`seed.sql.gz`).
pub fn file(path: &Path) -> Result<SqlFile, MigrateError> {
    let read = || {
        let bytes = std::fs::read(path)?;
        let text = if path.extension().is_some_and(|extension| extension == "gz") {
            std::io::read_to_string(flate2::read::MultiGzDecoder::new(bytes.as_slice()))?
        } else {
            String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is no UTF-8"))?
        };
        // Editors on Windows write a byte order mark.
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    };
    let text = read().map_err(|e: std::io::Error| unreadable(&path.display().to_string(), &e.to_string()))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(SqlFile::new(&name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_name_come_from_the_file_name() {
        for (file, version, name) in [
            ("20240101120000_create_users.sql", "20240101120000", "create_users"),
            ("010_tables.sql", "010", "tables"),
            ("tables.sql", "tables", "tables"),
            ("v2_tables.sql", "v2_tables", "v2_tables"),
        ] {
            let parsed = SqlFile::new(file, String::new());
            assert_eq!((parsed.version.as_str(), parsed.name.as_str()), (version, name), "{file}");
        }
    }

    /// A folder of empty files, removed at the end.
    struct Files(PathBuf);

    impl Files {
        fn new(name: &str, paths: &[&str]) -> Self {
            let root = std::env::temp_dir().join(format!("ferrobase-files-{}-{name}", std::process::id()));
            for path in paths {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, "").expect("a file");
            }
            Self(root)
        }

        fn names(&self, source: impl FnOnce(PathBuf) -> Source) -> Vec<String> {
            source(self.0.clone()).read().expect("files").into_iter().map(|file| file.file).collect()
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_projects_migrations_are_never_mistaken_for_seeds() {
        let project = Files::new("project", &["supabase/migrations/1_a.sql", "supabase/seed.sql", "other.sql"]);
        assert_eq!(project.names(Source::Folder), ["1_a.sql"]);
        assert_eq!(project.names(Source::SeedFolder), ["seed.sql"]);
        let plain = Files::new("plain", &["2_b.sql", "1_a.sql"]);
        assert_eq!(plain.names(Source::SeedFolder), ["1_a.sql", "2_b.sql"]);
    }

    #[test]
    fn a_duplicate_version_is_reported_even_if_not_adjacent() {
        let files = Files::new("twice", &["10.sql", "100_b.sql", "10_c.sql"]);
        let error = Source::Folder(files.0.clone()).read().expect_err("refused").to_string();
        assert!(error.starts_with("the files 10.sql and 10_c.sql have the same version 10"), "{error}");
    }

    #[test]
    fn definitions_run_by_kind_then_by_subject() {
        let files = |names: &[&str]| names.iter().map(|name| SqlFile::new(name, String::new())).collect::<Vec<_>>();
        let names = [
            "0001_t.sql",
            "history/0000_t.sql",
            "a/policies.sql",
            "a/views.sql",
            "b/functions.sql",
            "policies.sql",
            "a/functions.sql",
        ];
        let ordered = in_order(files(&names)).expect("definitions");
        let ordered: Vec<&str> = ordered.iter().map(|file| file.file.as_str()).collect();
        assert_eq!(ordered, ["a/functions.sql", "b/functions.sql", "a/views.sql", "policies.sql", "a/policies.sql"]);
        for stray in ["a/tables.sql", "tables.sql", "a/0002_t.sql"] {
            let error = in_order(files(&[stray])).expect_err("refused").to_string();
            assert!(error.starts_with(&format!("{stray} is neither a numbered migration nor named")), "{error}");
        }
    }

    #[test]
    fn files_that_a_database_of_the_last_release_has_yet_to_run_are_unchanged() {
        let superseded = Source::App.superseded().expect("files").expect("a list");
        assert_eq!(superseded.files.len(), 36);
        let known: Vec<_> = superseded.files.iter().map(|(sum, file)| (sum.clone(), file.file.clone())).collect();
        let kept: Vec<_> = superseded.unreleased.iter().map(|file| (file.checksum(), file.file.clone())).collect();
        assert_eq!(kept, known[31..]);
    }

    #[test]
    fn a_file_may_be_compressed_and_have_a_byte_order_mark() {
        use std::io::Write;
        let files = Files::new("read", &["plain.sql", "packed.sql.gz", "latin.sql"]);
        let path = |name: &str| files.0.join(name);
        std::fs::write(path("plain.sql"), "\u{feff}select 1;").expect("a file");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"select 2;").expect("compressed");
        std::fs::write(path("packed.sql.gz"), packed.finish().expect("compressed")).expect("a file");
        std::fs::write(path("latin.sql"), b"select '\xe9';").expect("a file");
        assert_eq!(file(&path("plain.sql")).expect("read").text, "select 1;");
        assert_eq!(file(&path("packed.sql.gz")).expect("read").text, "select 2;");
        let refused = file(&path("latin.sql")).expect_err("refused").to_string();
        assert!(refused.contains("latin.sql") && refused.contains("it is no UTF-8"), "{refused}");
    }

    #[test]
    fn line_ends_do_not_change_the_checksum() {
        let unix = SqlFile::new("a.sql", "select 1;\nselect 2;\n".to_owned());
        let windows = SqlFile::new("a.sql", "select 1;\r\nselect 2;\r\n".to_owned());
        assert_eq!(unix.checksum(), windows.checksum());
    }
}
