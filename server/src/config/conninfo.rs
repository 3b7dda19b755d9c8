//! Connection strings as in libpq. The parameters that the driver does not support (`sslmode=verify-full`,
//! `sslrootcert`, client certificates, `passfile`, `service`, …) are removed and implemented here.
//!
//! Reference: PostgreSQL's manual, chapter libpq: "Connection Strings", "Parameter Key Words", "The Password File", "The
//! Connection Service File", "SSL Support".

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::Source;

/// A connection string for the driver, and how to verify the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conninfo {
    pub text: String,
    pub tls: DatabaseTls,
}

/// TLS settings for the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseTls {
    pub check: CertificateCheck,
    pub roots: Option<Roots>,
    /// `sslcert` and `sslkey`.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// `sslcrl`
    pub revoked: Option<PathBuf>,
    /// `ssl_min_protocol_version=TLSv1.3`
    pub only_newest: bool,
}

/// The required check of the server's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateCheck {
    #[default]
    None,
    /// A known authority: `verify-ca`.
    Authority,
    /// Also the host name: `verify-full`.
    Full,
}

/// Authorities that may sign the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// PEM
    File(PathBuf),
    /// The machine's own: `sslrootcert=system`.
    System,
}

/// Parameters, in their order; of repeated ones the last counts.
type Pairs = Vec<(String, String)>;

/// libpq's parameters without meaning here: the driver always uses UTF-8 and has no other kinds of encryption.
const IGNORED: [&str; 10] = [
    "client_encoding",
    "sslcompression",
    "sslsni",
    "krbsrvname",
    "gsslib",
    "gssdelegation",
    "sslcertmode",
    "sslcrldir",
    "ssl_max_protocol_version",
    "sslpassword",
];

impl Conninfo {
    /// Reads `text` (a URL, or keywords and values), and what libpq would read in addition: the service file, the
    /// password file, the environment's settings of encryption, and the certificates below `~/.postgresql`.
    pub fn resolve(text: &str, source: &Source) -> Result<Self, String> {
        let given = parse(text)?;
        let mut pairs = given.clone();
        add_service(&mut pairs, source)?;
        let tls = take_tls(&mut pairs, source)?;
        if take(&mut pairs, "gssencmode").is_some_and(|mode| mode == "require") {
            return Err("gssencmode=require is not supported".to_owned());
        }
        for demand in ["requirepeer", "require_auth"] {
            if take(&mut pairs, demand).is_some() {
                return Err(format!("{demand} is not supported"));
            }
        }
        for name in IGNORED {
            take(&mut pairs, name);
        }
        if let Some(name) = take(&mut pairs, "fallback_application_name")
            && find(&pairs, "application_name").is_none()
        {
            pairs.push(("application_name".to_owned(), name));
        }
        add_password(&mut pairs, source);
        // Unchanged if none of this is needed.
        let text = if pairs == given { text.to_owned() } else { key_words(&pairs) };
        Ok(Self { text, tls })
    }
}

fn find<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a str> {
    pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn take(pairs: &mut Pairs, name: &str) -> Option<String> {
    let value = find(pairs, name).map(str::to_owned);
    pairs.retain(|(key, _)| key != name);
    value
}

fn key_words(pairs: &Pairs) -> String {
    let mut text = String::new();
    for (key, value) in pairs {
        let separator = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{separator}{key}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
    }
    text
}

fn parse(text: &str) -> Result<Pairs, String> {
    match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
        Some(rest) => parse_url(rest),
        None => parse_key_words(text),
    }
}

/// `[user[:password]@][host[:port],…][/dbname][?name=value&…]`
fn parse_url(rest: &str) -> Result<Pairs, String> {
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(|text| text.into_owned()).map_err(|_| "an escape in it is not UTF-8".to_owned())
    };
    let mut pairs = Pairs::new();
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
    if !user.is_empty() {
        pairs.push(("user".to_owned(), decoded(user)?));
    }
    if let Some(password) = password {
        pairs.push(("password".to_owned(), decoded(password)?));
    }
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        // An IPv6 address is in brackets.
        let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((address, port)) => (address, port.strip_prefix(':').unwrap_or_default()),
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(decoded(name)?);
        ports.push(port);
    }
    if names.iter().any(|name| !name.is_empty()) {
        pairs.push(("host".to_owned(), names.join(",")));
    }
    if ports.iter().any(|port| !port.is_empty()) {
        pairs.push(("port".to_owned(), ports.join(",")));
    }
    if !database.is_empty() {
        pairs.push(("dbname".to_owned(), decoded(database)?));
    }
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').ok_or_else(|| format!("'{parameter}' in it has no value"))?;
        let (name, value) = (decoded(name)?, decoded(value)?);
        // JDBC's spelling.
        match (name.as_str(), value.as_str()) {
            ("ssl", "true") => pairs.push(("sslmode".to_owned(), "require".to_owned())),
            _ => pairs.push((name, value)),
        }
    }
    Ok(pairs)
}

