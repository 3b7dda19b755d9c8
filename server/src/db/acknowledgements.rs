//! Whether the other machine acknowledges what a connection sends.
//!
//! Connections under watch have no `TCP_USER_TIMEOUT`: it also ends those to a server that is alive and reads nothing for a
//! while. And keepalives rest while something is unacknowledged. So a half-open connection, whose machine died or was
//! replaced by another one of the same address, would last until TCP gives up after a quarter of an hour.

use std::time::Duration;

use tokio::net::TcpStream;

/// Of one connection. Holds its socket by a second handle, because TLS hides the first.
pub struct Acknowledgements(#[cfg_attr(not(target_os = "linux"), expect(dead_code))] socket2::Socket);

impl Acknowledgements {
    pub fn of(stream: &TcpStream) -> std::io::Result<Self> {
        socket2::SockRef::from(stream).try_clone().map(Self)
    }

    /// Whether something sent is unacknowledged while nothing at all was heard for `limit`.
    #[cfg(target_os = "linux")]
    pub fn are_missing(&self, limit: Duration) -> bool {
        tcp_info(&self.0).is_some_and(|info| {
            // A server that reads slowly answers the probes.
            let is_waiting = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
            is_waiting && Duration::from_millis(info.tcpi_last_ack_recv.into()) > limit
        })
    }

    /// Other systems do not say.
    #[cfg(not(target_os = "linux"))]
    pub fn are_missing(&self, _limit: Duration) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate in use wraps this socket option")]
fn tcp_info(socket: &socket2::Socket) -> Option<libc::tcp_info> {
    use std::os::fd::AsRawFd as _;

    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: the descriptor is open, and the system writes at most `length` bytes, which are those of a live value.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    // SAFETY: all fields are integers, which were zero before.
    (answer == 0).then(|| unsafe { info.assume_init() })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    #[tokio::test]
    async fn only_a_machine_that_acknowledges_nothing_is_missed_and_not_one_that_reads_slowly() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let limit = Duration::from_secs(1);
        for is_lost in [false, true] {
            let mut client = TcpStream::connect(address).await.expect("a connection");
            let (server, _) = listener.accept().await.expect("a connection");
            let acknowledgements = Acknowledgements::of(&client).expect("a handle");
            if is_lost {
                // The system discards each packet that arrives.
                let nothing = [socket2::SockFilter::new(0x06, 0, 0, 0)];
                socket2::SockRef::from(&server).attach_filter(&nothing).expect("a filter");
            }
            // As much as the server's buffer holds, and more: nobody reads it.
            let _ = tokio::time::timeout(limit, client.write_all(&vec![0; 32 << 20])).await;
            sleep(limit * 2).await;
            assert_eq!(acknowledgements.are_missing(limit), is_lost);
            drop(server);
        }
    }
}
