//! Settings of the whole process: which APIs, where to listen, which database, which keys.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{Connections, Reader, Secret, TlsConfig, parse_go_duration};
use crate::jwt::{AcceptedKeys, IssuerSetting};

/// An API that can be served alone, as named by `serve --only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    Rest,
    Auth,
    Realtime,
    Storage,
}

impl std::str::FromStr for Api {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rest" => Ok(Api::Rest),
            "auth" => Ok(Api::Auth),
            "realtime" => Ok(Api::Realtime),
            "storage" => Ok(Api::Storage),
            _ => Err("choose rest, auth, realtime or storage".to_owned()),
        }
    }
}

/// The Supabase CLI's well-known local secret: loopback only.
pub const DEVELOPMENT_JWT_SECRET: &str = "super-secret-jwt-token-with-at-least-32-characters-long";

/// Further keys of `supabase start` that everybody knows: they act as anon and as service_role.
pub const DEVELOPMENT_PUBLISHABLE_KEY: &str = "sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH";
pub const DEVELOPMENT_SECRET_KEY: &str = "sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz";

/// The S3 keys of `supabase start`, which act as service_role as well.
pub const DEVELOPMENT_S3_KEYS: (&str, &str) =
    ("625729a08b95bf1b7ff351a663f3a23c", "850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907");

/// The `kid` of [`DEVELOPMENT_SIGNING_KEY`].
const DEVELOPMENT_KEY_ID: &str = "b81269f1-21d8-4f2e-b719-c2240a840d90";

/// What `supabase gen bearer-jwt` signs with.
pub const DEVELOPMENT_SIGNING_KEY: &str = r#"{"kty":"EC","kid":"b81269f1-21d8-4f2e-b719-c2240a840d90","use":"sig","key_ops":["sign","verify"],"alg":"ES256","crv":"P-256","x":"M5Sjqn5zwC9Kl1zVfUUGvv9boQjCGd45G8sdopBExB4","y":"P6IXMvA2WYXSHSOMTBH2jsw_9rrzGy89FjPf6oOsIxQ","d":"dIhR8wywJlqlua4y_yMq2SLhlFXDZJBCvFrY1DCHyVU"}"#;

/// Whether this build's inbox takes mail by SMTP; the one of `just up` does not.
pub const INBOX_TAKES_SMTP: bool = cfg!(feature = "inbox-smtp");