/// `name = value`, with quotes around values that contain spaces.
fn parse_key_words(text: &str) -> Result<Pairs, String> {
    let mut pairs = Pairs::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(|| "a name in it has no '='".to_owned())?;
        let name = name.trim().to_owned();
        let after = after.trim_start();
        let is_quoted = after.starts_with('\'');
        let mut value = String::new();
        let mut characters = after.char_indices().skip(usize::from(is_quoted));
        let end = loop {
            match characters.next() {
                None if is_quoted => return Err(format!("the value of {name} has no end")),
                None => break after.len(),
                Some((_, '\\')) => value.extend(characters.next().map(|(_, c)| c)),
                Some((at, '\'')) if is_quoted => break at + 1,
                Some((at, c)) if !is_quoted && c.is_ascii_whitespace() => break at,
                Some((_, c)) => value.push(c),
            }
        };
        pairs.push((name, value));
        rest = after[end..].trim_start();
    }
    Ok(pairs)
}

fn set<'a>(source: &'a Source, name: &str) -> Option<&'a str> {
    source.get(name).filter(|value| !value.is_empty())
}

fn home(source: &Source, file: &str) -> Option<PathBuf> {
    set(source, "HOME").map(|home| Path::new(home).join(file))
}

/// Adds the named service's parameters that the connection string lacks.
fn add_service(pairs: &mut Pairs, source: &Source) -> Result<(), String> {
    let named = take(pairs, "service");
    let Some(service) = named.or_else(|| set(source, "PGSERVICE").map(str::to_owned)) else { return Ok(()) };
    let own = set(source, "PGSERVICEFILE").map(PathBuf::from).or_else(|| home(source, ".pg_service.conf"));
    let system = Path::new(set(source, "PGSYSCONFDIR").unwrap_or("/etc/postgresql-common")).join("pg_service.conf");
    for file in own.into_iter().chain([system]) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        if let Some(mut found) = service_of(&text, &service) {
            found.retain(|(name, _)| find(pairs, name).is_none());
            pairs.extend(found);
            return Ok(());
        }
    }
    Err(format!("the service '{service}' is not defined"))
}

fn service_of(text: &str, service: &str) -> Option<Pairs> {
    let mut found: Option<Pairs> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(_) if found.is_some() => break,
            Some(name) => found = (name == service).then(Pairs::new),
            None => {
                if let (Some(pairs), Some((name, value))) = (&mut found, line.split_once('=')) {
                    pairs.push((name.trim().to_owned(), value.trim().to_owned()));
                }
            }
        }
    }
    found
}

/// Adds the password file's password if none is given.
fn add_password(pairs: &mut Pairs, source: &Source) {
    let file = take(pairs, "passfile").or_else(|| set(source, "PGPASSFILE").map(str::to_owned));
    if find(pairs, "password").is_some() || set(source, "PGPASSWORD").is_some() {
        return;
    }
    let Some(file) = file.map(PathBuf::from).or_else(|| home(source, ".pgpass")) else { return };
    let Ok(metadata) = std::fs::metadata(&file) else { return };
    if !metadata.is_file() {
        return;
    }
    if metadata.mode() & 0o077 != 0 {
        tracing::warn!(file = %file.display(), "the password file is ignored because other users can read it");
        return;
    }
    let Ok(text) = std::fs::read_to_string(&file) else { return };
    let or = |name: &str, variable: &str| find(pairs, name).or_else(|| set(source, variable)).map(str::to_owned);
    let Some(user) = or("user", "PGUSER") else { return };
    let database = or("dbname", "PGDATABASE").unwrap_or_else(|| user.clone());
    let ports = or("port", "PGPORT").unwrap_or_default();
    let hosts = or("host", "PGHOST").or_else(|| or("hostaddr", "PGHOSTADDR")).unwrap_or_default();
    let mut ports = ports.split(',');
    let mut port = "5432";
    for host in hosts.split(',') {
        // A single port applies to all hosts.
        if let Some(next) = ports.next().filter(|port| !port.is_empty()) {
            port = next;
        }
        let host = if host.is_empty() || host.starts_with('/') { "localhost" } else { host };
        if let Some(password) = password_of(&text, [host, port, &database, &user]) {
            pairs.push(("password".to_owned(), password));
            return;
        }
    }
}

