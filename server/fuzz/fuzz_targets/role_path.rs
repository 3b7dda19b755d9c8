//! Tokens and the path to their role: whatever comes, it is read or refused, never a panic.

#![no_main]

use ferrobase_foundation::jwt::{Claims, KeySet, RolePath, verify};
use libfuzzer_sys::fuzz_target;

// A path, claims and a token, apart at line breaks.
fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.splitn(3, '\n');
    let (path, claims) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let (Ok(path), Some(claims)) = (RolePath::parse(path), Claims::parse(claims.as_bytes())) {
        let _ = (path.find(&claims), claims.check(1_700_000_000, Some("a")));
    }
    let keys = KeySet::from_secret(b"a secret of more than thirty-two bytes");
    let _ = verify(parts.next().unwrap_or_default(), &keys);
});
