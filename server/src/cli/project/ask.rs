//! Asks for confirmation at the terminal before data is lost.

use std::io::IsTerminal;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::FileType;

use super::say;

/// How long to wait for the answer of a script that keeps a pipe open.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for the answer of a person.
const PERSON_TIMEOUT: Duration = Duration::from_secs(600);

/// Asks a question whose default answer is yes, as the Supabase CLI does. A script that does not answer gets the default.
pub fn defaults_to_yes(question: &str, is_confirmed: bool) -> bool {
    if is_confirmed {
        say(&format!("{question} [Y/n] y"));
        return true;
    }
    say(&format!("{question} [Y/n]"));
    let answer = answer();
    !matches!(answer.trim().to_lowercase().as_str(), "n" | "no")
}

/// A line of standard input; empty if there is none in time.
fn answer() -> String {
    let read = || {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        line
    };
    let timeout = if std::io::stdin().is_terminal() { PERSON_TIMEOUT } else { SCRIPT_TIMEOUT };
    // Files and /dev/null have an end; only others can keep us waiting.
    let kind = rustix::fs::fstat(std::io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if !std::io::stdin().is_terminal() && matches!(kind, Ok(FileType::RegularFile | FileType::CharacterDevice)) {
        return read();
    }
    let (send, line) = mpsc::channel();
    std::thread::spawn(move || send.send(read()));
    line.recv_timeout(timeout).unwrap_or_default()
}

/// The answer at the terminal. Without a terminal the answer is no.
pub fn answers_yes() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    say("[y/N]");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
