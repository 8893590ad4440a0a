//! `winconform facts`.

use winconform_core::config::Config;
use winconform_core::report::{facts, json};

use crate::cli::args::{FactsArgs, Format};
use crate::cli::connect::connected;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cluster::collect;

pub(crate) async fn run(args: FactsArgs, screen: &Screen) -> Result<u8, CliError> {
    let cluster = connected(&args.cluster, &Config::default(), screen).await?;
    let facts = collect(&cluster.api).await;
    match args.format {
        Format::Text => screen.say(&facts::render(&facts, screen.width())),
        Format::Json => screen.say(&json::pretty(&facts)),
    }
    Ok(0)
}