/// Settings of the whole server (all APIs together).
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// `FERROBASE_LISTEN`, default `127.0.0.1:54321`: API and web app.
    pub listen: SocketAddr,
    /// `FERROBASE_ADMIN_LISTEN`, default `127.0.0.1:54330`: `/live`, `/ready`, `/metrics`.
    pub admin_listen: SocketAddr,
    /// `FERROBASE_INBOX_LISTEN`, default `127.0.0.1:54324`: the development inbox.
    pub inbox_listen: SocketAddr,
    /// `FERROBASE_INBOX_SMTP_LISTEN`, development only: where the inbox takes mail by SMTP. Unset: nowhere.
    pub inbox_smtp_listen: Option<SocketAddr>,
    /// `FERROBASE_DEV`, default false; `up` sets it. Inbox, demo data and well-known keys are allowed only then.
    pub development: bool,
    /// HTTPS, if the server serves it itself.
    pub tls: Option<TlsConfig>,
    /// `FERROBASE_READ_REPLICA_MAX_AGE`, default 5 s: how old an answer of the replica may be. The replica itself is
    /// `FERROBASE_READ_REPLICA_URL`.
    pub replica_max_age: Duration,
    /// `DATABASE_URL`; unset means the embedded PostgreSQL.
    pub database_url: Option<Secret>,
    /// `FERROBASE_DB_CONNECTIONS`, default 30: what this instance opens to the database at most.
    pub connections: Connections,
    /// `FERROBASE_REFUSE_OVERLOAD`, default true, in development false: while requests come faster than they are served, refuse those that could
    /// only wait.
    pub refuses_overload: bool,
    /// `FERROBASE_DB_PORT`, default 54322: port of the embedded PostgreSQL.
    pub embedded_port: u16,
    /// `FERROBASE_DATA_DIR`, default `.ferrobase`: cluster and other state.
    pub data_dir: PathBuf,
    /// `FERROBASE_USER`: the account that a server started as root switches to, outside of development; `root` stays root.
    /// By default the account that the embedded PostgreSQL runs as, or the owner of the data folder.
    pub user: Option<String>,
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
    /// `FERROBASE_ACCEPTED_KEYS`: former keys and those that come next.
    pub accepted_keys: Vec<AcceptedKeys>,
    /// `FERROBASE_THIRD_PARTY_ISSUERS`: other issuers whose tokens REST, storage, realtime and functions take.
    pub third_party_issuers: Vec<IssuerSetting>,
    /// `SITE_URL`, default the listening address.
    pub site_url: String,
    /// `API_EXTERNAL_URL`, default the site URL; with or without `/auth/v1`.
    pub api_external_url: String,
    /// `FERROBASE_SUPPORT_EMAIL`, default `support@aidbridge.example`: shown by the web app.
    pub support_email: String,
    /// `FERROBASE_MIGRATIONS`, default `embedded`: the application's migrations that the binary carries, a folder
    /// of a project of your own, or `none`.
    pub migrations: SqlSource,
    /// `FERROBASE_SEED`, default `embedded` in development beside the embedded migrations, else `none`: demo data.
    pub seed: SqlSource,
    /// `FERROBASE_OPEN_GATEWAY`, default false, development only: requests pass without a key, as with `supabase start`.
    pub open_gateway: bool,
    /// `FERROBASE_WEB`, default true: whether the web app that the binary carries is served.
    pub web: bool,
    pub trusted_proxies: TrustedProxies,
    /// `FERROBASE_DRAIN`, default 0: how long the server keeps serving after it was asked to stop, while it tells load
    /// balancers to send it no more requests.
    pub drain: Duration,
    /// `FERROBASE_AUDIT_DAYS`, default 400: how long entries of the audit log stay; with 0 there is no log.
    pub audit_days: u32,
}

/// `FERROBASE_SLOW_QUERY`, default 1 s: from when on a query is logged as slow; `off` for never.
pub fn slow_query(reader: &mut Reader<'_>) -> Option<Duration> {
    match reader.find(&["FERROBASE_SLOW_QUERY"]) {
        Some((_, "off")) => None,
        _ => Some(duration(reader, "FERROBASE_SLOW_QUERY", Duration::from_secs(1))),
    }
}

/// A duration such as `500ms` or `5s`.
fn duration(reader: &mut Reader<'_>, name: &'static str, default: Duration) -> Duration {
    let Some((_, text)) = reader.find(&[name]) else { return default };
    match parse_go_duration(text).and_then(|nanoseconds| u64::try_from(nanoseconds).ok()) {
        Some(nanoseconds) => Duration::from_nanos(nanoseconds),
        None => {
            reader.problem(format!("{name} must be a duration such as 500ms or 5s"));
            default
        }
    }
}

/// Whose forwarded headers count.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    /// `FERROBASE_TRUSTED_PROXIES`: their addresses, default none.
    pub addresses: Vec<std::net::IpAddr>,
    /// `FERROBASE_TRUSTED_HOPS`: how many proxies every request passes, whatever their addresses; default 0.
    pub hops: usize,
}

impl TrustedProxies {
    /// Whether nobody is trusted.
    pub fn is_none(&self) -> bool {
        self.hops == 0 && self.addresses.is_empty()
    }
}

/// `FERROBASE_TRUSTED_PROXIES` and `FERROBASE_TRUSTED_HOPS`
pub fn trusted_proxies(reader: &mut Reader<'_>) -> TrustedProxies {
    let items = reader.list(&["FERROBASE_TRUSTED_PROXIES"]).unwrap_or_default();
    let parsed = items.iter().filter_map(|item| {
        let parsed = item.parse().ok();
        if parsed.is_none() {
            reader.problem(format!("FERROBASE_TRUSTED_PROXIES: '{item}' is not an IP address"));
        }
        parsed
    });
    let addresses = parsed.collect();
    TrustedProxies { addresses, hops: reader.parse_or(&["FERROBASE_TRUSTED_HOPS"], "a number of proxies", 0) }
}

