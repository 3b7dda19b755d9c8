//! Clients of the OAuth server, their authorizations and users' consents. Reference: supabase/auth
//! `internal/models/oauth_client.go`, `oauth_authorization.go`, `oauth_consent.go`.

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use uuid::Uuid;

use super::now;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// A registered client that was not deleted.
#[derive(Clone, Debug)]
pub struct OAuthClient {
    pub id: Uuid,
    /// Base64url of the secret's SHA-256; `None` for public clients.
    pub client_secret_hash: Option<String>,
    /// `dynamic` or `manual`.
    pub registration_type: String,
    /// `public` or `confidential`.
    pub client_type: String,
    pub token_endpoint_auth_method: String,
    pub redirect_uris: Vec<String>,
    pub grant_types: Vec<String>,
    pub client_name: Option<String>,
    pub client_uri: Option<String>,
    pub logo_uri: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

const CLIENT: &str = "id, client_secret_hash, registration_type::text, client_type::text, token_endpoint_auth_method, \
    redirect_uris, grant_types, client_name, client_uri, logo_uri, created_at, updated_at";

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

impl OAuthClient {
    fn from_row(row: &Row) -> Result<Self, Fault> {
        let (uris, grants): (String, String) = (row.try_get(5)?, row.try_get(6)?);
        Ok(Self {
            id: row.try_get(0)?,
            client_secret_hash: row.try_get(1)?,
            registration_type: row.try_get(2)?,
            client_type: row.try_get(3)?,
            token_endpoint_auth_method: row.try_get(4)?,
            redirect_uris: list(&uris),
            grant_types: list(&grants),
            client_name: row.try_get(7)?,
            client_uri: row.try_get(8)?,
            logo_uri: row.try_get(9)?,
            created_at: row.try_get(10)?,
            updated_at: row.try_get(11)?,
        })
    }

    pub fn is_confidential(&self) -> bool {
        self.client_type == "confidential"
    }

    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "insert into auth.oauth_clients (id, client_secret_hash, registration_type, client_type, \
             token_endpoint_auth_method, redirect_uris, grant_types, client_name, client_uri, logo_uri, created_at, \
             updated_at) values ($1, $2, $3::text::auth.oauth_registration_type, $4::text::auth.oauth_client_type, \
             $5, $6, $7, $8, $9, $10, $11, $11)",
            &[
                &self.id,
                &self.client_secret_hash,
                &self.registration_type,
                &self.client_type,
                &self.token_endpoint_auth_method,
                &self.redirect_uris.join(","),
                &self.grant_types.join(","),
                &self.client_name,
                &self.client_uri,
                &self.logo_uri,
                &self.created_at,
            ],
        )
        .await?;
        Ok(())
    }

    /// Writes what may change.
    pub async fn update(&mut self, db: &Db) -> Result<(), Fault> {
        self.updated_at = now();
        db.execute(
            "update auth.oauth_clients set client_secret_hash = $2, token_endpoint_auth_method = $3, \
             redirect_uris = $4, grant_types = $5, client_name = $6, client_uri = $7, logo_uri = $8, updated_at = $9 \
             where id = $1",
            &[
                &self.id,
                &self.client_secret_hash,
                &self.token_endpoint_auth_method,
                &self.redirect_uris.join(","),
                &self.grant_types.join(","),
                &self.client_name,
                &self.client_uri,
                &self.logo_uri,
                &self.updated_at,
            ],
        )
        .await?;
        Ok(())
    }

    /// Marks it as deleted.
    pub async fn delete(&self, db: &Db) -> Result<(), Fault> {
        db.execute("update auth.oauth_clients set deleted_at = $2, updated_at = $2 where id = $1", &[&self.id, &now()])
            .await?;
        Ok(())
    }
}

pub async fn find(db: &Db, id: Uuid) -> Result<Option<OAuthClient>, Fault> {
    let sql = format!("select {CLIENT} from auth.oauth_clients where id = $1 and deleted_at is null");
    db.query_opt(&sql, &[&id]).await?.as_ref().map(OAuthClient::from_row).transpose()
}

/// All clients, newest first.
pub async fn all(db: &Db) -> Result<Vec<OAuthClient>, Fault> {
    let sql = format!("select {CLIENT} from auth.oauth_clients where deleted_at is null order by created_at desc");
    db.query(&sql, &[]).await?.iter().map(OAuthClient::from_row).collect()
}

