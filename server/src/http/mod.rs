//! Wire vocabulary the APIs share: who the client is and which request this is.

pub mod client;
mod lenient;
pub mod listen;
pub mod request_id;
