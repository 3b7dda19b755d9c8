//! A connection with notifications.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};

use crate::db::{self, NOTICE_OUR_DEATH};

/// How long the catalogs may take to answer, and a change of the extensions' tables.
pub const ANSWER: Duration = Duration::from_secs(10);
pub const WORK: Duration = Duration::from_secs(60);

/// A statement's answer within `limit`. A server that hangs may keep its connections open: after a failover, the work
/// would wait there for ever.
pub async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> anyhow::Result<T> {
    let answered = timeout(limit, answer).await;
    Ok(answered.map_err(|_| anyhow::anyhow!("the database does not answer"))??)
}

/// A client, and the notifications of its channel. The receiver ends with the connection.
pub async fn open(url: &str, channel: &str) -> anyhow::Result<(Client, UnboundedReceiver<()>)> {
    let (client, told) = connect(url).await?;
    within(ANSWER, client.batch_execute(&format!("set statement_timeout = 0; listen {channel}"))).await?;
    Ok((client, told))
}

/// A client without a channel.
pub async fn connect(url: &str) -> anyhow::Result<(Client, UnboundedReceiver<()>)> {
    let mut config: tokio_postgres::Config = url.parse()?;
    config.application_name("ferrobase jobs");
    let (client, mut connection) = db::connect(&config).await?;
    let (tell, told) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| Pin::new(&mut connection).poll_message(cx)).await {
            if let AsyncMessage::Notification(_) = message
                && tell.send(()).is_err()
            {
                // Nobody listens, but the connection must still be polled.
                continue;
            }
        }
    });
    let begin = format!("set search_path = pg_catalog, pg_temp; {NOTICE_OUR_DEATH}");
    within(ANSWER, client.batch_execute(&begin)).await?;
    Ok((client, told))
}

/// Whether `function` in `schema` belongs to the extension and contains `mark`, as only ours does. The real extensions
/// have their own workers, and a project's objects of these names are ignored. On a server without our extensions their objects
/// were created without them, which is recorded.
pub async fn is_ours(
    client: &Client,
    extension: &str,
    schema: &str,
    function: &str,
    mark: &str,
) -> anyhow::Result<bool> {
    let ours = "select exists (
                  select from pg_extension e
                  join pg_depend d on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e'
                                      and d.classid = 'pg_proc'::regclass
                  join pg_proc p on p.oid = d.objid
                  join pg_namespace n on n.oid = p.pronamespace
                  where e.extname = $1 and n.nspname = $2 and p.proname = $3 and strpos(p.prosrc, $4) > 0)
                or exists (select from _supavisor.extensions where name = $1)";
    Ok(within(ANSWER, client.query_one(ours, &[&extension, &schema, &function, &mark])).await?.get(0))
}

/// Until asked to stop.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A dropped sender means the same.
    let _ = stop.wait_for(|stopped| *stopped).await;
}
