//! The way of a request to its API. The sources are in `server/src`; the crate is compiled beside that of the commands.

use ferrobase_auth::auth;
use ferrobase_backup::backup;
use ferrobase_foundation::{config, db, http, jwt, outgoing};
use ferrobase_mail::{mail, sms};
use ferrobase_platform::{audit, jobs, migrate, project};
use ferrobase_realtime::realtime;
use ferrobase_rest::rest;
use ferrobase_storage::storage;

#[path = "../../src/admin/mod.rs"]
pub mod admin;
#[path = "../../src/app.rs"]
pub mod app;
#[path = "../../src/functions/mod.rs"]
pub mod functions;
#[path = "../../src/gateway/mod.rs"]
pub mod gateway;
#[path = "../../src/telemetry/mod.rs"]
pub mod telemetry;
#[path = "../../src/web/mod.rs"]
pub mod web;
