//! What runs around the requests and needs no API. The sources are in `server/src`; the crate is compiled beside those of the
//! APIs.

use ferrobase_foundation::{config, db, http, outgoing, owner};

#[path = "../../src/audit/mod.rs"]
pub mod audit;
#[path = "../../src/embedded_pg/mod.rs"]
pub mod embedded_pg;
#[path = "../../src/extensions.rs"]
pub mod extensions;
#[path = "../../src/jobs/mod.rs"]
pub mod jobs;
#[path = "../../src/migrate/mod.rs"]
pub mod migrate;
#[path = "../../src/project/mod.rs"]
pub mod project;
