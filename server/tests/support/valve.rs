//! A proxy to a test's database that can be frozen, slowed down, or cut.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A frozen valve accepts connections and data but forwards nothing, like a stopped PostgreSQL.
pub struct Valve {
    port: u16,
    frozen: watch::Sender<bool>,
    /// Delay of each piece of data, in milliseconds.
    slowness: Arc<AtomicU64>,
    /// Counts how often all connections were cut.
    cuts: watch::Sender<u64>,
    /// The sockets of clients, by a second handle.
    clients: Arc<Mutex<Vec<socket2::Socket>>>,
}

impl Valve {
    /// In front of the server that `url` names.
    pub async fn before(url: &str) -> Self {
        let parsed = url::Url::parse(url).expect("a URL");
        let inside = (parsed.host_str().expect("a host").to_owned(), parsed.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("address").port();
        let (frozen, state) = watch::channel(false);
        let (cuts, cut) = watch::channel(0);
        let slowness = Arc::new(AtomicU64::new(0));
        let slow = Arc::clone(&slowness);
        let clients = Arc::new(Mutex::new(Vec::new()));
        let accepted = Arc::clone(&clients);
        tokio::spawn(async move {
            while let Ok((outer, _)) = listener.accept().await {
                let Ok(inner) = TcpStream::connect(inside.clone()).await else { continue };
                {
                    let handle = socket2::SockRef::from(&outer).try_clone().expect("a handle");
                    let mut accepted = accepted.lock().expect("sockets");
                    accepted.retain(|client: &socket2::Socket| client.peer_addr().is_ok());
                    accepted.push(handle);
                }
                let ((from_client, to_client), (from_server, to_server)) = (outer.into_split(), inner.into_split());
                for (from, to) in [(from_client, to_server), (from_server, to_client)] {
                    let mut cut = cut.clone();
                    cut.mark_unchanged();
                    let passing = pass(from, to, state.clone(), Arc::clone(&slow));
                    tokio::spawn(async move {
                        tokio::select! {
                            () = passing => {}
                            _ = cut.changed() => {}
                        }
                    });
                }
            }
        });
        Self { port, frozen, slowness, cuts, clients }
    }

    /// `url` through the valve.
    pub fn url(&self, url: &str) -> String {
        let mut parsed = url::Url::parse(url).expect("a URL");
        parsed.set_host(Some("127.0.0.1")).expect("an address");
        parsed.set_port(Some(self.port)).expect("a port");
        parsed.into()
    }

    /// `url` with the valve as a host before its own, as if they were two servers.
    pub fn before_own_host(&self, url: &str) -> String {
        let host = |url: &str| {
            let url = url::Url::parse(url).expect("a URL");
            format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(5432))
        };
        let (first, second) = (host(&self.url(url)), host(url));
        url.replacen(&second, &format!("{first},{second}"), 1)
    }

    pub fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    pub fn thaw(&self) {
        self.frozen.send_replace(false);
    }

    /// Delays each piece of data from now on.
    pub fn slow(&self, each: Duration) {
        self.slowness.store(each.as_millis() as u64, Ordering::Relaxed);
    }

    /// From now on every packet that clients send on open connections is lost, as if their machine had been replaced by
    /// another one of the same address. Nothing acknowledges them.
    #[cfg(target_os = "linux")]
    pub fn lose_packets(&self) {
        for client in self.clients.lock().expect("sockets").iter() {
            // A filter that keeps nothing. A closed connection takes none.
            let _ = client.attach_filter(&[socket2::SockFilter::new(0x06, 0, 0, 0)]);
        }
    }

    /// Closes all open connections.
    pub fn cut(&self) {
        self.cuts.send_modify(|count| *count += 1);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut frozen: watch::Receiver<bool>,
    slowness: Arc<AtomicU64>,
) {
    let mut part = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut part).await {
        match slowness.load(Ordering::Relaxed) {
            0 => {}
            each => tokio::time::sleep(Duration::from_millis(each)).await,
        }
        if frozen.wait_for(|frozen| !frozen).await.is_err() || to.write_all(&part[..length]).await.is_err() {
            return;
        }
    }
}

/// Waits until a condition holds, a minute at most.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..1200 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came about: {what}");
}
