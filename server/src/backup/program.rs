//! PostgreSQL's programs, whose input or output passes through a pipe.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use super::error::BackupError;

/// A running PostgreSQL program; killed when dropped.
pub struct Running {
    name: &'static str,
    pub child: Child,
    /// The last error line of its output.
    said: Option<JoinHandle<String>>,
}

impl Running {
    pub fn start(name: &'static str, command: &mut Command, input: Stdio, output: Stdio) -> Result<Self, BackupError> {
        let mut child = command
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(BackupError::io("cannot run", name))?;
        let said = child.stderr.take().map(|mut errors| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = errors.read_to_string(&mut text);
                text.lines()
                    .rfind(|line| line.contains("error:"))
                    .or(text.lines().last())
                    .unwrap_or_default()
                    .to_owned()
            })
        });
        Ok(Self { name, child, said })
    }

    pub fn kill(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
    }

    pub fn end(mut self) -> Result<(), BackupError> {
        let status = self.child.wait().map_err(BackupError::io("cannot wait for", self.name))?;
        if status.success() {
            return Ok(());
        }
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        Err(BackupError::Program { name: self.name, said })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}
