//! A project's folder as the Supabase CLI knows it: `supabase/` with its `config.toml`, migrations, seeds and functions.
//!
//! Commands that serve a project read it once. It yields settings of the server ([`Project::settings`]), lists of files
//! ([`Project::migrations`], [`Project::seeds`]) and warnings for what is not supported. Sources:
//! supabase/cli `pkg/config`, `pkg/migration`.

mod buckets;
mod deno;
mod dotenv;
mod functions;
mod keys;
mod migrations;
mod seeds;
mod settings;
mod status;
mod values;
mod warnings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use buckets::Bucket;
pub use deno::find_deno;
pub use functions::FunctionConfig;
pub use migrations::{MigrationFiles, new_migration_path};
pub use seeds::SeedFile;
pub use settings::KnownKeys;
pub use status::{Format, Status};
use values::Values;

/// Why a project's folder cannot be used; each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("there is no folder 'supabase' here or above: run this command in a project's folder")]
    NoProject,
    #[error("cannot read {}: {reason}", .path.display())]
    Read { path: PathBuf, reason: String },
    #[error("{}:{line}: {reason}", .path.display())]
    NotToml { path: PathBuf, line: usize, reason: String },
    #[error("{path} in supabase/config.toml must be {wanted}, not '{found}'")]
    Type { path: String, wanted: &'static str, found: String },
    #[error("{0}")]
    Invalid(String),
}

/// A project and everything its configuration says.
#[derive(Clone, Debug)]
pub struct Project {
    /// The folder that holds `supabase/`.
    pub root: PathBuf,
    /// `project_id`, else the folder's name; letters, digits, `_`, `.` and `-`.
    pub id: String,
    /// Sentences about what is in the configuration and is not served.
    pub warnings: Vec<String>,
    values: Values,
    elsewhere: Option<Elsewhere>,
}

/// Where a throw-away copy of a project is served, in place of what its configuration says.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    pub data_dir: PathBuf,
    pub api: u16,
    pub db: u16,
    pub inbox: u16,
}

impl Project {
    /// The project around `start`, with `environment` for `env(…)` and `SUPABASE_…`.
    pub fn find(start: &Path, environment: BTreeMap<String, String>) -> Result<Self, ProjectError> {
        let root = start.ancestors().find(|folder| folder.join("supabase").is_dir()).ok_or(ProjectError::NoProject)?;
        Self::load(root, environment)
    }

    pub fn load(root: &Path, mut environment: BTreeMap<String, String>) -> Result<Self, ProjectError> {
        dotenv::load(root, &mut environment)?;
        let file = root.join("supabase/config.toml");
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            // A project without one has the defaults.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ProjectError::Read { path: file, reason: error.to_string() }),
        };
        let values = Values::parse(&text, &environment).map_err(|(line, reason)| match line {
            Some(line) => ProjectError::NotToml { path: file.clone(), line, reason },
            None => ProjectError::Invalid(reason),
        })?;
        let mut warnings = values.warnings.clone();
        warnings.extend(warnings::warnings(&values));
        let name = root.file_name().map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned());
        let id = values.text("project_id").unwrap_or(name);
        let id: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' })
            .take(40)
            .collect();
        Ok(Self { root: root.to_owned(), id, warnings, values, elsewhere: None })
    }

    /// `supabase/`, to which most paths of the configuration are relative.
    pub fn folder(&self) -> PathBuf {
        self.root.join("supabase")
    }

    /// The branch that is checked out; `main` where there is no repository.
    pub fn branch(&self) -> String {
        let head = self.root.ancestors().map(|folder| folder.join(".git/HEAD")).find(|head| head.is_file());
        let text = head.and_then(|head| std::fs::read_to_string(head).ok()).unwrap_or_default();
        text.trim().strip_prefix("ref: refs/heads/").map_or_else(|| "main".to_owned(), str::to_owned)
    }

    /// The same project, served elsewhere.
    pub fn served_at(&self, elsewhere: Elsewhere) -> Self {
        Self { elsewhere: Some(elsewhere), ..self.clone() }
    }

    /// Whether this is a copy, served elsewhere than the configuration says.
    pub fn is_copy(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Where the server keeps this project's database and files.
    pub fn data_dir(&self) -> PathBuf {
        self.elsewhere.as_ref().map_or_else(|| self.own_dir(), |elsewhere| elsewhere.data_dir.clone())
    }

    /// What every server of this project may share, wherever it is served.
    pub fn own_dir(&self) -> PathBuf {
        self.root.join(".ferrobase")
    }

    /// The configuration as text, to tell whether it has changed.
    pub fn configuration(&self) -> String {
        format!("{:?}", self.values)
    }

    /// Whether the migrations are to be applied.
    pub fn has_migrations_enabled(&self) -> bool {
        self.values.flag("db.migrations.enabled", true)
    }

    /// Secrets for the vault, by name; those whose `env(…)` is unset are left out.
    pub fn vault(&self) -> Vec<(String, String)> {
        let secrets = self.values.below("db.vault");
        secrets.into_iter().filter(|(_, value)| !values::is_unset(value)).collect()
    }

    /// Whether new tables of `public` are open to the API roles. Most public projects were written when they were.
    pub fn exposes_new_tables(&self) -> bool {
        self.values.flag("api.auto_expose_new_tables", true)
    }
}

/// Functions that tests of this room's files share.
#[cfg(test)]
mod testing {
    use std::path::PathBuf;

    use super::Project;

    /// A project made of files, removed at the end.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("ferrobase-project-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&root);
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
    fn a_project_without_a_configuration_has_its_folders_name() {
        let folder = Folder::new("My app!", &[]);
        let project = folder.load(&[]);
        assert!(project.id.ends_with("-My_app_"), "{}", project.id);
        assert!(project.warnings.is_empty() && project.has_migrations_enabled());
        let deep = folder.0.join("src/deep");
        std::fs::create_dir_all(&deep).expect("a folder");
        assert_eq!(Project::find(&deep, BTreeMap::new()).expect("found").root, folder.0);
    }

    #[test]
    fn a_file_that_is_not_toml_names_its_line() {
        let folder = Folder::new("not-toml", &[("supabase/config.toml", "project_id = \"x\"\n[api\nport = 1\n")]);
        let error = Project::load(&folder.0, BTreeMap::new()).expect_err("refused").to_string();
        assert!(error.contains("supabase/config.toml:2:"), "{error}");
    }
}
