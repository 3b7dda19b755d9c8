//! Stops blocking work on files, and the programs that it waits for, from another thread.

use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A flag that asks for the work to stop. Cheap to check.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_set: AtomicBool,
    programs: Mutex<Vec<Weak<Mutex<Child>>>>,
}

impl StopFlag {
    /// Sets the flag when the guard is dropped, so that abandoning the future also stops the blocking work.
    pub fn on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }

    pub fn check(&self) -> io::Result<()> {
        // File writes never return this kind otherwise.
        if self.0.is_set.load(Ordering::Acquire) { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Has a program killed when the flag is set.
    pub fn kills(&self, program: &Arc<Mutex<Child>>) {
        let mut programs = self.0.programs.lock();
        programs.retain(|program| program.strong_count() > 0);
        programs.push(Arc::downgrade(program));
        if self.check().is_err() {
            kill(&programs);
        }
    }

    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Release);
        kill(&self.0.programs.lock());
    }
}

fn kill(programs: &[Weak<Mutex<Child>>]) {
    for program in programs.iter().filter_map(Weak::upgrade) {
        // An error means that it has ended already.
        let _ = program.lock().kill();
    }
}

pub struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}
