//! `winconform preflight`.

use super::args::{Format, ShownArgs};
use super::connect::connected;
use super::error::CliError;
use super::screen::Screen;
use super::settings;
use crate::engine::{SurveyError, survey};

pub(super) async fn run(args: ShownArgs, screen: &Screen) -> Result<u8, CliError> {
    let (suites, settings) = settings::of(&args.on)?;
    let cluster = connected(&args.on.cluster, &settings.config, screen).await?;
    let report = survey(&cluster, &suites, &settings.config, &settings.selection)
        .await
        .map_err(|error| match error {
            SurveyError::Selection(found) => CliError::Absent(found),
            error @ SurveyError::Manifests(_) => CliError::Survey(error),
        })?;
    match args.format {
        Format::Text => screen.say(&report.text(screen.width())),
        Format::Json => screen.say(&report.json()),
    }
    Ok(if report.is_ready() { 0 } else { 11 })
}
