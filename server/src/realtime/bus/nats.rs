//! Transport over NATS, for projects with more broadcasts than the database's log should carry.
//!
//! All instances of a project publish and subscribe to one subject. Only the core protocol is used: an instance
//! misses what is published while it is disconnected, so it requests the others' presences when it is back.
//! Reference: <https://docs.nats.io/reference/reference-protocols/nats-protocol>.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc::{self, Receiver};

use super::TICK;
use crate::config::Secret;
use crate::realtime::Inner;

/// The most received messages that may wait.
const WAITING: usize = 8192;
/// The longest message, even if the server would accept longer ones.
const LONGEST: usize = 512 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The settings `FERROBASE_BUS_URL` and `FERROBASE_BUS_SUBJECT`.
#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// `nats://` or `tls://`, with user and password or a token if the server requires them; several separated by
    /// commas.
    url: Secret,
    /// The prefix of the project's subject.
    subject: String,
}

impl NatsConfig {
    /// Refuses invalid NATS addresses.
    pub fn parse(url: Secret, subject: Option<String>) -> Result<Self, String> {
        addresses(&url)?;
        let subject = subject.unwrap_or_else(|| "ferrobase.realtime".to_owned());
        let is_fit = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || "*>".contains(c));
        if !subject.split('.').all(is_fit) {
            return Err("FERROBASE_BUS_SUBJECT must be a subject of NATS without wildcards".to_owned());
        }
        Ok(Self { url, subject })
    }
}

/// Errors do not repeat the URL, which may contain a password.
fn addresses(url: &Secret) -> Result<Vec<ServerAddr>, String> {
    let text = url.reveal();
    let parsed = text.split(',').map(|part| {
        let part = part.trim();
        let scheme = part.split_once("://").map(|(scheme, _)| scheme);
        match part.parse::<ServerAddr>() {
            Ok(address) if matches!(scheme, Some("nats" | "tls")) && !address.host().is_empty() => Ok(address),
            _ => Err("FERROBASE_BUS_URL must be nats:// or tls:// with a host".to_owned()),
        }
    });
    parsed.collect()
}

/// Publishes and listens until it is dropped.
pub async fn run(inner: &Arc<Inner>, config: &NatsConfig, waiting: &mut Receiver<Bytes>) {
    let (told, mut events) = mpsc::channel(64);
    let options = ConnectOptions::new()
        .name("ferrobase realtime")
        .no_echo()
        .retry_on_initial_connect()
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| {
            let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
            Duration::from_millis(100).saturating_mul(attempts).min(LONGEST_PAUSE)
        })
        .connection_timeout(CONNECT_TIMEOUT)
        .subscription_capacity(WAITING)
        .event_callback(move |event| {
            // If the receiver is behind, it learns of later events.
            let _ = told.try_send(event);
            std::future::ready(())
        });
    let subject = format!("{}.{}", config.subject, inner.bus.name());
    let opened = async {
        // Both return immediately: the connection is opened, and reopened, in the background.
        let client = options.connect(addresses(&config.url).unwrap_or_default()).await.map_err(|e| e.to_string())?;
        let subscriber = client.subscribe(subject.clone()).await.map_err(|e| e.to_string())?;
        Ok::<_, String>((client, subscriber))
    };
    let (client, mut subscriber) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return tracing::error!(error, "realtime has no bus: FERROBASE_BUS_URL cannot be used"),
    };
    tokio::select! {
        () = publish(inner, &client, &subject, waiting) => {}
        () = listen(inner, &mut subscriber, &mut events) => {}
    }
}

async fn publish(inner: &Arc<Inner>, client: &Client, subject: &str, waiting: &mut Receiver<Bytes>) {
    while let Some(message) = waiting.recv().await {
        let longest = client.max_payload().min(LONGEST);
        for part in inner.bus.signed(&message, longest) {
            if let Err(error) = client.publish(subject.to_owned(), part).await {
                inner.bus.lose(inner, 1, &error);
                break;
            }
        }
        if inner.is_stopping() {
            // The farewell still has to be sent.
            let _ = client.flush().await;
        }
        inner.bus.taken(&[message]);
    }
}

async fn listen(inner: &Arc<Inner>, subscriber: &mut Subscriber, events: &mut Receiver<Event>) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = subscriber.next() => match message {
                Some(message) => inner.bus.receive(inner, message.payload),
                None => return,
            },
            event = events.recv() => match event {
                Some(event) => follow(inner, &event),
                None => return,
            },
            _ = tick.tick() => inner.bus.tick(inner),
        }
    }
}

fn follow(inner: &Arc<Inner>, event: &Event) {
    match event {
        Event::Connected => {
            inner.bus.is_connected.store(true, Ordering::Release);
            inner.metrics.bus_up.store(1, Ordering::Relaxed);
            tracing::info!("realtime has joined its bus");
            inner.bus.up(inner);
        }
        Event::Disconnected | Event::Closed => {
            inner.bus.is_connected.store(false, Ordering::Release);
            inner.metrics.bus_up.store(0, Ordering::Relaxed);
            tracing::warn!("realtime has lost its bus: broadcasts and presence stay on their instances");
        }
        Event::SlowConsumer(_) => {
            inner.bus.lose(inner, 1, &"this instance is behind");
            // Missed presences are sent again.
            inner.bus.up(inner);
        }
        other => tracing::warn!(event = %other, "the bus of realtime"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_nats_addresses_are_refused_without_repeating_the_password() {
        let parse = |url: &str, subject: Option<&str>| {
            NatsConfig::parse(Secret::new(url.to_owned()), subject.map(str::to_owned)).map(|config| config.subject)
        };
        for url in ["nats://127.0.0.1:4222", "tls://user:pass@bus.example", "nats://a:4222, nats://b:4222"] {
            assert_eq!(parse(url, None), Ok("ferrobase.realtime".to_owned()), "{url}");
        }
        for url in ["", "redis://x:hidden@y", "nats://", "127.0.0.1", "nats://a,http://b"] {
            let told = parse(url, None).expect_err("refused");
            assert!(told.contains("FERROBASE_BUS_URL") && !told.contains("hidden"), "{url}: {told}");
        }
        assert_eq!(parse("nats://a", Some("shop.live")), Ok("shop.live".to_owned()));
        for subject in ["", "a..b", "a.*", ">", "a b"] {
            assert!(parse("nats://a", Some(subject)).is_err(), "{subject}");
        }
    }
}
