//! Watches how far the replica has come, and whether it answers at all.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{FOLLOWED_TIMELINE, Owner, Position, Shared};
use crate::db::{self, DbError};

/// How often the replica is asked.
const EVERY: Duration = Duration::from_millis(100);
/// How long it may take to answer before reads leave it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause before connecting again.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches until it is no longer needed.
pub async fn follow(shared: Arc<Shared>, owner: Weak<Owner>) {
    let mut was_told = false;
    while owner.strong_count() > 0 {
        let outcome = keep(&shared, &owner).await;
        let was_up = shared.replayed.send_replace(None).is_some();
        let Err(error) = outcome else { return };
        // Once for each time that it goes.
        if was_up || !std::mem::replace(&mut was_told, true) {
            tracing::warn!(%error, "the replica is not used: the primary answers all reads");
        }
        sleep(PAUSE).await;
    }
}

/// Ends with an error when the replica cannot be used, and without one when it is no longer needed.
async fn keep(shared: &Shared, owner: &Weak<Owner>) -> Result<(), DbError> {
    let silent = || DbError::Broken("the replica does not answer".to_owned());
    let client = timeout(ANSWER_TIMEOUT, db::connect_client(&shared.replica)).await.map_err(|_| silent())??;
    let state = format!(
        "select case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn()::text end,
                {FOLLOWED_TIMELINE}::bigint"
    );
    while owner.strong_count() > 0 {
        let row = timeout(ANSWER_TIMEOUT, client.query_typed_one(&state, &[])).await.map_err(|_| silent())??;
        let text: Option<&str> = row.try_get(0)?;
        let replayed = text.and_then(Position::parse).ok_or_else(|| {
            DbError::Broken("FERROBASE_READ_REPLICA_URL names a server that is not a replica".to_owned())
        })?;
        let followed: Option<i64> = row.try_get(1)?;
        let timeline = shared.marks.lock().timeline();
        if let Some(timeline) = timeline.filter(|timeline| followed != Some(i64::from(*timeline))) {
            let followed = followed.unwrap_or_default();
            return Err(DbError::Broken(format!("it follows timeline {followed}, and the primary is on {timeline}")));
        }
        shared.marks.lock().pass(replayed);
        shared.replayed.send_replace(Some(replayed));
        sleep(EVERY).await;
    }
    Ok(())
}
