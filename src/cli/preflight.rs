//! `winconform preflight`.

use super::args::{Format, PreflightArgs};
use super::connect::connected;
use super::error::CliError;
use super::screen::Screen;
use super::{settings, suites};
use crate::engine::{SurveyError, survey};

pub(super) async fn run(args: PreflightArgs, screen: &Screen) -> Result<u8, CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let settings = settings::load(&args.config, &args.select, &suites)?;
    let cluster = connected(&args.cluster.into(), &settings.config).await?;
    let surveyed = survey(&cluster, &suites, &settings.config, &settings.selection)
        .await
        .map_err(|error| match error {
            SurveyError::Selection(found) => CliError::Absent(found),
            error @ SurveyError::Manifests(_) => CliError::Survey(error),
        })?;
    let report = surveyed.report();
    match args.format {
        Format::Text => screen.say(&report.text(screen.width())),
        Format::Json => screen.say(&report.json()),
    }
    Ok(if report.is_ready() { 0 } else { 11 })
}
