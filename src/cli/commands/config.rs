//! `winconform config`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use winconform_core::config::{EXAMPLE, schema};
use winconform_core::text::printable;
use winconform_core::verdict::has_expired;

use crate::cli::args::{ChecksArgs, ConfigCheckArgs, ConfigCommand};
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::settings;

pub(crate) fn run(command: ConfigCommand, screen: &Screen) -> Result<u8, CliError> {
    match command {
        ConfigCommand::Example => screen.say(EXAMPLE),
        ConfigCommand::Schema => screen.say(&schema()),
        ConfigCommand::Check(args) => check(args, screen)?,
    }
    Ok(0)
}

fn check(args: ConfigCheckArgs, screen: &Screen) -> Result<(), CliError> {
    let shown = printable(&args.file.display().to_string());
    let checks = ChecksArgs {
        suites: args.suites,
        config: Some(args.file),
        ..ChecksArgs::default()
    };
    let (_, settings) = settings::read(&checks)?;
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
