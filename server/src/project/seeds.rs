//! The seeds of a project: files matched by globs, each with the name under which it is recorded.

use std::path::PathBuf;

use super::{Project, ProjectError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedFile {
    /// The name in the record: the path relative to the project (`supabase/seed.sql`).
    pub name: String,
    pub path: PathBuf,
}

impl Project {
    /// Whether seeds are run.
    pub fn has_seeds_enabled(&self) -> bool {
        self.is_on("db.seed.enabled", true)
    }

    /// The files in the order of their globs, sorted within each and without duplicates, and the globs that match nothing.
    pub fn seeds(&self) -> Result<(Vec<SeedFile>, Vec<String>), ProjectError> {
        let (mut files, mut unmatched) = (Vec::<SeedFile>::new(), Vec::new());
        if !self.has_seeds_enabled() {
            return Ok((files, unmatched));
        }
        let declared = self.value_list("db.seed.sql_paths");
        let is_declared = declared.is_some();
        for pattern in declared.unwrap_or_else(|| vec!["./seed.sql".to_owned()]) {
            let paths = self.matching("db.seed.sql_paths", &pattern)?;
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

    /// The files that match a glob of the key `path`, sorted by the bytes of their paths, as with the CLI.
    pub(super) fn matching(&self, path: &str, pattern: &str) -> Result<Vec<PathBuf>, ProjectError> {
        // The project's own folder is no pattern, whatever its name.
        let folder = PathBuf::from(glob::Pattern::escape(&self.folder().display().to_string()));
        let whole = folder.join(plain(pattern.trim_start_matches("./")));
        let found = glob::glob(&whole.display().to_string())
            .map_err(|error| ProjectError::Invalid(format!("{path}: {pattern} is not a pattern: {error}")))?;
        let mut paths: Vec<PathBuf> = found.flatten().filter(|path| path.is_file()).collect();
        paths.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        Ok(paths)
    }
}

/// Stars beside other characters of a name mean one star, as with the CLI: `seeds/**.sql`.
fn plain(pattern: &str) -> String {
    let mut parts: Vec<String> = pattern.split('/').map(str::to_owned).collect();
    for part in parts.iter_mut().filter(|part| part.chars().any(|c| c != '*')) {
        while part.contains("**") {
            *part = part.replace("**", "*");
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;

    #[test]
    fn globs_keep_their_order_without_duplicates() {
        let folder = Folder::new(
            "seeds",
            &[
                (
                    "supabase/config.toml",
                    "[db.seed]\nsql_paths = [\"./seeds/b.sql\", \"./seeds/**.sql\", \"none/**.sql\"]",
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
            (vec!["supabase/seeds/b.sql", "supabase/seeds/a.sql"], vec!["none/**.sql".to_owned()])
        );
        let plain = Folder::new("seeds-plain", &[("supabase/seed.sql", "")]);
        assert_eq!(plain.load(&[]).seeds().expect("seeds").0[0].name, "supabase/seed.sql");
        // Regression: `a` came before `a-b`, as paths are compared by their parts.
        let config = ("supabase/config.toml", "[db.seed]\nsql_paths = [\"./seeds/*/*.sql\"]");
        let nested = [config, ("supabase/seeds/a/1.sql", ""), ("supabase/seeds/a-b/1.sql", "")];
        // Regression: in such a folder, no seed was found.
        for name in ["seeds-nested", "[seeds] of *", "{seeds}?"] {
            let folder = Folder::new(name, &nested);
            let files = folder.load(&[]).seeds().expect("seeds").0;
            let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names, ["supabase/seeds/a-b/1.sql", "supabase/seeds/a/1.sql"], "{name}");
        }
        let off = Folder::new(
            "seeds-off",
            &[("supabase/seed.sql", ""), ("supabase/config.toml", "[db.seed]\nenabled = false")],
        );
        assert!(off.load(&[]).seeds().expect("seeds").0.is_empty());
    }
}
