//! Identity providers of single sign-on, with their domains and SAML metadata. Reference:
//! supabase/auth `internal/models/sso.go`.

use chrono::{DateTime, Utc};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Json, now};
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// A provider as the wire shows it.
#[derive(Clone, Debug)]
pub struct SsoProvider {
    pub id: Uuid,
    /// A name given by administrators; unique ignoring case.
    pub resource_id: Option<String>,
    pub disabled: Option<bool>,
    pub saml: SamlProvider,
    /// Addresses in these domains sign in there.
    pub domains: Vec<String>,
    pub created_at: Option<DateTime<Utc>>,
    pub updated_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, Default)]
pub struct SamlProvider {
    pub entity_id: String,
    pub metadata_xml: String,
    pub metadata_url: Option<String>,
    /// `{}`, or `{"keys": {…}}`.
    pub attribute_mapping: Json,
    pub name_id_format: Option<String>,
}

impl Serialize for SsoProvider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut saml = json!({ "entity_id": self.saml.entity_id, "attribute_mapping": self.saml.attribute_mapping });
        let xml = Some(&self.saml.metadata_xml).filter(|xml| !xml.is_empty());
        let (url, format) = (self.saml.metadata_url.as_ref(), self.saml.name_id_format.as_ref());
        for (name, value) in [("metadata_xml", xml), ("metadata_url", url), ("name_id_format", format)] {
            if let Some(value) = value {
                saml[name] = json!(value);
            }
        }
        let domains: Vec<Value> = self.domains.iter().map(|domain| json!({ "domain": domain })).collect();
        let mut shown = serializer.serialize_struct("SsoProvider", 7)?;
        shown.serialize_field("id", &self.id)?;
        match &self.resource_id {
            Some(resource_id) => shown.serialize_field("resource_id", resource_id)?,
            None => shown.skip_field("resource_id")?,
        }
        shown.serialize_field("disabled", &self.disabled)?;
        shown.serialize_field("saml", &saml)?;
        shown.serialize_field("domains", &domains)?;
        shown.serialize_field("created_at", &self.created_at)?;
        shown.serialize_field("updated_at", &self.updated_at)?;
        shown.end()
    }
}

const SELECT: &str = "select p.id, p.resource_id, p.disabled, coalesce(s.entity_id, ''), coalesce(s.metadata_xml, ''), \
    s.metadata_url, coalesce(s.attribute_mapping, '{}'), s.name_id_format, \
    array(select d.domain from auth.sso_domains d where d.sso_provider_id = p.id order by d.created_at, d.domain), \
    p.created_at, p.updated_at \
    from auth.sso_providers p left join auth.saml_providers s on s.sso_provider_id = p.id";

impl SsoProvider {
    /// A new one, not stored yet.
    pub fn new(saml: SamlProvider, resource_id: Option<String>, disabled: Option<bool>, domains: Vec<String>) -> Self {
        let now = Some(now());
        Self { id: Uuid::new_v4(), resource_id, disabled, saml, domains, created_at: now, updated_at: now }
    }

