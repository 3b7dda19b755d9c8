//! Backups and major upgrades. The sources are in `server/src`; the crate is compiled beside that of the server.

use ferrobase_foundation::{config, db, http, jwt, owner};
use ferrobase_platform::{embedded_pg, migrate};
use ferrobase_storage::storage;

#[path = "../../src/backup/mod.rs"]
pub mod backup;
#[path = "../../src/upgrade/mod.rs"]
pub mod upgrade;
