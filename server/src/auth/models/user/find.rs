//! Finding users: by id, address, number or token.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::User;
use super::columns::{COLUMNS, RELATIONS, WIDTH};
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::session::{self, Session};
use crate::auth::models::store::{Db, Param};
use crate::auth::models::{Json, identity};

/// Rows without our `instance_id` are ignored. The condition is written so that it cannot use the index on the
/// instance, which matches all users: without statistics, the planner would prefer it to the primary key.
pub const OF_INSTANCE: &str = "(u.instance_id = '00000000-0000-0000-0000-000000000000') is true";

async fn find(db: &Db, condition: &str, params: &[Param<'_>]) -> Result<Option<User>, Fault> {
    let sql = format!("select {COLUMNS}, {RELATIONS} from auth.users u where {OF_INSTANCE} and {condition} limit 1");
    db.query_opt(&sql, params).await?.map(|row| User::from_row(&row, 0)).transpose()
}

pub async fn find_by_id(db: &Db, id: Uuid) -> Result<Option<User>, Fault> {
    find(db, "u.id = $1", &[&id]).await
}

impl User {
    /// Reads the row again, relations included: triggers and generated columns may have changed it.
    pub async fn reload(&mut self, db: &Db) -> Result<(), Fault> {
        if let Some(fresh) = find_by_id(db, self.id).await? {
            *self = fresh;
        }
        Ok(())
    }
}

/// A bearer token's user and session (if it exists), in one statement.
pub async fn find_with_session(db: &Db, id: Uuid, session_id: Uuid) -> Result<Option<(User, Option<Session>)>, Fault> {
    let sql = format!(
        "select {COLUMNS}, {RELATIONS}, {} from auth.users u left join auth.sessions s on s.id = $2 \
         where u.id = $1 and {OF_INSTANCE}",
        session::COLUMNS,
    );
    let Some(row) = db.query_opt(&sql, &[&id, &session_id]).await? else { return Ok(None) };
    let session: Option<Uuid> = row.try_get(WIDTH)?;
    let session = session.map(|_| Session::from_row(&row, WIDTH)).transpose()?;
    Ok(Some((User::from_row(&row, 0)?, session)))
}

/// A user, and whether the session exists. Cheaper than [`find_with_session`].
pub async fn find_with_presence(db: &Db, id: Uuid, session_id: Option<Uuid>) -> Result<Option<(User, bool)>, Fault> {
    let sql = format!(
        "select {COLUMNS}, {RELATIONS}, exists (select from auth.sessions s where s.id = $2) from auth.users u \
         where u.id = $1 and {OF_INSTANCE}"
    );
    let Some(row) = db.query_opt(&sql, &[&id, &session_id]).await? else { return Ok(None) };
    Ok(Some((User::from_row(&row, 0)?, row.try_get(WIDTH)?)))
}

/// Case does not matter. Users of single sign-on are not found by address.
pub async fn find_by_email(db: &Db, email: &str, aud: &str) -> Result<Option<User>, Fault> {
    // Uses the index on instance and address. The index also folds other alphabets, even to ASCII letters (the Kelvin
    // sign), which is not the same address, so the address is compared again.
    let condition = "u.instance_id = '00000000-0000-0000-0000-000000000000' and lower(u.email) = lower($1) \
        and lower(u.email collate \"C\") = lower($1 collate \"C\") and u.aud = $2 and u.is_sso_user = false";
    find(db, condition, &[&email, &aud]).await
}

pub async fn find_by_phone(db: &Db, phone: &str, aud: &str) -> Result<Option<User>, Fault> {
    find(db, "u.phone = $1 and u.aud = $2 and u.is_sso_user = false", &[&phone, &aud]).await
}

/// The user who changes to this number: anybody can ask for that, so it is the one with a token among `hashes`, or else
/// the one who asked last.
pub async fn find_by_phone_change(db: &Db, phone: &str, aud: &str, hashes: &[&str]) -> Result<Option<User>, Fault> {
    let condition = "u.phone_change = $1 and u.aud = $2 and u.is_sso_user = false \
        order by coalesce(u.phone_change_token, '') = any($3) desc, u.phone_change_sent_at desc nulls last";
    find(db, condition, &[&phone, &aud, &hashes]).await
}

/// The user of a one-time token of one of `purposes`.
pub async fn find_by_token(db: &Db, hash: &str, purposes: &[Purpose]) -> Result<Option<User>, Fault> {
    match owner_of_token(db, hash, purposes).await? {
        Some(id) => find_by_id(db, id).await,
        None => Ok(None),
    }
}

/// Like [`find_by_token`], with the user locked until the transaction ends: of several requests with the same token,
/// the first wins and the others find it spent. As everywhere, the user is locked before the token, to avoid deadlocks.
pub async fn lock_by_token(db: &Db, hash: &str, purposes: &[Purpose]) -> Result<Option<User>, Fault> {
    let Some(id) = owner_of_token(db, hash, purposes).await? else { return Ok(None) };
    lock(db, id).await?;
    let (user, owner) = futures_util::try_join!(find_by_id(db, id), owner_of_token(db, hash, purposes))?;
    Ok(user.filter(|user| owner == Some(user.id)))
}

async fn owner_of_token(db: &Db, hash: &str, purposes: &[Purpose]) -> Result<Option<Uuid>, Fault> {
    let names: Vec<&str> = purposes.iter().map(|purpose| purpose.as_str()).collect();
    // Only the newest sign-up attempt is among the one-time tokens.
    let sql = "select user_id from auth.one_time_tokens where token_hash = $1 and token_type::text = any($2) \
        union all \
        select user_id from auth.pending_confirmations where token_hash = $1 and 'confirmation_token' = any($2) limit 1";
    Ok(db.query_opt(sql, &[&hash, &names]).await?.map(|row| row.try_get(0)).transpose()?)
}

/// Locks the user's row until the transaction ends. Always taken before other rows of the user, so that requests cannot
/// deadlock.
pub async fn lock(db: &Db, id: Uuid) -> Result<(), Fault> {
    db.execute("select 1 from auth.users where id = $1 for update", &[&id]).await?;
    Ok(())
}

/// When the user was last sent a message of this purpose; no other transaction sends one until this one ends.
///
/// Foreign keys to the user stay possible, so that two transactions with one cannot deadlock here.
pub async fn lock_sent_at(db: &Db, id: Uuid, purpose: Purpose) -> Result<Option<DateTime<Utc>>, Fault> {
    // The column's name is one of `sent_at`'s.
    let sql = format!("select {} from auth.users where id = $1 for no key update", purpose.sent_at());
    Ok(db.query_opt(&sql, &[&id]).await?.map(|row| row.try_get(0)).transpose()?.flatten())
}

/// If the transaction was repeated after a call to another service, the current user, locked; otherwise `user` as read.
pub async fn as_of_now(db: &Db, user: &User) -> AuthResult<User> {
    if !db.is_repeated() {
        return Ok(user.clone());
    }
    lock(db, user.id).await?;
    find_by_id(db, user.id).await?.ok_or_else(|| AuthError::not_found(Code::UserNotFound, "User not found"))
}

/// The user, read after locking its row; `None` if it is gone.
pub async fn find_and_lock(db: &Db, id: Uuid) -> Result<Option<User>, Fault> {
    lock(db, id).await?;
    find_by_id(db, id).await
}

/// The user that already has this address, directly or through a verified identity of the default linking domain;
/// `current` is ignored.
pub async fn find_duplicate_email(
    db: &Db,
    email: &str,
    aud: &str,
    current: Option<Uuid>,
    own_domains: &[&str],
) -> AuthResult<Option<User>> {
    let row = db
        .query_opt(
            "select i.user_id from auth.identities i join auth.users u on u.id = i.user_id \
             where i.email = lower($1) and lower((i.identity_data ->> 'email') collate \"C\") = lower($1 collate \"C\") \
             and i.identity_data -> 'email_verified' = 'true' and u.aud = $2 and u.instance_id = $3 \
             and i.provider not like 'sso:%' and lower(i.provider) <> all($4) and ($5::uuid is null or i.user_id <> $5) limit 1",
            &[&email, &aud, &Uuid::nil(), &own_domains, &current],
        )
        .await
        .or_internal("Database error finding user")?;
    if let Some(row) = row {
        return Ok(find_by_id(db, row.try_get(0)?).await?);
    }
    Ok(find_by_email(db, email, aud).await?)
}

/// Updates `identity_data` of the user's identity at `provider`, or creates that identity.
pub async fn upsert_identity(db: &Db, user: &User, provider: &str, data: &Json) -> Result<bool, Fault> {
    match identity::find(db, &user.id.to_string(), provider).await? {
        Some(mut identity) => {
            identity.merge_data(db, data).await?;
            Ok(false)
        }
        None => {
            let mut claims = identity::claims(user.id, "", "");
            claims.extend(data.clone());
            identity::create(db, user.id, provider, claims).await?;
            Ok(true)
        }
    }
}

/// The ids of the users with one of these addresses, without users of single sign-on.
pub async fn ids_by_emails(db: &Db, emails: &[String]) -> Result<Vec<Uuid>, Fault> {
    let rows = db
        .query(
            "select u.id from unnest($1::text[]) as a (email) join auth.users u on lower(u.email) = lower(a.email) \
             and lower(u.email collate \"C\") = lower(a.email collate \"C\") \
             where u.instance_id = '00000000-0000-0000-0000-000000000000' and u.is_sso_user = false",
            &[&emails],
        )
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
