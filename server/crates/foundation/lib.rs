//! The modules that all APIs share. Their sources are in `server/src`. This crate and those of the APIs exist so that
//! Cargo compiles them in parallel.

#[path = "../../src/config/mod.rs"]
pub mod config;
#[path = "../../src/db/mod.rs"]
pub mod db;
#[path = "../../src/http/mod.rs"]
pub mod http;
#[path = "../../src/jwt/mod.rs"]
pub mod jwt;
#[path = "../../src/outgoing.rs"]
pub mod outgoing;
#[path = "../../src/owner.rs"]
pub mod owner;
#[path = "../../src/schema_cache/mod.rs"]
pub mod schema_cache;
#[path = "../../src/secret.rs"]
pub mod secret;
