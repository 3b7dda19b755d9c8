//! What a cluster holds, so that the upgraded one can be compared with the former.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::{Client, NoTls};

use super::UpgradeError;
use crate::backup::count_rows;

/// Roles with their rights, passwords, memberships and settings, a line each. Those of PostgreSQL itself differ between versions.
const ROLES: &str = "
  select concat_ws(' ', 'role', rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication,
                   rolbypassrls, rolconnlimit, md5(rolpassword), rolvaliduntil)
  from pg_authid where rolname !~ '^pg_'
  union all
  select concat_ws(' ', 'member', m.member::regrole, 'of', m.roleid::regrole, m.admin_option)
  from pg_auth_members m where m.member::regrole::text !~ '^pg_'
  union all
  select concat_ws(' ', 'setting', coalesce(d.datname, '*'), case when s.setrole = 0 then '*' else s.setrole::regrole::text end,
                   setting)
  from pg_db_role_setting s left join pg_database d on d.oid = s.setdatabase, unnest(s.setconfig) setting";

const LOCALE: &str = "
  select concat_ws(' ', pg_encoding_to_char(encoding), datcollate, datctype, datlocprovider,
                   coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale'))
  from pg_database d where datname = current_database()";

/// What a cluster holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    roles: BTreeSet<String>,
    databases: BTreeMap<String, Database>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Database {
    locale: String,
    extensions: BTreeSet<String>,
    rows: BTreeMap<String, i64>,
}

impl Facts {
    /// Of the cluster whose superuser `admin_url` logs in.
    pub async fn read(admin_url: &str) -> Result<Self, UpgradeError> {
        let client = connect(admin_url).await?;
        let roles = client.query(ROLES, &[]).await?.iter().map(|row| row.get(0)).collect();
        let mut databases = BTreeMap::new();
        for name in databases_of(&client).await? {
            let client = connect_to(admin_url, &name).await?;
            databases.insert(name, Database::read(&client).await?);
        }
        Ok(Self { roles, databases })
    }

    pub fn tables(&self) -> usize {
        self.databases.values().map(|database| database.rows.len()).sum()
    }

    pub fn rows(&self) -> i64 {
        self.databases.values().flat_map(|database| database.rows.values()).sum()
    }

    /// What `later` lacks or has otherwise, a sentence each.
    pub fn differences(&self, later: &Self) -> Vec<String> {
        let mut differences: Vec<String> =
            self.roles.symmetric_difference(&later.roles).map(|role| format!("{role} differs")).collect();
        for (name, before) in &self.databases {
            let Some(after) = later.databases.get(name) else {
                differences.push(format!("database {name} is missing"));
                continue;
            };
            if before.locale != after.locale {
                differences.push(format!("the locale of {name} was {} and is {}", before.locale, after.locale));
            }
            let missing = before.extensions.difference(&after.extensions);
            differences.extend(missing.map(|extension| format!("extension {extension} of {name} is missing")));
            for (table, rows) in &before.rows {
                match after.rows.get(table) {
                    Some(found) if found == rows => {}
                    Some(found) => differences.push(format!("{table} of {name} had {rows} rows and has {found}")),
                    None => differences.push(format!("{table} of {name} is missing")),
                }
            }
        }
        differences
    }
}

impl Database {
    async fn read(client: &Client) -> Result<Self, UpgradeError> {
        client.batch_execute("set search_path = ''; set statement_timeout = 0").await?;
        let locale = client.query_one(LOCALE, &[]).await?.get(0);
        let extensions = client.query("select extname::text from pg_catalog.pg_extension", &[]).await?;
        let rows = count_rows(client).await?;
        Ok(Self { locale, extensions: extensions.iter().map(|row| row.get(0)).collect(), rows })
    }
}

/// The databases that can be connected to.
pub async fn databases_of(client: &Client) -> Result<Vec<String>, UpgradeError> {
    let names =
        "select datname::text from pg_catalog.pg_database where datallowconn and datname <> 'template0' order by 1";
    Ok(client.query(names, &[]).await?.iter().map(|row| row.get(0)).collect())
}

pub async fn connect(url: &str) -> Result<Client, UpgradeError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Connects to another database of the same cluster.
pub async fn connect_to(url: &str, database: &str) -> Result<Client, UpgradeError> {
    let mut config: tokio_postgres::Config = url.parse()?;
    let (client, connection) = config.dbname(database).connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(change: impl FnOnce(&mut Facts)) -> Facts {
        let database = Database {
            locale: "UTF8 C C b C.UTF-8".to_owned(),
            extensions: ["pgcrypto".to_owned()].into(),
            rows: [("auth.users".to_owned(), 3)].into(),
        };
        let mut facts =
            Facts { roles: ["role anon".to_owned()].into(), databases: [("postgres".to_owned(), database)].into() };
        change(&mut facts);
        facts
    }

    #[test]
    fn each_lost_object_is_reported_and_additions_are_not() {
        let before = facts(|_| {});
        let named = |change: fn(&mut Database)| {
            let later = facts(|facts| facts.databases.values_mut().for_each(change));
            before.differences(&later)
        };
        assert_eq!(named(|_| {}), [""; 0]);
        assert_eq!(named(|db| db.rows.extend([("new".to_owned(), 1)])), [""; 0]);
        assert_eq!(named(|db| db.extensions.extend(["plpgsql".to_owned()])), [""; 0]);
        assert_eq!(named(|db| db.rows.clear()), ["auth.users of postgres is missing"]);
        let fewer = named(|db| db.rows.extend([("auth.users".to_owned(), 2)]));
        assert_eq!(fewer, ["auth.users of postgres had 3 rows and has 2"]);
        assert_eq!(named(|db| db.extensions.clear()), ["extension pgcrypto of postgres is missing"]);
        assert_eq!(named(|db| db.locale.push('x')).len(), 1);
        assert_eq!(before.differences(&Facts::default()), ["role anon differs", "database postgres is missing"]);
    }
}
