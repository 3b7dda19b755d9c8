//! What becomes of the texts in the outbox: they go to the provider or to the development inbox.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{SMS, Text, TextError, TextSender, Twilio};
use crate::config::SmsConfig;
use crate::db::{DbError, Pool};
use crate::mail::{MailConfig, MailError, Message, Sender};

/// Where texts of the outbox go.
#[derive(Clone)]
pub enum Way {
    Provider(Arc<dyn TextSender>),
    /// Where mails go, which development looks at.
    Inbox,
    /// Nowhere: `ferrobase.send_sms` queues none.
    None,
}

impl Way {
    /// As the settings have it. Twilio's Verify sends codes of its own only, so with it texts leave by the account of
    /// Messages, if there is one too.
    pub fn of(sms: &SmsConfig, mail: &MailConfig, client: reqwest::Client) -> Self {
        let provider = match sms.provider.as_str() {
            "twilio" | "twilio_verify" => Twilio::new(&sms.twilio, client),
            _ => None,
        };
        match (provider, mail) {
            (Some(twilio), _) => Self::Provider(Arc::new(twilio)),
            (None, MailConfig::Inbox(_)) if matches!(sms.provider.as_str(), "" | "inbox") => Self::Inbox,
            (None, MailConfig::Inbox(_) | MailConfig::Smtp(_) | MailConfig::Drop) => Self::None,
        }
    }

    /// Whether texts go anywhere.
    pub fn is_served(&self) -> bool {
        match self {
            Self::Provider(_) | Self::Inbox => true,
            Self::None => false,
        }
    }

    /// Tells the database whether texts go anywhere; without that `ferrobase.send_sms` would queue what nobody takes.
    pub async fn announce(&self, pool: &Pool) -> Result<(), DbError> {
        let sql = "update ferrobase.sms_rules set served = $1 where served <> $1";
        pool.lease().await?.execute(sql, &[&self.is_served()]).await?;
        Ok(())
    }
}

/// Sends the texts of the outbox, none to a number that has said STOP since it was queued.
pub struct Outgoing {
    pool: Pool,
    way: Way,
    inbox: Arc<dyn Sender>,
}

impl Outgoing {
    /// `pool` logs in as the role that owns the rows of STOP; `inbox` takes what development looks at.
    pub fn new(pool: Pool, way: Way, inbox: Arc<dyn Sender>) -> Self {
        Self { pool, way, inbox }
    }

    async fn hand_over(&self, message: &Message) -> Result<(), MailError> {
        let unreached = |error: DbError| MailError::Refused(error.to_string());
        if has_stopped(&self.pool, &message.to).await.map_err(unreached)? {
            tracing::info!("a text is not sent, because its number has said STOP");
            return Ok(());
        }
        let to = message.to.trim_start_matches('+');
        let text = Text { to, body: &message.text, channel: SMS, code: "" };
        let sender = match &self.way {
            Way::Provider(sender) => sender,
            Way::Inbox => return self.inbox.send(&text.as_mail()).await,
            Way::None => return Err(MailError::Rejected("no provider of text messages is configured".to_owned())),
        };
        match sender.send(&text).await {
            Ok(_) => Ok(()),
            Err(TextError::Refused(told)) => Err(MailError::Refused(told)),
            Err(TextError::Rejected(told)) => Err(MailError::Rejected(told)),
            Err(TextError::Stopped(_)) => {
                tracing::info!("the provider says that a number has said STOP");
                stop(&self.pool, &message.to, true).await.map_err(unreached)
            }
        }
    }
}

impl Sender for Outgoing {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(self.hand_over(message))
    }
}

async fn has_stopped(pool: &Pool, number: &str) -> Result<bool, DbError> {
    let sql = "select exists (select from ferrobase.sms_stopped where number = $1)";
    Ok(pool.lease().await?.query_one(sql, &[&number]).await?.get(0))
}

/// Keeps that a number wants no texts, or wants them again.
pub(super) async fn stop(pool: &Pool, number: &str, stopped: bool) -> Result<(), DbError> {
    pool.lease().await?.execute("select ferrobase.stop_sms($1, $2)", &[&number, &stopped]).await?;
    Ok(())
}
