//! All tests that need a server, a database or a process, as one program, which is linked once and uses one PostgreSQL.
//! `cargo test --test all auth::` runs one area.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod support;

mod api;
mod attack;
mod auth;
mod backup;
mod backup_external;
mod backup_incremental;
mod backup_mishaps;
mod chaos;
mod embedded_postgres;
mod first_release;
mod foreign_extensions;
mod house;
mod https;
mod key_rotation;
mod mail;
mod migrations;
mod npm_testing;
mod outages;
mod overload;
mod points_in_time;
mod process;
mod project;
mod project_commands;
mod project_copies;
mod project_extensions;
mod project_functions;
mod project_import;
mod project_migrations;
mod project_options;
mod project_pieces;
mod project_remotes;
mod project_storage;
mod realtime;
mod replica;
mod rest;
mod rest_isolation;
mod shutdown;
mod sms;
mod storage_crash;
mod telemetry;
mod types;
mod upgrade;
mod watching;
