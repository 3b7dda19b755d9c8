//! The modules `server/src/mail` and `server/src/sms`: no request waits for them, so `just up` does not optimize them.

use ferrobase_foundation::{config, db, http, outgoing};

#[path = "../../src/mail/mod.rs"]
pub mod mail;
#[path = "../../src/sms/mod.rs"]
pub mod sms;
