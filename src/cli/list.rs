//! `winconform list`.

use winconform_core::report::claims;

use super::args::{ListArgs, ListFormat};
use super::error::CliError;
use super::screen::Screen;
use super::suites;

pub(super) fn run(args: &ListArgs, screen: &Screen) -> Result<u8, CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    match args.format {
        ListFormat::Text => screen.say(&claims::list_text(&suites)),
        ListFormat::Json => screen.say(&claims::list_json(&suites)),
    }
    Ok(0)
}
