//! `winconform facts`.

use winconform_core::config::Config;
use winconform_core::report::facts;

use super::args::{FactsArgs, Format};
use super::connect::connected;
use super::error::CliError;
use super::screen::Screen;
use crate::cluster::collect;

pub(super) async fn run(args: FactsArgs, screen: &Screen) -> Result<u8, CliError> {
    let cluster = connected(&args.cluster, &Config::default(), screen).await?;
    let found = collect(&cluster.api).await;
    match args.format {
        Format::Text => screen.say(&facts::render(&found, screen.width())),
        Format::Json => screen.say(&facts::render_json(&found)),
    }
    Ok(0)
}
