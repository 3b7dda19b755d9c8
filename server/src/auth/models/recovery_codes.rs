//! A user's recovery codes: a set with the count of wrong tries, and its codes. Reference: supabase/auth
//! `internal/models/recovery_code.go`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use uuid::Uuid;

use super::now;
use crate::auth::error::Fault;
use crate::auth::models::store::Db;

/// The codes of a user as a whole; there is at most one set.
#[derive(Clone, Debug)]
pub struct CodeSet {
    pub id: Uuid,
    /// The factor whose codes they are.
    pub factor_id: Uuid,
    failures: i32,
    locked_until: Option<DateTime<Utc>>,
}

/// A code that was not used yet.
#[derive(Clone, Debug)]
pub struct Unused {
    pub id: Uuid,
    pub hash: String,
}

impl CodeSet {
    fn from_row(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: row.try_get(0)?,
            factor_id: row.try_get(1)?,
            failures: row.try_get(2)?,
            locked_until: row.try_get(3)?,
        })
    }

    /// Stores a set with the hashes of its codes.
    pub async fn create(db: &Db, user_id: Uuid, factor_id: Uuid, hashes: &[String]) -> Result<(), Fault> {
        let id = Uuid::new_v4();
        db.execute(
            "insert into auth.mfa_recovery_code_sets (id, user_id, mfa_factor_id, created_at, updated_at) \
             values ($1, $2, $3, $4, $4)",
            &[&id, &user_id, &factor_id, &now()],
        )
        .await?;
        insert_codes(db, id, hashes).await
    }

    /// Replaces all codes and forgets wrong tries. Returns whether the set still exists.
    pub async fn replace(&self, db: &Db, hashes: &[String]) -> Result<bool, Fault> {
        // Locked first, so that the codes of two requests do not add up.
        if !self.reset(db).await? {
            return Ok(false);
        }
        db.execute("delete from auth.mfa_recovery_codes where mfa_recovery_code_set_id = $1", &[&self.id]).await?;
        insert_codes(db, self.id, hashes).await?;
        Ok(true)
    }

    pub fn is_locked(&self, at: DateTime<Utc>) -> bool {
        self.locked_until.is_some_and(|until| at < until)
    }

    /// Counts a wrong code. The set must be locked for update. At `most` it locks the codes for `lockout`; the count begins
    /// anew after that time.
    pub async fn count_failure(&self, db: &Db, most: i32, lockout: Duration) -> Result<(), Fault> {
        let now = now();
        let failures = if self.locked_until.is_some() { 1 } else { self.failures.saturating_add(1) };
        let lockout = chrono::Duration::from_std(lockout).unwrap_or_default();
        let locked_until = (failures >= most).then(|| now + lockout);
        db.execute(
            "update auth.mfa_recovery_code_sets set failed_verification_count = $2, verification_locked_until = $3, \
             updated_at = $4 where id = $1",
            &[&self.id, &failures, &locked_until, &now],
        )
        .await?;
        Ok(())
    }

    /// Forgets wrong tries. Returns whether the set still exists.
    pub async fn reset(&self, db: &Db) -> Result<bool, Fault> {
        let reset = db
            .execute(
                "update auth.mfa_recovery_code_sets set failed_verification_count = 0, verification_locked_until = null, \
                 updated_at = $2 where id = $1",
                &[&self.id, &now()],
            )
            .await?;
        Ok(reset == 1)
    }

    /// How many codes there are, and how many of them are unused.
    pub async fn count(&self, db: &Db) -> Result<(i64, i64), Fault> {
        let row = db
            .query_one(
                "select count(*), count(*) filter (where consumed_at is null) from auth.mfa_recovery_codes \
                 where mfa_recovery_code_set_id = $1",
                &[&self.id],
            )
            .await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    pub async fn unused(&self, db: &Db) -> Result<Vec<Unused>, Fault> {
        let rows = db
            .query(
                "select id, code_hash from auth.mfa_recovery_codes \
                 where mfa_recovery_code_set_id = $1 and consumed_at is null order by created_at, id",
                &[&self.id],
            )
            .await?;
        rows.iter().map(|row| Ok(Unused { id: row.try_get(0)?, hash: row.try_get(1)? })).collect()
    }
}

async fn insert_codes(db: &Db, set: Uuid, hashes: &[String]) -> Result<(), Fault> {
    let ids: Vec<Uuid> = hashes.iter().map(|_| Uuid::new_v4()).collect();
    db.execute(
        "insert into auth.mfa_recovery_codes (id, mfa_recovery_code_set_id, code_hash, created_at) \
         select id, $1, hash, $4 from unnest($2::uuid[], $3::text[]) as new (id, hash)",
        &[&set, &ids, &hashes, &now()],
    )
    .await?;
    Ok(())
}

/// Uses up a code. Returns whether it was unused.
pub async fn consume(db: &Db, id: Uuid) -> Result<bool, Fault> {
    let consumed = db
        .execute(
            "update auth.mfa_recovery_codes set consumed_at = $2 where id = $1 and consumed_at is null",
            &[&id, &now()],
        )
        .await?;
    Ok(consumed == 1)
}

const FIND: &str = "select id, mfa_factor_id, failed_verification_count, verification_locked_until \
                    from auth.mfa_recovery_code_sets where user_id = $1";

pub async fn find(db: &Db, user_id: Uuid) -> Result<Option<CodeSet>, Fault> {
    db.query_opt(FIND, &[&user_id]).await?.as_ref().map(CodeSet::from_row).transpose()
}

/// The user's set, locked until the end of the transaction: of several tries at once, each is counted.
pub async fn find_and_lock(db: &Db, user_id: Uuid) -> Result<Option<CodeSet>, Fault> {
    let sql = format!("{FIND} for update");
    db.query_opt(&sql, &[&user_id]).await?.as_ref().map(CodeSet::from_row).transpose()
}
