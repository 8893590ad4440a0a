//! `winconform list`.

use winconform_core::record::Exit;
use winconform_core::report::claims;

use crate::cli::args::{ChecksArgs, Format, ListArgs};
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::settings;

pub(crate) fn run(args: ListArgs, screen: &Screen) -> Result<u8, CliError> {
    let checks = ChecksArgs {
        suites: args.suites,
        select: args.select,
        ..ChecksArgs::default()
    };
    let (suites, settings) = settings::read(&checks)?;
    let selection = settings.selection;
    match args.format {
        Format::Text => screen.say(&claims::list_text(&suites, &selection)),
        Format::Json => screen.say(&claims::list_json(&suites, &selection)),
    }
    let mut claims = suites.claims.iter();
    match claims.any(|claim| selection.may_want(claim, &suites)) {
        true => Ok(0),
        false => Ok(Exit::NothingSelected.code()),
    }
}
