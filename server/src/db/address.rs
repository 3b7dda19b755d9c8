//! The addresses of a connection string's hosts, and which of them do not answer.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use parking_lot::Mutex;
use rand::seq::SliceRandom;
use tokio::net::lookup_host;

/// What a connection is opened to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    Tcp(IpAddr, u16),
    Unix(PathBuf),
}

impl Address {
    /// The addresses of a host's name.
    pub async fn resolve(name: &str, port: u16, is_random: bool) -> io::Result<Vec<Self>> {
        let mut found: Vec<Self> =
            lookup_host((name, port)).await?.map(|address| Self::Tcp(address.ip(), port)).collect();
        if is_random {
            found.shuffle(&mut rand::rng());
        }
        Ok(found)
    }
}

/// Where a connection goes.
#[derive(Clone)]
pub struct Place {
    pub address: Address,
    /// As the connection string names it.
    pub hostname: Option<String>,
}

/// How long new connections try an address after all others once it was found silent.
const LAST_FOR: Duration = Duration::from_secs(60);

/// The addresses where nothing answered when they were last tried.
#[derive(Default)]
pub struct SilentAddresses(Mutex<HashMap<Address, Instant>>);

impl SilentAddresses {
    pub fn note(&self, address: &Address) {
        self.0.lock().insert(address.clone(), Instant::now());
    }

    /// Notes that something answers there, whatever it says.
    pub fn forget(&self, address: &Address) {
        self.0.lock().remove(address);
    }

    pub fn has(&self, address: &Address) -> bool {
        self.0.lock().contains_key(address)
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Whether it was silent a moment ago, so that the others are tried first.
    pub fn is_last(&self, address: &Address) -> bool {
        self.0.lock().get(address).is_some_and(|at| at.elapsed() < LAST_FOR)
    }
}