    fn from_row(row: &Row) -> Result<Self, Fault> {
        let mapping: Value = row.try_get(6)?;
        Ok(Self {
            id: row.try_get(0)?,
            resource_id: row.try_get(1)?,
            disabled: row.try_get(2)?,
            saml: SamlProvider {
                entity_id: row.try_get(3)?,
                metadata_xml: row.try_get(4)?,
                metadata_url: row.try_get(5)?,
                attribute_mapping: mapping.as_object().cloned().unwrap_or_default(),
                name_id_format: row.try_get(7)?,
            },
            domains: row.try_get(8)?,
            created_at: row.try_get(9)?,
            updated_at: row.try_get(10)?,
        })
    }

    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "insert into auth.sso_providers (id, resource_id, disabled, created_at, updated_at) \
             values ($1, $2, $3, $4, $4)",
            &[&self.id, &self.resource_id, &self.disabled, &self.created_at],
        )
        .await?;
        let saml = &self.saml;
        db.execute(
            "insert into auth.saml_providers (id, sso_provider_id, entity_id, metadata_xml, metadata_url, \
             attribute_mapping, name_id_format, created_at, updated_at) \
             values (gen_random_uuid(), $1, $2, $3, $4, $5, $6, $7, $7)",
            &[
                &self.id,
                &saml.entity_id,
                &saml.metadata_xml,
                &saml.metadata_url,
                &Value::Object(saml.attribute_mapping.clone()),
                &saml.name_id_format,
                &self.created_at,
            ],
        )
        .await?;
        self.insert_domains(db, &self.domains).await
    }

    /// In order, because answers list them by creation.
    async fn insert_domains(&self, db: &Db, domains: &[String]) -> Result<(), Fault> {
        db.execute(
            "insert into auth.sso_domains (id, sso_provider_id, domain, created_at, updated_at) \
             select gen_random_uuid(), $1, domain, $3::timestamptz + position * interval '1 microsecond', $3 \
             from unnest($2::text[]) with ordinality as told (domain, position)",
            &[&self.id, &domains, &now()],
        )
        .await?;
        Ok(())
    }

    /// Writes everything, deletes removed domains and inserts new ones.
    pub async fn update(&mut self, db: &Db) -> Result<(), Fault> {
        let now = now();
        db.execute(
            "update auth.sso_providers set resource_id = $2, disabled = $3, updated_at = $4 where id = $1",
            &[&self.id, &self.resource_id, &self.disabled, &now],
        )
        .await?;
        let saml = &self.saml;
        db.execute(
            "update auth.saml_providers set metadata_xml = $2, metadata_url = $3, attribute_mapping = $4, \
             name_id_format = $5, updated_at = $6 where sso_provider_id = $1",
            &[
                &self.id,
                &saml.metadata_xml,
                &saml.metadata_url,
                &Value::Object(saml.attribute_mapping.clone()),
                &saml.name_id_format,
                &now,
            ],
        )
        .await?;
        db.execute(
            "delete from auth.sso_domains where sso_provider_id = $1 and domain <> all ($2)",
            &[&self.id, &self.domains],
        )
        .await?;
        let kept = db.query("select domain from auth.sso_domains where sso_provider_id = $1", &[&self.id]).await?;
        let kept = kept.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
        let new: Vec<String> = self.domains.iter().filter(|domain| !kept.contains(domain)).cloned().collect();
        self.insert_domains(db, &new).await?;
        self.updated_at = Some(now);
        Ok(())
    }

    /// Its domains and metadata go with it.
    pub async fn delete(&self, db: &Db) -> Result<(), Fault> {
        db.execute("delete from auth.sso_providers where id = $1", &[&self.id]).await?;
        Ok(())
    }
}

/// How a provider is looked up.
#[derive(Clone, Debug)]
pub enum Key {
    Id(Uuid),
    ResourceId(String),
}

async fn find_by(db: &Db, key: &Key, lock: &str) -> Result<Option<SsoProvider>, Fault> {
    let (column, param): (&str, crate::auth::models::store::Param<'_>) = match key {
        Key::Id(id) => ("id", id),
        Key::ResourceId(id) => ("resource_id", id),
    };
    let sql = format!("{SELECT} where p.{column} = $1{lock}");
    db.query_opt(&sql, &[param]).await?.as_ref().map(SsoProvider::from_row).transpose()
}

pub async fn find(db: &Db, key: &Key) -> Result<Option<SsoProvider>, Fault> {
    find_by(db, key, "").await
}

/// The same, with its row locked until the transaction ends.
pub async fn find_to_change(db: &Db, key: &Key) -> Result<Option<SsoProvider>, Fault> {
    find_by(db, key, " for update of p").await
}

/// All that match the filters, oldest first; without the metadata, which is long.
pub async fn all(db: &Db, resource_id: &str, prefix: &str) -> Result<Vec<SsoProvider>, Fault> {
    let sql = format!(
        "{SELECT} where ($1 = '' or p.resource_id = $1) and ($1 <> '' or starts_with(coalesce(p.resource_id, ''), $2)) \
         order by p.created_at, p.id"
    );
    let rows = db.query(&sql, &[&resource_id, &prefix]).await?;
    let providers = rows.iter().map(SsoProvider::from_row).collect::<Result<Vec<_>, _>>()?;
    Ok(providers
        .into_iter()
        .map(|mut provider| {
            provider.saml.metadata_xml.clear();
            provider
        })
        .collect())
}

/// Whether a provider of this entity exists.
pub async fn has_entity(db: &Db, entity_id: &str) -> Result<bool, Fault> {
    Ok(db.query_opt("select 1 from auth.saml_providers where entity_id = $1", &[&entity_id]).await?.is_some())
}

/// The provider of a domain, ignoring case.
pub async fn owner_of_domain(db: &Db, domain: &str) -> Result<Option<Uuid>, Fault> {
    let sql = "select sso_provider_id from auth.sso_domains where lower(domain) = lower($1)";
    Ok(db.query_opt(sql, &[&domain]).await?.map(|row| row.try_get(0)).transpose()?)
}
