//! The mending of request targets: the same whatever pieces the bytes come in, and nothing but targets is touched.

#![no_main]

use ferrobase_foundation::http::lenient::mended;
use libfuzzer_sys::fuzz_target;

/// The bytes that may be escaped, unescaped again.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(bytes).collect()
}

// The first byte says how long the pieces are.
fuzz_target!(|data: &[u8]| {
    let [first, rest @ ..] = data else { return };
    let whole = mended([rest]);
    let length = usize::from(*first).max(1);
    assert_eq!(mended(rest.chunks(length)), whole, "in pieces of {length}");
    assert_eq!(mended(rest.chunks(1)), whole, "byte by byte");
    assert_eq!(unescaped(&whole), unescaped(rest), "more than escapes was changed");
    assert_eq!(mended([whole.as_slice()]), whole, "what is mended needs no mending");
});
