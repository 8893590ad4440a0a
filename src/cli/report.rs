//! `winconform report`.

use winconform_core::record::read;
use winconform_core::report::terminal;

use super::args::ReportArgs;
use super::error::CliError;
use super::out;
use super::screen::Screen;

pub(super) fn run(args: &ReportArgs, screen: &Screen) -> Result<u8, CliError> {
    let path = &args.record;
    let text = std::fs::read_to_string(path)
        .map_err(|source| CliError::Read { path: path.clone(), source })?;
    let view =
        read(&text).map_err(|source| CliError::Record { path: path.clone(), source })?;
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)
            .map_err(|source| CliError::Write { path: folder.clone(), source })?;
        out::write(folder, &view)?;
    }
    let colour = if screen.colour { terminal::Colour::Always } else { terminal::Colour::Never };
    screen.say(&terminal::render(&view, screen.width, colour));
    Ok(0)
}
