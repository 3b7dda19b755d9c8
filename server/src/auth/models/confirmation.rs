//! Sign-up attempts: each attempt with an address stores its password and metadata together with its link and code, and
//! confirming it applies them. Upstream keeps only those of the first attempt.

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::Json as SqlJson;
use uuid::Uuid;

use super::{Json, now};
use crate::auth::credentials::pkce;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// How many attempts an unconfirmed account keeps; the oldest are dropped.
const KEPT: i64 = 10;

/// An unconfirmed attempt.
#[derive(Clone, Debug)]
pub struct Confirmation {
    pub id: Uuid,
    pub sent_at: DateTime<Utc>,
    /// Its client, as named by [`client_of`](crate::auth::door::limits::client_of).
    pub client: String,
    pub proved_data: ProvedData,
    /// The PKCE flow that began with it.
    pub flow_state_id: Option<Uuid>,
}

/// What replaces the account's data when the address is proved.
#[derive(Clone, Debug)]
pub enum ProvedData {
    /// The account's own data, because this attempt created it.
    Account,
    Own {
        /// As stored; `None` for proofs without a password.
        encrypted_password: Option<String>,
        /// `None` keeps the account's.
        user_metadata: Option<Json>,
    },
}

impl ProvedData {
    /// For proofs of the address alone: an invitation, a recovery.
    pub const PROOF: Self = Self::Own { encrypted_password: None, user_metadata: None };
}

/// Which attempt a message is sent for.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A new one.
    New(ProvedData),
    /// An existing one: the new token replaces its old one.
    Again(Uuid),
    /// None: using it replaces nothing.
    Account,
}

const COLUMNS: &str = "id, sent_at, client, made_account, encrypted_password, user_metadata, flow_state_id";

impl Confirmation {
    fn from_row(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: row.try_get(0)?,
            sent_at: row.try_get(1)?,
            client: row.try_get(2)?,
            proved_data: if row.try_get(3)? {
                ProvedData::Account
            } else {
                ProvedData::Own {
                    encrypted_password: row.try_get(4)?,
                    user_metadata: row.try_get::<_, Option<SqlJson<Json>>>(5)?.map(|metadata| metadata.0),
                }
            },
            flow_state_id: row.try_get(6)?,
        })
    }
}

/// Records the attempt of `token_hash`, which was just sent.
pub async fn record(
    db: &Db,
    user_id: Uuid,
    token_hash: &str,
    origin: &Origin,
    client: &str,
    flow_state_id: Option<Uuid>,
) -> Result<(), Fault> {
    match origin {
        Origin::Account => {}
        Origin::Again(id) => {
            db.execute(
                "update auth.pending_confirmations set token_hash = $2, sent_at = $3, flow_state_id = $4 where id = $1",
                &[id, &token_hash, &now(), &flow_state_id],
            )
            .await?;
        }
        Origin::New(proved_data) => {
            let (made_account, password, metadata) = match proved_data {
                ProvedData::Account => (true, None, None),
                ProvedData::Own { encrypted_password, user_metadata } => {
                    (false, encrypted_password.as_ref(), user_metadata.clone())
                }
            };
            db.execute(
                "insert into auth.pending_confirmations (id, user_id, token_hash, sent_at, client, made_account, \
                 encrypted_password, user_metadata, flow_state_id) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                &[
                    &Uuid::new_v4(),
                    &user_id,
                    &token_hash,
                    &now(),
                    &client,
                    &made_account,
                    &password,
                    &metadata.map(SqlJson),
                    &flow_state_id,
                ],
            )
            .await?;
            db.execute(
                "delete from auth.pending_confirmations where id in (select id from auth.pending_confirmations \
                 where user_id = $1 order by sent_at desc, id offset $2)",
                &[&user_id, &KEPT],
            )
            .await?;
        }
    }
    Ok(())
}

/// The user's attempt with this hash, with or without the prefix of PKCE.
pub async fn find(db: &Db, user_id: Uuid, hash: &str) -> Result<Option<Confirmation>, Fault> {
    let sql = format!(
        "select {COLUMNS} from auth.pending_confirmations where user_id = $1 and token_hash in ($2, $3) \
         order by sent_at desc limit 1"
    );
    let prefixed = format!("{}{hash}", pkce::PREFIX);
    db.query_opt(&sql, &[&user_id, &hash, &prefixed]).await?.as_ref().map(Confirmation::from_row).transpose()
}

/// Whether the last attempt is this client's, so that every instance can tell it to wait.
pub async fn was_asked_by(db: &Db, user_id: Uuid, client: &str) -> Result<bool, Fault> {
    let sql = "select client = $2 from auth.pending_confirmations where user_id = $1 order by sent_at desc limit 1";
    Ok(db.query_opt(sql, &[&user_id, &client]).await?.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
}

/// An invitation to the user; its token replaces that of an earlier one.
pub async fn invitation(db: &Db, user_id: Uuid) -> Result<Origin, Fault> {
    let sql = "select id from auth.pending_confirmations where user_id = $1 and client = '' and not made_account \
        and encrypted_password is null and user_metadata is null order by sent_at desc limit 1";
    let known: Option<Uuid> = db.query_opt(sql, &[&user_id]).await?.map(|row| row.try_get(0)).transpose()?;
    Ok(known.map_or_else(|| Origin::New(ProvedData::PROOF), Origin::Again))
}

/// The attempt for a message without a password: the only one, or the last one by this client. If there are several by
/// others, it is unclear which is the caller's, and the message only proves the address.
pub async fn resumed(db: &Db, user_id: Uuid, client: &str) -> Result<Origin, Fault> {
    let sql = format!("select {COLUMNS} from auth.pending_confirmations where user_id = $1 order by sent_at desc, id");
    let rows = db.query(&sql, &[&user_id]).await?;
    let attempts = rows.iter().map(Confirmation::from_row).collect::<Result<Vec<_>, _>>()?;
    Ok(match attempts.as_slice() {
        [] => Origin::Account,
        [only] => Origin::Again(only.id),
        several => several
            .iter()
            .find(|attempt| !client.is_empty() && attempt.client == client)
            .map_or_else(|| Origin::New(ProvedData::PROOF), |own| Origin::Again(own.id)),
    })
}
