//! Creates new projects, and new files of a project.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use anyhow::Context;
use clap::Args;

use crate::cli::print_all;
use crate::project::{Project, new_migration_path, project_id};

const CONFIG: &str = include_str!("init_config.toml");

/// The same entries as the Supabase CLI's.
const IGNORED: &str = "# Supabase\n.branches\n.temp\n\n# dotenvx\n.env.keys\n.env.local\n.env.*.local\n";

#[derive(Args)]
pub struct InitArgs {
    /// Replace an existing supabase/config.toml
    #[arg(long)]
    force: bool,
    /// Accepted for scripts: there are no questions
    #[arg(short, long, hide = true)]
    interactive: bool,
    /// Refused: tables are stored in PostgreSQL's own heap
    #[arg(long, hide = true)]
    use_orioledb: bool,
    /// Accepted for scripts: editor settings are not written
    #[arg(long, hide = true, alias = "with-vscode-workspace", alias = "with-intellij-settings")]
    with_vscode_settings: bool,
}

/// Creates a project in the current folder, even below another project: `supabase/config.toml` and `supabase/.gitignore`.
pub fn init(args: &InitArgs) -> anyhow::Result<()> {
    let root = super::global::start_folder()?;
    anyhow::ensure!(!args.use_orioledb, "OrioleDB is not available here: tables are stored in PostgreSQL's own heap");
    begin(&root, args.force)?;
    if args.with_vscode_settings {
        super::say("WARN: editor settings are not written");
    }
    print_all("Finished supabase init.\n")
}

fn begin(root: &Path, is_forced: bool) -> anyhow::Result<()> {
    let folder = root.join("supabase");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let text = CONFIG.replacen("{project_id}", &project_id(root), 1);
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).create(is_forced).create_new(!is_forced);
    match options.open(folder.join("config.toml")).and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            anyhow::bail!("supabase/config.toml already exists: 'ferrobase init --force' replaces it")
        }
        written => written.context("cannot write supabase/config.toml")?,
    }
    let ignore = folder.join(".gitignore");
    let before = match std::fs::read_to_string(&ignore) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.context("cannot read supabase/.gitignore")?,
    };
    if before.contains(IGNORED) {
        return Ok(());
    }
    let between = if before.is_empty() { "" } else { "\n" };
    std::fs::write(&ignore, format!("{before}{between}{IGNORED}")).context("cannot write supabase/.gitignore")
}

/// Creates a migration named by the current time, with the content of standard input unless that is a terminal. Prints its path.
pub fn new_migration(project: &Project, name: &str) -> anyhow::Result<()> {
    let path = new_migration_path(project, name, chrono::Utc::now());
    let folder = project.migrations_dir();
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut text = Vec::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_end(&mut text)?;
    }
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let shown = path.strip_prefix(&project.root).unwrap_or(&path);
    crate::cli::print_all(&format!("Created new migration at {}\n", shown.display()))
}

/// Creates a sample function. Prints its path.
pub fn new_function(project: &Project, slug: &str) -> anyhow::Result<()> {
    let valid = slug.starts_with(|c: char| c.is_ascii_alphabetic())
        && slug.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    anyhow::ensure!(valid, "a function's name must begin with a letter and contain only letters, digits, '_' and '-'");
    let folder = project.functions_dir().join(slug);
    anyhow::ensure!(!folder.exists(), "the function {slug} already exists");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (file, text) in [("index.ts", FUNCTION), ("deno.json", "{\n  \"imports\": {}\n}\n")] {
        let path = folder.join(file);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let shown = folder.strip_prefix(&project.root).unwrap_or(&folder);
    crate::cli::print_all(&format!("Created new Function at {}\n", shown.display()))
}

const FUNCTION: &str = r#"// Called at /functions/v1/<this folder's name> with a token of the project.
Deno.serve(async (request) => {
  const { name } = await request.json();
  return Response.json({ message: `Hello ${name}!` });
});
"#;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_new_project_has_the_defaults_and_no_warnings() {
        let root = tempfile::Builder::new().prefix("my app").tempdir().expect("a folder");
        begin(root.path(), false).expect("a project");
        let project = Project::load(root.path(), BTreeMap::new()).expect("a project");
        assert_eq!(project.warnings, Vec::<String>::new());
        assert!(project.id.starts_with("my_app"), "{}", project.id);
        // Its settings are the defaults.
        std::fs::write(root.path().join("supabase/config.toml"), "").expect("written");
        let empty = Project::load(root.path(), BTreeMap::new()).expect("a project");
        let settings =
            |project: &Project| project.settings().expect("settings").into_iter().collect::<BTreeMap<_, _>>();
        let (mut ours, mut defaults) = (settings(&project), settings(&empty));
        // These have a value only in the file.
        for name in ["GOTRUE_URI_ALLOW_LIST", "GOTRUE_SMS_TEMPLATE", "GOTRUE_MFA_PHONE_TEMPLATE"] {
            ours.remove(name);
            defaults.remove(name);
        }
        ours.retain(|name, value| defaults.get(name) != Some(value));
        let without_effect = ["GOTRUE_MFA_PHONE_OTP_LENGTH", "GOTRUE_MFA_PHONE_MAX_FREQUENCY"];
        ours.retain(|name, value| value != "false" && !without_effect.contains(&name.as_str()));
        assert_eq!(ours, BTreeMap::new());
    }

    #[test]
    fn an_existing_project_stays_as_it_is() {
        let root = tempfile::tempdir().expect("a folder");
        let read = |name: &str| std::fs::read_to_string(root.path().join("supabase").join(name)).expect(name);
        std::fs::create_dir(root.path().join("supabase")).expect("a folder");
        std::fs::write(root.path().join("supabase/config.toml"), "project_id = \"mine\"").expect("written");
        std::fs::write(root.path().join("supabase/.gitignore"), "own\n").expect("written");
        let refused = begin(root.path(), false).expect_err("refused").to_string();
        assert!(refused.contains("--force") && read("config.toml") == "project_id = \"mine\"", "{refused}");
        assert_eq!(read(".gitignore"), "own\n");
        begin(root.path(), true).expect("replaced");
        begin(root.path(), true).expect("replaced");
        assert!(read("config.toml").contains("[db.migrations]"));
        assert_eq!(read(".gitignore"), format!("own\n\n{IGNORED}"));
    }
}
