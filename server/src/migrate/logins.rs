//! The server's logins: a separate role for each job, with the rights for only that job.

use hmac::{Hmac, Mac};
use postgres_protocol::password::scram_sha_256;
use sha2::Sha256;
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;

use super::error::{describe, unopened};
use super::session::Session;
use super::{MigrateError, platform};
use crate::config::Reader;
use crate::db::{self, OpenError};

/// The password of all logins of a local stack, as tools and tutorials write it down. It is the roles' where it is the owner's, who
/// can do everything anyway: in development, on loopback.
const WELL_KNOWN: &str = "postgres";

/// Logins of a local stack that the server has no use for.
const OTHERS: [&str; 4] =
    ["supabase_storage_admin", "supabase_functions_admin", "supabase_read_only_user", "pgbouncer"];

/// Database URLs of the server's pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformUrls {
    /// Logs in as `authenticator`: requests, which then become anon, authenticated or service_role.
    pub rest_url: String,
    /// Logs in as `supabase_auth_admin`: the auth server.
    pub auth_url: String,
    /// Logs in as `supabase_ferrobase_admin`: outbox and inbox.
    pub service_url: String,
    /// Logs in as `supabase_replication_admin`, for realtime, which follows the database's log; or as the owner
    /// if that role is not ours or may not replicate.
    pub replication_url: String,
    /// Where requests go instead, if there is a pooler that hands connections on between transactions.
    pub pooled: Option<PooledUrls>,
    /// Logs in as `authenticator` at the replica that answers reads, if there is one.
    pub replica_url: Option<String>,
}

/// The logins of requests at a transaction pooler such as PgBouncer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PooledUrls {
    pub rest_url: String,
    pub auth_url: String,
}

/// URLs given by an operator. The server does not manage the roles of these.
#[derive(Clone, Debug, Default)]
pub struct GivenUrls {
    /// `PGRST_DB_URI`.
    pub rest: Option<String>,
    /// `GOTRUE_DB_DATABASE_URL`.
    pub auth: Option<String>,
    /// `FERROBASE_REPLICATION_URL`.
    pub replication: Option<String>,
    /// `FERROBASE_POOLER_URL`.
    pub pooler: Option<String>,
    /// `FERROBASE_READ_REPLICA_URL`.
    pub replica: Option<String>,
}

impl GivenUrls {
    pub fn read(reader: &Reader<'_>) -> Self {
        Self {
            rest: reader.text(&["PGRST_DB_URI"]),
            auth: reader.text(&["GOTRUE_DB_DATABASE_URL"]),
            replication: reader.text(&["FERROBASE_REPLICATION_URL"]),
            pooler: reader.text(&["FERROBASE_POOLER_URL"]),
            replica: reader.text(&["FERROBASE_READ_REPLICA_URL"]),
        }
    }
}

/// Brings the platform up to date and ensures that its roles can log in.
///
/// Their passwords are derived from the password in `owner_url`, or from `secret` if it has none, so nothing is
/// stored and every instance derives the same ones; the well-known password stands for itself. An existing role that
/// we did not create keeps its password; it must accept ours or have its own URL (`PGRST_DB_URI`,
/// `GOTRUE_DB_DATABASE_URL`).
pub async fn prepare(owner_url: &str, secret: &str, given: &GivenUrls) -> Result<PlatformUrls, MigrateError> {
    platform::platform(owner_url).await?;
    let owner: Config = owner_url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
    let key = owner.get_password().map_or_else(|| secret.as_bytes().to_vec(), <[u8]>::to_vec);
    let has_key = !key.is_empty();
    settle_others(owner_url, key == WELL_KNOWN.as_bytes()).await?;
    let mut session = None;
    let mut urls = Vec::with_capacity(3);
    for (role, setting, given) in [
        ("authenticator", "PGRST_DB_URI", given.rest.as_ref()),
        ("supabase_auth_admin", "GOTRUE_DB_DATABASE_URL", given.auth.as_ref()),
        ("supabase_ferrobase_admin", "DATABASE_URL", None),
    ] {
        if let Some(url) = given {
            urls.push(url.clone());
            continue;
        }
        let password = derive(&key, role);
        let url = with_login(owner_url, role, &password);
        if !accepts(&url).await? {
            if !has_key {
                // A password that other commands or instances cannot derive would lock them out.
                return Err(MigrateError::NoKey);
            }
            if session.is_none() {
                session = Some(Session::connect_alone_for_platform(owner_url).await?);
            }
            if let Some(session) = &session {
                set_password(session, role, setting, &password).await?;
            }
            if !accepts(&url).await? {
                return Err(MigrateError::ForeignRole { role, setting });
            }
        }
        urls.push(url);
    }
    let [rest_url, auth_url, service_url] = urls.try_into().unwrap_or_default();
    let replication_url = match &given.replication {
        Some(url) => url.clone(),
        None => replication_login(owner_url, &key, &mut session).await?,
    };
    let pooled = match &given.pooler {
        Some(pooler) => Some(at_pooler(pooler, &rest_url, &auth_url).await?),
        None => None,
    };
    // It may be down now: the server starts without it.
    let replica_url = given.replica.as_ref().map(|replica| with_login_of(replica, &rest_url)).transpose()?;
    Ok(PlatformUrls { rest_url, auth_url, service_url, replication_url, pooled, replica_url })
}

