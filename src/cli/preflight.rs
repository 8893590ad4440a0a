//! `winconform preflight`.

use winconform_core::config::Images;

use super::args::{Format, PreflightArgs};
use super::connect::connected;
use super::error::CliError;
use super::screen::Screen;
use super::suites;
use crate::engine::survey;

pub(super) async fn run(args: PreflightArgs, screen: &Screen) -> Result<u8, CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let cluster = connected(&args.cluster.into()).await?;
    let surveyed = survey(&cluster, &suites, &Images::default())
        .await
        .map_err(CliError::Survey)?;
    let report = surveyed.report();
    match args.format {
        Format::Text => screen.say(&report.text(screen.width())),
        Format::Json => screen.say(&report.json()),
    }
    Ok(if report.is_ready() { 0 } else { 11 })
}
