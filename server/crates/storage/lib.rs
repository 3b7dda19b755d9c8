//! The room `server/src/storage`, compiled beside the other APIs.

use ferrobase_foundation::{config, db, http, jwt};

#[path = "../../src/storage/mod.rs"]
pub mod storage;
