//! Signatures of S3's requests and forms, and XML: read or refused, and none is taken for ours.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ferrobase_storage::storage::fuzzed::signature(data));
