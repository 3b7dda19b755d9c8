use std::process::ExitCode;

fn main() -> ExitCode {
    ferrobase::cli::run()
}
