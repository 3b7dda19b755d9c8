//! The cluster's superuser, `supabase_admin`, and the owner of its database, `postgres`, who is none.
//!
//! As on Supabase the platform belongs to the one and the project to the other, so that no function of a project is a
//! way to the machine. Clusters made before this split have `postgres` as their first role: it is renamed, since
//! PostgreSQL never takes that role's rights away, and what belongs to the project is handed to a new `postgres`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use postgres_protocol::password::scram_sha_256;
use rand::Rng;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::{EmbeddedError, OWNER, PASSWORD, login};

/// The first role of a cluster, whose rights cannot be taken away.
pub const ADMIN: &str = "supabase_admin";

/// Superuser while the first role is renamed: nobody can rename themselves.
const RENAMER: &str = "supabase_rename_admin";

/// What `supabase_admin` is called whose name the first role takes. Exists until everything has been handed over.
const FORMER: &str = "supabase_former_admin";

/// How the superuser logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminPassword {
    /// `postgres`, as tools for local stacks expect.
    WellKnown,
    /// A random one, in the file `admin.password` of the data root.
    Private,
    /// Whatever it is.
    Keep,
}

pub struct Superuser {
    file: PathBuf,
}

impl Superuser {
    /// Of the cluster below the data root `root`.
    pub fn of(root: &Path) -> Self {
        Self { file: root.join("admin.password") }
    }

    /// For a cluster that is about to be made: begins with what everybody knows; [`Self::settle`] changes it.
    pub fn password_for_new(&self) -> String {
        // A file that an earlier cluster has left tells nothing about the new one.
        let _ = std::fs::remove_file(&self.file);
        PASSWORD.to_owned()
    }

    fn passwords(&self) -> [String; 3] {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_or_else(|_| PASSWORD.to_owned(), |text| text.trim().to_owned())
        };
        // The second is there when a change was interrupted.
        [read(&self.file), read(&self.next()), PASSWORD.to_owned()]
    }

    fn next(&self) -> PathBuf {
        self.file.with_extension("next")
    }

    pub fn url(&self, port: u16) -> String {
        let [password, ..] = self.passwords();
        login(ADMIN, &password, port, "postgres")
    }

    /// Makes sure that both roles are there and log in, and brings older clusters to that state. Yields the
    /// superuser's URL.
    pub async fn settle(&self, port: u16, wanted: AdminPassword, db: &Path) -> Result<String, EmbeddedError> {
        let failed = |error: tokio_postgres::Error| EmbeddedError::Roles { dir: db.to_owned(), reason: reason(&error) };
        let mut admin = None;
        for password in self.passwords() {
            admin = log_in(ADMIN, &password, port).await.map_err(failed)?.map(|client| (client, password));
            if admin.is_some() {
                break;
            }
        }
        let (client, password) = match admin {
            Some(known) => known,
            None => {
                rename_first_role(port, db).await?;
                let client = log_in(ADMIN, PASSWORD, port).await.map_err(failed)?;
                (client.ok_or_else(|| EmbeddedError::AdminPassword { dir: db.to_owned() })?, PASSWORD.to_owned())
            }
        };
        make_owner(&client).await.map_err(failed)?;
        hand_over(&client, &password, port).await.map_err(failed)?;
        let password = self.change(&client, password, wanted, db).await?;
        match log_in(OWNER, PASSWORD, port).await.map_err(failed)? {
            Some(_) => Ok(login(ADMIN, &password, port, "postgres")),
            None => Err(EmbeddedError::Password { dir: db.to_owned() }),
        }
    }

    /// Changes the superuser's password to what is wanted; yields the one that holds.
    async fn change(
        &self,
        client: &Client,
        password: String,
        wanted: AdminPassword,
        db: &Path,
    ) -> Result<String, EmbeddedError> {
        let is_known = password == PASSWORD;
        let new = match wanted {
            AdminPassword::WellKnown if !is_known => PASSWORD.to_owned(),
            AdminPassword::Private if is_known => {
                let mut bytes = [0_u8; 24];
                rand::rng().fill(&mut bytes);
                hex::encode(bytes)
            }
            _ => {
                if !is_known {
                    self.write(&self.file, &password)?;
                }
                return Ok(password);
            }
        };
        self.write(&self.next(), &new)?;
        // What travels is the verifier, so no log can hold the password.
        let verifier = scram_sha_256(new.as_bytes());
        client
            .batch_execute(&format!("alter role {ADMIN} password '{verifier}'"))
            .await
            .map_err(|error| EmbeddedError::Roles { dir: db.to_owned(), reason: reason(&error) })?;
        std::fs::rename(self.next(), &self.file).map_err(EmbeddedError::io("cannot write", &self.file))?;
        Ok(new)
    }

    fn write(&self, path: &Path, password: &str) -> Result<(), EmbeddedError> {
        // Where the disk is full there are better messages than this one, and the file may hold it already.
        if std::fs::read_to_string(path).is_ok_and(|text| text == password) {
            return Ok(());
        }
        let _ = std::fs::remove_file(path);
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(password.as_bytes()))
            .map_err(EmbeddedError::io("cannot write", path))
    }
}

