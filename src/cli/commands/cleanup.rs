//! `winconform cleanup`.

use winconform_core::config::Config;
use winconform_core::text::{counted, printable};

use super::run::holder;
use crate::cli::args::CleanupArgs;
use crate::cli::connect::connected;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cluster::{Cleaning, cleanup};

pub(crate) async fn run(args: CleanupArgs, screen: &Screen) -> Result<u8, CliError> {
    let cluster = connected(&args.cluster, &Config::default(), screen).await?;
    let holder = holder("cleanup");
    let progress = |cleaning| match cleaning {
        Cleaning::Waits => {
            screen.complain("Making sure that the run that left its Lease is dead …\n");
        }
        Cleaning::Unreleased(error) => {
            screen.complain(&format!("warning: {}\n", printable(&error.to_string())));
        }
    };
    let removed = cleanup(&cluster.api, args.run.as_deref(), &holder, progress).await?;
    for object in &removed.removed {
        screen.say(&format!("removed {object}\n"));
    }
    for left in &removed.left {
        screen.say(&format!("left {}: {}\n", left.object, printable(&left.why)));
    }
    for (kind, error) in &removed.unlisted {
        let error = printable(&error.to_string());
        screen.say(&format!("could not look for {}: {error}\n", kind.plural));
    }
    if let (Some(run), true) = (&args.run, removed.removed.is_empty() && removed.is_clean()) {
        let run = printable(run);
        screen.complain(&format!("Nothing of a run `{run}` is on this cluster.\n"));
    }
    screen.say(&format!(
        "{} removed, {} left\n",
        counted(removed.removed.len(), "object"),
        removed.left.len()
    ));
    Ok(if removed.is_clean() { 0 } else { 11 })
}
