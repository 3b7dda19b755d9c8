//! Settings of the REST API: PostgREST's `PGRST_*`, under their names and with their defaults.
//!
//! Precedence: in the database (laid over the environment by [`over`]) > environment > file. Unknown names are
//! ignored, since deployments set some that PostgREST itself has dropped. Reference: PostgREST
//! `src/library/PostgREST/Config.hs`.

use std::path::PathBuf;
use std::time::Duration;

use super::libpq::with_environment;
use super::{Problems, Reader, Secret, Source};
use crate::jwt::{KeySet, RolePath};

/// All settings of the REST API.
#[derive(Clone, Debug)]
pub struct RestConfig {
    /// `PGRST_DB_URI`, default `postgresql://` (libpq's environment fills the rest); `@file` reads it from a file.
    pub db_uri: Secret,
    /// `PGRST_DB_SCHEMAS` (`PGRST_DB_SCHEMA`), default `public`: exposed schemas, the first being the default one.
    pub schemas: Vec<String>,
    /// `PGRST_DB_EXTRA_SEARCH_PATH`, default `public`; empty for none.
    pub extra_search_path: Vec<String>,
    /// `PGRST_DB_ANON_ROLE`; unset refuses requests without a role.
    pub anon_role: Option<String>,
    /// `PGRST_DB_AGGREGATES_ENABLED`, default false.
    pub aggregates: bool,
    /// `PGRST_DB_MAX_ROWS` (`PGRST_MAX_ROWS`): most rows of any read; unset for no limit.
    pub max_rows: Option<u64>,
    /// `PGRST_DB_PLAN_ENABLED`, default false: whether `EXPLAIN` output may be asked for.
    pub plan_enabled: bool,
    /// `PGRST_DB_PRE_REQUEST` (`PGRST_PRE_REQUEST`): function called before every query.
    pub pre_request: Option<FunctionName>,
    /// `PGRST_DB_ROOT_SPEC` (`PGRST_ROOT_SPEC`): function that answers at the root.
    pub root_spec: Option<FunctionName>,
    /// `PGRST_DB_PRE_CONFIG`: function that sets `pgrst.*` before they are read.
    pub pre_config: Option<FunctionName>,
    /// `PGRST_DB_CONFIG`, default true: whether settings of the database and of roles apply.
    pub db_config: bool,
    /// `PGRST_DB_CHANNEL`, default `pgrst`.
    pub channel: String,
    /// `PGRST_DB_CHANNEL_ENABLED`, default true: whether reloads can be asked for by `NOTIFY`.
    pub channel_enabled: bool,
    /// `PGRST_DB_HOISTED_TX_SETTINGS`: regular expressions of function settings that apply to the whole transaction.
    pub hoisted_tx_settings: Vec<String>,
    pub pool: PoolSettings,
    /// `PGRST_DB_PREPARED_STATEMENTS`, default true; false behind a transaction pooler.
    pub prepared_statements: bool,
    /// `PGRST_DB_TX_END`, default `commit`.
    pub tx_end: TxEnd,
    pub jwt: JwtSettings,
    pub openapi: OpenApiSettings,
    pub server: RestServer,
    /// `PGRST_SERVER_CORS_ALLOWED_ORIGINS`; empty allows any.
    pub cors_allowed_origins: Vec<String>,
    /// `PGRST_SERVER_TIMING_ENABLED`, default false: whether `Server-Timing` is sent.
    pub server_timing: bool,
    /// `PGRST_SERVER_TRACE_HEADER`: header of the request that is echoed.
    pub trace_header: Option<String>,
    /// `PGRST_CLIENT_ERROR_VERBOSITY`: `verbose` (default) or `minimal`.
    pub verbose_errors: bool,
    /// `PGRST_URL_USE_LEGACY_TARGET_NAMES`, default true.
    pub legacy_target_names: bool,
    /// `PGRST_LOG_LEVEL`, default `error`.
    pub log_level: LogLevel,
    /// `PGRST_LOG_QUERY`, default false: the SQL of every request that is logged, on stderr.
    pub log_query: bool,
    pub limits: ReadLimits,
    /// `FERROBASE_TRUSTED_PROXIES`: addresses whose forwarded headers count.
    pub trusted_proxies: super::TrustedProxies,
    pub spill: Spill,
    /// `FERROBASE_BODIES_MB`: request bodies in memory, of all APIs together, in bytes. Default a quarter of the memory that
    /// this process may have, at least 32 and at most 512 MB.
    pub bodies: u64,
    /// `PGRST_APP_SETTINGS_<NAME>`: (`app.settings.<NAME>`, value), in name order.
    pub app_settings: Vec<(String, String)>,
}