/// Whether the server on `port` takes connections: one that refuses a password does.
pub async fn answers(port: u16) -> Result<(), tokio_postgres::Error> {
    log_in(OWNER, PASSWORD, port).await.map(drop)
}

/// A connection, or `None` where the login is refused.
async fn log_in(user: &str, password: &str, port: u16) -> Result<Option<Client>, tokio_postgres::Error> {
    connect(&login(user, password, port, "postgres")).await
}

async fn connect(url: &str) -> Result<Option<Client>, tokio_postgres::Error> {
    match tokio_postgres::connect(url, NoTls).await {
        Ok((client, connection)) => {
            // Ends with its client.
            tokio::spawn(connection);
            Ok(Some(client))
        }
        Err(error) => match error.code() {
            Some(code)
                if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
            {
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned())
}

/// Turns the first role, `postgres` until now, into `supabase_admin`. One transaction: it is done or it is not.
async fn rename_first_role(port: u16, db: &Path) -> Result<(), EmbeddedError> {
    let failed = |error: tokio_postgres::Error| EmbeddedError::Roles { dir: db.to_owned(), reason: reason(&error) };
    let client = log_in(OWNER, PASSWORD, port).await.map_err(failed)?;
    let client = client.ok_or_else(|| EmbeddedError::Password { dir: db.to_owned() })?;
    let first: String =
        client.query_one("select rolname::text from pg_roles where oid = 10", &[]).await.map_err(failed)?.get(0);
    if first != OWNER {
        return Err(EmbeddedError::AdminPassword { dir: db.to_owned() });
    }
    tracing::info!("the database was made by an earlier version: its superuser becomes supabase_admin");
    client
        .batch_execute(&format!(
            "do $$ begin
               if not exists (select from pg_roles where rolname = '{RENAMER}') then create role {RENAMER}; end if;
             end $$;
             alter role {RENAMER} superuser login password '{PASSWORD}'"
        ))
        .await
        .map_err(failed)?;
    let renamer = log_in(RENAMER, PASSWORD, port).await.map_err(failed)?;
    let renamer = renamer.ok_or_else(|| EmbeddedError::AdminPassword { dir: db.to_owned() })?;
    renamer
        .batch_execute(&format!(
            "begin;
             do $$ begin
               if exists (select from pg_roles where rolname = '{ADMIN}') then
                 alter role {ADMIN} rename to {FORMER};
               else
                 create role {FORMER};
               end if;
             end $$;
             alter role {OWNER} rename to {ADMIN};
             alter role {ADMIN} password '{PASSWORD}';
             commit"
        ))
        .await
        .map_err(failed)
}

/// The role `postgres` with the rights it has on Supabase, but for the memberships, which the platform grants.
async fn make_owner(admin: &Client) -> Result<(), tokio_postgres::Error> {
    admin
        .batch_execute(&format!(
            "do $$ begin
               if not exists (select from pg_roles where rolname = '{OWNER}') then
                 create role {OWNER} login createdb createrole replication bypassrls password '{PASSWORD}';
                 alter role {OWNER} set search_path = \"$user\", public, extensions;
               end if;
               if (select pg_get_userbyid(datdba) from pg_database where datname = 'postgres') = '{ADMIN}' then
                 alter database postgres owner to {OWNER};
               end if;
             end $$"
        ))
        .await
}

/// Gives the project's objects of every database to `postgres` where the first role was renamed.
async fn hand_over(admin: &Client, password: &str, port: u16) -> Result<(), tokio_postgres::Error> {
    let is_due = "select exists (select from pg_roles where rolname = $1)";
    if !admin.query_one(is_due, &[&FORMER]).await?.get::<_, bool>(0) {
        return Ok(());
    }
    let databases = admin.query("select datname::text from pg_database where datallowconn", &[]).await?;
    for row in &databases {
        let name: String = row.get(0);
        if name == "template1" {
            continue;
        }
        let mut config: tokio_postgres::Config = login(ADMIN, password, port, "postgres").parse()?;
        let (client, connection) = config.dbname(&name).connect(NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(&format!("begin; {}; commit", include_str!("hand_over.sql"))).await?;
    }
    admin
        .batch_execute(&format!(
            "drop role {FORMER};
             drop role if exists {RENAMER}"
        ))
        .await
}
