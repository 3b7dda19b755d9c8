//! The edge functions of a project: folders below `supabase/functions`, their sections of `config.toml`, and their environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Inspector, Project, ProjectError, dotenv, values};

/// How a function is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionConfig {
    pub slug: String,
    /// Whether calls need a valid JWT of the project.
    pub verify_jwt: bool,
    pub entrypoint: PathBuf,
    /// `deno.json` or an import map, if there is one.
    pub imports: Option<PathBuf>,
    /// Whether a `package.json` beside the entry point is used instead.
    pub package_json: bool,
    /// Glob patterns of other files that the function may read.
    pub static_files: Vec<PathBuf>,
    /// While `functions serve --inspect` runs.
    pub inspector: Option<Inspector>,
}

/// File names of entry points, in search order.
const ENTRY_POINTS: [&str; 5] = ["index.ts", "index.js", "index.mjs", "index.tsx", "index.jsx"];

impl Project {
    pub fn functions_dir(&self) -> PathBuf {
        self.folder().join("functions")
    }

    /// Every function in name order, and a message for each that is not served.
    pub fn functions(&self) -> (Vec<FunctionConfig>, Vec<String>) {
        let (mut functions, mut skipped) = (Vec::new(), Vec::new());
        if !self.is_on("edge_runtime.enabled", true) {
            return (functions, skipped);
        }
        let entries = std::fs::read_dir(self.functions_dir()).into_iter().flatten().flatten();
        let mut slugs: Vec<String> = entries
            .filter(|entry| ENTRY_POINTS.iter().any(|file| entry.path().join(file).is_file()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| is_slug(name))
            .collect();
        // Names of sections are in lower case.
        let sections = self.values.tables_below("functions");
        let alone = sections.into_iter().filter(|name| slugs.iter().all(|slug| slug.to_lowercase() != *name));
        let alone: Vec<String> = alone.collect();
        slugs.extend(alone);
        slugs.sort();
        slugs.dedup();
        for slug in slugs {
            let path = |key: &str| format!("functions.{}.{key}", slug.to_lowercase());
            if !is_slug(&slug) {
                skipped.push(format!("Invalid Function name: {slug}. Must start with at least one letter, and only include alphanumeric characters, underscores, and hyphens."));
                continue;
            }
            if !self.is_on(&path("enabled"), true) {
                skipped.push(format!("Skipped serving Function: {slug}"));
                continue;
            }
            let folder = self.functions_dir().join(&slug);
            let default = ENTRY_POINTS.iter().map(|file| folder.join(file)).find(|file| file.is_file());
            let entrypoint = match self.values.text(&path("entrypoint")) {
                Some(file) => self.folder().join(file),
                None => default.unwrap_or_else(|| folder.join("index.ts")),
            };
            if !entrypoint.is_file() {
                skipped.push(format!("Skipped serving Function: {slug} (there is no {})", entrypoint.display()));
                continue;
            }
            let beside = entrypoint.parent().map(PathBuf::from).unwrap_or_default();
            let imports = self.values.text(&path("import_map")).map(|file| self.folder().join(file)).or_else(|| {
                [
                    beside.join("deno.json"),
                    beside.join("deno.jsonc"),
                    beside.join("import_map.json"),
                    self.functions_dir().join("import_map.json"),
                    self.functions_dir().join("deno.json"),
                    self.functions_dir().join("deno.jsonc"),
                ]
                .into_iter()
                .find(|file| file.is_file())
            });
            functions.push(FunctionConfig {
                verify_jwt: self.is_on(&path("verify_jwt"), true),
                package_json: imports.is_none() && beside.join("package.json").is_file(),
                static_files: self
                    .value_list(&path("static_files"))
                    .unwrap_or_default()
                    .iter()
                    .map(|pattern| self.folder().join(pattern.trim_start_matches("./")))
                    .collect(),
                inspector: None,
                imports,
                entrypoint,
                slug,
            });
        }
        (functions, skipped)
    }

    /// The port for debuggers of the first function.
    pub fn inspector_port(&self) -> u16 {
        self.values.text("edge_runtime.inspector_port").and_then(|port| port.parse().ok()).unwrap_or(8083)
    }

    /// The environment of functions besides the server's own variables: the secrets of the configuration, overridden by `file`,
    /// or else by `supabase/functions/.env`. Names that begin with `SUPABASE_` are skipped with a message.
    pub fn function_environment(
        &self,
        file: Option<&std::path::Path>,
    ) -> Result<(BTreeMap<String, String>, Vec<String>), ProjectError> {
        let default = self.functions_dir().join(".env");
        let file = file.map(PathBuf::from).or_else(|| default.is_file().then_some(default));
        let mut environment: BTreeMap<String, String> = self
            .values
            .below("edge_runtime.secrets")
            .into_iter()
            .filter(|(_, value)| !values::is_unset(value))
            .collect();
        if let Some(file) = file {
            environment.extend(dotenv::read(&file)?);
        }
        let mut skipped = Vec::new();
        environment.retain(|name, _| {
            let is_ours = name.starts_with("SUPABASE_");
            if is_ours {
                skipped.push(format!("Env name cannot start with SUPABASE_, skipping: {name}"));
            }
            !is_ours
        });
        Ok((environment, skipped))
    }
}

fn is_slug(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;

    #[test]
    fn folders_with_an_entry_point_and_configured_functions_are_found() {
        let folder = Folder::new(
            "functions",
            &[
                ("supabase/functions/hello/index.ts", ""),
                ("supabase/functions/hello/deno.json", "{}"),
                ("supabase/functions/old/index.ts", ""),
                ("supabase/functions/off/index.ts", ""),
                ("supabase/functions/_shared/index.ts", ""),
                ("supabase/functions/notes/readme.md", ""),
                ("supabase/functions/sendMail/index.ts", ""),
                ("supabase/functions/import_map.json", "{}"),
                ("supabase/other/main.ts", ""),
                ("supabase/functions/.env", "A=file\nSUPABASE_URL=x\n"),
                (
                    "supabase/config.toml",
                    "[functions.hello]\nverify_jwt = false\n[functions.sendMail]\nverify_jwt = false\n[functions.off]\nenabled = false\n\
                     [functions.named]\nentrypoint = \"./other/main.ts\"\n[edge_runtime.secrets]\na = \"config\"\nb = \"two\"\n",
                ),
            ],
        );
        let project = folder.load(&[]);
        let (functions, skipped) = project.functions();
        let found: Vec<_> = functions.iter().map(|f| (f.slug.as_str(), f.verify_jwt)).collect();
        assert_eq!(found, [("hello", false), ("named", true), ("old", true), ("sendMail", false)]);
        assert_eq!(skipped, ["Skipped serving Function: off"]);
        assert!(functions[0].imports.as_ref().is_some_and(|file| file.ends_with("hello/deno.json")));
        assert!(functions[2].imports.as_ref().is_some_and(|file| file.ends_with("functions/import_map.json")));
        let (environment, skipped) = project.function_environment(None).expect("environment");
        let found: Vec<_> = environment.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(found, [("A", "file"), ("B", "two")]);
        assert_eq!(skipped.len(), 1);
    }
}