/// The password in the first matching line `host:port:database:user:password`; `*` matches everything, `\` escapes.
fn password_of(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![(String::new(), false)];
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            let is_password = fields.len() > wanted.len();
            let last = fields.last_mut()?;
            match c {
                ':' if !is_password => fields.push((String::new(), false)),
                '\\' => {
                    last.0.extend(characters.next());
                    last.1 = true;
                }
                c => last.0.push(c),
            }
        }
        let (password, _) = fields.get(wanted.len())?;
        let fits =
            |((field, is_escaped), wanted): (&(String, bool), &str)| (field == "*" && !is_escaped) || field == wanted;
        fields.iter().zip(wanted).all(fits).then(|| password.clone())
    })
}

/// Takes out the TLS settings; `sslmode` is reduced to the driver's values.
fn take_tls(pairs: &mut Pairs, source: &Source) -> Result<DatabaseTls, String> {
    let certificate_mode = find(pairs, "sslcertmode").or_else(|| set(source, "PGSSLCERTMODE")).map(str::to_owned);
    let mut or = |name: &str, variable: &str| {
        let value = take(pairs, name).or_else(|| set(source, variable).map(str::to_owned));
        value.filter(|value| !value.is_empty())
    };
    let root = or("sslrootcert", "PGSSLROOTCERT");
    let (certificate, key) = (or("sslcert", "PGSSLCERT"), or("sslkey", "PGSSLKEY"));
    let revoked = or("sslcrl", "PGSSLCRL");
    let oldest = or("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION");
    let given = find(pairs, "sslmode").or_else(|| set(source, "PGSSLMODE")).map(str::to_owned);
    let is_system = root.as_deref() == Some("system");
    let mode = given.clone().unwrap_or_else(|| if is_system { "verify-full" } else { "prefer" }.to_owned());
    if is_system && mode != "verify-full" {
        return Err(format!("sslmode={mode} is too weak for sslrootcert=system: use verify-full"));
    }
    let known = match mode.as_str() {
        "disable" | "prefer" | "require" => mode.as_str(),
        // Encryption is used if offered.
        "allow" => "prefer",
        "verify-ca" | "verify-full" => "require",
        other => return Err(format!("sslmode cannot be '{other}'")),
    };
    if known != given.as_deref().unwrap_or("prefer") {
        take(pairs, "sslmode");
        pairs.push(("sslmode".to_owned(), known.to_owned()));
    }
    let roots = match &root {
        Some(_) if is_system => Some(Roots::System),
        Some(file) => Some(Roots::File(file.into())).filter(|_| Path::new(file).exists()),
        None => home(source, ".postgresql/root.crt").filter(|file| file.exists()).map(Roots::File),
    };
    let check = match mode.as_str() {
        "verify-full" => CertificateCheck::Full,
        "verify-ca" => CertificateCheck::Authority,
        "require" if roots.is_some() => CertificateCheck::Authority,
        _ => CertificateCheck::None,
    };
    if check != CertificateCheck::None && roots.is_none() {
        let file = root.unwrap_or_else(|| "~/.postgresql/root.crt".to_owned());
        return Err(format!("sslmode={mode} needs the root certificate file '{file}', which does not exist"));
    }
    let default = || home(source, ".postgresql/root.crl").filter(|file| file.exists());
    let revoked = revoked.map(PathBuf::from).or_else(default);
    let only_newest = match oldest.as_deref() {
        None | Some("TLSv1" | "TLSv1.1" | "TLSv1.2") => false,
        Some("TLSv1.3") => true,
        Some(other) => return Err(format!("ssl_min_protocol_version cannot be '{other}'")),
    };
    let identity = match certificate_mode.as_deref() {
        Some("disable") => None,
        _ => identity(certificate, key, source)?,
    };
    let is_checked = check != CertificateCheck::None;
    let (roots, revoked) = (roots.filter(|_| is_checked), revoked.filter(|_| is_checked));
    Ok(DatabaseTls { check, roots, identity, revoked, only_newest })
}

