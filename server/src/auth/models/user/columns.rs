//! Reading and writing the columns of `auth.users`.

use serde_json::json;
use tokio_postgres::types::{Json as SqlJson, ToSql};
use uuid::Uuid;

use super::User;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;
use crate::auth::models::{Json, changes, identity, merged, now};

/// The columns of a user, in the order [`User::from_row`] reads them. NULL texts are read as ''.
pub const COLUMNS: &str = "u.id, coalesce(u.aud, '') as aud, coalesce(u.role, '') as role, \
    coalesce(u.email, '') as email, u.is_sso_user, u.encrypted_password, u.email_confirmed_at, u.invited_at, \
    coalesce(u.phone, '') as phone, u.phone_confirmed_at, coalesce(u.confirmation_token, '') as confirmation_token, \
    u.confirmation_sent_at, u.confirmed_at, coalesce(u.recovery_token, '') as recovery_token, u.recovery_sent_at, \
    coalesce(u.email_change_token_current, '') as email_change_token_current, \
    coalesce(u.email_change_token_new, '') as email_change_token_new, \
    coalesce(u.email_change, '') as email_change, u.email_change_sent_at, \
    coalesce(u.email_change_confirm_status, 0::smallint) as email_change_confirm_status, \
    coalesce(u.phone_change_token, '') as phone_change_token, coalesce(u.phone_change, '') as phone_change, \
    u.phone_change_sent_at, coalesce(u.reauthentication_token, '') as reauthentication_token, \
    u.reauthentication_sent_at, u.last_sign_in_at, u.raw_app_meta_data, u.raw_user_meta_data, \
    coalesce(u.created_at, now()) as created_at, coalesce(u.updated_at, now()) as updated_at, u.banned_until, \
    u.deleted_at, u.is_anonymous";

/// Identities and factors of `u` as JSON, in any order ([`User::from_row`] sorts them, which costs less than PostgreSQL's
/// sort); they follow [`COLUMNS`].
pub const RELATIONS: &str = "coalesce((select json_agg(i) from auth.identities i where i.user_id = u.id), '[]') \
    as identities, coalesce((select json_agg(f) from auth.mfa_factors f where f.user_id = u.id), '[]') as factors";

/// How many columns [`COLUMNS`] and [`RELATIONS`] name together.
pub const WIDTH: usize = 35;

/// A column that is written after the insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Role,
    Email,
    EncryptedPassword,
    EmailConfirmedAt,
    InvitedAt,
    Phone,
    PhoneConfirmedAt,
    ConfirmationToken,
    ConfirmationSentAt,
    RecoveryToken,
    RecoverySentAt,
    EmailChangeTokenCurrent,
    EmailChangeTokenNew,
    EmailChange,
    EmailChangeSentAt,
    EmailChangeConfirmStatus,
    PhoneChangeToken,
    PhoneChange,
    PhoneChangeSentAt,
    ReauthenticationToken,
    ReauthenticationSentAt,
    LastSignInAt,
    AppMetadata,
    UserMetadata,
    BannedUntil,
    DeletedAt,
    IsAnonymous,
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Email => "email",
            Self::EncryptedPassword => "encrypted_password",
            Self::EmailConfirmedAt => "email_confirmed_at",
            Self::InvitedAt => "invited_at",
            Self::Phone => "phone",
            Self::PhoneConfirmedAt => "phone_confirmed_at",
            Self::ConfirmationToken => "confirmation_token",
            Self::ConfirmationSentAt => "confirmation_sent_at",
            Self::RecoveryToken => "recovery_token",
            Self::RecoverySentAt => "recovery_sent_at",
            Self::EmailChangeTokenCurrent => "email_change_token_current",
            Self::EmailChangeTokenNew => "email_change_token_new",
            Self::EmailChange => "email_change",
            Self::EmailChangeSentAt => "email_change_sent_at",
            Self::EmailChangeConfirmStatus => "email_change_confirm_status",
            Self::PhoneChangeToken => "phone_change_token",
            Self::PhoneChange => "phone_change",
            Self::PhoneChangeSentAt => "phone_change_sent_at",
            Self::ReauthenticationToken => "reauthentication_token",
            Self::ReauthenticationSentAt => "reauthentication_sent_at",
            Self::LastSignInAt => "last_sign_in_at",
            Self::AppMetadata => "raw_app_meta_data",
            Self::UserMetadata => "raw_user_meta_data",
            Self::BannedUntil => "banned_until",
            Self::DeletedAt => "deleted_at",
            Self::IsAnonymous => "is_anonymous",
        }
    }
}

