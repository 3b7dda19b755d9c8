//! Whether the server is about to stop and wants no further connections.
//!
//! A load balancer has to hear of it first: `/ready` and `/health` say no, each answer ends its connection, and only after a
//! while (`FERROBASE_DRAIN`) the ports are closed.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long connections that have begun are still accepted after [`begin_none`]. Enough for a handshake and the first request.
pub const LAST_CONNECTIONS: Duration = Duration::from_millis(250);

/// Cheap to clone; all clones begin together.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<AtomicBool>);

impl Draining {
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// From now on no connection to `listener` begins; those that have begun can still be accepted.
///
/// Closing a port resets the connections that its process has not accepted yet, and a load balancer may not repeat what it has sent
/// over them. Here the kernel ignores further requests for connections (`SYN`). Clients repeat them after a second, and are refused if
/// the port is closed by then, so a load balancer without active health checks goes on to the next instance.
#[cfg(target_os = "linux")]
pub fn begin_none(listener: &TcpListener) -> io::Result<()> {
    use socket2::{SockFilter, SockRef};

    /// Where the flags are in a TCP header.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    let load_flags = SockFilter::new(0x30, 0, 0, FLAGS);
    let skip_one_unless_syn = SockFilter::new(0x45, 0, 1, SYN);
    let (ignore, take) = (SockFilter::new(0x06, 0, 0, 0), SockFilter::new(0x06, 0, 0, u32::MAX));
    SockRef::from(listener).attach_filter(&[load_flags, skip_one_unless_syn, ignore, take])
}

/// Elsewhere there is no such filter.
#[cfg(not(target_os = "linux"))]
pub fn begin_none(_: &TcpListener) -> io::Result<()> {
    Ok(())
}
