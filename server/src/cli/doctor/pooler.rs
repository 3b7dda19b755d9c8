//! Checks that `DATABASE_URL` leads to the database server itself and `FERROBASE_POOLER_URL` to a pooler.

use tokio_postgres::Config;

use super::Finding;
use crate::config::{Reader, Source};
use crate::db;
use crate::migrate::{self, GivenUrls};

/// Findings about the two URLs, such as having them swapped. None for the embedded database.
pub async fn examine(source: &Source) -> anyhow::Result<Vec<Finding>> {
    let reader = Reader::new(source);
    let Some(direct) = reader.text(&["DATABASE_URL"]) else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    if shares_sessions(&direct.parse()?).await? {
        findings.push(Finding::Problem(
            "DATABASE_URL goes through a pooler that hands connections on between transactions: migrations, locks, LISTEN \
             and replication need the server itself there, and the pooler belongs into FERROBASE_POOLER_URL"
                .to_owned(),
        ));
        // All further checks would go through the pooler.
        return Ok(findings);
    }
    let given = GivenUrls::read(&reader);
    if given.pooler.is_none() {
        return Ok(findings);
    }
    let secret = reader.text_or(&["JWT_SECRET", "GOTRUE_JWT_SECRET"], "");
    findings.push(match migrate::pooled(&direct, &secret, &given).await {
        Ok(pooled) if shares_sessions(&pooled.rest_url.parse()?).await? => {
            Finding::Good("requests go through a pooler, everything else goes to the server directly".to_owned())
        }
        Ok(_) => Finding::Note(
            "FERROBASE_POOLER_URL does not name a transaction pooler: requests gain nothing from it and do not use prepared statements"
                .to_owned(),
        ),
        Err(error) => Finding::Problem(error.to_string()),
    });
    Ok(findings)
}

/// Whether two open connections share one server session, which only happens behind a transaction pooler.
pub async fn shares_sessions(config: &Config) -> anyhow::Result<bool> {
    let connect =
        || async { db::connect_client(config).await.map_err(|error| anyhow::anyhow!("cannot connect: {error}")) };
    let sessions = [connect().await?, connect().await?];
    let mut seen: [Vec<String>; 2] = Default::default();
    for _ in 0..3 {
        for (session, seen) in sessions.iter().zip(&mut seen) {
            let row = session.query_typed_one("select pg_catalog.pg_backend_pid()::text", &[]).await?;
            seen.push(row.try_get(0)?);
        }
    }
    Ok(seen[0].iter().any(|pid| seen[1].contains(pid)))
}