/// A user's row at the time of a sign-in.
pub struct Current {
    pub encrypted_password: Option<String>,
}

impl User {
    fn value(&self, column: Column) -> Box<dyn ToSql + Sync + Send> {
        let null_if_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match column {
            Column::Role => Box::new(self.role.clone()),
            Column::Email => Box::new(null_if_empty(&self.email)),
            Column::EncryptedPassword => Box::new(self.encrypted_password.clone()),
            Column::EmailConfirmedAt => Box::new(self.email_confirmed_at),
            Column::InvitedAt => Box::new(self.invited_at),
            Column::Phone => Box::new(null_if_empty(&self.phone)),
            Column::PhoneConfirmedAt => Box::new(self.phone_confirmed_at),
            Column::ConfirmationToken => Box::new(self.confirmation_token.clone()),
            Column::ConfirmationSentAt => Box::new(self.confirmation_sent_at),
            Column::RecoveryToken => Box::new(self.recovery_token.clone()),
            Column::RecoverySentAt => Box::new(self.recovery_sent_at),
            Column::EmailChangeTokenCurrent => Box::new(self.email_change_token_current.clone()),
            Column::EmailChangeTokenNew => Box::new(self.email_change_token_new.clone()),
            Column::EmailChange => Box::new(self.email_change.clone()),
            Column::EmailChangeSentAt => Box::new(self.email_change_sent_at),
            Column::EmailChangeConfirmStatus => Box::new(self.email_change_confirm_status),
            Column::PhoneChangeToken => Box::new(self.phone_change_token.clone()),
            Column::PhoneChange => Box::new(self.phone_change.clone()),
            Column::PhoneChangeSentAt => Box::new(self.phone_change_sent_at),
            Column::ReauthenticationToken => Box::new(self.reauthentication_token.clone()),
            Column::ReauthenticationSentAt => Box::new(self.reauthentication_sent_at),
            Column::LastSignInAt => Box::new(self.last_sign_in_at),
            Column::AppMetadata => Box::new(self.app_metadata.clone().map(SqlJson)),
            Column::UserMetadata => Box::new(self.user_metadata.clone().map(SqlJson)),
            Column::BannedUntil => Box::new(self.banned_until),
            Column::DeletedAt => Box::new(self.deleted_at),
            Column::IsAnonymous => Box::new(self.is_anonymous),
        }
    }

