//! Extensions beside those of PostgreSQL itself: ours (`sql/extensions`), compiled ones that were installed beside the
//! binaries (`tools/pg-extras.sh`) or with another PostgreSQL (`PG_BIN_DIR`), those that a project installs as text (`pg_tle`), and
//! PostgreSQL's own that only a superuser may create but Supabase gives to everybody.
//!
//! Nothing is written into the package of the binaries: since version 18 PostgreSQL searches further folders for
//! extensions. They are marked as trusted, so `postgres` can create them, while their objects belong to the
//! superuser.

use std::path::{Path, PathBuf};

use rand::Rng;
use rust_embed::RustEmbed;

use super::account::Account;
use super::binaries::Binaries;
use super::{EmbeddedError, short_hash};

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../sql/extensions"]
struct Ours;

/// PostgreSQL's own, and others', that are not trusted and that Supabase lets its `postgres` create.
const TRUSTED_TOO: [&str; 35] = [
    "address_standardizer",
    "address_standardizer_data_us",
    "autoinc",
    "bloom",
    "dblink",
    "dict_xsyn",
    "earthdistance",
    "insert_username",
    "intagg",
    "moddatetime",
    "pg_buffercache",
    "pg_hashids",
    "pg_prewarm",
    "pg_stat_statements",
    "pg_walinspect",
    "pgaudit",
    "pgroonga",
    "pgrouting",
    "pgrowlocks",
    "pgstattuple",
    "pgtap",
    "postgis",
    "postgis_raster",
    "postgis_sfcgal",
    "postgis_tiger_geocoder",
    "postgis_topology",
    "postgres_fdw",
    "refint",
    "rum",
    "sslinfo",
    "timescaledb",
    "vector",
    "wrappers",
    "xml2",
    "plv8",
];

/// Those of ours that only stand for the real ones: where the server's own package has these, they are used.
const SURFACES: [&str; 6] = ["http", "hypopg", "index_advisor", "pg_graphql", "pg_jsonschema", "plpgsql_check"];

/// The folder of a cluster that holds what `pgtle.install_extension` has written; in it `extension/`.
const TEXTS: &str = "tle";

/// Our own extensions' files, with their names.
pub fn each_file(mut with: impl FnMut(&str, &[u8])) {
    for name in Ours::iter() {
        if let Some(file) = Ours::get(&name) {
            with(&name, &file.data);
        }
    }
}

/// Writes the folder of extensions below `root` and returns the settings that make PostgreSQL use it; none before
/// version 18.
pub fn prepare(
    root: &Path,
    binaries: &Binaries,
    major: &str,
    db: &Path,
    account: Option<&Account>,
) -> Result<Vec<(String, String)>, EmbeddedError> {
    if major.parse::<u32>().unwrap_or(0) < 18 {
        return Ok(Vec::new());
    }
    let folder = root.join("extensions");
    let (scripts, libraries) = (folder.join("extension"), folder.join("lib"));
    for dir in [&folder, &scripts, &libraries] {
        std::fs::create_dir_all(dir).map_err(EmbeddedError::io("cannot create", dir))?;
        open_to_all(dir, 0o755)?;
    }
    for name in Ours::iter() {
        if let Some(file) = Ours::get(&name) {
            write(&scripts.join(name.as_ref()), &file.data)?;
        }
    }
    let texts = db.join(TEXTS);
    for dir in [&texts, &texts.join("extension")] {
        std::fs::create_dir_all(dir).map_err(EmbeddedError::io("cannot create", dir))?;
        if let Some(account) = account {
            account.own(dir)?;
        }
    }
    for name in TRUSTED_TOO.iter().chain(&SURFACES) {
        if let Some((place, control)) = stock_control(binaries, major, name) {
            let text = format!("{control}\ntrusted = true\ndirectory = '{}'\n", place.display());
            write(&scripts.join(format!("{name}.control")), text.as_bytes())?;
        }
    }
    if let Some(installed) = binaries.extensions() {
        for part in ["extension", "lib"] {
            let entries = std::fs::read_dir(installed.join(part)).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()).filter(|path| path.is_file()) {
                let data = std::fs::read(&path).map_err(EmbeddedError::io("cannot read", &path))?;
                write(&folder.join(part).join(path.file_name().unwrap_or_default()), &data)?;
            }
        }
    }
    Ok(vec![
        // Nothing that a project installs takes the place of another extension.
        ("extension_control_path".to_owned(), format!("{}:$system:{}", folder.display(), texts.display())),
        ("dynamic_library_path".to_owned(), format!("{}:$libdir", libraries.display())),
    ])
}

/// The folder and the text of the control file of an extension that came with the server.
fn stock_control(binaries: &Binaries, major: &str, name: &str) -> Option<(PathBuf, String)> {
    let share = binaries.dir.parent()?.join("share");
    // Debian's `/usr/lib/postgresql/18/bin` goes with `/usr/share/postgresql/18`.
    let debian =
        binaries.dir.ancestors().nth(4).map(|root| root.join("share/postgresql").join(major).join("extension"));
    let places = [Some(share.join("postgresql/extension")), Some(share.join("extension")), debian];
    places.into_iter().flatten().find_map(|place| {
        let text = std::fs::read_to_string(place.join(format!("{name}.control"))).ok()?;
        Some((place, text))
    })
}

/// Does not rewrite an identical file, because another process may be reading it.
fn write(path: &Path, data: &[u8]) -> Result<(), EmbeddedError> {
    if std::fs::read(path).is_ok_and(|found| found == data) {
        return Ok(());
    }
    let partial = path.with_extension(format!("{}.partial", short_hash(path.as_os_str().as_encoded_bytes())));
    std::fs::write(&partial, data).map_err(EmbeddedError::io("cannot write", &partial))?;
    open_to_all(&partial, 0o644)?;
    std::fs::rename(&partial, path).map_err(EmbeddedError::io("cannot write", path))
}

fn open_to_all(path: &Path, mode: u32) -> Result<(), EmbeddedError> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(EmbeddedError::io("cannot open", path))
}

/// Creates the vault's key once, in the cluster's folder, where the extension's functions read it.
pub fn make_vault_key(db: &Path, account: Option<&Account>) -> Result<(), EmbeddedError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = db.join("vault.key");
    if path.exists() {
        return Ok(());
    }
    let mut key = [0_u8; 32];
    rand::rng().fill(&mut key);
    let partial = db.join("vault.key.partial");
    let _ = std::fs::remove_file(&partial);
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial)
        .and_then(|mut file| file.write_all(hex::encode(key).as_bytes()).and_then(|()| file.sync_all()))
        .map_err(EmbeddedError::io("cannot write", &partial))?;
    if let Some(account) = account {
        account.own(&partial)?;
    }
    std::fs::rename(&partial, &path).map_err(EmbeddedError::io("cannot write", &path))
}
