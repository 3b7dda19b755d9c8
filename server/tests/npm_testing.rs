//! The npm package for tests: its examples for vitest and for CI, installed and run like a user would. `just test-tools
//! testing` runs those for jest and Playwright.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::cluster::place;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// The examples in a folder of their own, with their packages.
struct Examples {
    folder: PathBuf,
}

impl Examples {
    fn lay(name: &str) -> Self {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout");
        let folder = place().join(format!("ferrobase-examples-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let examples = Self { folder };
        copy(&checkout.join("packaging/npm-testing/examples"), &examples.project());
        std::fs::create_dir_all(examples.copies()).expect("a folder");
        for path in [&examples.folder, &examples.copies()] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        let packages = examples.project().join("node_modules");
        copy(&checkout.join("packaging/npm-testing"), &packages.join("@ferrobase/testing"));
        for name in ["@supabase", "vitest"] {
            let installed = checkout.join("frontend/node_modules").join(name);
            assert!(installed.exists(), "{} is missing: tools/install.sh frontend", installed.display());
            symlink(installed, packages.join(name)).expect("a link");
        }
        std::fs::create_dir(packages.join(".bin")).expect("a folder");
        symlink("../vitest/vitest.mjs", packages.join(".bin/vitest")).expect("a link");
        symlink(env!("CARGO_BIN_EXE_ferrobase"), packages.join(".bin/ferrobase")).expect("a link");
        examples
    }

    fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    fn copies(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// The output of a shell command, which must succeed.
    fn run(&self, command: &str) -> String {
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .env("NO_COLOR", "1")
            .env("TMPDIR", self.copies())
            .env("FERROBASE_BINARY", env!("CARGO_BIN_EXE_ferrobase"))
            // It takes this long only on a busy machine.
            .env("VITEST_TIMEOUT", "120000")
            .output()
            .expect("a shell");
        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{command}: {told}");
        let left = std::fs::read_dir(self.copies()).expect("a folder").flatten();
        let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("ferrobase-test-"));
        assert_eq!(left.count(), 0, "copies are left");
        told
    }
}

impl Drop for Examples {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_example_for_vitest_passes_and_leaves_nothing() {
    let told = Examples::lay("vitest").run("node_modules/.bin/vitest run --config vitest/vitest.config.mjs");
    assert!(told.contains("Tests  3 passed (3)"), "{told}");
}

#[test]
fn the_steps_of_the_examples_for_ci_pass() {
    let examples = Examples::lay("ci");
    for (file, mark, install) in
        [("ci/github.yml", "- run: ", "npm ci"), ("ci/gitlab.yml", "    - n", "npm ci --cache .npm")]
    {
        let text = std::fs::read_to_string(examples.project().join(file)).expect("a file");
        let steps: Vec<&str> = text
            .lines()
            .filter(|line| line.trim_start().starts_with(mark.trim_start()))
            .map(|line| line.trim().trim_start_matches("- ").trim_start_matches("run: "))
            .collect();
        // The packages are installed already.
        assert_eq!(steps, [install, "npx ferrobase test -- npm test"], "{file}");
        let told = examples.run(steps[1]);
        assert!(told.contains("Tests  3 passed (3)"), "{file} {told}");
    }
}

/// Uses everything that the package declares. The lines that must not compile are marked.
const TYPED: &str = r#"
import { connectFerrobase, startFerrobase, type Ferrobase, type Mail } from "@ferrobase/testing";

interface Note { [column: string]: unknown; id: number; title: string }
interface Database {
  public: {
    Tables: { notes: { Row: Note; Insert: { title: string }; Update: { title?: string }; Relationships: [] } };
    Views: Record<never, never>;
    Functions: Record<never, never>;
  };
}

export async function used(): Promise<string[]> {
  const ferrobase: Ferrobase = await startFerrobase({ project: ".", binary: "ferrobase", env: { RUST_LOG: "info" } });
  const { url, anonKey, serviceRoleKey, publishableKey, secretKey, jwtSecret, dbUrl, inboxUrl } = connectFerrobase(ferrobase.env);
  const mails: Mail[] = await ferrobase.inbox("ada@example.com", { count: 2, timeout: 100 });
  const port: number | undefined = ferrobase.smtpPort;
  const ada = await ferrobase.signedInClient<Database>({ email: "ada@example.com", userMetadata: { team: 1 } });
  const { data } = await ada.from("notes").select("title");
  const titles: string[] = (data ?? []).map((note) => note.title);
  const { data: buckets } = await ferrobase.client({}, secretKey).storage.listBuckets();
  await ferrobase.reset();
  await ferrobase.stop();

  // @ts-expect-error
  ferrobase.url = "http://127.0.0.1";
  // @ts-expect-error
  const known: number = ferrobase.smtpPort;
  // @ts-expect-error
  await startFerrobase({ folder: "." });
  // @ts-expect-error
  await ada.from("nothing").select();
  // @ts-expect-error
  await ferrobase.inbox();
  const texts = mails.flatMap((mail) => [...mail.codes, ...mail.links, mail.subject, mail.headers["x"], mail.receivedAt]);
  const keys = [anonKey, serviceRoleKey, publishableKey, secretKey, jwtSecret];
  return [...titles, ...texts, ...keys, url, dbUrl, inboxUrl, ada.user.id, String(port), buckets?.[0]?.name ?? "", String(known)];
}
"#;

#[test]
fn the_types_of_the_package_describe_it() {
    let examples = Examples::lay("types");
    std::fs::write(examples.project().join("typed.mts"), TYPED).expect("a file");
    let compiler = Path::new(env!("CARGO_MANIFEST_DIR")).join("../frontend/node_modules/typescript/bin/tsc");
    let options = "--noEmit --strict --module nodenext --target es2022 --lib es2022,dom --types '' --skipLibCheck";
    examples.run(&format!("node '{}' {options} typed.mts", compiler.display()));
}
