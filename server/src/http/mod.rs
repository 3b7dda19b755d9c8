//! HTTP code that the APIs share: client addresses, request ids, CORS, bodies and listeners.

pub mod bodies;
pub mod budget;
pub mod client;
pub mod context;
pub mod cors;
pub mod draining;
mod gate;
pub mod lenient;
pub mod listen;
pub mod loopback;
pub mod page;
pub mod patience;
pub mod prometheus;
pub mod request_id;
pub mod span;
pub mod takeover;
