//! Settings, read once at start from the environment and an optional file.
//!
//! A [`Source`] looks names up. A [`Reader`] parses them into typed values and collects every problem, so that all problems are
//! reported together. Each concern has its own struct with a `read(&mut Reader)` constructor. No other module reads the
//! environment.

mod auth;
mod connections;
pub mod conninfo;
mod duration;
mod libpq;
mod postgrest_file;
mod reader;
pub mod rest;
mod server;
mod source;
mod tls;

pub use crate::secret::Secret;
pub use auth::*;
pub use connections::Connections;
pub use duration::parse_go_duration;
pub use reader::{Problems, Reader};
pub use rest::{RestConfig, bodies};
pub use server::{
    Api, DEVELOPMENT_JWT_SECRET, DEVELOPMENT_PUBLISHABLE_KEY, DEVELOPMENT_S3_KEYS, DEVELOPMENT_SECRET_KEY,
    DEVELOPMENT_SIGNING_KEY, INBOX_TAKES_SMTP, ServerConfig, SqlSource, TrustedProxies, replica_max_age, slow_query,
    trusted_proxies,
};
pub use source::{PG_TOOLS, Source};
pub use tls::{AcmeConfig, CertificateSource, TlsConfig};
