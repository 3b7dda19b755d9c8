//! Bodies in chunks as S3's clients send them: the same in any pieces, and none that we did not sign is taken for signed.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ferrobase_storage::storage::fuzzed::chunks(data));
