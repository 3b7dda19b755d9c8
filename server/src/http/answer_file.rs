//! Files that answers are read from.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;

use tokio::runtime::Handle;

/// A file that is closed off the worker threads if it has been removed meanwhile: its blocks are then freed, which waits for the
/// disk. Answers end on worker threads, also when a client hangs up.
#[derive(Debug)]
pub struct AnswerFile(
    /// Until it is dropped.
    Option<File>,
);

impl From<File> for AnswerFile {
    fn from(file: File) -> Self {
        Self(Some(file))
    }
}

impl Deref for AnswerFile {
    type Target = File;

    fn deref(&self) -> &File {
        match &self.0 {
            Some(file) => file,
            None => unreachable!("it has its file until it is dropped"),
        }
    }
}

impl Drop for AnswerFile {
    fn drop(&mut self) {
        let Some(file) = self.0.take() else { return };
        let is_removed = file.metadata().is_ok_and(|known| known.nlink() == 0);
        if is_removed && let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(file));
        }
    }
}
