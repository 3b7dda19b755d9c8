//! The cluster's superuser, `supabase_admin`, and the owner of its database, `postgres`, which is not a superuser.
//!
//! As on Supabase, the platform belongs to the former and the project to the latter, so that no function of a project
//! gets access to the machine. Older clusters have `postgres` as their first role. PostgreSQL cannot take that role's
//! rights away, so it is renamed, and the project's objects are given to a new `postgres`.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, lchown};
use std::path::{Path, PathBuf};

use postgres_protocol::password::scram_sha_256;
use rand::Rng;
use rustix::io::Errno;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::{EmbeddedError, Logins, OWNER, PASSWORD, login};
use crate::owner;

/// The first role of a cluster, whose rights cannot be taken away.
pub const ADMIN: &str = "supabase_admin";

/// A temporary superuser to rename the first role, because a role cannot rename itself.
const RENAMER: &str = "supabase_rename_admin";

/// The temporary name of an existing `supabase_admin`, whose name the first role takes. Exists until all its objects
/// have been handed over.
const FORMER: &str = "supabase_former_admin";

/// How the superuser and the owner log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passwords {
    /// `postgres`, as tools for local stacks expect.
    WellKnown,
    /// Random ones, in the files `admin.password` and `owner.password` of the data root.
    Private,
    /// Unchanged.
    Keep,
    /// Unchanged, and roles of older clusters stay as they are, too: for looking.
    Look,
}

/// The two roles of the cluster below a data root.
pub struct Roles {
    admin: Role,
    owner: Role,
}

impl Roles {
    /// Of the cluster below the data root `root`.
    pub fn of(root: &Path) -> Self {
        Self {
            admin: Role { name: ADMIN, file: root.join("admin.password") },
            owner: Role { name: OWNER, file: root.join("owner.password") },
        }
    }

    /// The initial, public password of a new cluster; [`Self::settle`] changes it.
    pub fn password_for_new(&self) -> String {
        for role in [&self.admin, &self.owner] {
            // An earlier cluster's file does not apply to the new one.
            let _ = std::fs::remove_file(&role.file);
        }
        PASSWORD.to_owned()
    }

    /// The logins of both, according to the files.
    pub fn logins(&self, port: u16) -> Logins {
        let login = |role: &Role| {
            let [password, ..] = role.passwords();
            login(role.name, &password, port, "postgres")
        };
        Logins { url: login(&self.owner), admin_url: login(&self.admin) }
    }

    /// Ensures that both roles exist and can log in, and converts older clusters.
    ///
    /// With `anew` they get new passwords if passwords are to be private.
    pub async fn settle(&self, port: u16, wanted: Passwords, anew: bool, db: &Path) -> Result<Logins, EmbeddedError> {
        let failed = |error: tokio_postgres::Error| roles_failed(db, &error);
        if wanted == Passwords::Look {
            return self.as_they_are(port, db).await;
        }
        let (client, password) = match self.admin.find(port).await.map_err(failed)? {
            Some(found) => found,
            None => {
                rename_first_role(port, db).await?;
                let client = log_in(ADMIN, PASSWORD, port).await.map_err(failed)?;
                (client.ok_or_else(|| EmbeddedError::AdminPassword { dir: db.to_owned() })?, PASSWORD.to_owned())
            }
        };
        make_owner(&client).await.map_err(failed)?;
        hand_over(&client, &password, port).await.map_err(failed)?;
        let password = self.admin.change(&client, password, (wanted, anew), db).await?;
        let admin_url = login(ADMIN, &password, port, "postgres");
        let Some((_, password)) = self.owner.find(port).await.map_err(failed)? else {
            return Err(EmbeddedError::Password { dir: db.to_owned() });
        };
        let password = self.owner.change(&client, password, (wanted, anew), db).await?;
        for role in [&self.admin, &self.owner] {
            role.hand_over(db)?;
        }
        Ok(Logins { url: login(OWNER, &password, port, "postgres"), admin_url })
    }
}

impl Roles {
    /// The logins of a cluster that nothing is changed in: an older one has no superuser but its owner.
    async fn as_they_are(&self, port: u16, db: &Path) -> Result<Logins, EmbeddedError> {
        let failed = |error: tokio_postgres::Error| roles_failed(db, &error);
        let admin = self.admin.find(port).await.map_err(failed)?.map(|(_, password)| (self.admin.name, password));
        let owner = self.owner.find(port).await.map_err(failed)?.map(|(_, password)| (self.owner.name, password));
        let url = |found: &(&str, String)| login(found.0, &found.1, port, "postgres");
        match (admin, owner) {
            (None, None) => Err(EmbeddedError::Password { dir: db.to_owned() }),
            (Some(admin), None) => Ok(Logins { url: url(&admin), admin_url: url(&admin) }),
            (None, Some(owner)) => Ok(Logins { url: url(&owner), admin_url: url(&owner) }),
            (Some(admin), Some(owner)) => Ok(Logins { url: url(&owner), admin_url: url(&admin) }),
        }
    }
}

