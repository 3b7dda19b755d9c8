//! Ferrobase: a Supabase-compatible backend in one binary on PostgreSQL.
//!
//! A request enters through [`app`], passes the [`gateway`] (which key, which role) and reaches one of the APIs:
//! [`rest`] (PostgREST), [`auth`] (GoTrue), [`storage`], [`functions`] (PostgreSQL and edge functions), [`realtime`]
//! (channels), or [`web`] (the embedded web app). The APIs never import one another. What two of them need lives below
//! them: [`sms`] on [`mail`], [`schema_cache`] and [`mail`] on [`db`], [`db`] on [`http`], [`http`] on [`config`],
//! [`config`] on [`jwt`], [`jwt`] on [`secret`]. All of them ask others with the HTTP client of `outgoing`.
//!
//! [`project`] reads a folder made for the Supabase CLI.
//!
//! Around the request path: [`admin`] reports health and metrics, [`audit`] records changes by administrators,
//! [`embedded_pg`] runs PostgreSQL if no database is configured, [`extensions`] holds the SQL of our own extensions,
//! [`migrate`] brings a database up to date, [`jobs`] runs
//! what the database queues (HTTP requests, scheduled commands), [`backup`] makes and restores backups, [`upgrade`] changes
//! the major version of the embedded PostgreSQL, [`cli`] holds the commands and [`telemetry`] the logs and traces.
//!
//! All but the commands are separate crates (`server/crates`), so that they compile in parallel, and `just up` can optimize
//! those less that no request passes. Their sources are in this folder, and every module has the same path in each crate:
//! `crate::db` works in all of them.

pub use ferrobase_app::{admin, app, functions, gateway, telemetry, web};
pub use ferrobase_auth::auth;
pub use ferrobase_backup::{backup, upgrade};
use ferrobase_foundation::outgoing;
pub use ferrobase_foundation::{config, db, http, jwt, schema_cache, secret};
pub use ferrobase_mail::{mail, sms};
pub use ferrobase_platform::{audit, embedded_pg, extensions, jobs, migrate, project};
pub use ferrobase_realtime::realtime;
pub use ferrobase_rest::rest;
pub use ferrobase_storage::storage;

pub mod cli;
