//! The binary. All code is in the library, where tests can reach it.

use std::process::ExitCode;

/// A request makes some hundred small allocations, for which this allocator takes a quarter of the instructions of
/// glibc's. Huge pages are left off, which would double the resident memory of a server at rest.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ferrobase::cli::run()
}
