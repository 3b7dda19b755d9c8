//! Whether the server is about to stop and wants no further connections.
//!
//! A load balancer has to hear of it first: `/ready` and `/health` say no, each answer ends its connection, and only after a
//! while (`FERROBASE_DRAIN`) the ports are closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cheap to clone; all clones begin together.
#[derive(Clone, Debug, Default)]
pub struct Draining(Arc<AtomicBool>);

impl Draining {
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
