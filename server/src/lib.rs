//! Ferrobase: a Supabase-compatible backend in one binary on PostgreSQL.
//!
//! A request enters through [`app`], passes the [`gateway`] (which key, which role) and reaches one of the APIs:
//! [`rest`] (PostgREST), [`auth`] (GoTrue), [`storage`], [`functions`] (PostgreSQL and edge functions), [`realtime`]
//! (channels), or [`web`] (the embedded web app). The APIs never import one another. What two of them need lives below
//! them: [`sms`] on [`mail`], [`schema_cache`] and [`mail`] on [`db`], [`db`] on [`http`], [`http`] on [`config`],
//! [`config`] on [`jwt`], [`jwt`] on [`secret`].
//!
//! [`project`] reads a folder made for the Supabase CLI.
//!
//! Around the request path: [`admin`] reports health and metrics, [`audit`] records changes by administrators,
//! [`embedded_pg`] runs PostgreSQL if no database is configured, [`migrate`] brings a database up to date, [`jobs`] runs
//! what the database queues (HTTP requests, scheduled commands), [`backup`] makes and restores backups, [`cli`] holds
//! the commands and [`telemetry`] the logs and traces.
//!
//! The large APIs, and the modules that they share, are separate crates (`server/crates`), so that they compile in
//! parallel. Their sources are in this folder, and every module has the same path in each crate: `crate::db` works in
//! all of them.

pub use ferrobase_auth::auth;
pub use ferrobase_foundation::{config, db, http, jwt, mail, schema_cache, secret, sms};
pub use ferrobase_realtime::realtime;
pub use ferrobase_rest::rest;
pub use ferrobase_storage::storage;

pub mod admin;
pub mod app;
pub mod audit;
pub mod backup;
pub mod cli;
pub mod embedded_pg;
pub mod functions;
pub mod gateway;
pub mod jobs;
pub mod migrate;
pub mod project;
pub mod telemetry;
pub mod web;
