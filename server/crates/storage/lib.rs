//! The module `server/src/storage`, compiled in parallel with the other APIs.

use ferrobase_foundation::{config, db, http, jwt, outgoing, owner};

#[path = "../../src/storage/mod.rs"]
pub mod storage;
