//! `winconform plan`.

use winconform_core::config::Images;
use winconform_core::report::claims;

use super::args::PlanArgs;
use super::connect::connected;
use super::error::CliError;
use super::screen::Screen;
use super::suites;
use crate::engine::plan_of;

pub(super) async fn run(args: PlanArgs, screen: &Screen) -> Result<u8, CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let cluster = connected(&args.cluster.into()).await?;
    let (_, plan) = plan_of(&cluster, &suites, &Images::default()).await;
    screen.say(&claims::plan_text(&plan));
    Ok(0)
}
