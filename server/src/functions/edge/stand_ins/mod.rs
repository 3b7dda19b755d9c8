//! Stand-ins for modules of other registries, for machines that can reach only npm.
//!
//! Most edge functions import `serve` from deno.land, and npm packages through esm.sh. If these cannot be fetched, an import map
//! takes the packages from npm itself, and the common parts of the standard library from modules beside this file. It is used
//! only after a fetch has failed, and only for modules with an equivalent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

/// Our modules, by their file names in the cache.
const MODULES: [(&str, &str); 13] = [
    ("nothing.mjs", "export default undefined;\n"),
    ("serve.mjs", include_str!("serve.mjs")),
    ("status.mjs", include_str!("status.mjs")),
    ("base64.mjs", include_str!("base64.mjs")),
    ("base64url.mjs", include_str!("base64url.mjs")),
    ("hex.mjs", include_str!("hex.mjs")),
    ("encoding.mjs", include_str!("encoding.mjs")),
    ("crypto.mjs", include_str!("crypto.mjs")),
    ("dotenv.mjs", include_str!("dotenv.mjs")),
    ("async.mjs", include_str!("async.mjs")),
    ("uuid.mjs", include_str!("uuid.mjs")),
    ("djwt.mjs", include_str!("djwt.mjs")),
    ("postgres.mjs", include_str!("postgres.mjs")),
];

/// Packages of deno.land/x and their names on npm.
const ON_NPM: [(&str, &str); 18] = [
    ("zod", "zod"),
    ("hono", "hono"),
    ("openai", "openai"),
    ("stripe", "stripe"),
    ("postgresjs", "postgres"),
    ("kysely", "kysely"),
    ("nanoid", "nanoid"),
    ("date_fns", "date-fns"),
    ("lodash", "lodash"),
    ("jose", "jose"),
    ("upstash_redis", "@upstash/redis"),
    ("supabase", "@supabase/supabase-js"),
    ("supabase_js", "@supabase/supabase-js"),
    ("grammy", "grammy"),
    ("cheerio", "cheerio"),
    ("marked", "marked"),
    ("ky", "ky"),
    ("langchain", "langchain"),
];

/// Packages of JSR with the same name on npm.
const SAME_ON_NPM: [&str; 4] = ["@supabase/supabase-js", "@supabase/server", "@supabase/ssr", "@openai/openai"];

/// The replacement of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StandIn {
    Npm(String),
    Ours(&'static str),
    Node(String),
}

impl StandIn {
    fn npm(package: &str, version: Option<&str>, path: &str) -> Self {
        let version = version.map_or_else(String::new, |version| format!("@{version}"));
        Self::Npm(format!("npm:{package}{version}{path}"))
    }
}

/// The replacement of the module that `specifier` names; `None` for modules that npm or Deno serve anyway, and for those without
/// an equivalent.
fn stand_in(specifier: &str) -> Option<StandIn> {
    if let Some(package) = specifier.strip_prefix("jsr:") {
        return of_jsr(package.trim_start_matches('/'));
    }
    let (host, path) = specifier.strip_prefix("https://")?.split_once('/')?;
    let path = path.split(['?', '#']).next().unwrap_or_default();
    match host {
        "esm.sh" | "cdn.esm.sh" | "cdn.skypack.dev" | "unpkg.com" => of_npm_mirror(path),
        "cdn.jsdelivr.net" => of_npm_mirror(path.strip_prefix("npm/")?.trim_end_matches("/+esm")),
        "deno.land" => match path.strip_prefix("x/") {
            Some(package) => of_deno_land(package),
            None => {
                let (_, module) = path.strip_prefix("std")?.split_once('/')?;
                of_standard_library(module)
            }
        },
        _ => None,
    }
}

