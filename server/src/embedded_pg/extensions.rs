//! Extensions in addition to PostgreSQL's own: ours (`sql/extensions`); compiled ones installed beside the binaries
//! (`tools/pg-extras.sh`) or with another PostgreSQL (`PG_BIN_DIR`); those that a project installs as text (`pg_tle`); and
//! PostgreSQL's untrusted ones that Supabase allows everybody to create.
//!
//! Nothing is written into the package of the binaries: since version 18 PostgreSQL searches further folders for
//! extensions. They are marked as trusted, so `postgres` can create them, while their objects belong to the
//! superuser.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rand::Rng;

use super::account::Account;
use super::binaries::Binaries;
use super::{EmbeddedError, short_hash};
use crate::extensions::{self, extension_of, files};

/// Untrusted extensions of PostgreSQL and others that Supabase allows its `postgres` to create.
const TRUSTED_TOO: [&str; 34] = [
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
    "pg_partman",
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
    "vector",
    "xml2",
    "plv8",
];

/// Our stand-ins for real extensions, which are used instead if the server's package has them.
const SURFACES: [&str; 8] =
    ["http", "hypopg", "index_advisor", "pg_graphql", "pg_jsonschema", "plpgsql_check", "timescaledb", "wrappers"];

/// The cluster's folder of extensions written by `pgtle.install_extension`, in its subfolder `extension/`.
const TEXTS: &str = "tle";

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
    let is_installed = |name: &str| {
        let control = format!("extension/{}.control", extension_of(name));
        binaries.extensions().is_some_and(|installed| installed.join(control).is_file())
    };
    for (name, data) in files() {
        let path = scripts.join(name.as_ref());
        if is_installed(&name) {
            // A version of ours would stand beside the real ones.
            let _ = std::fs::remove_file(path);
        } else {
            write(&path, &data)?;
        }
    }
    remove_former(&scripts, is_installed)?;
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
        // An extension installed by a project must never replace another one.
        ("extension_control_path".to_owned(), format!("{}:$system:{}", folder.display(), texts.display())),
        ("dynamic_library_path".to_owned(), format!("{}:$libdir", libraries.display())),
    ])
}

/// Removes the scripts of ours that an older server wrote: PostgreSQL would offer their versions too.
fn remove_former(scripts: &Path, is_installed: impl Fn(&str) -> bool) -> Result<(), EmbeddedError> {
    let ours: BTreeSet<String> = extensions::names().collect();
    let entries = std::fs::read_dir(scripts).map_err(EmbeddedError::io("cannot read", scripts))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains("--")
            && ours.contains(extension_of(&name))
            && !extensions::has_file(&name)
            && !is_installed(&name)
        {
            // Another server of this folder may have been faster.
            let _ = std::fs::remove_file(&path);
        }
    }
    Ok(())
}

/// The names of all extensions that a server of these binaries can create: PostgreSQL's own, ours, compiled ones beside the
/// binaries, and what is installed as text in the cluster `db`.
pub fn available(binaries: &Binaries, major: &str, db: &Path) -> BTreeSet<String> {
    let mut folders = stock_folders(binaries, major);
    folders.extend(binaries.extensions().map(|folder| folder.join("extension")));
    folders.push(db.join(TEXTS).join("extension"));
    let in_folders = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let in_folders = in_folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: BTreeSet<String> =
        in_folders.filter_map(|name| name.strip_suffix(".control").map(str::to_owned)).collect();
    if major.parse::<u32>().unwrap_or(0) >= 18 {
        names.extend(extensions::names());
    }
    names
}

/// The folder and the text of the control file of an extension that came with the server.
fn stock_control(binaries: &Binaries, major: &str, name: &str) -> Option<(PathBuf, String)> {
    stock_folders(binaries, major).into_iter().find_map(|place| {
        let text = std::fs::read_to_string(place.join(format!("{name}.control"))).ok()?;
        Some((place, text))
    })
}

/// Where the extensions that came with the server may lie.
fn stock_folders(binaries: &Binaries, major: &str) -> Vec<PathBuf> {
    let share = binaries.dir.parent().map(|parent| parent.join("share"));
    let own = share.iter().flat_map(|share| [share.join("postgresql/extension"), share.join("extension")]);
    // Debian's `/usr/lib/postgresql/18/bin` goes with `/usr/share/postgresql/18`.
    let debian = binaries.dir.ancestors().nth(4);
    own.chain(debian.map(|root| root.join("share/postgresql").join(major).join("extension"))).collect()
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
