//! Keeps the database `postgres` of a throw-away cluster as a template, and replaces it by copies.
//!
//! A copy is made in advance, so that a replacement only renames. `create database` does not copy settings, rights and
//! comment of its template, so these are copied in the catalogs.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

use super::EmbeddedError;

/// The template, without connections.
const SEED: &str = "ferrobase_seed";
/// The copy that takes the name next.
const NEXT: &str = "ferrobase_next";
/// The replaced database, until it is dropped.
const FORMER: &str = "ferrobase_former";

/// Copies settings, rights and comment from database `$1` to `$2`.
const CARRY_OVER: &str = "with source as (select oid, datacl from pg_database where datname = $1),
       target as (update pg_database set datacl = (select datacl from source) where datname = $2 returning oid),
       settings as (insert into pg_db_role_setting (setdatabase, setrole, setconfig)
         select target.oid, s.setrole, s.setconfig from target, pg_db_role_setting s, source where s.setdatabase = source.oid)
     insert into pg_shdescription (objoid, classoid, description)
     select target.oid, d.classoid, d.description from target, pg_shdescription d, source
     where d.objoid = source.oid and d.classoid = 'pg_database'::regclass";

/// A cluster's shared objects: roles, their memberships, settings and comments.
const SHARED: [(&str, &str); 5] = [
    ("pg_authid", "true"),
    ("pg_auth_members", "true"),
    ("pg_shdepend", "dbid = 0 and classid = 'pg_auth_members'::regclass"),
    ("pg_db_role_setting", "setdatabase = 0"),
    ("pg_shdescription", "classoid = 'pg_authid'::regclass"),
];

/// How long sessions may take to end.
const SESSIONS_END: Duration = Duration::from_secs(10);

/// A cluster whose database can be replaced.
pub struct Seed {
    admin_url: String,
    /// The rows of each catalog of [`SHARED`], as JSON.
    shared: Vec<String>,
}

async fn connect(admin_url: &str) -> Result<Client, EmbeddedError> {
    let mut config: tokio_postgres::Config = admin_url.parse().map_err(failed)?;
    let (client, connection) = config.dbname("template1").connect(NoTls).await.map_err(failed)?;
    tokio::spawn(connection);
    Ok(client)
}

fn failed(error: tokio_postgres::Error) -> EmbeddedError {
    EmbeddedError::Seed { reason: error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned()) }
}

/// Keeps the current database as the template. It must not be in use.
pub async fn keep(admin_url: &str) -> Result<(), EmbeddedError> {
    let client = connect(admin_url).await?;
    end_sessions(&client).await?;
    copy(&client, "postgres", SEED).await
}

async fn copy(client: &Client, source: &str, target: &str) -> Result<(), EmbeddedError> {
    // For small databases copying files is faster.
    let create =
        format!("create database {target} template {source} owner postgres allow_connections false strategy file_copy");
    client.batch_execute(&create).await.map_err(failed)?;
    client.execute(CARRY_OVER, &[&source, &target]).await.map_err(failed)?;
    Ok(())
}

