//! Rate limit of image requests per client and path, in windows of four seconds. As in the reference, requests beyond the limit
//! start the window again.
//!
//! Each instance counts separately. Reference: supabase/storage `src/http/routes/render/rate-limiter.ts`.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::http::client::network;

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(4);
/// Maximum number of clients and paths before expired ones are removed.
const REMEMBERED: usize = 100_000;

/// Counts requests by client and path.
#[derive(Default)]
pub struct RateLimiter {
    hasher: RandomState,
    /// Start of the window and number of requests, by a hash of client and path.
    seen: Mutex<HashMap<u64, (Instant, u64)>>,
}

impl RateLimiter {
    /// Counts a request. Returns whether it is one of the first `most`.
    pub fn allows(&self, client: Option<IpAddr>, path: &str, most: u64, now: Instant) -> bool {
        let key = self.hasher.hash_one((client.map(network), path));
        let mut seen = self.seen.lock();
        if seen.len() >= REMEMBERED {
            seen.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
            // Scanning all entries on every request would cost more than starting to count again.
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
    fn requests_are_limited_per_client_and_path_until_a_window_without_excess_passes() {
        let (limiter, start) = (RateLimiter::default(), Instant::now());
        let at = |client: &str, path: &str, seconds: u64| {
            limiter.allows(client.parse().ok(), path, 2, start + Duration::from_secs(seconds))
        };
        assert_eq!([0, 1, 2].map(|seconds| at("192.0.2.1", "/a", seconds)), [true, true, false]);
        assert!(at("192.0.2.1", "/b", 2) && at("192.0.2.2", "/a", 2));
        assert!(!at("192.0.2.1", "/a", 5), "the refused request restarted the window");
        assert!(at("192.0.2.1", "/a", 9));
        assert!(at("2001:db8::1", "/a", 9) && at("2001:db8::2", "/a", 9) && !at("2001:db8::3", "/a", 9));
        assert!(at("2001:db8:0:1::1", "/a", 9));
    }
}
