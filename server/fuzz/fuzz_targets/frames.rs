//! WebSocket frames and Phoenix messages: the same in any pieces, read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ferrobase_realtime::realtime::fuzzed::socket(data));
