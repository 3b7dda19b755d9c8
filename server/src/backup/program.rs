//! PostgreSQL's programs, whose input or output passes through a pipe.

use std::io::Read;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::error::BackupError;
use super::stop_flag::StopFlag;

/// How often it is asked whether a program has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A running PostgreSQL program; killed when dropped, or when the stop flag is set: whoever reads from it or writes to it would wait
/// for as long as the program does.
pub struct Running {
    name: &'static str,
    child: Arc<Mutex<Child>>,
    /// Its pipes, where it has some.
    pub input: Option<ChildStdin>,
    pub output: Option<ChildStdout>,
    /// The last error of its output.
    said: Option<JoinHandle<String>>,
}

impl Running {
    pub fn start(
        name: &'static str,
        command: &mut Command,
        (input, output): (Stdio, Stdio),
        stop_flag: &StopFlag,
    ) -> Result<Self, BackupError> {
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
                last_error(&text)
            })
        });
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let child = Arc::new(Mutex::new(child));
        stop_flag.kills(&child);
        Ok(Self { name, child, input, output, said })
    }

    pub fn kill(&self) {
        // An error means that it has ended already.
        let _ = self.child.lock().kill();
    }

    /// Waits until it ends.
    pub fn end(mut self) -> Result<(), BackupError> {
        // A program that waits for its input would never end.
        drop((self.input.take(), self.output.take()));
        let status = self.wait()?;
        if status.success() {
            return Ok(());
        }
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        Err(BackupError::Program { name: self.name, said })
    }

    /// Does not wait with the lock, which the one who kills it needs.
    fn wait(&self) -> Result<ExitStatus, BackupError> {
        loop {
            let ended = self.child.lock().try_wait().map_err(BackupError::io("cannot wait for", self.name))?;
            match ended {
                Some(status) => return Ok(status),
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.lock().wait();
    }
}

/// The last line with an error, and the database's hint after it: it says what to do.
fn last_error(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().rposition(|line| line.contains("error:")) else {
        return lines.last().copied().unwrap_or_default().to_owned();
    };
    let hint = lines[at..].iter().find_map(|line| line.strip_prefix("HINT:"));
    hint.map_or_else(|| lines[at].to_owned(), |hint| format!("{} ({})", lines[at], hint.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_hint() {
        let error = "pg_restore: error: could not execute query: ERROR:  out of shared memory";
        let hint = "You might need to increase \"max_locks_per_transaction\".";
        let text = format!("pg_restore: warning: x\n{error}\nHINT:  {hint}\nCommand was: CREATE TABLE x ();\n");
        assert_eq!(last_error(&text), format!("{error} ({hint})"));
        assert_eq!(last_error(&format!("HINT:  of another\n{error}\n")), error);
        assert_eq!(last_error("a\nb\n"), "b");
        assert_eq!(last_error(""), "");
    }

    fn sleeper(stop_flag: &StopFlag) -> Running {
        let mut command = Command::new("sleep");
        command.arg("600");
        Running::start("sleep", &mut command, (Stdio::null(), Stdio::piped()), stop_flag).expect("it runs")
    }

    /// A server that was told to stop waited for its whole incremental archive.
    #[test]
    fn a_program_is_killed_once_its_work_is_given_up() {
        let stop_flag = StopFlag::default();
        let given_up = stop_flag.on_drop();
        let mut running = sleeper(&stop_flag);
        let mut output = running.output.take().expect("a pipe");
        let reader = std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
        drop(given_up);
        assert_eq!(reader.join().expect("no panic").expect("the end of its output"), 0);
        assert!(matches!(running.end(), Err(BackupError::Program { name: "sleep", .. })));
    }

    #[test]
    fn a_program_that_is_started_too_late_is_killed_as_well() {
        let stop_flag = StopFlag::default();
        drop(stop_flag.on_drop());
        assert!(sleeper(&stop_flag).end().is_err());
    }
}
