//! `winconform plan`.

use winconform_core::config::{Durations, Images, Limits};
use winconform_core::report::claims;

use super::args::PlanArgs;
use super::error::CliError;
use super::screen::Screen;
use super::suites;
use crate::cluster::connect;
use crate::engine::plan_of;

pub(super) async fn run(args: PlanArgs, screen: &Screen) -> Result<u8, CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let cluster = connect(
        &args.cluster.into(),
        Durations::default(),
        Limits::default(),
    )
    .await
    .map_err(CliError::Connect)?;
    let (_, plan) = plan_of(&cluster, &suites, &Images::default()).await;
    screen.say(&claims::plan_text(&plan));
    Ok(0)
}
