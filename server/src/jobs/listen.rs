//! A connection with notifications.

use std::ops::Deref;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};

use crate::db::{self, NOTICE_OUR_DEATH};

/// How long the catalogs may take to answer, and a change of the extensions' tables.
pub const ANSWER: Duration = Duration::from_secs(10);
pub const WORK: Duration = Duration::from_secs(60);

/// By how much PostgreSQL's limit of a statement is below ours.
const EARLIER: Duration = Duration::from_secs(2);

/// A connection of the jobs. Its socket is closed when this is dropped: the driver would first wait for the answers that
/// are due, and the session would keep its locks meanwhile.
pub struct Link {
    client: Client,
    /// The task of the connection.
    _driver: JoinSet<()>,
}

impl Deref for Link {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Link {
    /// A statement's answer within `limit`. A server that hangs may keep its connections open: after a failover, the work
    /// would wait there for ever. PostgreSQL ends the statement a little earlier: one that waits for a lock does not
    /// notice that its client has gone, and would be carried out for nobody.
    pub async fn within<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> anyhow::Result<T> {
        let set = format!("set statement_timeout = {}", limit.saturating_sub(EARLIER).as_millis());
        // Sent together, in this order.
        let both = async { futures_util::try_join!(self.client.batch_execute(&set), answer) };
        let answered = timeout(limit, both).await;
        Ok(answered.map_err(|_| anyhow::anyhow!("the database does not answer"))??.1)
    }
}

/// A connection, and the notifications of its channel. The receiver ends with the connection.
pub async fn open(url: &str, channel: &str) -> anyhow::Result<(Link, UnboundedReceiver<()>)> {
    let (link, told) = connect(url).await?;
    link.within(ANSWER, link.batch_execute(&format!("listen {channel}"))).await?;
    Ok((link, told))
}

/// A connection without a channel.
pub async fn connect(url: &str) -> anyhow::Result<(Link, UnboundedReceiver<()>)> {
    let mut config: tokio_postgres::Config = url.parse()?;
    config.application_name("ferrobase jobs");
    let (client, mut connection) = db::connect(&config).await?;
    let (tell, told) = unbounded_channel();
    let mut driver = JoinSet::new();
    driver.spawn(async move {
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
    let link = Link { client, _driver: driver };
    link.within(ANSWER, link.batch_execute(&begin)).await?;
    Ok((link, told))
}

/// Whether `function` in `schema` belongs to the extension and contains `mark`, as only ours does. The real extensions
/// have their own workers, and a project's objects of these names are ignored. On a server without our extensions their objects
/// were created without them, which is recorded.
pub async fn is_ours(link: &Link, extension: &str, schema: &str, function: &str, mark: &str) -> anyhow::Result<bool> {
    let ours = "select exists (
                  select from pg_extension e
                  join pg_depend d on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e'
                                      and d.classid = 'pg_proc'::regclass
                  join pg_proc p on p.oid = d.objid
                  join pg_namespace n on n.oid = p.pronamespace
                  where e.extname = $1 and n.nspname = $2 and p.proname = $3 and strpos(p.prosrc, $4) > 0)
                or exists (select from _supavisor.extensions where name = $1)";
    Ok(link.within(ANSWER, link.query_one(ours, &[&extension, &schema, &function, &mark])).await?.get(0))
}

/// Until asked to stop.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A dropped sender means the same.
    let _ = stop.wait_for(|stopped| *stopped).await;
}
