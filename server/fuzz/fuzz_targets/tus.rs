//! Headers and addresses of resumable uploads: read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ferrobase_storage::storage::fuzzed::tus(data));
