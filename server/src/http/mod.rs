//! HTTP code that the APIs share: client addresses, request ids, CORS, bodies and listeners.

pub mod answer_body;
pub mod answer_file;
pub mod bodies;
pub mod body_limits;
pub mod budget;
pub mod client;
pub mod connection;
pub mod context;
pub mod cors;
pub mod door;
pub mod draining;
mod gate;
#[cfg(feature = "https")]
mod h2;
pub mod json;
pub mod lenient;
pub mod listen;
pub mod loopback;
pub mod origin;
pub mod page;
pub mod prometheus;
pub mod request_id;
pub mod room;
pub mod span;
pub mod takeover;
#[cfg(feature = "https")]
pub mod tls;
#[cfg(not(feature = "https"))]
#[path = "tls_absent.rs"]
pub mod tls;
pub mod traffic;
