//! `winconform cleanup`.

use std::collections::BTreeSet;

use winconform_core::config::Config;
use winconform_core::text::printable;

use super::args::CleanupArgs;
use super::connect::connected;
use super::error::CliError;
use super::screen::Screen;
use crate::cluster::kinds::LEASES;
use crate::cluster::{LeaseError, ObjectRef, acquire, lease_names, remove_run};

pub(super) async fn run(args: CleanupArgs, screen: &Screen) -> Result<u8, CliError> {
    let cluster = connected(&args.cluster.into(), &Config::default()).await?;
    // A live run renews its Lease: whoever can take it over knows that it is dead
    let there = async || lease_names(&cluster.api, args.run.as_deref()).await;
    let mut names: BTreeSet<_> = there().await.map_err(CliError::CleanupHeld)?;
    if !names.is_empty() {
        screen.complain("Making sure that the run that left its Lease is dead …\n");
    }
    // Held meanwhile, so that no run begins that would lose its objects
    let guard = "winconform";
    let own = args.run.is_none() && names.insert(guard.to_owned());
    let holder = format!("cleanup/{}", std::process::id());
    let mut held = Vec::new();
    let mut refused: Option<LeaseError> = None;
    for taken in futures::future::join_all(names.iter().map(|name| {
        acquire(
            &cluster.api,
            name,
            "cleanup",
            &holder,
            cluster.api.durations(),
        )
    }))
    .await
    {
        match taken {
            Ok(lease) => held.push(lease),
            Err(error) => refused = Some(error),
        }
    }
    // One with an id of its own may have begun while we waited
    if refused.is_none() {
        let now = there().await.map_err(CliError::CleanupHeld)?;
        refused = now.difference(&names).next().map(|name| LeaseError::Held {
            name: name.clone(),
            holder: "a run that has just begun".to_owned(),
        });
    }
    let removed = match refused {
        Some(error) => Err(CliError::CleanupHeld(error)),
        None => {
            let budget = cluster.api.durations().tear_down;
            remove_run(&cluster.api, args.run.as_deref(), budget)
                .await
                .map_err(CliError::Clean)
        }
    };
    for lease in held {
        if let Err(error) = lease.release().await {
            screen.complain(&format!("warning: {}\n", printable(&error.to_string())));
        }
    }
    let mut removed = removed?;
    if own {
        // It was made by nobody but this very command
        let guard = |object: &ObjectRef| *object.kind == LEASES && object.name == guard;
        removed.removed.retain(|object| !guard(object));
    }
    for object in &removed.removed {
        screen.say(&format!("removed {object}\n"));
    }
    for left in &removed.left {
        screen.say(&format!("left {}: {}\n", left.object, printable(&left.why)));
    }
    for (kind, trouble) in &removed.unlisted {
        let trouble = printable(&trouble.to_string());
        screen.say(&format!("could not look for {}: {trouble}\n", kind.plural));
    }
    if let (Some(run), true) = (&args.run, removed.removed.is_empty() && removed.is_clean()) {
        let run = printable(run);
        screen.complain(&format!("Nothing of a run `{run}` is on this cluster.\n"));
    }
    screen.say(&format!(
        "{} objects removed, {} left\n",
        removed.removed.len(),
        removed.left.len()
    ));
    Ok(if removed.is_clean() { 0 } else { 11 })
}
