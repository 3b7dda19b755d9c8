//! Settings: read once at start from the environment and an optional file, typed, and refused together.
//!
//! A [`Source`] answers names; a [`Reader`] turns them into typed values and collects every problem, so that
//! a wrong configuration is reported in one go. Each concern has its own struct with a `read(&mut Reader)`
//! constructor; no other room looks at the environment.

mod auth;
mod duration;
mod libpq;
mod reader;
pub mod rest;
mod server;
mod source;

pub use crate::secret::Secret;
pub use auth::*;
pub use duration::parse_go_duration;
pub use reader::{Problems, Reader};
pub use rest::RestConfig;
pub use server::{Api, DEVELOPMENT_JWT_SECRET, ServerConfig, SqlSource};
pub use source::Source;
