//! Every test that needs a server, a database or a process, as one program: it is linked once, and one PostgreSQL
//! serves it all. `cargo test --test all auth::` runs one area.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod support;

mod api;
mod attack;
mod auth;
mod backup;
mod backup_external;
mod chaos;
mod embedded_postgres;
mod house;
mod key_rotation;
mod mail;
mod migrations;
mod npm_testing;
mod outages;
mod points_in_time;
mod process;
mod project;
mod project_commands;
mod project_copies;
mod project_functions;
mod project_import;
mod project_migrations;
mod realtime;
mod rest;
mod rest_isolation;
mod shutdown;
mod sms;
mod storage_crash;
mod telemetry;
mod types;
mod watching;