/// A path such as `v135/@scope/name@1.2.3/sub/path`.
fn of_npm_mirror(path: &str) -> Option<StandIn> {
    let is_build = |part: &str| {
        part == "stable"
            || part.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let path = match path.split_once('/') {
        Some((first, rest)) if is_build(first) => rest,
        _ => path,
    };
    // A star means that dependencies are imported separately, which is always so with npm.
    let path = path.trim_start_matches('*');
    if path.ends_with(".d.ts") {
        return Some(StandIn::Ours("nothing.mjs"));
    }
    let (package, version, sub) = package(path)?;
    if matches!(package, "gh" | "jsr" | "pr" | "node") {
        return None;
    }
    // A build for a specific runtime is replaced by the package's main module.
    let first = sub.trim_start_matches('/').split('/').next().unwrap_or_default();
    let is_built =
        matches!(first, "esnext" | "deno" | "denonext" | "bun") || (first.starts_with("es20") && first.len() == 6);
    Some(StandIn::npm(package, version, if is_built { "" } else { sub }))
}

/// Name, version and the remaining path with its slash.
fn package(path: &str) -> Option<(&str, Option<&str>, &str)> {
    let scope = if path.starts_with('@') { path.find('/')? + 1 } else { 0 };
    let end = path.get(scope..)?.find('/').map_or(path.len(), |at| scope + at);
    let (whole, sub) = path.split_at(end);
    match whole.get(scope..)?.split_once('@') {
        Some((name, version)) if !name.is_empty() => Some((whole.get(..scope + name.len())?, Some(version), sub)),
        _ => (whole.len() > scope).then_some((whole, None, sub)),
    }
}

fn of_jsr(path: &str) -> Option<StandIn> {
    let (name, version, sub) = package(path)?;
    if let Some(module) = name.strip_prefix("@std/") {
        return of_standard_library(&format!("{module}{sub}"));
    }
    match name {
        // Types only.
        "@supabase/functions-js" => Some(StandIn::Ours("nothing.mjs")),
        "@hono/hono" => Some(StandIn::npm("hono", version, sub)),
        "@zod/zod" => Some(StandIn::npm("zod", version, sub)),
        "@openai/openai" => Some(StandIn::npm("openai", version, sub)),
        // Its subpaths are functions that the package itself exports too.
        "@panva/jose" => Some(StandIn::npm("jose", version, "")),
        "@db/postgres" => Some(StandIn::Ours("postgres.mjs")),
        name if SAME_ON_NPM.contains(&name) => Some(StandIn::npm(name, version, sub)),
        _ => None,
    }
}

fn of_deno_land(path: &str) -> Option<StandIn> {
    let (name, version, sub) = package(path)?;
    let version = version.map(|version| version.trim_start_matches('v'));
    match name {
        // Polyfills and settings files, which are not needed here.
        "xhr" | "dotenv" => {
            Some(StandIn::Ours(if name == "xhr" || sub.contains("load") { "nothing.mjs" } else { "dotenv.mjs" }))
        }
        "djwt" => Some(StandIn::Ours("djwt.mjs")),
        "postgres" => Some(StandIn::Ours("postgres.mjs")),
        "base64" => Some(StandIn::Ours("base64.mjs")),
        _ => {
            let (_, on_npm) = ON_NPM.iter().find(|(here, _)| *here == name)?;
            Some(StandIn::npm(on_npm, version, ""))
        }
    }
}

/// `module`: `http/server.ts`, `encoding/base64`, …
fn of_standard_library(module: &str) -> Option<StandIn> {
    let module = module.trim_end_matches(".ts").trim_end_matches("/mod");
    if let Some(name) = module.strip_prefix("node/") {
        return Some(StandIn::Node(format!("node:{name}")));
    }
    let ours = match module {
        "http/server" | "http" => "serve.mjs",
        "http/http_status" | "http/status" => "status.mjs",
        "encoding/base64" => "base64.mjs",
        "encoding/base64url" | "encoding/base64-url" => "base64url.mjs",
        "encoding/hex" => "hex.mjs",
        "encoding" => "encoding.mjs",
        "crypto" | "crypto/crypto" | "crypto/timing_safe_equal" | "crypto/timing-safe-equal" => "crypto.mjs",
        "dotenv/load" => "nothing.mjs",
        "dotenv" => "dotenv.mjs",
        "async" | "async/delay" | "async/deadline" => "async.mjs",
        "uuid" => "uuid.mjs",
        "path" | "path/posix" => return Some(StandIn::Node("node:path/posix".to_owned())),
        "assert" | "testing/asserts" => return Some(StandIn::Node("node:assert".to_owned())),
        _ => return None,
    };
    Some(StandIn::Ours(ours))
}

/// Module names in source code: static and dynamic imports, and re-exports.
static IMPORTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:\bfrom|\bimport)\s*\(?\s*(?:"([^"\n]+)"|'([^'\n]+)')"#).ok());

