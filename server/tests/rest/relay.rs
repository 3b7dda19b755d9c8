//! A relay in front of PostgreSQL that can rewrite statements and refuse connections.
//!
//! It shows how a server without the role switch or without its database behaves, while the server stays as it ships.

#![allow(clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Replaced in the text of every statement: (search, replacement).
pub type Rewrite = (&'static str, &'static str);

pub struct Relay {
    pub port: u16,
    open: watch::Sender<bool>,
    rewritten: Arc<AtomicU64>,
}

impl Relay {
    /// Relays unencrypted connections on `port` to the PostgreSQL at `to` (`host:port`).
    pub async fn start(to: String, rewrite: Option<Rewrite>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("address").port();
        let (open, is_open) = watch::channel(true);
        let rewritten = Arc::new(AtomicU64::new(0));
        let counter = rewritten.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (to, counter, mut is_open) = (to.clone(), counter.clone(), is_open.clone());
                tokio::spawn(async move {
                    if !*is_open.borrow() {
                        return;
                    }
                    tokio::select! {
                        _ = relay(client, &to, rewrite, &counter) => {}
                        _ = is_open.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Self { port, open, rewritten }
    }

    /// Simulates a lost database: connections are closed, and new ones end at once.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Makes the database reachable again.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// How many statements were changed.
    pub fn rewritten(&self) -> u64 {
        self.rewritten.load(Ordering::Relaxed)
    }
}

async fn relay(client: TcpStream, to: &str, rewrite: Option<Rewrite>, counter: &AtomicU64) -> std::io::Result<()> {
    let server = TcpStream::connect(to).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let questions = async {
        let Some((what, by_what)) = rewrite else { return copy(&mut from_client, &mut to_server).await.map(|_| ()) };
        // The first message has no type, all others have.
        let length = from_client.read_u32().await?;
        let mut first = vec![0; length as usize - 4];
        from_client.read_exact(&mut first).await?;
        to_server.write_all(&length.to_be_bytes()).await?;
        to_server.write_all(&first).await?;
        loop {
            let kind = from_client.read_u8().await?;
            let length = from_client.read_u32().await?;
            let mut message = vec![0; length as usize - 4];
            from_client.read_exact(&mut message).await?;
            // Parse, and simple query.
            if matches!(kind, b'P' | b'Q') {
                let text = String::from_utf8(message.clone()).unwrap_or_default();
                if text.contains(what) {
                    message = text.replace(what, by_what).into_bytes();
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
            let mut whole = vec![kind];
            whole.extend_from_slice(&(u32::try_from(message.len()).expect("length") + 4).to_be_bytes());
            whole.extend_from_slice(&message);
            to_server.write_all(&whole).await?;
        }
    };
    let answers = copy(&mut from_server, &mut to_client);
    tokio::select! {
        ended = questions => ended,
        ended = answers => ended.map(|_| ()),
    }
}
