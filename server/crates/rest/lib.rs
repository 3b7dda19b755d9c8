//! The module `server/src/rest`, compiled in parallel with the other APIs.

use ferrobase_foundation::{config, db, http, jwt, schema_cache};

#[path = "../../src/rest/mod.rs"]
pub mod rest;