    /// Writes the named columns, and `updated_at`.
    pub async fn update(&mut self, db: &Db, columns: &[Column]) -> Result<(), Fault> {
        self.updated_at = now();
        let mut sql = "update auth.users set updated_at = $2".to_owned();
        let mut values: Vec<Box<dyn ToSql + Sync + Send>> = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            sql.push_str(&format!(", {} = ${}", column.name(), index + 3));
            values.push(self.value(*column));
        }
        sql.push_str(" where id = $1");
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&self.id, &self.updated_at];
        params.extend(values.iter().map(|value| value.as_ref() as &(dyn ToSql + Sync)));
        db.execute(&sql, &params).await?;
        Ok(())
    }

    /// Notes a sign-in and locks the row. Returns what the row contains now, and updates the ban; `None` if the user was
    /// deleted.
    pub async fn note_sign_in(&mut self, db: &Db) -> Result<Option<Current>, Fault> {
        self.updated_at = now();
        self.last_sign_in_at = Some(now());
        let sql = "update auth.users set updated_at = $2, last_sign_in_at = $3 where id = $1 \
            returning banned_until, encrypted_password, deleted_at is not null";
        let Some(row) = db.query_opt(sql, &[&self.id, &self.updated_at, &self.last_sign_in_at]).await? else {
            return Ok(None);
        };
        self.banned_until = row.try_get(0)?;
        let is_deleted: bool = row.try_get(2)?;
        Ok((!is_deleted).then_some(Current { encrypted_password: row.try_get(1)? }))
    }

    /// Stores the same password, sealed again. Returns whether the stored one was still that of the model.
    pub async fn reseal_password(&mut self, db: &Db, sealed: String) -> Result<bool, Fault> {
        self.updated_at = now();
        let sql = "update auth.users set updated_at = $2, encrypted_password = $3 where id = $1 \
            and encrypted_password = $4";
        let changed = db.execute(sql, &[&self.id, &self.updated_at, &sealed, &self.encrypted_password]).await?;
        if changed == 1 {
            self.encrypted_password = Some(sealed);
        }
        Ok(changed == 1)
    }

    /// Inserts the row as a trigger on `auth.users` expects to see it: no role, nothing confirmed yet.
    pub async fn insert(&mut self, db: &Db) -> Result<(), Fault> {
        let email = (!self.email.is_empty()).then_some(self.email.as_str());
        let phone = (!self.phone.is_empty()).then_some(self.phone.as_str());
        db.execute(
            "insert into auth.users (instance_id, id, aud, role, email, phone, encrypted_password, is_sso_user, \
             is_anonymous, raw_app_meta_data, raw_user_meta_data, confirmation_token, recovery_token, \
             email_change_token_new, email_change, created_at, updated_at) \
             values ($1, $2, $3, '', $4, $5, $6, $7, $8, $9, $10, '', '', '', '', $11, $11)",
            &[
                &Uuid::nil(),
                &self.id,
                &self.aud,
                &email,
                &phone,
                &self.encrypted_password,
                &self.is_sso_user,
                &self.is_anonymous,
                &self.app_metadata.clone().map(SqlJson),
                &self.user_metadata.clone().map(SqlJson),
                &self.created_at,
            ],
        )
        .await?;
        Ok(())
    }

    pub async fn merge_user_metadata(&mut self, db: &Db, updates: &Json) -> Result<(), Fault> {
        if let Some(merged) = self.merge(db, Column::UserMetadata, updates).await? {
            self.user_metadata = Some(merged);
        }
        Ok(())
    }

    pub async fn merge_app_metadata(&mut self, db: &Db, updates: &Json) -> Result<(), Fault> {
        if let Some(merged) = self.merge(db, Column::AppMetadata, updates).await? {
            self.app_metadata = Some(merged);
        }
        Ok(())
    }

    /// Merges into the object in the row at the time of the update, not into the one read before, so that
    /// concurrent changes are kept. A null removes its key. `None` if the row is gone.
    async fn merge(&mut self, db: &Db, column: Column, updates: &Json) -> Result<Option<Json>, Fault> {
        self.updated_at = now();
        let name = column.name();
        let sql =
            format!("update auth.users set updated_at = $2, {name} = {} where id = $1 returning {name}", merged(name));
        let (set, removed) = changes(updates);
        let row = db.query_opt(&sql, &[&self.id, &self.updated_at, &SqlJson(set), &removed]).await?;
        Ok(row.map(|row| row.try_get::<_, SqlJson<Json>>(0)).transpose()?.map(|merged| merged.0))
    }

    /// Derives `app_metadata.provider(s)` from the identities, oldest first.
    pub async fn update_providers(&mut self, db: &Db) -> Result<(), Fault> {
        let providers = identity::providers_of(db, self.id).await?;
        let mut updates = Json::new();
        if let Some(first) = providers.first() {
            updates.insert("provider".to_owned(), json!(first));
        }
        updates.insert("providers".to_owned(), json!(providers));
        self.merge_app_metadata(db, &updates).await
    }
}