/// A function named in the settings; without a schema it is found on the search path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName {
    pub schema: Option<String>,
    pub name: String,
}

/// The connection pool.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// `PGRST_DB_POOL`, default 10 connections.
    pub size: usize,
    /// `PGRST_DB_POOL_ACQUISITION_TIMEOUT`, default 10 s.
    pub acquisition_timeout: Duration,
    /// `PGRST_DB_POOL_MAX_LIFETIME`, default 1800 s.
    pub max_lifetime: Duration,
    /// `PGRST_DB_POOL_MAX_IDLETIME` (`PGRST_DB_POOL_TIMEOUT`), default 30 s.
    pub max_idle_time: Duration,
    /// `PGRST_DB_POOL_AUTOMATIC_RECOVERY`, default true; false: `serve --only rest` ends when the database is gone.
    pub automatic_recovery: bool,
    /// `FERROBASE_REFUSE_OVERLOAD`: while requests come faster than they are served, refuse those that could only wait.
    /// Default true, but false with `serve --only rest`: PostgREST lets everybody wait.
    pub refuses_under_overload: bool,
}

/// Limits of a read; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadLimits {
    pub all: ReadLimit,
    /// The stricter limits of the anonymous role.
    pub anon: ReadLimit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadLimit {
    /// `FERROBASE_REST_DEPTH` (default 10), `FERROBASE_REST_ANON_DEPTH` (6): resources embedded in one another.
    pub depth: usize,
    /// `FERROBASE_REST_EMBEDS` (default 100), `FERROBASE_REST_ANON_EMBEDS` (40): embedded resources in all.
    pub embeds: usize,
    /// `FERROBASE_REST_COST` (default 0), `FERROBASE_REST_ANON_COST` (20,000,000): PostgreSQL's estimate of a read that
    /// embeds deeply, in its planner's units.
    pub cost: f64,
}

impl ReadLimits {
    pub fn of(&self, is_anon: bool) -> ReadLimit {
        let ReadLimits { all, anon } = *self;
        if !is_anon {
            return all;
        }
        let smaller = |a: usize, b: usize| if a == 0 || (b != 0 && b < a) { b } else { a };
        let cost = if all.cost == 0.0 || (anon.cost != 0.0 && anon.cost < all.cost) { anon.cost } else { all.cost };
        ReadLimit { depth: smaller(all.depth, anon.depth), embeds: smaller(all.embeds, anon.embeds), cost }
    }
}

/// The temporary files for long answers that clients have not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// `FERROBASE_SPILL_DIR`, default the system's folder for temporary files. The files have no names.
    pub folder: PathBuf,
    /// `FERROBASE_SPILL_MB`, default 1024: for all answers together, in bytes. With 0 an answer is read at its client's
    /// speed, and its transaction stays open as long.
    pub most: u64,
}

/// How transactions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxEnd {
    pub rollback: bool,
    /// Whether `Prefer: tx=` counts.
    pub allow_override: bool,
}

/// Tokens.
#[derive(Clone, Debug)]
pub struct JwtSettings {
    /// `PGRST_JWT_SECRET`: text of at least 32 bytes, a JWK or a JWK set; `@file` reads it from a file.
    /// `PGRST_JWT_SECRET_IS_BASE64`, default false.
    pub keys: Option<KeySet>,
    /// `PGRST_JWT_AUD`; unset accepts every audience.
    pub audience: Option<String>,
    /// `PGRST_JWT_ROLE_CLAIM_KEY` (`PGRST_ROLE_CLAIM_KEY`), default `$.role`.
    pub role_path: RolePath,
    /// `PGRST_JWT_CACHE_MAX_ENTRIES`, default 1000; 0 verifies every time.
    pub cache_entries: usize,
}

