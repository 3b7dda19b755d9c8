//! Brings a database up to date: checksummed files in name order, one instance at a time.
//!
//! A project made for the Supabase CLI follows different rules ([`project`]).
//!
//! [`runner`] runs every set of files and [`ledger`] records them. The sets, each with its rule for a file that
//! changed: the platform's files run again ([`platform`]), those of the schema `auth` and of a project ran once
//! ([`auth`], [`project`]), an application's numbered files may not change and its definitions run again ([`dir`]),
//! demo data is loaded into an otherwise empty database ([`seed`]). [`prepare`] is what `serve` calls first: the
//! platform, and logins for the server's own roles.

mod application;
mod auth;
mod emulated;
mod error;
mod files;
mod foreign;
mod ledger;
mod locks;
mod logins;
mod pending;
mod platform;
pub mod project;
mod runner;
mod seed;
mod session;
mod statements;

pub use application::dir;
pub use auth::auth;
pub use error::MigrateError;
pub use files::{Source, SqlFile};
pub use logins::{GivenUrls, PlatformUrls, PooledUrls, at_replica, pooled, prepare, with_login_of};
pub use pending::{Pending, pending};
pub use platform::platform;
pub use runner::Applied;
pub use seed::{Seeded, has_demo_accounts, seed};
pub use statements::{END_OF_DATA, Statement, split as split_statements};

/// All SQL files that this binary may run on a project's database before the project's own.
pub fn embedded_files() -> Result<Vec<SqlFile>, MigrateError> {
    let mut files = files::platform()?;
    files.extend(files::auth()?);
    files.push(SqlFile::new("webhooks.sql", project::WEBHOOKS.to_owned()));
    Ok(files)
}
