//! `winconform preflight`.

use crate::cli::args::{Format, ShownArgs};
use crate::cli::connect::connected;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::settings;
use crate::engine::survey;

pub(crate) async fn run(args: ShownArgs, screen: &Screen) -> Result<u8, CliError> {
    let (suites, settings) = settings::read(&args.on.checks)?;
    let cluster = connected(&args.on.cluster, &settings.config, screen).await?;
    let report = survey(&cluster, &suites, &settings.config, &settings.selection).await?;
    match args.format {
        Format::Text => screen.say(&report.text(screen.width())),
        Format::Json => screen.say(&report.json()),
    }
    Ok(if report.is_ready() { 0 } else { 11 })
}
