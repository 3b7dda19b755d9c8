//! The ways a user signs in. Reference: supabase/auth `internal/models/identity.go`.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_postgres::types::Json as SqlJson;
use uuid::Uuid;

use super::{Json, changes, merged, now};
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// An identity as answers show it. Note the swap: there `id` is the provider's id of the user, and
/// `identity_id` is the row's key.
#[derive(Clone, Debug)]
pub struct Identity {
    pub id: Uuid,
    pub provider_id: String,
    pub user_id: Uuid,
    pub identity_data: Option<Json>,
    pub provider: String,
    pub last_sign_in_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The address in `identity_data`, in lower case.
    pub email: String,
}

#[derive(Serialize)]
struct Wire<'a> {
    identity_id: Uuid,
    id: &'a str,
    user_id: Uuid,
    #[serde(skip_serializing_if = "is_blank")]
    identity_data: &'a Option<Json>,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sign_in_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "str::is_empty")]
    email: &'a str,
}

fn is_blank(data: &&Option<Json>) -> bool {
    data.as_ref().is_none_or(Json::is_empty)
}

impl Serialize for Identity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire {
            identity_id: self.id,
            id: &self.provider_id,
            user_id: self.user_id,
            identity_data: &self.identity_data,
            provider: &self.provider,
            last_sign_in_at: self.last_sign_in_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
            email: &self.email,
        }
        .serialize(serializer)
    }
}

/// The row as PostgreSQL writes it in JSON.
#[derive(Deserialize)]
struct Record {
    id: Uuid,
    provider_id: String,
    user_id: Uuid,
    identity_data: Option<Json>,
    provider: String,
    last_sign_in_at: Option<DateTime<Utc>>,
    created_at: Option<DateTime<Utc>>,
    updated_at: Option<DateTime<Utc>>,
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = Record::deserialize(deserializer)?;
        let created_at = record.created_at.unwrap_or_default();
        // The generated column folds other alphabets, too; addresses are compared with ASCII folding only.
        let email = record.identity_data.as_ref().and_then(|data| data.get("email")?.as_str());
        let email = email.map(str::to_ascii_lowercase);
        Ok(Self {
            id: record.id,
            provider_id: record.provider_id,
            user_id: record.user_id,
            identity_data: record.identity_data,
            provider: record.provider,
            last_sign_in_at: record.last_sign_in_at,
            created_at,
            updated_at: record.updated_at.unwrap_or(created_at),
            email: email.unwrap_or_default(),
        })
    }
}

impl Identity {
    /// Only a true `email_verified` counts; a missing one does not.
    pub fn is_email_verified(&self) -> bool {
        self.identity_data.as_ref().and_then(|data| data.get("email_verified")) == Some(&Value::Bool(true))
    }

    pub async fn merge_data(&mut self, db: &Db, updates: &Json) -> Result<(), Fault> {
        self.updated_at = now();
        let sql = format!(
            "update auth.identities set updated_at = $2, identity_data = {} where id = $1 returning identity_data",
            merged("identity_data")
        );
        let (set, removed) = changes(updates);
        if let Some(row) = db.query_opt(&sql, &[&self.id, &self.updated_at, &SqlJson(set), &removed]).await? {
            self.identity_data = Some(row.try_get::<_, SqlJson<Json>>(0)?.0);
        }
        Ok(())
    }
}

/// The claims every identity of ours starts with; empty addresses are left out.
pub fn claims(sub: Uuid, email: &str, phone: &str) -> Json {
    let mut claims = Json::new();
    claims.insert("sub".to_owned(), json!(sub));
    if !email.is_empty() {
        claims.insert("email".to_owned(), json!(email));
    }
    if !phone.is_empty() {
        claims.insert("phone".to_owned(), json!(phone));
    }
    claims.insert("email_verified".to_owned(), json!(false));
    claims.insert("phone_verified".to_owned(), json!(false));
    claims
}

/// Inserts an identity; its provider id is `data.sub`.
pub async fn create(db: &Db, user_id: Uuid, provider: &str, data: Json) -> Result<Identity, Fault> {
    create_as(db, Uuid::new_v4(), user_id, provider, data).await
}

