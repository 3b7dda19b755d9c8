//! A project's folder in the layout of the Supabase CLI: `supabase/` with `config.toml`, migrations, seeds and functions.
//!
//! Commands that serve a project read it once. It provides settings for the server ([`Project::settings`]), lists of files
//! ([`Project::migrations`], [`Project::seeds`]) and warnings about what is not supported. References: supabase/cli `pkg/config`,
//! `pkg/migration`.

mod buckets;
mod declared;
mod deno;
mod dotenv;
mod encrypted;
mod functions;
mod keys;
mod migrations;
mod origin;
mod seeds;
mod served;
mod settings;
mod status;
mod third_party;
mod values;
mod warnings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use buckets::{Bucket, files_below};
pub use deno::find_deno;
pub use functions::FunctionConfig;
pub use migrations::{MigrationFiles, new_migration_path};
use origin::Places;
pub use seeds::SeedFile;
pub use served::{InspectMode, Inspector, Served, ServedLock};
pub use settings::KnownKeys;
pub use status::{Format, Status};
use values::Values;

/// Why a project's folder cannot be used. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("there is no folder 'supabase' here or above: run this command in a project's folder")]
    NoProject,
    #[error("cannot read {}: {reason}", .path.display())]
    Read { path: PathBuf, reason: String },
    #[error("{}:{line}: {reason}", .path.display())]
    NotToml { path: PathBuf, line: usize, reason: String },
    #[error("{place}: {key} must be {wanted}, not '{found}'")]
    Type { place: String, key: &'static str, wanted: &'static str, found: String },
    #[error("{place}: {key} names the file {}, which cannot be read: {reason}", .path.display())]
    Named { place: String, key: String, path: PathBuf, reason: String },
    #[error("{place}: {key}: {reason}")]
    Wrong { place: String, key: &'static str, reason: String },
    #[error("{0}")]
    Invalid(String),
}

/// The default id of a project, derived from the folder's name.
pub fn project_id(root: &Path) -> String {
    plain_id(&root.file_name().map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned()))
}

/// Replaces characters that are not allowed in an id.
fn plain_id(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    id.chars().map(plain).take(40).collect()
}

/// A project and its configuration.
#[derive(Clone, Debug)]
pub struct Project {
    /// The folder that holds `supabase/`.
    pub root: PathBuf,
    /// `project_id`, or else the folder's name, reduced to letters, digits, `_`, `.` and `-`.
    pub id: String,
    /// Sentences about unsupported parts of the configuration.
    pub warnings: Vec<String>,
    values: Values,
    places: Places,
    elsewhere: Option<CopyTarget>,
    /// The environment that the project was loaded with.
    environment: BTreeMap<String, String>,
    has_overrides: bool,
}

/// Variables that turn off migrations and seeds.
const OVERRIDES: [(&str, &str); 2] =
    [("SUPABASE_DB_MIGRATIONS_ENABLED", "false"), ("SUPABASE_DB_SEED_ENABLED", "false")];

/// Where a temporary copy of a project is served, instead of where its configuration says.
#[derive(Clone, Debug)]
pub struct CopyTarget {
    pub data_dir: PathBuf,
    pub api: u16,
    pub db: u16,
    pub inbox: u16,
    /// Where the inbox takes mail by SMTP; 0: nowhere.
    pub smtp: u16,
}

impl Project {
    /// Finds the project around `start`. `environment` provides `env(…)` and `SUPABASE_…`.
    pub fn find(start: &Path, environment: BTreeMap<String, String>) -> Result<Self, ProjectError> {
        let root = start.ancestors().find(|folder| folder.join("supabase").is_dir()).ok_or(ProjectError::NoProject)?;
        Self::load(root, environment)
    }

