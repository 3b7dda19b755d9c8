//! Wire vocabulary the APIs share: who the client is, which request this is, who may read the answer.

pub mod client;
pub mod cors;
mod lenient;
pub mod listen;
pub mod patience;
pub mod request_id;
