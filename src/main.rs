//! The command: installs the TLS provider, runs, exits.

use std::process::ExitCode;

fn main() -> ExitCode {
    winconform::cli::main()
}