/// The document at the root.
#[derive(Clone, Debug)]
pub struct OpenApiSettings {
    /// `PGRST_OPENAPI_MODE`, default `follow-privileges`.
    pub mode: OpenApiMode,
    /// `PGRST_OPENAPI_SECURITY_ACTIVE`, default false.
    pub security: bool,
    /// `PGRST_OPENAPI_SERVER_PROXY_URI`: an absolute http or https URL, without query or user.
    pub proxy_uri: Option<url::Url>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenApiMode {
    FollowPrivileges,
    IgnorePrivileges,
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Crit,
    Error,
    Warn,
    Info,
    Debug,
}

/// Where `serve --only rest` listens.
#[derive(Clone, Debug)]
pub struct RestServer {
    /// `PGRST_SERVER_HOST`, default `!4`; see [`RestServer::bind_host`].
    pub host: String,
    /// `PGRST_SERVER_PORT`, default 3000.
    pub port: u16,
    /// `PGRST_SERVER_UNIX_SOCKET`: instead of host and port. Mode: `PGRST_SERVER_UNIX_SOCKET_MODE`, default 660.
    pub unix_socket: Option<(PathBuf, u32)>,
    /// `PGRST_SERVER_REUSEPORT`, default false: several processes may listen on the port, each once it has loaded.
    pub reuse_port: bool,
    /// `PGRST_ADMIN_SERVER_HOST`, default the server's.
    pub admin_host: String,
    /// `PGRST_ADMIN_SERVER_PORT`; must not be the server's.
    pub admin_port: Option<u16>,
    /// `PGRST_ADMIN_SERVER_UNIX_SOCKET` and its `_MODE`.
    pub admin_unix_socket: Option<(PathBuf, u32)>,
}

impl RestServer {
    /// A host to bind: `!4` and `*4` are all IPv4 addresses, `*`, `*6` and `!6` all addresses.
    pub fn bind_host(host: &str) -> &str {
        match host {
            "!4" | "*4" => "0.0.0.0",
            "*" | "*6" | "!6" => "::",
            other => other,
        }
    }
}

/// Settings allowed in the database, without prefix. Others would need a restart.
pub const IN_DATABASE: [&str; 25] = [
    "client_error_verbosity",
    "db_aggregates_enabled",
    "db_anon_role",
    "db_extra_search_path",
    "db_hoisted_tx_settings",
    "db_max_rows",
    "db_plan_enabled",
    "db_pre_config",
    "db_pre_request",
    "db_prepared_statements",
    "db_root_spec",
    "db_schemas",
    "db_tx_end",
    "jwt_aud",
    "jwt_cache_max_entries",
    "jwt_role_claim_key",
    "jwt_secret",
    "jwt_secret_is_base64",
    "openapi_mode",
    "openapi_security_active",
    "openapi_server_proxy_uri",
    "server_cors_allowed_origins",
    "server_timing_enabled",
    "server_trace_header",
    "url_use_legacy_target_names",
];

/// `source` with settings found in the database (named as in [`IN_DATABASE`]) laid over it.
pub fn over(source: &Source, in_database: &[(String, String)]) -> Source {
    let mut source = source.clone();
    for (name, value) in in_database {
        source.set(&format!("PGRST_{}", name.to_uppercase()), value.as_str());
    }
    source
}

impl RestConfig {
    /// Reads and checks everything, and reports every problem.
    pub fn load(source: &Source) -> Result<Self, Problems> {
        let mut reader = Reader::new(source);
        let config = Self::read(&mut reader);
        reader.finish(config)
    }