/// Ends all sessions of the database at once. PostgreSQL's own ways poll every 100 ms.
async fn end_sessions(client: &Client) -> Result<(), EmbeddedError> {
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = 'postgres'";
    let begun = Instant::now();
    while client.query_one(end, &[]).await.map_err(failed)?.get::<_, i64>(0) > 0 {
        if begun.elapsed() > SESSIONS_END {
            return Err(EmbeddedError::Seed { reason: "its sessions do not end".to_owned() });
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn read_shared(client: &Client) -> Result<Vec<String>, EmbeddedError> {
    let rows = SHARED.map(|(catalog, part)| {
        format!(
            "(select coalesce(json_agg(t order by t::text), '[]')::text from (select * from {catalog} where {part}) t)"
        )
    });
    let row = client.query_one(&format!("select array[{}]", rows.join(", ")), &[]).await.map_err(failed)?;
    Ok(row.get(0))
}

impl Seed {
    /// For a cluster whose database was [kept](keep) and not used since.
    pub async fn of(admin_url: &str) -> Result<Self, EmbeddedError> {
        let shared = read_shared(&connect(admin_url).await?).await?;
        Ok(Self { admin_url: admin_url.to_owned(), shared })
    }

    /// Removes the former database and creates the next copy. Must not run concurrently with [`Seed::replace`].
    pub async fn prepare(&self) -> Result<(), EmbeddedError> {
        let client = connect(&self.admin_url).await?;
        self.tidy(&client).await?;
        copy(&client, SEED, NEXT).await
    }

    async fn tidy(&self, client: &Client) -> Result<(), EmbeddedError> {
        for name in [FORMER, NEXT] {
            client.batch_execute(&format!("drop database if exists {name} with (force)")).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Replaces the database by a copy of the seed, whoever is connected. Removes other databases, roles and
    /// replication slots created since.
    pub async fn replace(&self) -> Result<(), EmbeddedError> {
        let client = connect(&self.admin_url).await?;
        let is_ready = "select exists (select from pg_database where datname = $1)
                           and not exists (select from pg_database where datname = $2)";
        if !client.query_one(is_ready, &[&NEXT, &FORMER]).await.map_err(failed)?.get::<_, bool>(0) {
            self.tidy(&client).await?;
            copy(&client, SEED, NEXT).await?;
        }
        // New connections would block the rename.
        client.batch_execute("alter database postgres allow_connections false").await.map_err(failed)?;
        let exchanged = self.exchange(&client).await;
        // After a failure too, so that the database with the name can be used.
        client.batch_execute("alter database postgres allow_connections true").await.map_err(failed)?;
        exchanged
    }

    async fn exchange(&self, client: &Client) -> Result<(), EmbeddedError> {
        end_sessions(client).await?;
        let slots = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active";
        client.execute(slots, &[]).await.map_err(failed)?;
        let rename = format!(
            "begin; alter database postgres rename to {FORMER}; alter database {NEXT} rename to postgres; commit"
        );
        client.batch_execute(&rename).await.map_err(failed)?;
        self.drop_others(client).await?;
        self.restore_shared(client).await
    }

    async fn drop_others(&self, client: &Client) -> Result<(), EmbeddedError> {
        let ours = ["template0", "template1", "postgres", SEED, FORMER].map(str::to_owned).to_vec();
        let others = "select quote_ident(datname) from pg_database where datname <> all ($1)";
        for row in client.query(others, &[&ours]).await.map_err(failed)? {
            let name: &str = row.get(0);
            client.batch_execute(&format!("alter database {name} is_template false")).await.map_err(failed)?;
            client.batch_execute(&format!("drop database {name} with (force)")).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn restore_shared(&self, client: &Client) -> Result<(), EmbeddedError> {
        if read_shared(client).await? == self.shared {
            return Ok(());
        }
        let new = "select string_agg(quote_ident(rolname), ', ') from pg_authid a
                   where not exists (select from json_populate_recordset(null::pg_authid, $1::text::json) s where s.oid = a.oid)";
        let roles: &String = &self.shared[0];
        if let Some(new) = client.query_one(new, &[roles]).await.map_err(failed)?.get::<_, Option<String>>(0) {
            // Their objects there would prevent dropping them.
            client.batch_execute(&format!("drop database {FORMER} with (force)")).await.map_err(failed)?;
            let drop = format!("drop owned by {new} cascade; drop role {new}");
            client.batch_execute(&drop).await.map_err(failed)?;
        }
        for ((catalog, part), rows) in SHARED.iter().zip(&self.shared) {
            let saved =
                format!("with saved as (select * from json_populate_recordset(null::{catalog}, $1::text::json))");
            let delete = format!(
                "{saved} delete from {catalog} t where {part} and not exists (select from saved s where s::text = t::text)"
            );
            let insert = format!(
                "{saved} insert into {catalog} select * from saved s
                 where not exists (select from {catalog} t where {part} and s::text = t::text)"
            );
            for statement in [delete, insert] {
                client.execute(&statement, &[rows]).await.map_err(failed)?;
            }
        }
        Ok(())
    }
}
