//! The binary. All code is in the library, where tests can reach it.

use std::process::ExitCode;

use ferrobase_allocator as _;

fn main() -> ExitCode {
    ferrobase::cli::run()
}