    pub fn read(reader: &mut Reader<'_>) -> Self {
        let schemas = reader
            .list(&["PGRST_DB_SCHEMAS", "PGRST_DB_SCHEMA"])
            .filter(|schemas| !schemas.is_empty())
            .unwrap_or_else(|| vec!["public".to_owned()]);
        for hidden in ["pg_catalog", "information_schema"] {
            if schemas.iter().any(|schema| schema == hidden) {
                reader.problem(format!("PGRST_DB_SCHEMAS does not allow the schema '{hidden}'"));
            }
        }
        // The only setting for which empty differs from unset.
        let extra_search_path = reader.source().get("PGRST_DB_EXTRA_SEARCH_PATH").unwrap_or("public");
        let extra_search_path = split(extra_search_path);
        Self {
            db_uri: Secret::new(with_environment(
                &file_or_text(reader, "PGRST_DB_URI").unwrap_or_else(|| "postgresql://".to_owned()),
                reader.source(),
            )),
            schemas,
            extra_search_path,
            anon_role: reader.text(&["PGRST_DB_ANON_ROLE"]),
            aggregates: boolean(reader, "PGRST_DB_AGGREGATES_ENABLED", false),
            max_rows: reader.parse(&["PGRST_DB_MAX_ROWS", "PGRST_MAX_ROWS"], "a number of rows"),
            plan_enabled: boolean(reader, "PGRST_DB_PLAN_ENABLED", false),
            pre_request: function(reader, &["PGRST_DB_PRE_REQUEST", "PGRST_PRE_REQUEST"]),
            root_spec: function(reader, &["PGRST_DB_ROOT_SPEC", "PGRST_ROOT_SPEC"]),
            pre_config: function(reader, &["PGRST_DB_PRE_CONFIG"]),
            db_config: boolean(reader, "PGRST_DB_CONFIG", true),
            channel: reader.text_or(&["PGRST_DB_CHANNEL"], "pgrst"),
            channel_enabled: boolean(reader, "PGRST_DB_CHANNEL_ENABLED", true),
            hoisted_tx_settings: split(&reader.text_or(
                &["PGRST_DB_HOISTED_TX_SETTINGS"],
                "statement_timeout, plan_filter.statement_cost_limit, default_transaction_isolation",
            )),
            pool: PoolSettings {
                size: reader.parse_or(&["PGRST_DB_POOL"], "a number of connections", 10).max(1),
                acquisition_timeout: reader.seconds_or(&["PGRST_DB_POOL_ACQUISITION_TIMEOUT"], Duration::from_secs(10)),
                max_lifetime: reader.seconds_or(&["PGRST_DB_POOL_MAX_LIFETIME"], Duration::from_secs(1800)),
                max_idle_time: reader
                    .seconds_or(&["PGRST_DB_POOL_MAX_IDLETIME", "PGRST_DB_POOL_TIMEOUT"], Duration::from_secs(30)),
                automatic_recovery: boolean(reader, "PGRST_DB_POOL_AUTOMATIC_RECOVERY", true),
                refuses_under_overload: reader.flag(&["FERROBASE_REFUSE_OVERLOAD"], false),
            },
            prepared_statements: boolean(reader, "PGRST_DB_PREPARED_STATEMENTS", true),
            tx_end: tx_end(reader),
            jwt: jwt(reader),
            openapi: openapi(reader),
            server: server(reader),
            cors_allowed_origins: reader.list(&["PGRST_SERVER_CORS_ALLOWED_ORIGINS"]).unwrap_or_default(),
            server_timing: boolean(reader, "PGRST_SERVER_TIMING_ENABLED", false),
            trace_header: reader.text(&["PGRST_SERVER_TRACE_HEADER"]),
            verbose_errors: one_of(reader, "PGRST_CLIENT_ERROR_VERBOSITY", &[("verbose", true), ("minimal", false)]),
            legacy_target_names: boolean(reader, "PGRST_URL_USE_LEGACY_TARGET_NAMES", true),
            log_level: one_of(
                reader,
                "PGRST_LOG_LEVEL",
                &[
                    ("error", LogLevel::Error),
                    ("crit", LogLevel::Crit),
                    ("warn", LogLevel::Warn),
                    ("info", LogLevel::Info),
                    ("debug", LogLevel::Debug),
                ],
            ),
            log_query: boolean(reader, "PGRST_LOG_QUERY", false),
            limits: ReadLimits {
                all: ReadLimit {
                    depth: reader.parse_or(&["FERROBASE_REST_DEPTH"], "a number", 10),
                    embeds: reader.parse_or(&["FERROBASE_REST_EMBEDS"], "a number", 100),
                    cost: reader.parse_or(&["FERROBASE_REST_COST"], "a number", 0.0),
                },
                anon: ReadLimit {
                    depth: reader.parse_or(&["FERROBASE_REST_ANON_DEPTH"], "a number", 6),
                    embeds: reader.parse_or(&["FERROBASE_REST_ANON_EMBEDS"], "a number", 40),
                    cost: reader.parse_or(&["FERROBASE_REST_ANON_COST"], "a number", 2e7),
                },
            },
            trusted_proxies: super::server::trusted_proxies(reader),
            spill: spill(reader),
            bodies: bodies(reader),
            app_settings: reader
                .source()
                .with_prefix("PGRST_APP_SETTINGS_")
                .map(|(name, value)| {
                    (format!("app.settings.{}", &name["PGRST_APP_SETTINGS_".len()..]), value.to_owned())
                })
                .collect(),
        }
    }
}

fn spill(reader: &mut Reader<'_>) -> Spill {
    let folder = reader.text(&["FERROBASE_SPILL_DIR"]).map_or_else(std::env::temp_dir, PathBuf::from);
    let most: u64 = reader.parse_or(&["FERROBASE_SPILL_MB"], "a number of megabytes", 1024);
    Spill { folder, most: most.saturating_mul(1 << 20) }
}

/// `FERROBASE_BODIES_MB`, in bytes.
pub fn bodies(reader: &mut Reader<'_>) -> u64 {
    let megabytes: Option<u64> = reader.parse(&["FERROBASE_BODIES_MB"], "a number of megabytes");
    match megabytes {
        Some(megabytes) => megabytes.clamp(1, 1 << 20) << 20,
        None => (memory() / 4).clamp(32 << 20, 512 << 20),
    }
}

/// The memory of the machine or the container's limit, in bytes.
fn memory() -> u64 {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let machine = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    };
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    limits.into_iter().filter_map(number).chain(machine()).min().unwrap_or(1 << 30)
}

fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// `true` and `false` in any case, or a whole number: above 0 is true.
fn boolean(reader: &mut Reader<'_>, name: &'static str, default: bool) -> bool {
    let Some((_, value)) = reader.find(&[name]) else { return default };
    let letters: String = value.chars().filter(char::is_ascii_alphabetic).collect();
    match (letters.to_ascii_lowercase().as_str(), value.trim().parse::<i64>()) {
        ("true", _) => true,
        ("false", _) => false,
        (_, Ok(number)) => number > 0,
        _ => {
            reader.problem(format!("{name} must be true or false"));
            default
        }
    }
}

/// One of the words, the first being the default.
fn one_of<T: Copy>(reader: &mut Reader<'_>, name: &'static str, words: &[(&str, T)]) -> T {
    let value = reader.find(&[name]).map(|(_, value)| value);
    let found = value.and_then(|value| words.iter().find(|(word, _)| *word == value));
    if value.is_some() && found.is_none() {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        reader.problem(format!("{name} must be one of {}", words.join(", ")));
    }
    found.unwrap_or(&words[0]).1
}

fn function(reader: &Reader<'_>, names: &[&'static str]) -> Option<FunctionName> {
    let text = reader.text(names)?;
    Some(match text.split_once('.') {
        Some((schema, name)) => FunctionName { schema: Some(schema.to_owned()), name: name.to_owned() },
        None => FunctionName { schema: None, name: text },
    })
}

/// The value, or the content of the file it names after `@`, without the newline at its end.
fn file_or_text(reader: &mut Reader<'_>, name: &'static str) -> Option<String> {
    let value = reader.text(&[name])?;
    let Some(path) = value.strip_prefix('@') else { return Some(value) };
    match std::fs::read_to_string(path) {
        Ok(text) => Some(text.strip_suffix('\n').map_or_else(|| text.clone(), str::to_owned)),
        Err(error) => {
            reader.problem(format!("{name} names the file {path}, which cannot be read: {error}"));
            None
        }
    }
}

fn tx_end(reader: &mut Reader<'_>) -> TxEnd {
    let end = |rollback, allow_override| TxEnd { rollback, allow_override };
    one_of(
        reader,
        "PGRST_DB_TX_END",
        &[
            ("commit", end(false, false)),
            ("commit-allow-override", end(false, true)),
            ("rollback", end(true, false)),
            ("rollback-allow-override", end(true, true)),
        ],
    )
}

