//! Tests that need a process of their own, such as one that captures everything the process logs.

use std::process::{Command, Stdio};

/// Set in the process that runs one test.
const MARK: &str = "FERROBASE_TEST_ALONE";

/// True in the process that runs this one test. Elsewhere, starts that process and requires it to pass, so that the
/// caller has nothing left to do. `test` is the full name, as `cargo test` prints it.
pub fn alone(test: &str) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("our own path");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]).env(MARK, "1").stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(output.status.success() && told.contains("1 passed"), "{test}, alone:\n{told}");
    false
}