fn imports(source: &str, into: &mut BTreeSet<String>) {
    let Some(pattern) = IMPORTS.as_ref() else { return };
    into.extend(
        pattern.captures_iter(source).filter_map(|found| Some(found.get(1).or(found.get(2))?.as_str().to_owned())),
    );
}

/// Maximum size of a source file that is scanned, in bytes.
const MOST: u64 = 2 << 20;

/// The module names in all source files below `folder`.
fn all_imports(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if name != "node_modules" && name != ".git" {
                    folders.push(path);
                }
                continue;
            }
            let is_source = path
                .extension()
                .is_some_and(|end| ["ts", "tsx", "js", "jsx", "mjs", "mts"].iter().any(|known| end == *known));
            if is_source
                && entry.metadata().is_ok_and(|metadata| metadata.len() <= MOST)
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                imports(&text, &mut found);
            }
        }
    }
    found
}

/// Writes a function's import map into `cache`, merged with its `own`. Returns its path and what it replaces.
pub fn write(cache: &Path, slug: &str, sources: &Path, own: Option<&Path>) -> std::io::Result<(PathBuf, Vec<String>)> {
    let folder = cache.join("stand-ins");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in MODULES {
        let path = folder.join(name);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(text) {
            std::fs::write(path, text)?;
        }
    }
    let (map, replaced) = import_map(&folder, &all_imports(sources), own);
    let path = folder.join(format!("{slug}.json"));
    std::fs::write(&path, map.to_string())?;
    Ok((path, replaced))
}

/// The map `own`, with stand-ins for modules that can be replaced.
fn import_map(folder: &Path, found: &BTreeSet<String>, own: Option<&Path>) -> (Value, Vec<String>) {
    let text = own.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let given: Value = serde_json::from_str(&without_comments(&text)).unwrap_or_default();
    let base = own.and_then(Path::parent).unwrap_or(Path::new("/"));
    let mut replaced = Vec::new();
    let mut target = |specifier: &str| {
        let instead = match stand_in(specifier)? {
            StandIn::Npm(specifier) | StandIn::Node(specifier) => specifier,
            StandIn::Ours(name) => file_url(&folder.join(name)),
        };
        replaced.push(specifier.to_owned());
        Some(instead)
    };
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    let mut prefixes: Vec<(String, String)> = Vec::new();
    for (name, value) in given["imports"].as_object().into_iter().flatten() {
        let Some(value) = value.as_str() else { continue };
        let value = absolute(base, value);
        if name.ends_with('/') {
            prefixes.push((name.clone(), value.clone()));
        } else if value.starts_with("npm:") || value.starts_with("jsr:") {
            // In a `deno.json`, unlike in a plain import map, a package's name stands for its subpaths too.
            prefixes.push((format!("{name}/"), format!("{value}/")));
        }
        entries.insert(name.clone(), target(&value).unwrap_or(value));
    }
    prefixes.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for specifier in found {
        if entries.contains_key(specifier) {
            continue;
        }
        let prefix = prefixes.iter().find(|(name, _)| specifier.starts_with(name.as_str()));
        let meant = match prefix {
            Some((name, value)) => format!("{value}{}", &specifier[name.len()..]),
            None => specifier.clone(),
        };
        if let Some(instead) = target(&meant) {
            entries.insert(specifier.clone(), instead);
        } else if meant.starts_with("npm:") && meant != *specifier {
            entries.insert(specifier.clone(), meant);
        }
    }
    let mut scopes = Map::new();
    for (scope, imports) in given["scopes"].as_object().into_iter().flatten() {
        let imports: Map<String, Value> = imports
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| {
                let value = absolute(base, value.as_str()?);
                Some((name.clone(), json!(target(&value).unwrap_or(value))))
            })
            .collect();
        scopes.insert(absolute(base, scope), Value::Object(imports));
    }
    replaced.sort();
    replaced.dedup();
    (json!({ "imports": entries, "scopes": scopes }), replaced)
}

