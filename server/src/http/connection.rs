//! What connections of HTTP/1.1 and HTTP/2 have in common: how long they wait for a client, and whether they are encrypted.

use std::time::Duration;

use actix_web::{HttpMessage as _, HttpRequest};

/// How long a connection may wait for its next request. Clients that reuse connections should close them first: if the
/// server does, a request in flight is lost, and writing requests are not retried. Load balancers keep theirs for 60 s;
/// nginx waits for 75 s.
pub const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a client may take to send a request's head, even over a slow mobile connection.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the rest of a request is read and discarded after an early answer (a refusal). Closing at once would reset
/// the connection and lose the answer.
pub const LINGER: Duration = Duration::from_secs(1);

/// Marks connections that this server encrypts, and requests of HTTP/2 on them.
#[derive(Clone, Copy, Debug)]
pub struct Secure;

/// Whether the request came over a connection that this server encrypts.
pub fn is_secure(request: &HttpRequest) -> bool {
    request.conn_data::<Secure>().is_some() || request.extensions().contains::<Secure>()
}