fn jwt(reader: &mut Reader<'_>) -> JwtSettings {
    let is_base64 = boolean(reader, "PGRST_JWT_SECRET_IS_BASE64", false);
    let keys = file_or_text(reader, "PGRST_JWT_SECRET").and_then(|secret| {
        let keys = if is_base64 { KeySet::parse_base64(&secret) } else { KeySet::parse(secret.as_bytes()) };
        keys.map_err(|error| reader.problem(format!("PGRST_JWT_SECRET: {error}"))).ok()
    });
    let audience = reader.text(&["PGRST_JWT_AUD"]);
    if audience.as_deref().is_some_and(|aud| aud.contains(':') && url::Url::parse(aud).is_err()) {
        reader.problem("PGRST_JWT_AUD should be a string or a valid URI");
    }
    let role_path = reader.text(&["PGRST_JWT_ROLE_CLAIM_KEY", "PGRST_ROLE_CLAIM_KEY"]).and_then(|text| {
        RolePath::parse(&text).map_err(|error| reader.problem(format!("PGRST_JWT_ROLE_CLAIM_KEY: {error}"))).ok()
    });
    let cache_entries: i64 = reader.parse_or(&["PGRST_JWT_CACHE_MAX_ENTRIES"], "a number of tokens", 1000);
    JwtSettings {
        keys,
        audience,
        role_path: role_path.unwrap_or_default(),
        cache_entries: usize::try_from(cache_entries).unwrap_or(0),
    }
}

fn openapi(reader: &mut Reader<'_>) -> OpenApiSettings {
    let proxy_uri = reader.text(&["PGRST_OPENAPI_SERVER_PROXY_URI"]).and_then(|text| {
        let usable = url::Url::parse(&text).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.host_str().is_some_and(|host| !host.is_empty())
                && url.query().is_none()
                && url.username().is_empty()
                && url.password().is_none()
                && url.port() != Some(0)
        });
        if usable.is_none() {
            reader.problem(
                "PGRST_OPENAPI_SERVER_PROXY_URI is malformed, a correct example: https://example.com:8443/basePath",
            );
        }
        usable
    });
    OpenApiSettings {
        mode: one_of(
            reader,
            "PGRST_OPENAPI_MODE",
            &[
                ("follow-privileges", OpenApiMode::FollowPrivileges),
                ("ignore-privileges", OpenApiMode::IgnorePrivileges),
                ("disabled", OpenApiMode::Disabled),
            ],
        ),
        security: boolean(reader, "PGRST_OPENAPI_SECURITY_ACTIVE", false),
        proxy_uri,
    }
}

fn server(reader: &mut Reader<'_>) -> RestServer {
    let host = reader.text_or(&["PGRST_SERVER_HOST"], "!4");
    let port = reader.parse_or(&["PGRST_SERVER_PORT"], "a port", 3000);
    let admin_port = reader.parse(&["PGRST_ADMIN_SERVER_PORT"], "a port");
    if admin_port == Some(port) {
        reader.problem("PGRST_ADMIN_SERVER_PORT cannot be the same as PGRST_SERVER_PORT");
    }
    RestServer {
        admin_host: reader.text_or(&["PGRST_ADMIN_SERVER_HOST"], &host),
        host,
        port,
        unix_socket: unix_socket(reader, "PGRST_SERVER_UNIX_SOCKET", "PGRST_SERVER_UNIX_SOCKET_MODE"),
        reuse_port: boolean(reader, "PGRST_SERVER_REUSEPORT", false),
        admin_port,
        admin_unix_socket: unix_socket(reader, "PGRST_ADMIN_SERVER_UNIX_SOCKET", "PGRST_ADMIN_SERVER_UNIX_SOCKET_MODE"),
    }
}