/// A relative path of an import map as a URL; others unchanged.
fn absolute(base: &Path, value: &str) -> String {
    if !value.starts_with("./") && !value.starts_with("../") && !value.starts_with('/') {
        return value.to_owned();
    }
    let url = file_url(&base.join(value));
    if value.ends_with('/') && !url.ends_with('/') { format!("{url}/") } else { url }
}

fn file_url(path: &Path) -> String {
    url::Url::from_file_path(path).map_or_else(|()| path.display().to_string(), String::from)
}

/// JSON without the comments and trailing commas that `deno.jsonc` allows.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' if is_quoted => {
                plain.push(c);
                plain.extend(rest.next());
                continue;
            }
            '"' => is_quoted = !is_quoted,
            '/' if !is_quoted && rest.peek() == Some(&'/') => {
                while rest.peek().is_some_and(|next| *next != '\n') {
                    rest.next();
                }
                continue;
            }
            '/' if !is_quoted && rest.peek() == Some(&'*') => {
                rest.next();
                let mut previous = ' ';
                for next in rest.by_ref() {
                    if previous == '*' && next == '/' {
                        break;
                    }
                    previous = next;
                }
                continue;
            }
            '}' | ']' if !is_quoted => {
                let kept = plain.trim_end().trim_end_matches(',').len();
                if plain.trim_end().ends_with(',') {
                    plain.truncate(kept);
                }
            }
            _ => {}
        }
        plain.push(c);
    }
    plain
}

