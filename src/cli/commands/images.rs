//! `winconform images`.

use std::time::Duration;

use winconform_core::plan::pulls;
use winconform_core::report::images;

use crate::cli::args::{Format, ShownArgs};
use crate::cli::connect::connected;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::settings;
use crate::engine::{image_platforms, plan_of};

/// The limit for a registry's answers about one image, while a user waits at a terminal.
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) async fn run(args: ShownArgs, screen: &Screen) -> Result<u8, CliError> {
    let (suites, settings) = settings::read(&args.on.checks)?;
    let cluster = connected(&args.on.cluster, &settings.config, screen).await?;
    let table = &settings.config.images;
    let (facts, selected) =
        plan_of(&cluster, &suites, &settings.config, &settings.selection).await?;
    let pulled = pulls(&selected.plan, &facts, table);
    let offers = image_platforms(cluster.api.env(), LIMIT, &pulled, &facts.pools()).await;
    match args.format {
        Format::Text => screen.say(&images::text(&pulled, &offers)),
        Format::Json => screen.say(&images::json(&pulled, &offers)),
    }
    Ok(0)
}
