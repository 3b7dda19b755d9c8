//! Listens for `NOTIFY` on the reload channel, over a dedicated connection.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_postgres::AsyncMessage;
use tokio_postgres::config::TargetSessionAttrs;

use super::{Backoff, Live, Reload};
use crate::db::{self, DbError, replaced};
use crate::rest::COMPATIBLE_VERSION;

/// Runs until the channel is disabled. After a lost connection the schema is reloaded, because notifications may have
/// been missed; not if the database has been replaced, because nothing uses the new one before the listener listens
/// ([`Live::put_back`]). Connects to a primary only.
pub async fn run(live: Arc<Live>) {
    let mut backoff = Backoff::new();
    // The database in which it was lost, of `replaced::times`.
    let mut lost = None;
    loop {
        replaced::over().await;
        let database = replaced::times();
        let settings = live.settings();
        if !settings.config.channel_enabled {
            return;
        }
        let channel = settings.config.channel.clone();
        let uri = settings.config.db_uri.reveal();
        let fault = match listen(&live, uri, &channel, (database, lost), &mut backoff).await {
            _ if replaced::times() != database => continue,
            Ok(()) => "the connection was closed".to_owned(),
            Err(error) => error.to_string(),
        };
        if live.is_stopping.load(Ordering::Acquire) {
            return;
        }
        lost = Some(database);
        live.listening.notify_one();
        live.note_lost();
        let pause = backoff.next();
        tracing::error!(channel, fault, seconds = pause.as_secs(), "listening for reloads failed, retrying");
        tokio::time::sleep(pause).await;
    }
}

async fn listen(
    live: &Live,
    uri: &str,
    channel: &str,
    (database, lost_in): (u64, Option<u64>),
    backoff: &mut Backoff,
) -> Result<(), DbError> {
    let mut config: tokio_postgres::Config = uri.parse()?;
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_application_name().is_none() {
        config.application_name(format!("PostgREST {COMPATIBLE_VERSION}"));
    }
    let (client, mut connection) = db::connect(&config).await?;
    if replaced::times() != database {
        return Ok(());
    }
    let statement = format!("listen \"{}\"", channel.replace('"', "\"\""));
    let mut listening = std::pin::pin!(client.batch_execute(&statement));
    let mut lost = std::pin::pin!(db::lost(&client, &statement));
    let mut is_listening = false;
    loop {
        tokio::select! {
            answer = &mut listening, if !is_listening => {
                answer?;
                is_listening = true;
                live.listening.notify_one();
                *backoff = Backoff::new();
                tracing::info!(channel, "listening for reloads");
                live.listening_in.send_replace(Some(database));
                if lost_in == Some(database) {
                    live.sessions.forget();
                    live.request(Reload::Schema);
                }
            }
            error = &mut lost => return Err(error),
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                None => return Ok(()),
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(AsyncMessage::Notification(notification))) if notification.channel() == channel => {
                    match requested(notification.payload()) {
                        Some(what) => live.request(what),
                        None => tracing::debug!(channel, "a notification with another payload was ignored"),
                    }
                }
                Some(Ok(_)) => {}
            },
        }
    }
}

fn requested(payload: &str) -> Option<Reload> {
    match payload {
        "" | "reload schema" => Some(Reload::Schema),
        "reload config" => Some(Reload::Configuration),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_payloads_trigger_a_reload() {
        assert_eq!(requested(""), Some(Reload::Schema));
        assert_eq!(requested("reload schema"), Some(Reload::Schema));
        assert_eq!(requested("reload config"), Some(Reload::Configuration));
        assert_eq!(requested("reload"), None);
    }
}
