//! What the process as a whole is told: which APIs, where to listen, which database, which keys.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Reader, Secret};

/// An API of the server, as named by `serve --only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    Rest,
    Auth,
    Functions,
    Web,
}

impl Api {
    pub const ALL: [Api; 4] = [Api::Rest, Api::Auth, Api::Functions, Api::Web];
}

impl std::str::FromStr for Api {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rest" => Ok(Api::Rest),
            "auth" => Ok(Api::Auth),
            "functions" => Ok(Api::Functions),
            "web" => Ok(Api::Web),
            other => Err(format!("there is no API named '{other}'; choose from rest, auth, functions, web")),
        }
    }
}

/// The Supabase CLI's well-known local secret: loopback only.
pub const DEVELOPMENT_JWT_SECRET: &str = "super-secret-jwt-token-with-at-least-32-characters-long";

/// Settings of the whole server (all APIs together).
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// `FERROBASE_LISTEN`, default `127.0.0.1:54321`: API and web app.
    pub listen: SocketAddr,
    /// `FERROBASE_ADMIN_LISTEN`, default `127.0.0.1:54330`: `/live`, `/ready`, `/metrics`.
    pub admin_listen: SocketAddr,
    /// `FERROBASE_INBOX_LISTEN`, default `127.0.0.1:54324`: the development inbox.
    pub inbox_listen: SocketAddr,
    /// `FERROBASE_DEV`, default false; `up` sets it. Inbox, demo data and well-known keys are allowed only then.
    pub development: bool,
    /// `DATABASE_URL`; unset means the embedded PostgreSQL.
    pub database_url: Option<Secret>,
    /// `FERROBASE_DB_PORT`, default 54322: port of the embedded PostgreSQL.
    pub embedded_port: u16,
    /// `FERROBASE_DATA_DIR`, default `.ferrobase`: cluster and other state.
    pub data_dir: PathBuf,
    /// `PG_BIN_DIR`: directory of `initdb`, `pg_ctl`, `postgres` instead of the npm package's.
    pub pg_bin_dir: Option<PathBuf>,
    /// `JWT_SECRET` (also `GOTRUE_JWT_SECRET`): HS256 secret, at least 32 bytes.
    pub jwt_secret: Secret,
    /// `ANON_KEY`: signed from the secret when unset.
    pub anon_key: Option<String>,
    /// `SERVICE_ROLE_KEY`: signed from the secret when unset.
    pub service_role_key: Option<Secret>,
    /// `SB_PUBLISHABLE_KEY` (`sb_publishable_…`): acts as the role anon.
    pub publishable_key: Option<String>,
    /// `SB_SECRET_KEY` (`sb_secret_…`): acts as the role service_role.
    pub secret_key: Option<Secret>,
    /// `SITE_URL`, default the listening address.
    pub site_url: String,
    /// `API_EXTERNAL_URL`, default the site URL; with or without `/auth/v1`.
    pub api_external_url: String,
    /// `FERROBASE_SUPPORT_EMAIL`, default `support@aidbridge.example`: shown by the web app.
    pub support_email: String,
    /// `FERROBASE_MIGRATIONS`, default `embedded`: the application's migrations that the binary carries, a folder
    /// of a project of your own, or `none`.
    pub migrations: SqlSource,
    /// `FERROBASE_SEED`, default `embedded` in development, else `none`: demo data.
    pub seed: SqlSource,
    /// `FERROBASE_TRUSTED_PROXIES`: addresses whose forwarded headers count.
    pub trusted_proxies: Vec<std::net::IpAddr>,
}

