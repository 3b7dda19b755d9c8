//! New files of a project.

use std::io::{IsTerminal, Read};

use anyhow::Context;

use crate::project::{Project, new_migration_path};

/// A migration named by the time, with what comes on standard input unless that is a terminal; prints its path.
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

/// A function that says hello; prints its path.
pub fn new_function(project: &Project, slug: &str) -> anyhow::Result<()> {
    let valid = slug.starts_with(|c: char| c.is_ascii_alphabetic())
        && slug.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    anyhow::ensure!(valid, "a function's name begins with a letter and holds letters, digits, '_' and '-'");
    let folder = project.functions_dir().join(slug);
    anyhow::ensure!(!folder.exists(), "there is a function {slug} already");
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