/// The client's certificate and key, if there is a certificate.
fn identity(
    certificate: Option<String>,
    key: Option<String>,
    source: &Source,
) -> Result<Option<(PathBuf, PathBuf)>, String> {
    let certificate = certificate.map(PathBuf::from).or_else(|| home(source, ".postgresql/postgresql.crt"));
    let Some(certificate) = certificate.filter(|file| file.exists()) else { return Ok(None) };
    let key = key.map(PathBuf::from).or_else(|| home(source, ".postgresql/postgresql.key")).unwrap_or_default();
    let metadata = std::fs::metadata(&key)
        .map_err(|error| format!("the certificate {} has no key {}: {error}", certificate.display(), key.display()))?;
    // The group may read a key owned by root.
    let open = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & open != 0 {
        return Err(format!("the key {} can be read by other users", key.display()));
    }
    Ok(Some((certificate, key)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tokio_postgres::Config;
    use tokio_postgres::config::SslMode;

    use super::*;

    /// A home folder with these files, readable by their owner only.
    fn home_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Source) {
        let home = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        }
        let source = Source::from_pairs([("HOME", home.path().display().to_string())]);
        (home, source)
    }

    fn resolve(text: &str, source: &Source) -> (Config, DatabaseTls) {
        let resolved = Conninfo::resolve(text, source).expect("resolved");
        (resolved.text.parse().expect("understood"), resolved.tls)
    }

    #[test]
    fn supported_connection_strings_are_unchanged() {
        let source = Source::default();
        for text in [
            "postgresql://",
            "",
            "postgresql://me:p%40w@a:5432,b:5433/app?sslmode=require",
            "host=/run port=1 user=u password='a b' dbname=d",
            "postgresql://u@[::1]:7/d?connect_timeout=3",
        ] {
            let resolved = Conninfo::resolve(text, &source).expect("resolved");
            assert_eq!((resolved.text.as_str(), resolved.tls), (text, DatabaseTls::default()));
        }
    }

    #[test]
    fn rewritten_connection_strings_keep_all_parameters() {
        let text =
            "postgresql://m%27e:p%5C%20w@a:1,[::1]:2/d%20b?client_encoding=latin1&options=-c%20geqo%3Doff&ssl=true";
        let (config, _) = resolve(text, &Source::default());
        let wanted: Config =
            "user='m\\'e' password='p\\\\ w' host='a,::1' port='1,2' dbname='d b' options='-c geqo=off' sslmode=require"
                .parse()
                .expect("understood");
        assert_eq!(config, wanted);
        let (config, _) = resolve("user = u  client_encoding=auto dbname='it\\'s'", &Source::default());
        assert_eq!((config.get_user(), config.get_dbname()), (Some("u"), Some("it's")));
    }

    #[test]
    fn certificates_are_checked_exactly_where_libpq_checks_them() {
        let (home, source) = home_with(&[("ca.pem", "x"), ("crl.pem", "x")]);
        let ca = home.path().join("ca.pem").display().to_string();
        let file = Some(Roots::File(ca.clone().into()));
        for (mode, check, known) in [
            ("disable", CertificateCheck::None, SslMode::Disable),
            ("allow", CertificateCheck::None, SslMode::Prefer),
            ("prefer", CertificateCheck::None, SslMode::Prefer),
            ("require", CertificateCheck::Authority, SslMode::Require),
            ("verify-ca", CertificateCheck::Authority, SslMode::Require),
            ("verify-full", CertificateCheck::Full, SslMode::Require),
        ] {
            let (config, tls) = resolve(&format!("postgresql://h/d?sslmode={mode}&sslrootcert={ca}"), &source);
            assert_eq!((tls.check, config.get_ssl_mode()), (check, known), "{mode}");
            assert_eq!(tls.roots, file.clone().filter(|_| check != CertificateCheck::None), "{mode}");
        }
        let (_, tls) = resolve("postgresql://h/d?sslmode=require", &source);
        assert_eq!(tls.check, CertificateCheck::None, "without a root certificate");
        let (config, tls) = resolve("host=h sslrootcert=system", &source);
        let system = (CertificateCheck::Full, Some(Roots::System), SslMode::Require);
        assert_eq!((tls.check, tls.roots, config.get_ssl_mode()), system);
        let revoked = format!("host=h sslmode=verify-ca sslrootcert={ca} sslcrl={ca} ssl_min_protocol_version=TLSv1.3");
        let (_, tls) = resolve(&revoked, &source);
        assert_eq!((tls.revoked, tls.only_newest), (Some(ca.into()), true));
        for wrong in [
            "host=h sslmode=verify-full",
            "host=h sslmode=verify-ca sslrootcert=/nowhere",
            "host=h sslmode=require sslrootcert=system",
            "host=h sslmode=sometimes",
            "host=h gssencmode=require",
            "host=h requirepeer=postgres",
            "host",
            "host='h",
            "postgresql://h/d?sslmode",
        ] {
            assert!(Conninfo::resolve(wrong, &source).is_err(), "{wrong}");
        }
    }

    #[test]
    fn certificates_in_the_home_folder_are_used_by_default() {
        let (home, source) = home_with(&[
            (".postgresql/root.crt", "x"),
            (".postgresql/postgresql.crt", "x"),
            (".postgresql/postgresql.key", "x"),
        ]);
        let (_, tls) = resolve("host=h sslmode=verify-full", &source);
        let folder = home.path().join(".postgresql");
        assert_eq!(tls.roots, Some(Roots::File(folder.join("root.crt"))));
        assert_eq!(tls.identity, Some((folder.join("postgresql.crt"), folder.join("postgresql.key"))));
        assert_eq!(resolve("host=h sslcertmode=disable", &source).1.identity, None);
        std::fs::set_permissions(folder.join("postgresql.key"), std::fs::Permissions::from_mode(0o644)).expect("open");
        assert!(Conninfo::resolve("host=h", &source).is_err_and(|error| error.contains("can be read by other users")));
    }

    #[test]
    fn a_service_provides_missing_parameters() {
        let file =
            "# ours\n[other]\nhost=wrong\n\n[shop]\nhost = db\nport=5433\nuser=them\nsslmode=require\n[last]\nport=1\n";
        let (_home, mut source) = home_with(&[(".pg_service.conf", file)]);
        for text in ["postgresql://me@/app?service=shop", "service=shop user=me dbname=app"] {
            let (config, _) = resolve(text, &source);
            let (user, database) = (config.get_user(), config.get_dbname());
            assert_eq!((user, database, config.get_ports()), (Some("me"), Some("app"), &[5433][..]));
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
        }
        assert!(Conninfo::resolve("service=none", &source).is_err());
        source.set("PGSERVICE", "shop");
        assert_eq!(resolve("dbname=x", &source).0.get_user(), Some("them"));
    }

    #[test]
    fn a_missing_password_is_read_from_the_password_file() {
        let file =
            "# comment\nother:*:*:*:no\ndb:5432:app:me:se\\:cret\\\\\nlocalhost:*:*:*:socket\n*:*:*:last:any:thing\n";
        let (home, source) = home_with(&[(".pgpass", file), ("elsewhere", "*:*:*:*:there")]);
        let password = |text: &str| {
            let (config, _) = resolve(text, &source);
            config.get_password().map(|password| String::from_utf8_lossy(password).into_owned())
        };
        assert_eq!(password("postgresql://me@db/app").as_deref(), Some("se:cret\\"));
        assert_eq!(password("postgresql://me:own@db/app").as_deref(), Some("own"));
        assert_eq!(password("host=/run user=me dbname=app").as_deref(), Some("socket"));
        assert_eq!(password("host=x user=last").as_deref(), Some("any:thing"));
        assert_eq!(password("postgresql://me@db:5433/app"), None);
        let elsewhere = home.path().join("elsewhere");
        assert_eq!(password(&format!("user=me host=db passfile={}", elsewhere.display())).as_deref(), Some("there"));
        std::fs::set_permissions(home.path().join(".pgpass"), std::fs::Permissions::from_mode(0o644)).expect("open");
        assert_eq!(password("postgresql://me@db/app"), None, "others may read it");
    }
}
