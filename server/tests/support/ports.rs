//! Ports for processes that a test starts, and for those that nobody is to listen on.
//!
//! A port that the system reports as free may be taken by another test or an outgoing connection before the process listens on it. These
//! are below the ephemeral range, in blocks that are reserved as in `tools/free-ports.mjs`: by listening on the first port of a block for
//! as long as this program runs.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rand::Rng as _;

const FIRST: u16 = 20_000;
const BLOCKS: u16 = 1_200;
const BLOCK: u16 = 10;

struct Reserved {
    /// Listening on the first ports of our blocks.
    guards: Vec<TcpListener>,
    /// What is left of the last block.
    left: Range<u16>,
}

static RESERVED: Mutex<Reserved> = Mutex::new(Reserved { guards: Vec::new(), left: 0..0 });

/// A port that nobody listens on, and that no other caller gets.
pub fn free_port() -> u16 {
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(port) = reserved.left.find(|port| listen(*port).is_some()) {
            return port;
        }
        let (first, guard) = (0..BLOCKS)
            .find_map(|_| {
                let first = FIRST + BLOCK * rand::rng().random_range(0..BLOCKS);
                Some((first, listen(first)?))
            })
            .expect("a free block of ports");
        reserved.guards.push(guard);
        reserved.left = first + 1..first + BLOCK;
    }
}

pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

fn listen(port: u16) -> Option<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).ok()
}