fn unix_socket(reader: &mut Reader<'_>, path: &'static str, mode: &'static str) -> Option<(PathBuf, u32)> {
    let bits = match reader.text(&[mode]).map(|text| u32::from_str_radix(&text, 8)) {
        None => 0o660,
        Some(Ok(bits)) if (0o600..=0o777).contains(&bits) => bits,
        Some(_) => {
            reader.problem(format!("{mode} must be an octal number between 600 and 777"));
            0o660
        }
    };
    reader.text(&[path]).map(|path| (path.into(), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(pairs: &[(&str, &str)]) -> Result<RestConfig, String> {
        RestConfig::load(&Source::from_pairs(pairs.iter().copied())).map_err(|problems| problems.to_string())
    }

    #[test]
    fn without_settings_all_defaults_apply() {
        let config = load(&[]).expect("config");
        assert_eq!((config.schemas, config.extra_search_path), (vec!["public".to_owned()], vec!["public".to_owned()]));
        assert_eq!((config.server.host.as_str(), config.server.port, config.pool.size), ("!4", 3000, 10));
        assert_eq!(config.hoisted_tx_settings.len(), 3);
        assert_eq!(config.tx_end, TxEnd { rollback: false, allow_override: false });
        assert!(config.db_config && config.verbose_errors && config.legacy_target_names && config.channel_enabled);
        assert!(config.jwt.keys.is_none() && config.anon_role.is_none() && config.max_rows.is_none());
    }

    #[test]
    fn an_empty_value_counts_as_unset_except_for_the_extra_search_path() {
        let config = load(&[
            ("PGRST_DB_ANON_ROLE", ""),
            ("PGRST_DB_MAX_ROWS", ""),
            ("PGRST_DB_EXTRA_SEARCH_PATH", ""),
            ("PGRST_DB_SCHEMAS", ""),
        ])
        .expect("config");
        assert!(config.anon_role.is_none() && config.max_rows.is_none() && config.extra_search_path.is_empty());
        assert_eq!(config.schemas, ["public"]);
    }

    #[test]
    fn older_names_and_unknown_ones_are_accepted() {
        let config = load(&[
            ("PGRST_DB_SCHEMA", "a, b"),
            ("PGRST_MAX_ROWS", "5"),
            ("PGRST_PRE_REQUEST", "s.check"),
            ("PGRST_ROLE_CLAIM_KEY", ".a.b"),
            ("PGRST_DB_USE_LEGACY_GUCS", "false"),
            ("PGRST_JWT_CACHE_MAX_LIFETIME", "nonsense"),
        ])
        .expect("config");
        assert_eq!((config.schemas.as_slice(), config.max_rows), (&["a".to_owned(), "b".to_owned()][..], Some(5)));
        assert_eq!(config.pre_request, Some(FunctionName { schema: Some("s".to_owned()), name: "check".to_owned() }));
    }

    #[test]
    fn booleans_are_case_insensitive_words_or_numbers() {
        for (text, value) in [("TRUE", true), ("\"true\"", true), ("False", false), ("2", true), ("0", false)] {
            assert_eq!(load(&[("PGRST_DB_CONFIG", text)]).expect("config").db_config, value, "{text}");
        }
        assert!(load(&[("PGRST_DB_CONFIG", "perhaps")]).is_err());
    }

    #[test]
    fn all_invalid_settings_are_reported_together() {
        let problems = load(&[
            ("PGRST_DB_SCHEMAS", "public,pg_catalog"),
            ("PGRST_JWT_SECRET", "short"),
            ("PGRST_DB_TX_END", "never"),
            ("PGRST_ADMIN_SERVER_PORT", "3000"),
            ("PGRST_OPENAPI_SERVER_PROXY_URI", "ftp://x"),
            ("PGRST_JWT_AUD", "not a uri:"),
            ("PGRST_SERVER_UNIX_SOCKET_MODE", "999"),
        ])
        .expect_err("refused");
        for name in ["pg_catalog", "JWT_SECRET", "TX_END", "ADMIN_SERVER_PORT", "PROXY_URI", "JWT_AUD", "SOCKET_MODE"] {
            assert!(problems.contains(name), "{name} in {problems}");
        }
    }

    #[test]
    fn settings_of_the_database_win_over_the_environment() {
        let environment = Source::from_pairs([("PGRST_DB_MAX_ROWS", "10"), ("PGRST_DB_ANON_ROLE", "anon")]);
        let source = over(&environment, &[("db_max_rows".to_owned(), "20".to_owned())]);
        let config = RestConfig::load(&source).expect("config");
        assert_eq!((config.max_rows, config.anon_role.as_deref()), (Some(20), Some("anon")));
    }

    #[test]
    fn application_settings_keep_their_names() {
        let config = load(&[("PGRST_APP_SETTINGS_SITE", "x"), ("PGRST_APP_SETTINGS_jwt_exp", "60")]).expect("config");
        assert_eq!(
            config.app_settings,
            [("app.settings.SITE".to_owned(), "x".to_owned()), ("app.settings.jwt_exp".to_owned(), "60".to_owned())]
        );
    }
}
