//! The module `server/src/auth`, compiled in parallel with the other APIs.

use ferrobase_foundation::{config, db, http, jwt, outgoing};
use ferrobase_mail::{mail, sms};

#[path = "../../src/auth/mod.rs"]
pub mod auth;