impl ServerConfig {
    /// Whether the well-known keys are accepted: in development on loopback only, unless the project has its own secret.
    pub fn takes_known_keys(&self) -> bool {
        self.development && self.is_local() && self.jwt_secret.reveal() == DEVELOPMENT_JWT_SECRET
    }

    /// Whether only this machine reaches the server.
    pub fn is_local(&self) -> bool {
        let secure = self.tls.as_ref().map(|tls| tls.listen);
        [Some(self.listen), secure].into_iter().flatten().all(|address| address.ip().is_loopback())
    }

    pub fn read(reader: &mut Reader<'_>) -> Self {
        let listen = reader.parse_or(&["FERROBASE_LISTEN"], "an address with a port", loopback(54321));
        let development = reader.flag(&["FERROBASE_DEV"], false);
        let inbox_listen = reader.parse_or(&["FERROBASE_INBOX_LISTEN"], "an address with a port", loopback(54324));
        if development && !inbox_listen.ip().is_loopback() {
            reader.problem(format!(
                "FERROBASE_INBOX_LISTEN is {inbox_listen}: the inbox shows everybody's mail, so it must be a loopback address"
            ));
        }
        let inbox_smtp_listen: Option<SocketAddr> =
            reader.parse(&["FERROBASE_INBOX_SMTP_LISTEN"], "an address with a port");
        if inbox_smtp_listen.is_some_and(|address| !development || !address.ip().is_loopback()) {
            reader.problem(
                "FERROBASE_INBOX_SMTP_LISTEN is for development only (FERROBASE_DEV=true), at a loopback address",
            );
        }
        let tls = TlsConfig::read(reader);
        // What must not be known beyond this machine depends on the listener that is reached from furthest away.
        let reached = tls.as_ref().map(|tls| tls.listen).filter(|secure| !secure.ip().is_loopback()).unwrap_or(listen);
        let jwt_secret = jwt_secret(reader, development, reached);
        let site_url = reader.text_or(&["SITE_URL", "GOTRUE_SITE_URL"], &format!("http://{listen}"));
        let database_url = reader.secret(&["DATABASE_URL"]);
        if let Some(Err(error)) = database_url.as_ref().map(|url| url.reveal().parse::<tokio_postgres::Config>()) {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            reader.problem(format!("DATABASE_URL is not a PostgreSQL connection string{cause}"));
        }
        if reader.find(&["FERROBASE_POOLER_URL"]).is_some() && database_url.is_none() {
            reader.problem(
                "FERROBASE_POOLER_URL is for requests alone: DATABASE_URL has to name the PostgreSQL server itself, for \
                 migrations, locks, LISTEN and replication",
            );
        }
        let trusted_proxies = trusted_proxies(reader);
        let migrations = SqlSource::read(reader, "FERROBASE_MIGRATIONS", SqlSource::Embedded);
        // The demo data is the embedded application's: beside other migrations there is nothing that it fits.
        let has_demo_data = development && migrations == SqlSource::Embedded;
        let seed = SqlSource::read(
            reader,
            "FERROBASE_SEED",
            if has_demo_data { SqlSource::Embedded } else { SqlSource::None },
        );
        if seed == SqlSource::Embedded && !reached.ip().is_loopback() {
            reader.problem(format!(
                "FERROBASE_SEED loads demo accounts, whose password everybody knows, and FERROBASE_LISTEN is {reached}: \
                 set FERROBASE_SEED=none before listening beyond this machine"
            ));
        }
        Self {
            listen,
            admin_listen: reader.parse_or(&["FERROBASE_ADMIN_LISTEN"], "an address with a port", loopback(54330)),
            inbox_listen,
            inbox_smtp_listen,
            development,
            database_url,
            connections: Connections::read(reader),
            refuses_overload: reader.flag(&["FERROBASE_REFUSE_OVERLOAD"], !development),
            embedded_port: reader.parse_or(&["FERROBASE_DB_PORT"], "a port", 54322),
            data_dir: reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase").into(),
            user: reader.text(&["FERROBASE_USER"]),
            pg_bin_dir: reader.text(&["PG_BIN_DIR"]).map(PathBuf::from),
            jwt_secret,
            anon_key: reader.text(&["ANON_KEY"]),
            service_role_key: reader.secret(&["SERVICE_ROLE_KEY"]),
            publishable_key: reader.text(&["SB_PUBLISHABLE_KEY", "SUPABASE_PUBLISHABLE_KEY"]),
            secret_key: reader.secret(&["SB_SECRET_KEY", "SUPABASE_SECRET_KEY"]),
            accepted_keys: reader.accepted_keys(),
            third_party_issuers: reader.third_party_issuers(),
            api_external_url: reader.text(&["API_EXTERNAL_URL"]).map_or_else(
                || site_url.clone(),
                |url| url.trim_end_matches('/').trim_end_matches("/auth/v1").to_owned(),
            ),
            site_url,
            support_email: reader.text_or(&["FERROBASE_SUPPORT_EMAIL"], "support@aidbridge.example"),
            open_gateway: open_gateway(reader, development),
            web: reader.flag(&["FERROBASE_WEB"], true),
            migrations,
            seed,
            trusted_proxies,
            drain: duration(reader, "FERROBASE_DRAIN", Duration::ZERO),
            replica_max_age: replica_max_age(reader),
            tls,
            audit_days: reader.parse_or(&["FERROBASE_AUDIT_DAYS"], "a number of days", 400),
        }
    }
}

