//! Sends the outbox's texts to the provider or the development inbox.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{SMS, Text, TextError, TextSender, Twilio};
use crate::config::SmsConfig;
use crate::db::{DbError, Pool};
use crate::mail::{MailConfig, MailError, Message, Sender};

/// The destination of the outbox's texts.
#[derive(Clone)]
pub enum TextTransport {
    Provider(Arc<dyn TextSender>),
    /// The mail inbox of development.
    Inbox,
    /// Nowhere: `ferrobase.send_sms` queues none.
    None,
}

impl TextTransport {
    /// From the settings. Twilio's Verify only sends its own codes, so texts then use the Messages account, if there
    /// is one.
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

    /// Tells the database whether texts can be sent; otherwise `ferrobase.send_sms` would queue them in vain.
    pub async fn announce(&self, pool: &Pool) -> Result<(), DbError> {
        let sql = "update _supavisor.sms_rules set served = $1 where served <> $1";
        pool.lease().await?.execute(sql, &[&self.is_served()]).await?;
        Ok(())
    }
}

/// Sends the outbox's texts, except to numbers that have sent STOP since.
pub struct Outgoing {
    pool: Pool,
    transport: TextTransport,
    inbox: Arc<dyn Sender>,
}

impl Outgoing {
    /// `pool` logs in as the owner of the STOP rows; `inbox` is the development inbox.
    pub fn new(pool: Pool, transport: TextTransport, inbox: Arc<dyn Sender>) -> Self {
        Self { pool, transport, inbox }
    }

    async fn hand_over(&self, message: &Message) -> Result<(), MailError> {
        let unreached = |error: DbError| MailError::Refused(error.to_string().into());
        if has_stopped(&self.pool, &message.to).await.map_err(unreached)? {
            tracing::info!("a text is not sent, because its number has said STOP");
            return Ok(());
        }
        let to = message.to.trim_start_matches('+');
        let text = Text { to, body: &message.text, channel: SMS, code: "" };
        let sender = match &self.transport {
            TextTransport::Provider(sender) => sender,
            TextTransport::Inbox => return self.inbox.send(&text.as_mail()).await,
            TextTransport::None => {
                return Err(MailError::Rejected("no provider of text messages is configured".into()));
            }
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
    let sql = "select exists (select from _supavisor.sms_stopped where number = $1)";
    Ok(pool.lease().await?.query_one(sql, &[&number]).await?.get(0))
}

/// Records that a number stopped texts, or wants them again.
pub(super) async fn stop(pool: &Pool, number: &str, stopped: bool) -> Result<(), DbError> {
    pool.lease().await?.execute("select ferrobase.stop_sms($1, $2)", &[&number, &stopped]).await?;
    Ok(())
}
