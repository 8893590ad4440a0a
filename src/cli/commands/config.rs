//! `winconform config`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use winconform_core::config::{EXAMPLE, schema};
use winconform_core::text::printable;
use winconform_core::verdict::has_expired;

use crate::cli::args::{ConfigCheckArgs, ConfigCommand, SelectArgs};
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::{settings, suites};

pub(crate) fn run(command: ConfigCommand, screen: &Screen) -> Result<u8, CliError> {
    match command {
        ConfigCommand::Example => screen.say(EXAMPLE),
        ConfigCommand::Schema => screen.say(&schema()),
        ConfigCommand::Check(args) => check(&args, screen)?,
    }
    Ok(0)
}

fn check(args: &ConfigCheckArgs, screen: &Screen) -> Result<(), CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let shown = printable(&args.file.display().to_string());
    let select = SelectArgs { select: Vec::new() };
    let settings = settings::load(Some(&args.file), &select, &suites)?;
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    for placed in &settings.config.waivers {
        if has_expired(&placed.value, today) {
            let problem = placed.at.problem(
                format!(
                    "the waiver of `{}` expired on {}: it does not apply",
                    placed.value.check, placed.value.expires
                ),
                Some("remove it, or have its owner extend it".to_owned()),
            );
            screen.say(&format!("warning: {problem}\n"));
        }
    }
    screen.say(&format!("{shown} is valid\n"));
    Ok(())
}