struct Role {
    name: &'static str,
    file: PathBuf,
}

impl Role {
    /// Candidate passwords, the likeliest first.
    fn passwords(&self) -> [String; 3] {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_or_else(|_| PASSWORD.to_owned(), |text| text.trim().to_owned())
        };
        // The second exists if a change was interrupted.
        [read(&self.file), read(&self.next()), PASSWORD.to_owned()]
    }

    /// Gives the file to the owner of the cluster: a server that has dropped root's rights copies it into its backups.
    fn hand_over(&self, db: &Path) -> Result<(), EmbeddedError> {
        if !rustix::process::geteuid().is_root() || !self.file.exists() {
            return Ok(());
        }
        std::fs::metadata(db)
            .and_then(|owner| lchown(&self.file, Some(owner.uid()), Some(owner.gid())))
            .map_err(EmbeddedError::io("cannot hand over", &self.file))
    }

    fn next(&self) -> PathBuf {
        self.file.with_extension("next")
    }

    /// A connection as this role and the valid password, or `None` if all are refused.
    async fn find(&self, port: u16) -> Result<Option<(Client, String)>, tokio_postgres::Error> {
        for password in self.passwords() {
            if let Some(client) = log_in(self.name, &password, port).await? {
                return Ok(Some((client, password)));
            }
        }
        Ok(None)
    }

    /// Changes the password through the superuser's connection; returns the valid one.
    async fn change(
        &self,
        admin: &Client,
        password: String,
        (wanted, anew): (Passwords, bool),
        db: &Path,
    ) -> Result<String, EmbeddedError> {
        let is_known = password == PASSWORD;
        let new = match wanted {
            Passwords::WellKnown if !is_known => PASSWORD.to_owned(),
            Passwords::Private if is_known || anew => {
                let mut bytes = [0_u8; 24];
                rand::rng().fill(&mut bytes);
                hex::encode(bytes)
            }
            _ => {
                if !is_known {
                    write(&self.file, &password)?;
                }
                return Ok(password);
            }
        };
        write(&self.next(), &new)?;
        // Sends only the verifier, so that no log can contain the password.
        let verifier = scram_sha_256(new.as_bytes());
        admin
            .batch_execute(&format!("alter role {} password '{verifier}'", self.name))
            .await
            .map_err(|error| roles_failed(db, &error))?;
        std::fs::rename(self.next(), &self.file)
            .and_then(|()| sync_folder_of(&self.file))
            .map_err(EmbeddedError::io("cannot write", &self.file))?;
        Ok(new)
    }
}

fn write(path: &Path, password: &str) -> Result<(), EmbeddedError> {
    // Ignored if the file already has it: on a full disk, other messages are better.
    if std::fs::read_to_string(path).is_ok_and(|text| text == password) {
        return Ok(());
    }
    let _ = std::fs::remove_file(path);
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(password.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| owner::hand_over(path))
        .and_then(|()| sync_folder_of(path))
        .map_err(EmbeddedError::io("cannot write", path))
}

/// A password that PostgreSQL knows must survive a power failure, and so must the name of its file.
fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    match rustix::fs::fsync(std::fs::File::open(folder)?) {
        // Some network file systems sync no folders.
        Err(Errno::BADF | Errno::INVAL | Errno::NOTSUP) => Ok(()),
        outcome => Ok(outcome?),
    }
}

fn roles_failed(db: &Path, error: &tokio_postgres::Error) -> EmbeddedError {
    let reason = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
    EmbeddedError::Roles { dir: db.to_owned(), reason }
}

/// Whether the server on `port` accepts connections; refusing a password counts.
pub async fn answers(port: u16) -> Result<(), tokio_postgres::Error> {
    log_in(OWNER, PASSWORD, port).await.map(drop)
}

/// A connection, or `None` if the login is refused.
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

/// Renames the first role from `postgres` to `supabase_admin`, in one transaction.
async fn rename_first_role(port: u16, db: &Path) -> Result<(), EmbeddedError> {
    let failed = |error: tokio_postgres::Error| roles_failed(db, &error);
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

/// Creates the role `postgres` with the rights it has on Supabase, except memberships, which the platform grants.
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

/// Gives the project's objects in every database to `postgres`, after the first role was renamed.
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