/// Whether a line of Deno's output reports that a registry could not be reached. One that refuses a module is reached.
pub fn tells_of_failed_fetch(line: &str) -> bool {
    if line.contains("error sending request for url") || line.contains("client error (Connect)") {
        return true;
    }
    // `Import 'https://…' failed: 403 Forbidden`
    let Some((_, how)) = line.split_once("Import 'http").and_then(|(_, rest)| rest.split_once("' failed")) else {
        return line.contains("failed to load. Import 'http");
    };
    !how.starts_with(": 4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_with_an_equivalent_are_replaced() {
        for (specifier, expected) in [
            ("https://esm.sh/@supabase/supabase-js@2", Some("npm:@supabase/supabase-js@2")),
            ("https://esm.sh/stripe@14.25.0?target=deno&no-check", Some("npm:stripe@14.25.0")),
            ("https://esm.sh/v135/date-fns@3.6.0/format", Some("npm:date-fns@3.6.0/format")),
            ("https://esm.sh/v132/a-b@1.0.2/esnext/a-b.mjs", Some("npm:a-b@1.0.2")),
            ("https://esm.sh/v132/@types/mdast@4.0.0/index.d.ts", Some("nothing.mjs")),
            ("https://esm.sh/preact", Some("npm:preact")),
            ("https://esm.sh/gh/someone/something", None),
            ("https://cdn.jsdelivr.net/npm/three@0.150.0/+esm", Some("npm:three@0.150.0")),
            ("https://deno.land/std@0.168.0/http/server.ts", Some("serve.mjs")),
            ("https://deno.land/std/encoding/base64.ts", Some("base64.mjs")),
            ("https://deno.land/std@0.177.0/node/crypto.ts", Some("node:crypto")),
            ("https://deno.land/std@0.177.0/semver/mod.ts", None),
            ("https://deno.land/x/zod@v3.22.4/mod.ts", Some("npm:zod@3.22.4")),
            ("https://deno.land/x/xhr@0.1.0/mod.ts", Some("nothing.mjs")),
            ("https://deno.land/x/djwt@v2.8/mod.ts", Some("djwt.mjs")),
            ("https://deno.land/x/denomailer@1.6.0/mod.ts", None),
            ("jsr:@supabase/supabase-js@^2.49.4", Some("npm:@supabase/supabase-js@^2.49.4")),
            ("jsr:@supabase/functions-js/edge-runtime.d.ts", Some("nothing.mjs")),
            ("jsr:@std/crypto@1/timing-safe-equal", Some("crypto.mjs")),
            ("jsr:@hono/hono@4/cors", Some("npm:hono@4/cors")),
            ("jsr:@panva/jose@6", Some("npm:jose@6")),
            ("jsr:@db/postgres", Some("postgres.mjs")),
            ("https://deno.land/x/postgres@v0.17.0/mod.ts", Some("postgres.mjs")),
            ("jsr:@someone/something", None),
            ("npm:zod", None),
            ("https://example.com/mod.ts", None),
            ("./local.ts", None),
        ] {
            let found = stand_in(specifier).map(|found| match found {
                StandIn::Npm(found) | StandIn::Node(found) => found,
                StandIn::Ours(found) => found.to_owned(),
            });
            assert_eq!(found.as_deref(), expected, "{specifier}");
        }
        for (name, _) in MODULES {
            assert!(name.ends_with(".mjs"), "{name}");
        }
    }

    #[test]
    fn a_registry_that_refuses_a_module_is_reached() {
        let jsr = "error: JSR package manifest for '@std/crypto' failed to load. Import 'https://jsr.io/@std/crypto/meta.json' failed";
        for (line, is_unreachable) in [
            ("error: Import 'https://esm.sh/ms' failed.", true),
            ("    0: error sending request for url (https://esm.sh/ms): client error (Connect): dns error", true),
            ("error: Import 'https://esm.sh/ms' failed: 503 Service Unavailable", true),
            ("error: Import 'https://esm.sh/ms' failed: 403 Forbidden", false),
            (&format!("{jsr}."), true),
            (&format!("{jsr}: 502 Bad Gateway"), true),
            (&format!("{jsr}: 401 Unauthorized"), false),
            ("error: JSR package not found: @std/nothing", false),
            ("error: Module not found \"https://deno.land/x/none/mod.ts\".", false),
        ] {
            assert_eq!(tells_of_failed_fetch(line), is_unreachable, "{line}");
        }
    }

    #[test]
    fn imports_are_found_in_all_their_forms() {
        let mut found = BTreeSet::new();
        imports(
            "import { a } from \"x\";\nimport 'y';\nexport * from 'z';\nconst b = await import(\"w\");\nimport {\n c,\n} from 'v'",
            &mut found,
        );
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["v", "w", "x", "y", "z"]);
    }

    #[test]
    fn an_import_map_keeps_the_projects_entries() {
        let folder = std::env::temp_dir().join(format!("ferrobase-stand-ins-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let own = folder.join("deno.jsonc");
        std::fs::write(
            &own,
            "{ // with a comment, \"http://\"\n \"imports\": { \"std/\": \"https://deno.land/std@0.168.0/\", \"local\": \"./a.ts\",\n\
             \"kept\": \"npm:kept@1\", \"fn\": \"jsr:@supabase/functions-js@2\", \"sb\": \"jsr:@supabase/supabase-js@2\", /* , */ } }",
        )
        .expect("a file");
        let found = [
            "std/http/server.ts",
            "https://esm.sh/zod@3",
            "local",
            "./b.ts",
            "https://example.com/x.ts",
            "kept/sub",
            "fn/edge-runtime.d.ts",
        ];
        let found = found.iter().map(|name| (*name).to_owned()).collect();
        let (map, replaced) = import_map(Path::new("/c"), &found, Some(&own));
        let imports = &map["imports"];
        assert_eq!(imports["std/http/server.ts"], "file:///c/serve.mjs");
        assert_eq!(imports["https://esm.sh/zod@3"], "npm:zod@3");
        assert_eq!(imports["sb"], "npm:@supabase/supabase-js@2");
        assert_eq!(imports["kept"], "npm:kept@1");
        assert_eq!(imports["kept/sub"], "npm:kept@1/sub");
        assert_eq!(imports["fn/edge-runtime.d.ts"], "file:///c/nothing.mjs");
        assert_eq!(imports["local"], file_url(&folder.join("./a.ts")));
        assert!(imports.get("./b.ts").is_none() && imports.get("https://example.com/x.ts").is_none());
        assert_eq!(
            replaced,
            [
                "https://deno.land/std@0.168.0/http/server.ts",
                "https://esm.sh/zod@3",
                "jsr:@supabase/functions-js@2",
                "jsr:@supabase/functions-js@2/edge-runtime.d.ts",
                "jsr:@supabase/supabase-js@2"
            ]
        );
        let _ = std::fs::remove_dir_all(&folder);
    }
}
