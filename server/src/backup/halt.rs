//! Ending work on files from outside of its thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody has asked for the end; cheap to ask.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Asks when the guard is dropped: whoever gives up waiting ends the work on files as well.
    pub fn on_drop(&self) -> HaltOnDrop {
        HaltOnDrop(self.clone())
    }

    pub fn check(&self) -> io::Result<()> {
        // Of all kinds this one means nothing else when writing to a file.
        if self.0.load(Ordering::Acquire) { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

pub struct HaltOnDrop(Halt);

impl Drop for HaltOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}
