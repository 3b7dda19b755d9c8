//! The former cluster, as far as the new one has to be made like it.

use tokio_postgres::Client;

use super::super::UpgradeError;
use super::super::facts::{Facts, connect};

/// What is known of the former cluster once its copy has run.
pub struct Former {
    pub facts: Facts,
    /// Of the superuser.
    pub password: String,
    pub lost_slots: Vec<String>,
    pub has_checksums: bool,
    pub wal_segment_mib: String,
    /// Arguments of `initdb`; `pg_upgrade` sets the databases' own.
    pub locale: Vec<String>,
}

impl Former {
    pub async fn read(admin_url: &str) -> Result<Self, UpgradeError> {
        let facts = Facts::read(admin_url).await?;
        let client = connect(admin_url).await?;
        let lost_slots = drop_slots(&client).await?;
        let row = client
            .query_one(
                "select current_setting('data_checksums') = 'on',
                        (pg_size_bytes(current_setting('wal_segment_size')) / 1048576)::text,
                        datlocprovider::text, datcollate, datctype,
                        coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', '')
                 from pg_catalog.pg_database d where datname = 'template0'",
                &[],
            )
            .await?;
        let (provider, collate, ctype, locale): (String, String, String, String) =
            (row.get(2), row.get(3), row.get(4), row.get(5));
        let mut arguments = vec![format!("--lc-collate={collate}"), format!("--lc-ctype={ctype}")];
        match provider.as_str() {
            "b" => arguments.extend(["--locale-provider=builtin".to_owned(), format!("--builtin-locale={locale}")]),
            "i" => arguments.extend(["--locale-provider=icu".to_owned(), format!("--icu-locale={locale}")]),
            _ => arguments.push("--locale-provider=libc".to_owned()),
        }
        let url = url::Url::parse(admin_url).map_err(|error| UpgradeError::Database(error.to_string()))?;
        Ok(Self {
            facts,
            password: url.password().unwrap_or_default().to_owned(),
            lost_slots,
            has_checksums: row.get(0),
            wal_segment_mib: row.get(1),
            locale: arguments,
        })
    }
}

/// A new cluster starts a new log, which no slot can continue. Yields the names of permanent logical ones.
async fn drop_slots(client: &Client) -> Result<Vec<String>, UpgradeError> {
    let slots =
        "select slot_name::text, slot_type = 'logical' from pg_replication_slots where not temporary order by 1";
    let mut lost = Vec::new();
    for row in client.query(slots, &[]).await? {
        let name: String = row.get(0);
        client.query("select pg_drop_replication_slot($1)", &[&name]).await?;
        if row.get(1) {
            lost.push(name);
        }
    }
    Ok(lost)
}
