//! `winconform prepull`.

use std::collections::BTreeMap;
use std::time::Duration;

use winconform_core::method::ObservationError;
use winconform_core::plan::pulls;
use winconform_core::record::{Exit, redact};
use winconform_core::text::{counted, printable};

use super::run::{count_signals, holder, new_id};
use crate::cli::args::PrepullArgs;
use crate::cli::connect::connected_to_change;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::settings;
use crate::cli::shell::cleanup;
use crate::cluster::LEASE_NAME;
use crate::engine::{EndedBy, Keep, Pull, Repeat, RunOptions, plan_of, prepull};

pub(crate) async fn run(args: PrepullArgs, screen: &Screen) -> Result<u8, CliError> {
    let (suites, settings) = settings::read(&args.on.checks)?;
    let whose = (&args.on.cluster, &args.protected);
    let cluster = connected_to_change(whose, &settings.config, screen).await?;
    let images = &settings.config.images;
    let (facts, selected) =
        plan_of(&cluster, &suites, &settings.config, &settings.selection).await?;
    let wanted = pulls(&selected.plan, &facts, images);
    if wanted.is_empty() {
        screen.say("Nothing is pulled.\n");
        return Ok(0);
    }
    let of_node = wanted.values().flat_map(|pool| {
        let images = pool.images.len();
        pool.nodes
            .iter()
            .map(move |node| (node.clone(), (0, images)))
    });
    let mut nodes: BTreeMap<_, (usize, usize)> = of_node.collect();
    let run = new_id();
    let options = RunOptions {
        lease: LEASE_NAME.to_owned(),
        holder: holder(&run),
        run,
        config: settings.config,
        selection: settings.selection,
        deadline: None,
        repeat: Repeat::Times(1),
        resume: None,
        keep: Keep::Never,
    };
    let signals = count_signals().map_err(CliError::Signals)?;
    let mut tell = |pull: &Pull, outcome: Result<Duration, &ObservationError>| {
        let (count, of) = nodes.entry(pull.node.clone()).or_default();
        *count += 1;
        screen.say(&line(pull, (*count, *of), outcome));
    };
    let pools = facts.pools();
    let done = prepull(&cluster, &wanted, pools, &options, signals, &mut tell).await?;
    let left = done.torn_down.left.len() + done.torn_down.errors.len();
    if let Some(EndedBy::Lease(why)) = &done.ended_by {
        screen.say(&format!("ended early by {}\n", printable(why)));
    }
    let missing = counted(done.missing, "image");
    screen.say(&format!("{missing} not pulled; "));
    match left {
        0 => screen.say("nothing left on the cluster but the images\n"),
        _ => {
            let why = done.torn_down.errors.iter();
            let why: Vec<_> = why.map(|why| printable(&redact(why))).collect();
            let command = cleanup(&args.on.cluster, &options.run);
            screen.say(&format!(
                "something may be left: {}\nTo remove it:\n  {command}\n",
                why.join("; ")
            ));
        }
    }
    Ok(if done.ended_by == Some(EndedBy::Signal) {
        Exit::Interrupted.code()
    } else if done.ended_by.is_some() || done.missing > 0 || left > 0 {
        Exit::CouldNotTell.code()
    } else {
        0
    })
}

/// The line about one image on one node.
fn line(
    pull: &Pull,
    (count, of): (usize, usize),
    outcome: Result<Duration, &ObservationError>,
) -> String {
    let (node, image) = (printable(&pull.node), printable(&pull.image));
    let how = match outcome {
        Ok(after) => format!("there after {} s", after.as_secs()),
        Err(error) => format!("not pulled: {}", printable(&redact(&error.to_string()))),
    };
    format!("{node}  {count} of {of}  {image}  {how}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use winconform_core::method::ErrorKind;

    #[test]
    fn why_an_image_is_not_pulled_is_said_without_secrets() {
        let why = "GET https://a.test/b?sig=hunter2: 403";
        let error = ErrorKind::ImagePull.error(why);
        let (node, image) = ("n".to_owned(), "i".to_owned());
        let said = line(&Pull { node, image }, (1, 2), Err(&error));
        let said = said.strip_prefix("n  1 of 2  i  not pulled: ");
        assert!(said.is_some_and(|why| why.contains("sig=***")), "{said:?}");
    }
}
