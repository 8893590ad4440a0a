//! `winconform completions` and `winconform man`: what shells and `man` read, made from the arguments.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::args::Cli;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;

pub(crate) fn completions(shell: Shell, screen: &Screen) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "winconform", &mut script);
    screen.say(&String::from_utf8_lossy(&script));
    0
}

/// Writes a page for winconform and one for each of its commands into a folder.
pub(crate) fn man(folder: &Path) -> Result<u8, CliError> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    let failed = |source| CliError::Write {
        path: folder.to_owned(),
        source,
    };
    written.map(|()| 0).map_err(failed)
}
