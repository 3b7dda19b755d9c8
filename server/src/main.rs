//! The binary: everything is in the library, so that tests reach it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ferrobase::cli::run()
}
