//! The grammar of query strings and bodies: whatever comes, it is parsed or refused, never a panic.

#![no_main]

use bytes::Bytes;
use ferrobase_rest::rest::request::{RawRequest, RequestRules, parse};
use libfuzzer_sys::fuzz_target;

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"];
const PATHS: [&str; 5] = ["/", "/stars", "/rpc/plus", "/%C3%A9", "/a/b"];
const TYPES: [&str; 4] = ["application/json", "text/csv", "application/x-www-form-urlencoded", "text/plain"];

// Two bytes choose method, path and content type; the rest is query, preferences and body, apart at line breaks.
fuzz_target!(|data: &[u8]| {
    let [first, second, rest @ ..] = data else { return };
    let mut parts = rest.splitn(3, |byte| *byte == b'\n');
    let query = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let prefer = parts.next().unwrap_or_default();
    let body = Bytes::copy_from_slice(parts.next().unwrap_or_default());
    let schemas = ["sky".to_owned(), "workshop".to_owned()];
    let rules = RequestRules { schemas: &schemas, root_function: None, root_disabled: false, tx_override: true };
    let request = RawRequest {
        method: METHODS[usize::from(*first) % METHODS.len()],
        path: PATHS[usize::from(*second) % PATHS.len()],
        query: &query,
        headers: vec![
            ("prefer", prefer),
            ("range", prefer),
            ("accept", prefer),
            ("content-type", TYPES[usize::from(*second) / 64].as_bytes()),
        ],
        body,
    };
    // An error says where it is; making the sentence is part of the road.
    if let Err(error) = parse(&request, &rules) {
        let _ = (error.status(), error.code());
    }
});
