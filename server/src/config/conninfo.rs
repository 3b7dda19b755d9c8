//! Connection strings as in libpq. The parameters that the driver does not support (`sslmode=verify-full`,
//! `sslrootcert`, client certificates, `passfile`, `service`, …) are removed and implemented here.
//!
//! Reference: PostgreSQL's manual, chapter libpq: "Connection Strings", "Parameter Key Words", "The Password File", "The
//! Connection Service File", "SSL Support".

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Source;

/// A connection string for the driver, and how to verify the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conninfo {
    pub text: String,
    /// The same for PostgreSQL's programs, which verify the server themselves.
    pub for_programs: String,
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

const PASSWORD: &str = "password";

/// Parameters of encryption that libpq also takes from the environment.
const SSL_VARIABLES: [(&str, &str); 7] = [
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
];

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
        let mut whole = pairs.clone();
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
        for (name, variable) in SSL_VARIABLES {
            if let (None, Some(value)) = (find(&whole, name), set(source, variable)) {
                whole.push((name.to_owned(), value.to_owned()));
            }
        }
        take(&mut whole, "passfile");
        if let (None, Some(password)) = (find(&whole, PASSWORD), find(&pairs, PASSWORD)) {
            whole.push((PASSWORD.to_owned(), password.to_owned()));
        }
        // libpq's name of it.
        if let Some(count) = take(&mut pairs, "keepalives_count") {
            pairs.push(("keepalives_retries".to_owned(), count));
        }
        // Unchanged if none of this is needed.
        let text = if pairs == given { text.to_owned() } else { key_words(&pairs) };
        Ok(Self { text, for_programs: key_words(&whole), tls })
    }
}

/// Splits a connection string for PostgreSQL's programs into one without a password, for arguments, and the password. `defaults` are
/// numbers for parameters that it lacks.
pub fn for_programs(text: &str, defaults: &[(&str, u64)]) -> Result<(String, Option<String>), String> {
    let mut pairs = parse(text)?;
    let password = take(&mut pairs, PASSWORD);
    // Our driver's name and unit.
    if let Some(count) = take(&mut pairs, "keepalives_retries") {
        pairs.push(("keepalives_count".to_owned(), count));
    }
    if let Some(seconds) = take(&mut pairs, "tcp_user_timeout") {
        let seconds: u64 = seconds.parse().map_err(|_| "tcp_user_timeout is not a number of seconds".to_owned())?;
        pairs.push(("tcp_user_timeout".to_owned(), seconds.saturating_mul(1000).to_string()));
    }
    for (name, value) in defaults {
        if find(&pairs, name).is_none() {
            pairs.push(((*name).to_owned(), value.to_string()));
        }
    }
    Ok((key_words(&pairs), password))
}

/// The password in a connection string: before the host, or as a parameter, which counts if there are both.
pub fn password_in(text: &str) -> Result<Option<String>, String> {
    Ok(take(&mut parse(text)?, PASSWORD))
}

