//! Addresses without proof: they came from a provider that did not verify them. Autoconfirm may count them as confirmed;
//! otherwise they wait for their confirmation.

use uuid::Uuid;

use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// Records that the user's address is one.
pub async fn note(db: &Db, user_id: Uuid, email: &str) -> Result<(), Fault> {
    db.execute(
        "insert into auth.unproved_addresses (user_id, email) values ($1, $2) \
         on conflict (user_id) do update set email = excluded.email, created_at = now()",
        &[&user_id, &email],
    )
    .await?;
    Ok(())
}

/// Whether the user's address is one.
pub async fn is_of(db: &Db, user_id: Uuid, email: &str) -> Result<bool, Fault> {
    let sql = "select from auth.unproved_addresses where user_id = $1 and email = $2";
    Ok(db.query_opt(sql, &[&user_id, &email]).await?.is_some())
}

/// The address was proved, or somebody authorised confirmed it.
pub async fn forget(db: &Db, user_id: Uuid) -> Result<(), Fault> {
    db.execute("delete from auth.unproved_addresses where user_id = $1", &[&user_id]).await?;
    Ok(())
}