/// Positions are compared a few times a second, so a shorter age would send every read to the primary.
const LEAST_REPLICA_AGE: Duration = Duration::from_secs(1);

/// `FERROBASE_READ_REPLICA_MAX_AGE`, with the complaints about the replica's URL.
pub fn replica_max_age(reader: &mut Reader<'_>) -> Duration {
    let age = duration(reader, "FERROBASE_READ_REPLICA_MAX_AGE", Duration::from_secs(5));
    if age < LEAST_REPLICA_AGE {
        reader.problem("FERROBASE_READ_REPLICA_MAX_AGE must be at least 1s");
    }
    if let Some((_, url)) = reader.find(&["FERROBASE_READ_REPLICA_URL"])
        && url.parse::<tokio_postgres::Config>().is_err()
    {
        reader.problem("FERROBASE_READ_REPLICA_URL is not a PostgreSQL connection string");
    }
    age
}

fn open_gateway(reader: &mut Reader<'_>, development: bool) -> bool {
    let is_open = reader.flag(&["FERROBASE_OPEN_GATEWAY"], false);
    if is_open && !development {
        reader.problem("FERROBASE_OPEN_GATEWAY is for development only (FERROBASE_DEV=true)");
    }
    is_open
}

/// Where the keys that everybody knows may stand, beside the secret itself.
const KNOWN_KEYS: [(&str, &str); 7] = [
    ("GOTRUE_JWT_SECRET", DEVELOPMENT_JWT_SECRET),
    ("PGRST_JWT_SECRET", DEVELOPMENT_JWT_SECRET),
    ("PGRST_JWT_SECRET", DEVELOPMENT_KEY_ID),
    ("GOTRUE_JWT_KEYS", DEVELOPMENT_KEY_ID),
    ("SB_SECRET_KEY", DEVELOPMENT_SECRET_KEY),
    ("SUPABASE_SECRET_KEY", DEVELOPMENT_SECRET_KEY),
    ("S3_PROTOCOL_ACCESS_KEY_SECRET", DEVELOPMENT_S3_KEYS.1),
];