/// `text` with this password, wherever it had one before. A URL is otherwise unchanged.
pub fn with_password(text: &str, password: &str) -> Result<String, String> {
    let mut pairs = parse(text)?;
    let Some((scheme, rest)) = text.split_once("://").filter(|_| is_url(text)) else {
        take(&mut pairs, PASSWORD);
        pairs.push((PASSWORD.to_owned(), password.to_owned()));
        return Ok(key_words(&pairs));
    };
    let password = utf8_percent_encode(password, NON_ALPHANUMERIC);
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user = login.split(':').next().unwrap_or_default();
    let is_password = |parameter: &str| {
        let name = parameter.split('=').next().unwrap_or_default();
        percent_decode_str(name).decode_utf8_lossy() == PASSWORD
    };
    let mut parameters: Vec<String> =
        parameters.split('&').filter(|kept| !kept.is_empty() && !is_password(kept)).map(str::to_owned).collect();
    let login = if user.is_empty() {
        // Without a user before the host, as for a socket, only a parameter can contain it.
        parameters.push(format!("{PASSWORD}={password}"));
        String::new()
    } else {
        format!("{user}:{password}@")
    };
    let mark = if parameters.is_empty() { "" } else { "?" };
    Ok(format!("{scheme}://{login}{hosts}{database}{mark}{}", parameters.join("&")))
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

fn is_url(text: &str) -> bool {
    text.starts_with("postgresql://") || text.starts_with("postgres://")
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
    // What the environment says, the driver is told, too.
    if known != find(pairs, "sslmode").unwrap_or("prefer") {
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

    /// Regression: the mode of the environment was taken for one that the driver already had.
    #[test]
    fn the_mode_of_the_environment_counts_where_the_connection_string_has_none() {
        for (mode, known) in [
            ("disable", SslMode::Disable),
            ("allow", SslMode::Prefer),
            ("prefer", SslMode::Prefer),
            ("require", SslMode::Require),
        ] {
            let source = Source::from_pairs([("PGSSLMODE", mode)]);
            for text in ["host=h", "postgresql://me:p@h/d"] {
                assert_eq!(resolve(text, &source).0.get_ssl_mode(), known, "{mode} {text}");
            }
            assert_eq!(resolve("host=h sslmode=require", &source).0.get_ssl_mode(), SslMode::Require, "{mode}");
        }
    }

    /// Regression: only URLs of one host were known, and of those that name certificates only what the driver gets.
    #[test]
    fn programs_get_all_parameters_but_the_password() {
        let (home, mut source) = home_with(&[
            ("ca.pem", "x"),
            (".pgpass", "db:*:*:*:of the file\n"),
            (".pg_service.conf", "[shop]\nhost=db\nsslmode=require\n"),
        ]);
        let ca = home.path().join("ca.pem").display().to_string();
        source.set("PGSSLROOTCERT", ca.as_str());
        let defaults = [("keepalives_idle", 10), ("keepalives_count", 3)];
        let alive = "keepalives_idle='10' keepalives_count='3'";
        for (text, wanted, password) in [
            (
                "postgresql://me:p%40ss@node1:5432,[::1]:5433/shop?target_session_attrs=read-write",
                "user='me' host='node1,::1' port='5432,5433' dbname='shop' target_session_attrs='read-write' sslrootcert='CA'",
                Some("p@ss"),
            ),
            (
                "postgresql://me@h/d?sslmode=verify-full&password=s&sslcertmode=disable",
                "user='me' host='h' dbname='d' sslmode='verify-full' sslcertmode='disable' sslrootcert='CA'",
                Some("s"),
            ),
            ("host=h password=p user='a b'", "host='h' user='a b' sslrootcert='CA'", Some("p")),
            (
                "service=shop user=me dbname=it\\'s",
                "user='me' dbname='it\\'s' host='db' sslmode='require' sslrootcert='CA'",
                Some("of the file"),
            ),
            ("postgresql://me@db/d?passfile=/nowhere", "user='me' host='db' dbname='d' sslrootcert='CA'", None),
        ] {
            let whole = Conninfo::resolve(text, &source).expect(text).for_programs;
            let (arguments, found) = for_programs(&whole, &defaults).expect(text);
            assert_eq!(arguments, format!("{} {alive}", wanted.replace("CA", &ca)), "{text}");
            assert_eq!(found.as_deref(), password, "{text}");
        }
        let (arguments, _) =
            for_programs("postgresql://h/d?keepalives_retries=9&tcp_user_timeout=40", &defaults).expect("read");
        let wanted = "host='h' dbname='d' keepalives_count='9' tcp_user_timeout='40000' keepalives_idle='10'";
        assert_eq!(arguments, wanted);
        assert!(for_programs("nonsense", &[]).is_err());
        let (config, _) = resolve("host=h keepalives_count=7", &Source::default());
        assert_eq!(config.get_keepalives_retries(), Some(7));
    }

    /// Regression: a password in the parameters stayed, so it was shown in `ps`, and counted after a rotation.
    #[test]
    fn a_password_is_found_and_replaced_wherever_it_may_be() {
        for (whole, replaced, password) in [
            ("postgresql://me:p%40ss@h:5433/mine", "postgresql://me:n%2Fw@h:5433/mine", Some("p@ss")),
            ("postgresql://me@h/mine?password=s%2Bt", "postgresql://me:n%2Fw@h/mine", Some("s+t")),
            ("postgresql://me:old@h/mine?password=new", "postgresql://me:n%2Fw@h/mine", Some("new")),
            ("postgresql://me@h/mine?pass%77ord=a+b&password=c", "postgresql://me:n%2Fw@h/mine", Some("c")),
            (
                "postgres://me:p@n1:1,[::1]:2/mine?options=-c%20a%3Db&password=p&application_name=a+b",
                "postgres://me:n%2Fw@n1:1,[::1]:2/mine?options=-c%20a%3Db&application_name=a+b",
                Some("p"),
            ),
            ("postgresql:///mine?user=me&password=p", "postgresql:///mine?user=me&password=n%2Fw", Some("p")),
            ("postgresql://h", "postgresql://h?password=n%2Fw", None),
            ("postgresql://me@h/mine?passfile=x", "postgresql://me:n%2Fw@h/mine?passfile=x", None),
            ("host=h password='a b' user=me", "host='h' user='me' password='n/w'", Some("a b")),
        ] {
            assert_eq!(password_in(whole).expect(whole).as_deref(), password, "{whole}");
            let found = with_password(whole, "n/w").expect(whole);
            assert_eq!(found, replaced);
            assert_eq!(password_in(&found).expect(whole).as_deref(), Some("n/w"), "{whole}");
            let (config, _) = resolve(&found, &Source::default());
            assert_eq!(config.get_password(), Some(b"n/w".as_slice()), "{whole}");
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