    pub fn load(root: &Path, mut environment: BTreeMap<String, String>) -> Result<Self, ProjectError> {
        dotenv::load(root, &mut environment)?;
        let file = root.join("supabase/config.toml");
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            // Without the file, the defaults apply.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ProjectError::Read { path: file, reason: error.to_string() }),
        };
        let values = Values::parse(&text, &environment).map_err(|(line, reason)| match line {
            Some(line) => ProjectError::NotToml { path: file.clone(), line, reason },
            None => ProjectError::Invalid(reason),
        })?;
        let places = Places::of(&text, values.overrides(&environment));
        let mut warnings = values.warnings.clone();
        warnings.extend(warnings::warnings(&values));
        warnings.extend(third_party::issuers(&values).1);
        let id = values.text("project_id").map_or_else(|| project_id(root), |id| plain_id(&id));
        Ok(Self {
            root: root.to_owned(),
            id,
            warnings,
            values,
            places,
            elsewhere: None,
            environment,
            has_overrides: false,
        })
    }

    /// `supabase/`. Most paths in the configuration are relative to it.
    pub fn folder(&self) -> PathBuf {
        self.root.join("supabase")
    }

    /// The checked out git branch, or `main` outside a repository.
    pub fn branch(&self) -> String {
        let head = self.root.ancestors().map(|folder| folder.join(".git/HEAD")).find(|head| head.is_file());
        let text = head.and_then(|head| std::fs::read_to_string(head).ok()).unwrap_or_default();
        text.trim().strip_prefix("ref: refs/heads/").map_or_else(|| "main".to_owned(), str::to_owned)
    }

    /// The same project, served elsewhere.
    pub fn served_at(&self, elsewhere: CopyTarget) -> Self {
        Self { elsewhere: Some(elsewhere), ..self.clone() }
    }

    /// The same project with migrations and seeds turned off.
    pub fn without_migrations(&self) -> Result<Self, ProjectError> {
        let mut environment = self.environment.clone();
        environment.extend(OVERRIDES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Ok(Self { has_overrides: true, ..Self::load(&self.root, environment)? })
    }

    /// Variables that another process needs to load the project in the same way.
    pub fn overrides(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        OVERRIDES.into_iter().filter(|_| self.has_overrides)
    }

    /// Whether this is a temporary copy.
    pub fn is_copy(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// The folder of the served database and files.
    pub fn data_dir(&self) -> PathBuf {
        self.elsewhere.as_ref().map_or_else(|| self.own_dir(), |elsewhere| elsewhere.data_dir.clone())
    }

    /// The folder of what all servers of this project share.
    pub fn own_dir(&self) -> PathBuf {
        self.root.join(".ferrobase")
    }

    /// A text that changes whenever the configuration changes.
    pub fn configuration(&self) -> String {
        format!("{:?}", self.values)
    }

    /// Whether migrations are applied.
    pub fn has_migrations_enabled(&self) -> bool {
        self.values.flag("db.migrations.enabled", true)
    }

    /// Secrets for the vault, by name. Secrets whose `env(…)` is unset are left out.
    pub fn vault(&self) -> Vec<(String, String)> {
        let secrets = self.values.below("db.vault");
        secrets.into_iter().filter(|(_, value)| !values::is_unset(value)).collect()
    }

    /// Whether the API roles get access to new tables of `public`. The default is true, because most public projects were written
    /// for that.
    pub fn exposes_new_tables(&self) -> bool {
        self.values.flag("api.auto_expose_new_tables", true)
    }

    /// Whether the configuration has an opinion about that.
    pub fn says_what_is_exposed(&self) -> bool {
        self.values.text("api.auto_expose_new_tables").is_some()
    }
}

/// Test helpers.
#[cfg(test)]
pub(crate) mod testing {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Project;

    /// A temporary project folder, one per call: tests that run at once may give the same name.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str, files: &[(&str, &str)]) -> Self {
            static MADE: AtomicU32 = AtomicU32::new(0);
            let nth = MADE.fetch_add(1, Ordering::Relaxed);
            let root = std::env::temp_dir().join(format!("ferrobase-project-{}-{nth}-{name}", std::process::id()));
            std::fs::create_dir_all(root.join("supabase")).expect("a folder");
            for (path, text) in files {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, text).expect("a file");
            }
            Self(root)
        }

        pub fn load(&self, environment: &[(&str, &str)]) -> Project {
            let environment = environment.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            Project::load(&self.0, environment).expect("a project")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Folder;
    use super::*;

    #[test]
    fn a_project_without_a_configuration_is_called_like_its_folder() {
        let folder = Folder::new("My app!", &[]);
        let project = folder.load(&[]);
        assert!(project.id.ends_with("-My_app_"), "{}", project.id);
        assert!(project.warnings.is_empty() && project.has_migrations_enabled());
        let deep = folder.0.join("src/deep");
        std::fs::create_dir_all(&deep).expect("a folder");
        assert_eq!(Project::find(&deep, BTreeMap::new()).expect("found").root, folder.0);
    }

    #[test]
    fn a_syntax_error_is_reported_with_its_line() {
        let folder = Folder::new("not-toml", &[("supabase/config.toml", "project_id = \"x\"\n[api\nport = 1\n")]);
        let error = Project::load(&folder.0, BTreeMap::new()).expect_err("refused").to_string();
        assert!(error.contains("supabase/config.toml:2:"), "{error}");
    }
}
