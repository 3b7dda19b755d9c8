//! Declared schemas: SQL files that describe the desired schema. `db diff` compares them with the migrations.

use std::path::{Path, PathBuf};

use super::{Project, ProjectError};

impl Project {
    /// Names for messages and paths, in the order in which they run: the files of `db.migrations.schema_paths` in the order of the
    /// globs, sorted within each. Without globs, every `*.sql` below `supabase/schemas`. If pg-delta is enabled and its folder
    /// exists, the files in that folder.
    pub fn declared_schemas(&self) -> Result<Vec<(String, PathBuf)>, ProjectError> {
        let mut paths = Vec::new();
        let of_delta = self.values.text_or("experimental.pgdelta.declarative_schema_path", "./database");
        let of_delta = self.folder().join(of_delta.trim_start_matches("./"));
        let globs = self.value_list("db.migrations.schema_paths").unwrap_or_default();
        if self.is_on("experimental.pgdelta.enabled", false) && of_delta.is_dir() {
            below(&of_delta, &mut paths)?;
        } else if globs.is_empty() {
            below(&self.folder().join("schemas"), &mut paths)?;
        } else {
            for pattern in globs {
                let found = self.matching("db.migrations.schema_paths", &pattern)?;
                if found.is_empty() {
                    let reason = format!("db.migrations.schema_paths: no files matched pattern: {pattern}");
                    return Err(ProjectError::Invalid(reason));
                }
                for path in found {
                    if !paths.contains(&path) {
                        paths.push(path);
                    }
                }
            }
        }
        let name = |path: &Path| path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        Ok(paths.into_iter().map(|path| (name(&path), path)).collect())
    }
}

/// Adds every `*.sql` below a folder, sorted by path. The folder may be missing.
fn below(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), ProjectError> {
    let unreadable = |error: std::io::Error| ProjectError::Read { path: folder.to_owned(), reason: error.to_string() };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(unreadable)?,
    };
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        // Links to folders are not followed, because they may be circular.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            below(&entry.path(), paths)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "sql") && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;

    fn names(folder: &Folder) -> Result<Vec<String>, String> {
        let declared = folder.load(&[]).declared_schemas().map_err(|error| error.to_string())?;
        Ok(declared.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn files_come_from_the_named_globs_or_from_the_folder() {
        let files = [
            ("supabase/schemas/b.sql", ""),
            ("supabase/schemas/a/z.sql", ""),
            ("supabase/schemas/notes.md", ""),
            ("supabase/database/d.sql", ""),
        ];
        let plain = Folder::new("declared", &files);
        assert_eq!(names(&plain).expect("files"), ["supabase/schemas/a/z.sql", "supabase/schemas/b.sql"]);
        let with = |name: &str, config: &str| {
            let mut files = files.to_vec();
            files.push(("supabase/config.toml", config));
            names(&Folder::new(name, &files))
        };
        let globs = "[db.migrations]\nschema_paths = [\"./schemas/b.sql\", \"./schemas/**/*.sql\"]\n";
        assert_eq!(with("globs", globs).expect("files"), ["supabase/schemas/b.sql", "supabase/schemas/a/z.sql"]);
        let missing = with("missing", "[db.migrations]\nschema_paths = [\"./none/*.sql\"]\n").expect_err("no file");
        assert_eq!(missing, "db.migrations.schema_paths: no files matched pattern: ./none/*.sql");
        let delta = with("delta", "[experimental.pgdelta]\nenabled = true\n").expect("files");
        assert_eq!(delta, ["supabase/database/d.sql"]);
        assert!(names(&Folder::new("undeclared", &[])).expect("none").is_empty());
    }

    #[test]
    fn a_project_can_be_loaded_without_its_migrations() {
        let folder = Folder::new("bare", &[("supabase/seed.sql", ""), ("supabase/migrations/1_a.sql", "")]);
        let project = folder.load(&[]);
        let bare = project.without_migrations().expect("the same folder");
        assert!(!bare.has_migrations_enabled() && !bare.has_seeds_enabled());
        assert_ne!(project.configuration(), bare.configuration());
        assert_eq!((project.overrides().count(), bare.overrides().count()), (0, 2));
    }
}
