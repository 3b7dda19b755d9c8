//! Forms with a file: the same in any pieces, read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ferrobase_storage::storage::fuzzed::multipart(data));