/// Like [`create`], with a given id: one that another service was told before the transaction was repeated.
pub async fn create_as(db: &Db, id: Uuid, user_id: Uuid, provider: &str, mut data: Json) -> Result<Identity, Fault> {
    let now = now();
    let provider_id = match data.get("sub") {
        Some(Value::String(sub)) => sub.clone(),
        _ => return Err(Fault::new("an identity needs the provider's id of the user")),
    };
    let email = match data.get("email") {
        Some(Value::String(email)) => email.to_ascii_lowercase(),
        _ => String::new(),
    };
    if !email.is_empty() {
        data.insert("email".to_owned(), json!(email));
    }
    let identity = Identity {
        id,
        provider_id,
        user_id,
        identity_data: Some(data),
        provider: provider.to_owned(),
        last_sign_in_at: Some(now),
        created_at: now,
        updated_at: now,
        email,
    };
    db.execute(
        "insert into auth.identities (id, provider_id, user_id, identity_data, provider, last_sign_in_at, \
         created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $6, $6)",
        &[
            &identity.id,
            &identity.provider_id,
            &identity.user_id,
            &identity.identity_data.clone().map(SqlJson),
            &identity.provider,
            &now,
        ],
    )
    .await?;
    Ok(identity)
}

/// The identity of a provider's person. Earlier versions and upstream store a provider as the client spelled it (`GitHub`);
/// issuers are compared as they are.
pub async fn find(db: &Db, provider_id: &str, provider: &str) -> Result<Option<Identity>, Fault> {
    let row = db
        .query_opt(
            "select to_json(i) from auth.identities i where i.provider_id = $1 and (i.provider = $2 \
             or (lower(i.provider) = $2 and i.provider not like '%://%')) order by i.provider <> $2 limit 1",
            &[&provider_id, &provider],
        )
        .await?;
    Ok(match row {
        Some(row) => Some(row.try_get::<_, SqlJson<Identity>>(0)?.0),
        None => None,
    })
}

/// All identities of a user, oldest first.
pub async fn of_user(db: &Db, user_id: Uuid) -> Result<Vec<Identity>, Fault> {
    let rows = db
        .query("select to_json(i) from auth.identities i where i.user_id = $1 order by i.created_at, i.id", &[&user_id])
        .await?;
    rows.iter().map(|row| Ok(row.try_get::<_, SqlJson<Identity>>(0)?.0)).collect()
}

/// The distinct providers of a user's identities, oldest first.
pub async fn providers_of(db: &Db, user_id: Uuid) -> Result<Vec<String>, Fault> {
    let rows = db
        .query(
            "select provider from auth.identities where user_id = $1 group by provider order by min(created_at), provider",
            &[&user_id],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub async fn delete(db: &Db, id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.identities where id = $1", &[&id]).await?;
    Ok(())
}

/// All identities whose provider has verified one of these addresses. Anybody can claim an unverified address.
pub async fn verified_by_emails(db: &Db, emails: &[String]) -> Result<Vec<Identity>, Fault> {
    let rows = db
        .query(
            "select to_json(i) from unnest($1::text[]) as a (email) join auth.identities i on i.email = lower(a.email) \
             and lower((i.identity_data ->> 'email') collate \"C\") = lower(a.email collate \"C\") \
             where i.identity_data -> 'email_verified' = 'true'",
            &[&emails],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get::<_, SqlJson<Identity>>(0)?.0)).collect()
}

impl Identity {
    /// Replaces the provider's data about the user.
    pub async fn replace_data(&mut self, db: &Db, data: Json) -> Result<(), Fault> {
        self.email = data.get("email").and_then(Value::as_str).unwrap_or("").to_ascii_lowercase();
        self.identity_data = Some(data);
        self.updated_at = now();
        db.execute(
            "update auth.identities set identity_data = $2, updated_at = $3 where id = $1",
            &[&self.id, &self.identity_data.clone().map(SqlJson), &self.updated_at],
        )
        .await?;
        Ok(())
    }
}
