//! The environment variables that fill in missing parts of a connection string, as in libpq: `PGHOST`, `PGPORT`,
//! `PGUSER` and the others of PostgreSQL's manual, chapter libpq, "Environment Variables".

use std::path::Path;

use tokio_postgres::Config;

use super::Source;

/// The default socket directories of a local server: Debian's, then PostgreSQL's own.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// `uri` (URL or key-value form) with missing parts from the environment, then from libpq's defaults.
/// Invalid text is returned unchanged; connecting with it reports the error.
pub fn with_environment(uri: &str, source: &Source) -> String {
    let Ok(config) = uri.parse::<Config>() else { return uri.to_owned() };
    let set = |name: &str| source.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
    let says = |key: &str| uri.contains(key);
    let mut missing: Vec<(&str, Option<String>)> = Vec::new();
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let host = set("PGHOST");
        let address = set("PGHOSTADDR");
        if host.is_none() && address.is_none() {
            missing.push(("host", Some(socket_directory().to_owned())));
        }
        missing.push(("host", host));
        missing.push(("hostaddr", address));
    }
    if config.get_ports().is_empty() {
        missing.push(("port", set("PGPORT")));
    }
    if config.get_user().is_none_or(str::is_empty) {
        missing.push(("user", set("PGUSER")));
    }
    if config.get_password().is_none() {
        missing.push(("password", set("PGPASSWORD")));
    }
    if config.get_dbname().is_none_or(str::is_empty) {
        missing.push(("dbname", set("PGDATABASE")));
    }
    for (key, variable) in [
        ("application_name", "PGAPPNAME"),
        ("options", "PGOPTIONS"),
        ("sslmode", "PGSSLMODE"),
        ("connect_timeout", "PGCONNECT_TIMEOUT"),
        ("target_session_attrs", "PGTARGETSESSIONATTRS"),
        ("channel_binding", "PGCHANNELBINDING"),
    ] {
        if !says(key) {
            missing.push((key, set(variable)));
        }
    }
    let missing = missing.into_iter().filter_map(|(key, value)| Some((key, value?)));
    if uri.starts_with("postgres://") || uri.starts_with("postgresql://") {
        let mut whole = uri.to_owned();
        for (key, value) in missing {
            whole.push(if whole.contains('?') { '&' } else { '?' });
            whole.push_str(&format!("{key}={}", escaped(&value)));
        }
        return whole;
    }
    missing.fold(uri.to_owned(), |whole, (key, value)| {
        format!("{whole} {key}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
    })
}

fn socket_directory() -> &'static str {
    SOCKET_DIRECTORIES.into_iter().find(|directory| Path::new(directory).is_dir()).unwrap_or("/tmp")
}

/// Everything but letters and digits as `%XX`.
fn escaped(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::{Host, SslMode};

    use super::*;

    fn read(uri: &str, environment: &[(&str, &str)]) -> Config {
        let source = Source::from_pairs(environment.iter().copied());
        with_environment(uri, &source).parse().expect("a connection string")
    }

    const ALL: [(&str, &str); 8] = [
        ("PGHOST", "db.example"),
        ("PGPORT", "6543"),
        ("PGUSER", "a user"),
        ("PGPASSWORD", "p@ss/w:rd?&='\\"),
        ("PGDATABASE", "data base"),
        ("PGAPPNAME", "app"),
        ("PGSSLMODE", "require"),
        ("PGOPTIONS", "-c geqo=off"),
    ];

    #[test]
    fn a_bare_string_takes_everything_from_the_environment() {
        for uri in ["postgresql://", "postgres://", ""] {
            let config = read(uri, &ALL);
            assert_eq!(config.get_hosts(), [Host::Tcp("db.example".to_owned())], "{uri}");
            assert_eq!((config.get_ports(), config.get_user()), (&[6543][..], Some("a user")));
            assert_eq!(config.get_password(), Some(&b"p@ss/w:rd?&='\\"[..]));
            assert_eq!((config.get_dbname(), config.get_application_name()), (Some("data base"), Some("app")));
            assert_eq!((config.get_ssl_mode(), config.get_options()), (SslMode::Require, Some("-c geqo=off")));
        }
    }

    #[test]
    fn the_connection_string_wins() {
        for uri in [
            "postgresql://u:p@h:1/d?application_name=mine&sslmode=disable",
            "host=h port=1 user=u password=p dbname=d application_name=mine sslmode=disable",
        ] {
            let config = read(uri, &ALL);
            assert_eq!(config.get_hosts(), [Host::Tcp("h".to_owned())], "{uri}");
            assert_eq!((config.get_ports(), config.get_user()), (&[1][..], Some("u")));
            assert_eq!((config.get_password(), config.get_dbname()), (Some(&b"p"[..]), Some("d")));
            assert_eq!((config.get_application_name(), config.get_ssl_mode()), (Some("mine"), SslMode::Disable));
        }
    }

    #[test]
    fn missing_parts_are_filled_in_from_the_environment() {
        let config = read("postgresql://gate@/shop", &[("PGHOST", "/run/pg"), ("PGUSER", "other"), ("PGPORT", "5")]);
        assert_eq!(config.get_hosts(), [Host::Unix("/run/pg".into())]);
        assert_eq!(
            (config.get_user(), config.get_dbname(), config.get_ports()),
            (Some("gate"), Some("shop"), &[5][..])
        );
    }

    #[test]
    fn without_a_host_the_local_socket_is_used() {
        let config = read("postgresql://", &[("PGHOST", "")]);
        assert!(matches!(config.get_hosts(), [Host::Unix(_)]), "{:?}", config.get_hosts());
    }

    #[test]
    fn unreadable_connection_strings_are_unchanged() {
        assert_eq!(with_environment("postgresql://h:port", &Source::from_pairs(ALL)), "postgresql://h:port");
    }
}
