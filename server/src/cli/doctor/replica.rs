//! Checks that `FERROBASE_READ_REPLICA_URL` leads to a replica of `DATABASE_URL`.

use tokio_postgres::Config;

use super::Finding;
use super::pooler::shares_sessions;
use crate::config::{Reader, Source};
use crate::db::{self, Client};
use crate::migrate::{self, GivenUrls};

/// What the primary and the replica are asked for: whether it is a replica, the cluster, and the position.
const STATE: &str = "select pg_catalog.pg_is_in_recovery(), \
                     (select system_identifier from pg_catalog.pg_control_system()), \
                     (case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() \
                           else pg_catalog.pg_current_wal_lsn() end - '0/0'::pg_lsn)::text";

struct State {
    is_replica: bool,
    cluster: i64,
    /// In bytes.
    position: u64,
}

/// None without a replica.
pub async fn examine(source: &Source) -> anyhow::Result<Option<Finding>> {
    let reader = Reader::new(source);
    let (Some(direct), given) = (reader.text(&["DATABASE_URL"]), GivenUrls::read(&reader)) else { return Ok(None) };
    let secret = reader.text_or(&["JWT_SECRET", "GOTRUE_JWT_SECRET"], "");
    let Some(url) = migrate::at_replica(&direct, &secret, &given)? else { return Ok(None) };
    let config: Config = url.parse()?;
    let replica = match db::connect_client(&config).await {
        Ok(client) => state(&client).await?,
        Err(error) => {
            return Ok(Some(Finding::Problem(format!(
                "the read replica cannot be reached, so the primary answers all reads: {error}"
            ))));
        }
    };
    let primary = state(&db::connect_client(&direct.parse()?).await?).await?;
    Ok(Some(if replica.cluster != primary.cluster {
        Finding::Problem(
            "FERROBASE_READ_REPLICA_URL names a server that is not a copy of the one in DATABASE_URL: reads would return other rows"
                .to_owned(),
        )
    } else if !replica.is_replica {
        Finding::Problem(
            "FERROBASE_READ_REPLICA_URL names a server that is not a replica: the primary answers all reads".to_owned(),
        )
    } else if shares_sessions(&config).await? {
        Finding::Problem(
            "FERROBASE_READ_REPLICA_URL goes through a pooler that hands connections on between transactions: the replica \
             itself is needed there"
                .to_owned(),
        )
    } else {
        let behind = primary.position.saturating_sub(replica.position);
        Finding::Good(format!("the read replica is {behind} bytes of log behind the primary"))
    }))
}

async fn state(client: &Client) -> anyhow::Result<State> {
    let row = client.query_typed_one(STATE, &[]).await?;
    let position: &str = row.try_get(2)?;
    Ok(State { is_replica: row.try_get(0)?, cluster: row.try_get(1)?, position: position.parse()? })
}
