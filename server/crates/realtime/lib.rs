//! The module `server/src/realtime`, compiled in parallel with the other APIs.

use ferrobase_foundation::{config, db, http, jwt};

#[path = "../../src/realtime/mod.rs"]
pub mod realtime;
