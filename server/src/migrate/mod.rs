//! Brings a database up to date: checksummed files in name order, one instance at a time.
//!
//! Three kinds of SQL, each with its own rule: the platform's files run again when they change ([`platform`]), a
//! project's migrations run once and may not change ([`dir`]), demo data is loaded into an otherwise empty database
//! ([`seed`]). [`prepare`] is what `serve` calls first: the platform, and logins for the server's own roles.

mod error;
mod files;
mod folder;
mod logins;
mod platform;
mod seed;
mod session;
mod statements;

pub use error::MigrateError;
pub use files::Source;
pub use folder::dir;
pub use logins::{GivenUrls, PlatformUrls, prepare};
pub use platform::platform;
pub use seed::{Seeded, has_demo_accounts, seed};

/// What a migration run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Names of the files that were run, in order.
    pub files: Vec<String>,
    /// How many had been applied before.
    pub unchanged: usize,
}