/// A client's request to act for a user.
#[derive(Clone, Debug)]
pub struct Authorization {
    pub id: Uuid,
    /// The id used by the consent page.
    pub authorization_id: String,
    pub client_id: Uuid,
    pub user_id: Option<Uuid>,
    pub redirect_uri: String,
    pub scope: String,
    pub state: Option<String>,
    pub resource: Option<String>,
    pub code_challenge: Option<String>,
    /// `s256` or `plain`.
    pub code_challenge_method: Option<String>,
    pub nonce: Option<String>,
    /// `pending`, `approved`, `denied` or `expired`.
    pub status: String,
    pub authorization_code: Option<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

const AUTHORIZATION: &str = "id, authorization_id, client_id, user_id, redirect_uri, scope, state, resource, \
    code_challenge, code_challenge_method::text, nonce, status::text, authorization_code, created_at, expires_at";

impl Authorization {
    fn from_row(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: row.try_get(0)?,
            authorization_id: row.try_get(1)?,
            client_id: row.try_get(2)?,
            user_id: row.try_get(3)?,
            redirect_uri: row.try_get(4)?,
            scope: row.try_get(5)?,
            state: row.try_get(6)?,
            resource: row.try_get(7)?,
            code_challenge: row.try_get(8)?,
            code_challenge_method: row.try_get(9)?,
            nonce: row.try_get(10)?,
            status: row.try_get(11)?,
            authorization_code: row.try_get(12)?,
            created_at: row.try_get(13)?,
            expires_at: row.try_get(14)?,
        })
    }

    pub fn is_expired(&self) -> bool {
        Utc::now() > self.expires_at
    }

    pub fn is_pending(&self) -> bool {
        self.status == "pending"
    }

    pub fn scopes(&self) -> Vec<&str> {
        self.scope.split_whitespace().collect()
    }

    pub async fn insert(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "insert into auth.oauth_authorizations (id, authorization_id, client_id, redirect_uri, scope, state, \
             resource, code_challenge, code_challenge_method, nonce, response_type, status, created_at, expires_at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::auth.code_challenge_method, $10, 'code', 'pending', \
             $11, $12)",
            &[
                &self.id,
                &self.authorization_id,
                &self.client_id,
                &self.redirect_uri,
                &self.scope,
                &self.state,
                &self.resource,
                &self.code_challenge,
                &self.code_challenge_method,
                &self.nonce,
                &self.created_at,
                &self.expires_at,
            ],
        )
        .await?;
        Ok(())
    }

    /// Assigns it to its first viewer.
    pub async fn set_user(&mut self, db: &Db, user_id: Uuid) -> Result<(), Fault> {
        self.user_id = Some(user_id);
        db.execute("update auth.oauth_authorizations set user_id = $2 where id = $1", &[&self.id, &user_id]).await?;
        Ok(())
    }

    /// Approves it and makes its code.
    pub async fn approve(&mut self, db: &Db) -> Result<(), Fault> {
        let code = Uuid::new_v4().to_string();
        db.execute(
            "update auth.oauth_authorizations set status = 'approved', approved_at = $2, authorization_code = $3 \
             where id = $1",
            &[&self.id, &now(), &code],
        )
        .await?;
        self.status = "approved".to_owned();
        self.authorization_code = Some(code);
        Ok(())
    }

    /// Ends it as `denied` or `expired`.
    pub async fn close(&mut self, db: &Db, status: &'static str) -> Result<(), Fault> {
        self.status = status.to_owned();
        db.execute(
            "update auth.oauth_authorizations set status = $2::text::auth.oauth_authorization_status where id = $1",
            &[&self.id, &status],
        )
        .await?;
        Ok(())
    }

    /// Spends it; whether it was still there.
    pub async fn delete(&self, db: &Db) -> Result<bool, Fault> {
        Ok(db.execute("delete from auth.oauth_authorizations where id = $1", &[&self.id]).await? == 1)
    }
}

/// The authorization of that public id, locked until the transaction ends.
pub async fn lock_authorization(db: &Db, authorization_id: &str) -> Result<Option<Authorization>, Fault> {
    let sql = format!("select {AUTHORIZATION} from auth.oauth_authorizations where authorization_id = $1 for update");
    db.query_opt(&sql, &[&authorization_id]).await?.as_ref().map(Authorization::from_row).transpose()
}

/// The authorization that a code was made for.
pub async fn find_by_code(db: &Db, code: &str) -> Result<Option<Authorization>, Fault> {
    let sql = format!("select {AUTHORIZATION} from auth.oauth_authorizations where authorization_code = $1 for update");
    db.query_opt(&sql, &[&code]).await?.as_ref().map(Authorization::from_row).transpose()
}

