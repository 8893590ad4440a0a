//! `winconform list`.

use winconform_core::record::Exit;
use winconform_core::report::claims;

use super::args::{Format, ListArgs};
use super::error::CliError;
use super::screen::Screen;
use super::{settings, suites};

pub(super) fn run(args: &ListArgs, screen: &Screen) -> Result<u8, CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let selection = settings::load(None, &args.select, &suites)?.selection;
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
