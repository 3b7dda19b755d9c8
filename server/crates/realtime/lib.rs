//! The room `server/src/realtime`, compiled beside the other APIs.

use ferrobase_foundation::{config, db, http, jwt};

#[path = "../../src/realtime/mod.rs"]
pub mod realtime;