/// The logins of requests at the pooler that `given` names, as [`prepare`] comes to them; nothing is changed.
pub async fn pooled(owner_url: &str, secret: &str, given: &GivenUrls) -> Result<PooledUrls, MigrateError> {
    let owner: Config = owner_url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
    let key = owner.get_password().map_or_else(|| secret.as_bytes().to_vec(), <[u8]>::to_vec);
    let url = |given: &Option<String>, role: &str| {
        given.clone().unwrap_or_else(|| with_login(owner_url, role, &derive(&key, role)))
    };
    let (rest_url, auth_url) = (url(&given.rest, "authenticator"), url(&given.auth, "supabase_auth_admin"));
    at_pooler(given.pooler.as_deref().unwrap_or(owner_url), &rest_url, &auth_url).await
}

/// The login of reads at the replica that `given` names, if it names one, as [`prepare`] comes to it.
pub fn at_replica(owner_url: &str, secret: &str, given: &GivenUrls) -> Result<Option<String>, MigrateError> {
    let Some(replica) = &given.replica else { return Ok(None) };
    let owner: Config = owner_url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
    let key = owner.get_password().map_or_else(|| secret.as_bytes().to_vec(), <[u8]>::to_vec);
    let role = "authenticator";
    let rest_url = given.rest.clone().unwrap_or_else(|| with_login(owner_url, role, &derive(&key, role)));
    with_login_of(replica, &rest_url).map(Some)
}

/// The same logins at the pooler, which has to let them in.
async fn at_pooler(pooler: &str, rest_url: &str, auth_url: &str) -> Result<PooledUrls, MigrateError> {
    let mut urls = [rest_url, auth_url].map(str::to_owned);
    for url in &mut urls {
        *url = with_login_of(pooler, url)?;
        let config: Config = url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
        if let Err(error) = db::connect(&config).await {
            let role = config.get_user().unwrap_or_default().to_owned();
            return Err(MigrateError::Pooler { role, cause: error.to_string() });
        }
    }
    let [rest_url, auth_url] = urls;
    Ok(PooledUrls { rest_url, auth_url })
}

/// The login that follows the database's log: the owner, if it may not create a replicating role.
async fn replication_login(owner_url: &str, key: &[u8], session: &mut Option<Session>) -> Result<String, MigrateError> {
    const ROLE: &str = "supabase_replication_admin";
    let password = derive(key, ROLE);
    let url = with_login(owner_url, ROLE, &password);
    if may_replicate(&url).await? == Some(true) {
        return Ok(url);
    }
    if session.is_none() {
        *session = Some(Session::connect_alone_for_platform(owner_url).await?);
    }
    let Some(session) = session else { return Ok(owner_url.to_owned()) };
    let is_fit = session
        .client
        .query_opt("select rolreplication and rolcanlogin from pg_catalog.pg_roles where rolname = $1", &[&ROLE])
        .await?
        .is_some_and(|row| row.get(0));
    if !is_fit || key.is_empty() {
        return Ok(owner_url.to_owned());
    }
    match set_password(session, ROLE, "FERROBASE_REPLICATION_URL", &password).await {
        Ok(()) => {}
        // The role belongs to another server, or the owner may not alter it.
        Err(error) => {
            tracing::debug!(%error, "the log is followed as the owner of the database");
            return Ok(owner_url.to_owned());
        }
    }
    Ok(if may_replicate(&url).await? == Some(true) { url } else { owner_url.to_owned() })
}

/// Whether this URL's role may replicate; `None` if the login is refused.
async fn may_replicate(url: &str) -> Result<Option<bool>, MigrateError> {
    if !accepts(url).await? {
        return Ok(None);
    }
    let config: Config = url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
    let (client, connection) = db::connect(&config).await.map_err(unopened)?;
    let driver = tokio::spawn(connection);
    let row =
        client.query_one("select rolreplication from pg_catalog.pg_roles where rolname = current_user", &[]).await?;
    driver.abort();
    Ok(Some(row.get(0)))
}

