//! Wire vocabulary the APIs share: who the client is and which request this is.

pub mod client;
pub mod request_id;