impl ServerConfig {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let listen = reader.parse_or(&["FERROBASE_LISTEN"], "an address with a port", loopback(54321));
        let development = reader.flag(&["FERROBASE_DEV"], false);
        let jwt_secret = reader.secret(&["JWT_SECRET", "GOTRUE_JWT_SECRET"]).unwrap_or_else(|| {
            if !development {
                reader.problem("JWT_SECRET is not set (make keys with 'ferrobase keys generate')");
            }
            Secret::new(DEVELOPMENT_JWT_SECRET)
        });
        if jwt_secret.reveal().len() < 32 {
            reader.problem("JWT_SECRET must have at least 32 bytes");
        }
        if jwt_secret.reveal() == DEVELOPMENT_JWT_SECRET && !listen.ip().is_loopback() {
            reader.problem(format!(
                "JWT_SECRET is the well-known development secret and FERROBASE_LISTEN is {listen}: \
                 make keys with 'ferrobase keys generate' before listening beyond this machine"
            ));
        }
        let site_url = reader.text_or(&["SITE_URL", "GOTRUE_SITE_URL"], &format!("http://{listen}"));
        let trusted_proxies = reader
            .list(&["FERROBASE_TRUSTED_PROXIES"])
            .unwrap_or_default()
            .iter()
            .filter_map(|item| {
                let parsed = item.parse().ok();
                if parsed.is_none() {
                    reader.problem(format!("FERROBASE_TRUSTED_PROXIES: '{item}' is not an IP address"));
                }
                parsed
            })
            .collect();
        Self {
            listen,
            admin_listen: reader.parse_or(&["FERROBASE_ADMIN_LISTEN"], "an address with a port", loopback(54330)),
            inbox_listen: reader.parse_or(&["FERROBASE_INBOX_LISTEN"], "an address with a port", loopback(54324)),
            development,
            database_url: reader.secret(&["DATABASE_URL"]),
            embedded_port: reader.parse_or(&["FERROBASE_DB_PORT"], "a port", 54322),
            data_dir: reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase").into(),
            pg_bin_dir: reader.text(&["PG_BIN_DIR"]).map(PathBuf::from),
            jwt_secret,
            anon_key: reader.text(&["ANON_KEY"]),
            service_role_key: reader.secret(&["SERVICE_ROLE_KEY"]),
            publishable_key: reader.text(&["SB_PUBLISHABLE_KEY", "SUPABASE_PUBLISHABLE_KEY"]),
            secret_key: reader.secret(&["SB_SECRET_KEY", "SUPABASE_SECRET_KEY"]),
            api_external_url: reader.text(&["API_EXTERNAL_URL"]).map_or_else(
                || site_url.clone(),
                |url| url.trim_end_matches('/').trim_end_matches("/auth/v1").to_owned(),
            ),
            site_url,
            support_email: reader.text_or(&["FERROBASE_SUPPORT_EMAIL"], "support@aidbridge.example"),
            migrations: SqlSource::read(reader, "FERROBASE_MIGRATIONS", SqlSource::Embedded),
            seed: SqlSource::read(
                reader,
                "FERROBASE_SEED",
                if development { SqlSource::Embedded } else { SqlSource::None },
            ),
            trusted_proxies,
        }
    }
}

/// Where SQL files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlSource {
    /// What the binary carries.
    Embedded,
    Folder(PathBuf),
    None,
}

impl SqlSource {
    fn read(reader: &Reader<'_>, name: &'static str, default: Self) -> Self {
        match reader.find(&[name]) {
            None => default,
            Some((_, "embedded")) => Self::Embedded,
            Some((_, "none")) => Self::None,
            Some((_, folder)) => Self::Folder(folder.into()),
        }
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn read(pairs: &[(&str, &str)]) -> Result<ServerConfig, crate::config::Problems> {
        let source = Source::from_pairs(pairs.iter().copied());
        let mut reader = Reader::new(&source);
        let config = ServerConfig::read(&mut reader);
        reader.finish(config)
    }

    #[test]
    fn the_well_known_secret_is_refused_beyond_loopback() {
        let problems = read(&[("FERROBASE_DEV", "true"), ("FERROBASE_LISTEN", "0.0.0.0:54321")]).expect_err("refused");
        assert!(problems.to_string().contains("ferrobase keys generate"), "{problems}");
    }

    #[test]
    fn development_runs_without_any_setting_and_production_asks_for_a_secret() {
        assert!(read(&[("FERROBASE_DEV", "true")]).is_ok());
        assert!(read(&[]).expect_err("refused").to_string().contains("JWT_SECRET is not set"));
    }

    #[test]
    fn the_external_url_is_taken_with_or_without_its_auth_path() {
        let base = [("FERROBASE_DEV", "1"), ("API_EXTERNAL_URL", "https://x.example/auth/v1")];
        assert_eq!(read(&base).expect("config").api_external_url, "https://x.example");
    }
}
