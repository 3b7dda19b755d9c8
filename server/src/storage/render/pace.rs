//! How often one client may ask for pictures of one path: so many requests within four seconds. Whoever goes on asking
//! beyond that waits for four seconds anew, as at the reference.
//!
//! Each instance counts for itself. Reference: supabase/storage `src/http/routes/render/rate-limiter.ts`.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::http::client::network;

/// How long requests count.
pub const WINDOW: Duration = Duration::from_secs(4);
/// Clients and paths that are remembered before those are forgotten whose time is over.
const REMEMBERED: usize = 100_000;

/// Counts requests by client and path.
#[derive(Default)]
pub struct Pace {
    hasher: RandomState,
    /// When the first request came, and how many did, by a hash of client and path.
    seen: Mutex<HashMap<u64, (Instant, u64)>>,
}

impl Pace {
    /// Counts a request; whether it is one of the first `most`.
    pub fn allows(&self, client: Option<IpAddr>, path: &str, most: u64, now: Instant) -> bool {
        let key = self.hasher.hash_one((client.map(network), path));
        let mut seen = self.seen.lock();
        if seen.len() >= REMEMBERED {
            seen.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
            // Looking through all of them at every request would cost more than counting anew.
            if seen.len() >= REMEMBERED {
                seen.clear();
            }
        }
        let (since, count) = seen.entry(key).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        if *count > most {
            *since = now;
        }
        *count <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_so_many_requests_for_each_path_until_four_seconds_pass_without_one_too_many() {
        let (pace, start) = (Pace::default(), Instant::now());
        let at = |client: &str, path: &str, seconds: u64| {
            pace.allows(client.parse().ok(), path, 2, start + Duration::from_secs(seconds))
        };
        assert_eq!([0, 1, 2].map(|seconds| at("192.0.2.1", "/a", seconds)), [true, true, false]);
        assert!(at("192.0.2.1", "/b", 2) && at("192.0.2.2", "/a", 2));
        assert!(!at("192.0.2.1", "/a", 5), "the last one too many began it anew");
        assert!(at("192.0.2.1", "/a", 9));
        assert!(at("2001:db8::1", "/a", 9) && at("2001:db8::2", "/a", 9) && !at("2001:db8::3", "/a", 9));
        assert!(at("2001:db8:0:1::1", "/a", 9));
    }
}