/// The user that a code was made for, if it is still there.
pub async fn owner_of_code(db: &Db, code: &str) -> Result<Option<Uuid>, Fault> {
    let sql = "select user_id from auth.oauth_authorizations where authorization_code = $1";
    Ok(db.query_opt(sql, &[&code]).await?.map(|row| row.try_get(0)).transpose()?.flatten())
}

/// Takes back the codes that were made for a user and not exchanged yet: those of one client, or all.
pub async fn delete_codes(db: &Db, user_id: Uuid, client_id: Option<Uuid>) -> Result<(), Fault> {
    db.execute(
        "delete from auth.oauth_authorizations where user_id = $1 and ($2::uuid is null or client_id = $2) \
         and authorization_code is not null",
        &[&user_id, &client_id],
    )
    .await?;
    Ok(())
}

/// Records that a code opened a session.
pub async fn note_spent(db: &Db, code: &str, client_id: Uuid, session_id: Uuid) -> Result<(), Fault> {
    db.execute(
        "insert into auth.oauth_spent_codes (code_hash, client_id, session_id) values (sha256(convert_to($1, 'UTF8')), $2, $3) \
         on conflict do nothing",
        &[&code, &client_id, &session_id],
    )
    .await?;
    Ok(())
}

/// Ends the session that a code opened for a client, if it was spent already.
pub async fn end_spent(db: &Db, code: &str, client_id: Uuid) -> Result<(), Fault> {
    db.execute(
        "delete from auth.sessions where id in (select session_id from auth.oauth_spent_codes \
         where code_hash = sha256(convert_to($1, 'UTF8')) and client_id = $2)",
        &[&code, &client_id],
    )
    .await?;
    Ok(())
}

/// What a user granted a client.
#[derive(Clone, Debug)]
pub struct Consent {
    pub id: Uuid,
    pub client_id: Uuid,
    pub scopes: Vec<String>,
    pub granted_at: DateTime<Utc>,
}

const CONSENT: &str = "id, client_id, scopes, granted_at";

impl Consent {
    fn from_row(row: &Row) -> Result<Self, Fault> {
        let scopes: String = row.try_get(2)?;
        Ok(Self {
            id: row.try_get(0)?,
            client_id: row.try_get(1)?,
            scopes: scopes.split_whitespace().map(str::to_owned).collect(),
            granted_at: row.try_get(3)?,
        })
    }

    pub async fn revoke(&self, db: &Db) -> Result<(), Fault> {
        db.execute(
            "update auth.oauth_consents set revoked_at = greatest($2, granted_at) where id = $1",
            &[&self.id, &now()],
        )
        .await?;
        Ok(())
    }
}

/// The valid consents of a user, newest first.
pub async fn consents_of(db: &Db, user_id: Uuid) -> Result<Vec<Consent>, Fault> {
    let sql = format!(
        "select {CONSENT} from auth.oauth_consents where user_id = $1 and revoked_at is null order by granted_at desc"
    );
    db.query(&sql, &[&user_id]).await?.iter().map(Consent::from_row).collect()
}

pub async fn find_consent(db: &Db, user_id: Uuid, client_id: Uuid) -> Result<Option<Consent>, Fault> {
    let sql = format!(
        "select {CONSENT} from auth.oauth_consents where user_id = $1 and client_id = $2 and revoked_at is null"
    );
    db.query_opt(&sql, &[&user_id, &client_id]).await?.as_ref().map(Consent::from_row).transpose()
}

/// Stores a user's grant to a client, replacing an earlier one.
pub async fn grant(db: &Db, user_id: Uuid, client_id: Uuid, scopes: &str) -> Result<(), Fault> {
    db.execute(
        "insert into auth.oauth_consents (id, user_id, client_id, scopes, granted_at) values ($1, $2, $3, $4, $5) \
         on conflict (user_id, client_id) do update set scopes = excluded.scopes, granted_at = excluded.granted_at, \
         revoked_at = null",
        &[&Uuid::new_v4(), &user_id, &client_id, &scopes, &now()],
    )
    .await?;
    Ok(())
}

/// Ends the sessions a client holds for a user.
pub async fn end_sessions(db: &Db, user_id: Uuid, client_id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.sessions where user_id = $1 and oauth_client_id = $2", &[&user_id, &client_id])
        .await?;
    Ok(())
}
