//! Keys, headers and claims of tokens: read or refused, and none is taken for ours.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ferrobase_foundation::jwt::fuzzed::token(data));
