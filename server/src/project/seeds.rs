//! The seeds of a project: files by globs, each with the path under which it is recorded.

use std::path::PathBuf;

use super::{Project, ProjectError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedFile {
    /// As recorded: relative to the project (`supabase/seed.sql`).
    pub name: String,
    pub path: PathBuf,
}

impl Project {
    /// The files in declared order, each glob's sorted, none twice; and globs that match nothing.
    pub fn seeds(&self) -> Result<(Vec<SeedFile>, Vec<String>), ProjectError> {
        let (mut files, mut unmatched) = (Vec::<SeedFile>::new(), Vec::new());
        if !self.is_on("db.seed.enabled", true) {
            return Ok((files, unmatched));
        }
        let declared = self.value_list("db.seed.sql_paths");
        let is_declared = declared.is_some();
        for pattern in declared.unwrap_or_else(|| vec!["./seed.sql".to_owned()]) {
            let whole = self.folder().join(pattern.trim_start_matches("./"));
            let found = glob::glob(&whole.display().to_string()).map_err(|error| {
                ProjectError::Invalid(format!("db.seed.sql_paths: {pattern} is no pattern: {error}"))
            })?;
            let mut paths: Vec<PathBuf> = found.flatten().filter(|path| path.is_file()).collect();
            paths.sort();
            if paths.is_empty() && is_declared {
                unmatched.push(pattern);
            }
            for path in paths {
                let name = path.strip_prefix(&self.root).unwrap_or(&path).display().to_string();
                if !files.iter().any(|file| file.path == path) {
                    files.push(SeedFile { name, path });
                }
            }
        }
        Ok((files, unmatched))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;

    #[test]
    fn globs_keep_their_order_and_repeat_nothing() {
        let folder = Folder::new(
            "seeds",
            &[
                (
                    "supabase/config.toml",
                    "[db.seed]\nsql_paths = [\"./seeds/b.sql\", \"./seeds/*.sql\", \"none/*.sql\"]",
                ),
                ("supabase/seeds/a.sql", ""),
                ("supabase/seeds/b.sql", ""),
                ("supabase/seed.sql", ""),
            ],
        );
        let (files, unmatched) = folder.load(&[]).seeds().expect("seeds");
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(
            (names, unmatched),
            (vec!["supabase/seeds/b.sql", "supabase/seeds/a.sql"], vec!["none/*.sql".to_owned()])
        );
        let plain = Folder::new("seeds-plain", &[("supabase/seed.sql", "")]);
        assert_eq!(plain.load(&[]).seeds().expect("seeds").0[0].name, "supabase/seed.sql");
        let off = Folder::new(
            "seeds-off",
            &[("supabase/seed.sql", ""), ("supabase/config.toml", "[db.seed]\nenabled = false")],
        );
        assert!(off.load(&[]).seeds().expect("seeds").0.is_empty());
    }
}