/// The secret of the project's keys. What everybody knows is refused in production and beyond loopback, under whatever name it is
/// given.
fn jwt_secret(reader: &mut Reader<'_>, development: bool, listen: SocketAddr) -> Secret {
    let given = reader.find(&["JWT_SECRET", "GOTRUE_JWT_SECRET"]);
    if given.is_none() && !development {
        reader.problem("JWT_SECRET is not set (generate keys with 'ferrobase keys generate')");
        return Secret::new(DEVELOPMENT_JWT_SECRET);
    }
    let (name, secret) = given.unwrap_or(("JWT_SECRET", DEVELOPMENT_JWT_SECRET));
    if secret.len() < 32 {
        reader.problem(format!("{name} must have at least 32 bytes"));
    }
    if development && listen.ip().is_loopback() {
        return Secret::new(secret);
    }
    let mut known: Vec<&str> = Vec::from_iter(secret.contains(DEVELOPMENT_JWT_SECRET).then_some(name));
    known.extend(KNOWN_KEYS.into_iter().filter_map(|(name, key)| {
        let (name, value) = reader.find(&[name])?;
        value.contains(key).then_some(name)
    }));
    known.dedup();
    let problems = known.into_iter().map(|name| {
        format!(
            "{name} is the well-known development one, which is for FERROBASE_DEV=true on this machine alone \
             (FERROBASE_LISTEN is {listen}): generate keys with 'ferrobase keys generate'"
        )
    });
    for problem in problems.collect::<Vec<_>>() {
        reader.problem(problem);
    }
    Secret::new(secret)
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
        // Found under a name that only one API reads: its tokens would have been anybody's to make.
        for (name, key) in KNOWN_KEYS {
            let own = "0123456789abcdef0123456789abcdef";
            let pairs = [("FERROBASE_DEV", "true"), ("JWT_SECRET", own), ("FERROBASE_SEED", "none"), (name, key)];
            assert!(read(&pairs).is_ok(), "{name}");
            let problems = read(&[&pairs[..], &[("FERROBASE_LISTEN", "0.0.0.0:80")]].concat()).expect_err("refused");
            assert!(problems.to_string().starts_with(&format!("{name} is the well-known")), "{problems}");
            // In production a proxy may stand before this machine's own address.
            let problems = read(&pairs[1..]).expect_err("refused");
            assert!(problems.to_string().starts_with(&format!("{name} is the well-known")), "{problems}");
        }
    }

    #[test]
    fn an_invalid_database_url_is_reported_without_its_content() {
        for url in ["postgresql://me:geheim@127.0.0.1:port/app", "geheim", "postgresql://me:geheim@h/app?sslmode=full"]
        {
            let problems = read(&[("FERROBASE_DEV", "true"), ("DATABASE_URL", url)]).expect_err("refused").to_string();
            assert!(problems.starts_with("DATABASE_URL is not a PostgreSQL connection string"), "{problems}");
            assert!(!problems.contains("geheim"), "{problems}");
        }
    }

    #[test]
    fn the_inbox_is_local_and_for_development_only() {
        let problems =
            read(&[("FERROBASE_DEV", "true"), ("FERROBASE_INBOX_LISTEN", "0.0.0.0:54324")]).expect_err("refused");
        assert!(problems.to_string().starts_with("FERROBASE_INBOX_LISTEN is 0.0.0.0:54324"), "{problems}");
        let secret = ("JWT_SECRET", "0123456789abcdef0123456789abcdef");
        for (development, address) in [("true", "0.0.0.0:54325"), ("false", "127.0.0.1:54325")] {
            let pairs = [("FERROBASE_DEV", development), secret, ("FERROBASE_INBOX_SMTP_LISTEN", address)];
            let problems = read(&pairs).expect_err("refused");
            assert!(problems.to_string().starts_with("FERROBASE_INBOX_SMTP_LISTEN is for development"), "{problems}");
        }
    }

    #[test]
    fn demo_data_is_for_the_embedded_application_on_this_machine() {
        assert_eq!(read(&[("FERROBASE_DEV", "true")]).expect("config").seed, SqlSource::Embedded);
        // Found with a Supabase project's folder: the demo data of tables that it does not have ended the start.
        let project = [("FERROBASE_DEV", "true"), ("FERROBASE_MIGRATIONS", "project")];
        assert_eq!(read(&project).expect("config").seed, SqlSource::None);
        let own = ("JWT_SECRET", "0123456789abcdef0123456789abcdef");
        let problems =
            read(&[("FERROBASE_DEV", "true"), own, ("FERROBASE_LISTEN", "0.0.0.0:80")]).expect_err("refused");
        assert!(problems.to_string().contains("FERROBASE_SEED=none"), "{problems}");
    }

    #[test]
    fn development_needs_no_settings_and_production_needs_a_secret() {
        assert!(read(&[("FERROBASE_DEV", "true")]).is_ok());
        assert!(read(&[]).expect_err("refused").to_string().contains("JWT_SECRET is not set"));
    }

    #[test]
    fn the_external_url_may_include_the_auth_path() {
        let base = [("FERROBASE_DEV", "1"), ("API_EXTERNAL_URL", "https://x.example/auth/v1")];
        assert_eq!(read(&base).expect("config").api_external_url, "https://x.example");
    }
}