/// Gives [`OTHERS`] the well-known password in development, unless they have one, and takes it from them elsewhere. Only a
/// superuser can see whether they have one; under anybody else they stay as they are.
async fn settle_others(owner_url: &str, is_local: bool) -> Result<(), MigrateError> {
    let session = Session::connect_for_platform(owner_url).await?;
    let sql = "select rolname::text, rolpassword is null from pg_catalog.pg_authid
               where rolname = any ($1) and pg_catalog.shobj_description(oid, 'pg_authid') = 'Made by ferrobase'";
    let rows = match session.client.query(sql, &[&&OTHERS[..]]).await {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => return Ok(()),
        rows => rows?,
    };
    for row in &rows {
        let (role, has_none): (&str, bool) = (row.get(0), row.get(1));
        if is_local && has_none {
            let verifier = scram_sha_256(WELL_KNOWN.as_bytes());
            alter(&session, &format!("alter role {role} password '{verifier}'")).await?;
        } else if !is_local && !has_none && accepts(&with_login(owner_url, role, WELL_KNOWN)).await? {
            alter(&session, &format!("alter role {role} password null")).await?;
        }
    }
    Ok(())
}

/// Hex of HMAC-SHA256 over the role's name.
fn derive(key: &[u8], role: &str) -> String {
    if key == WELL_KNOWN.as_bytes() {
        return WELL_KNOWN.to_owned();
    }
    // HMAC takes keys of any length, so this cannot fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(b"ferrobase database role ");
    mac.update(role.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

/// `url` with another login, neither of which needs escaping; both forms of PostgreSQL connection strings.
fn with_login(url: &str, user: &str, password: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return format!("{url} user={user} password={password}") };
    let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // Often several, with commas.
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    if !hosts.is_empty() {
        return format!("{scheme}://{user}:{password}@{hosts}{tail}");
    }
    // A URL without a host (a socket named in the query) cannot carry a user before it.
    let joint = if tail.contains('?') { '&' } else { '?' };
    format!("{scheme}://{tail}{joint}user={user}&password={password}")
}

/// `url` with the login of `other`.
pub fn with_login_of(url: &str, other: &str) -> Result<String, MigrateError> {
    let config: Config = other.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
    let (user, password) = (config.get_user().unwrap_or_default(), config.get_password().unwrap_or_default());
    let escape = |text: &[u8]| percent_encoding::percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    Ok(with_login(url, &escape(user.as_bytes()), &escape(password)))
}

/// Whether the server accepts this login. Other failures are errors.
async fn accepts(url: &str) -> Result<bool, MigrateError> {
    let config: Config = url.parse().map_err(|e| MigrateError::Url(describe(&e)))?;
    match db::connect(&config).await {
        Ok(_) => Ok(true),
        Err(OpenError::Refused(error))
            if [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION]
                .iter()
                .any(|code| error.code() == Some(code)) =>
        {
            Ok(false)
        }
        Err(error) => Err(unopened(error)),
    }
}

/// Sets the password of a role that we created. Sends only the SCRAM verifier, so that no log can contain the password.
async fn set_password(
    session: &Session,
    role: &'static str,
    setting: &'static str,
    password: &str,
) -> Result<(), MigrateError> {
    let ours: bool = session
        .client
        .query_one(
            "select coalesce(pg_catalog.shobj_description(oid, 'pg_authid') = 'Made by ferrobase', false)
             from pg_catalog.pg_roles where rolname = $1",
            &[&role],
        )
        .await?
        .get(0);
    if !ours {
        return Err(MigrateError::ForeignRole { role, setting });
    }
    let verifier = scram_sha_256(password.as_bytes());
    alter(session, &format!("alter role {role} password '{verifier}'")).await
}

/// Runs a statement that another instance may be running too.
async fn alter(session: &Session, statement: &str) -> Result<(), MigrateError> {
    for attempt in 0_u64.. {
        match session.client.batch_execute(statement).await {
            Err(error) if attempt < 10 && describe(&error).contains("tuple concurrently") => {
                tokio::time::sleep(std::time::Duration::from_millis(20 * (attempt + 1))).await;
            }
            outcome => return Ok(outcome?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_is_replaced_in_every_form_of_connection_string() {
        for (url, expected) in [
            ("postgresql://me:pw@db:5432/app?sslmode=disable", "postgresql://r:p@db:5432/app?sslmode=disable"),
            ("postgresql:///app?host=/run", "postgresql:///app?host=%2Frun&user=r&password=p"),
            ("postgresql://me:p%40w@a:5432,b:5433/app", "postgresql://r:p@a:5432,b:5433/app"),
            ("postgres://db", "postgres://r:p@db"),
            ("host=db dbname=app user=me", "host=db dbname=app user=me user=r password=p"),
        ] {
            let changed = with_login(url, "r", "p");
            let config: Config = changed.parse().expect(&changed);
            let wanted: Config = expected.parse().expect(expected);
            assert_eq!(config, wanted, "{changed}");
            assert_eq!(config.get_user(), Some("r"));
        }
    }

    #[test]
    fn each_role_has_its_own_password_and_the_key_decides() {
        assert_ne!(derive(b"k", "authenticator"), derive(b"k", "supabase_auth_admin"));
        assert_ne!(derive(b"k", "authenticator"), derive(b"l", "authenticator"));
        assert_eq!(derive(b"postgres", "authenticator"), "postgres");
    }
}
