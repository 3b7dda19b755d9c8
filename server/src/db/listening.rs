//! Notices that the server of a connection that only listens hangs. TCP asks the other machine, which may answer for
//! a process that does not: after a failover the connection would stay on the former primary.

use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use super::DbError;
use super::limits::{LISTENER_ANSWER, LISTENER_ASKS};

/// Runs `statement`, which changes nothing, every [`LISTENER_ASKS`]. Ends once it fails or has no answer within
/// [`LISTENER_ANSWER`].
pub async fn lost(client: &Client, statement: &str) -> DbError {
    lost_after(client, statement, 1).await
}

/// The same, after `count` missing answers in a row.
pub async fn lost_after(client: &Client, statement: &str, count: u32) -> DbError {
    let mut missing = 0;
    loop {
        sleep(LISTENER_ASKS).await;
        match timeout(LISTENER_ANSWER, client.batch_execute(statement)).await {
            Ok(Ok(())) => missing = 0,
            Ok(Err(error)) => return error.into(),
            Err(_) => missing += 1,
        }
        if missing >= count {
            return DbError::Broken("the database does not answer".to_owned());
        }
    }
}
