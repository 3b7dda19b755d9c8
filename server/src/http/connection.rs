//! What connections of HTTP/1.1 and HTTP/2 have in common: how long they wait for a client, and whether they are encrypted.

use std::time::Duration;

use actix_web::rt::net::TcpStream;
use actix_web::{HttpMessage as _, HttpRequest};
use socket2::{SockRef, TcpKeepalive};

/// How long a connection may wait for its next request. Clients that reuse connections should close them first: if the
/// server does, a request in flight is lost, and writing requests are not retried. Load balancers keep theirs for 60 s;
/// nginx waits for 75 s.
pub const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a client may take to send a request's head, even over a slow mobile connection.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the rest of a request is read and discarded after an early answer (a refusal). Closing at once would reset
/// the connection and lose the answer.
pub const LINGER: Duration = Duration::from_secs(1);

/// How long a connection is silent before the system asks the other side for a sign of life, how long it waits for one, and how often
/// it asks. So a phone that is gone without a word is noticed within two minutes, even on a connection that is never written to.
const ALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(15), 4);

/// Sets what every accepted connection has. Errors only cost what the option would have saved.
pub fn prepare(stream: &TcpStream) {
    // Answers are written as a whole, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let (silence, interval, times) = ALIVE;
    let alive = TcpKeepalive::new().with_time(silence).with_interval(interval).with_retries(times);
    let _ = SockRef::from(stream).set_tcp_keepalive(&alive);
}

/// Marks connections that this server encrypts, and requests of HTTP/2 on them.
#[derive(Clone, Copy, Debug)]
pub struct Secure;

/// Whether the request came over a connection that this server encrypts.
pub fn is_secure(request: &HttpRequest) -> bool {
    request.conn_data::<Secure>().is_some() || request.extensions().contains::<Secure>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a websocket of a phone that had gone kept its function's process for ever.
    #[tokio::test]
    async fn the_system_asks_silent_connections_whether_they_live() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let _client = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
        let (stream, _) = listener.accept().await.expect("a connection");
        prepare(&stream);
        let socket = SockRef::from(&stream);
        let (silence, interval, times) = ALIVE;
        assert!(socket.keepalive().expect("an option") && stream.nodelay().expect("an option"));
        assert_eq!(socket.tcp_keepalive_time().expect("an option"), silence);
        assert_eq!(socket.tcp_keepalive_interval().expect("an option"), interval);
        assert_eq!(socket.tcp_keepalive_retries().expect("an option"), times);
    }
}
