//! Two runs on one cluster.

use std::time::Duration;

use libtest_mimic::Trial;
use ordered_watch as watch;
use serde_json::json;
use tokio::time::timeout;
use winconform::cluster::{CleanupError, LeaseError, cleanup, labels};
use winconform::engine::{RunError, RunOptions};
use winconform_core::method::{ApiRequest, Verb};
use winconform_core::record::{Exit, Line};

use crate::world::{Outcome, World, ran, trial, unbroken, undisturbed, verdicts, within};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("another_run_and_a_cleanup_are_refused", refused),
        trial("runs_with_ids_of_their_own_do_not_meet", apart),
        trial(
            "a_cleanup_leaves_a_run_alone_that_begins_meanwhile",
            cleaned,
        ),
    ]
}

/// While a run holds the Lease, whatever the run does, no other run starts and no cleanup works.
fn refused() -> Outcome {
    within(async |world| {
        let before = world.objects();
        let (tell, mut events) = watch::channel(());
        let listener = Box::new(move |_: &Line| tell.send_replace(()));
        let (_alive, signals) = watch::channel(0);
        let (cluster, options) = (world.cluster(), world.settings("r1"));
        let first = ran(&cluster, &options, signals, listener);
        let mut first = Box::pin(first);
        let mut others = 0;
        let first = loop {
            if !holds(world) {
                tokio::select! {
                    biased;
                    first = &mut first => break first,
                    Ok(()) = events.changed() => continue,
                }
            }
            let other = world.settings(&format!("r{}", 2 + others));
            let both = async {
                let second = undisturbed(&world.cluster(), &other).await;
                (
                    second,
                    cleanup(&world.cluster().api, None, "this test", |_| {}).await,
                )
            };
            let mut both = Box::pin(both);
            tokio::select! {
                biased;
                first = &mut first => {
                    // Each may have got the Lease now, and completes
                    let (second, cleanup) = both.await;
                    let let_in = second.finished.is_ok();
                    if let_in {
                        second.came_to(Exit::Conformant)?;
                    }
                    cleanup.map_err(|error| error.to_string())?;
                    break first;
                }
                (second, cleanup) = &mut both => {
                    others += 1;
                    held_by(second.finished.err().map(|error| match error {
                        RunError::Lease { source, .. } => Ok(source),
                        other => Err(other.to_string()),
                    }))?;
                    held_by(cleanup.err().map(|error| match error {
                        CleanupError::Held(source) => Ok(source),
                        CleanupError::Clean(other) => Err(other.to_string()),
                    }))?;
                }
            }
        };
        first.came_to(Exit::Conformant)?;
        world.unchanged(&before)?;
        match others {
            0..5 => Err(format!("only {others} were refused")),
            _ => Ok(()),
        }
    })
}

/// Whether the first run has the Lease.
fn holds(world: &World) -> bool {
    world
        .objects()
        .keys()
        .any(|name| name == "leases default/winconform")
}

fn held_by(error: Option<Result<LeaseError, String>>) -> Outcome {
    match error {
        Some(Ok(LeaseError::Held { holder, .. })) if holder == "r1" => Ok(()),
        other => Err(format!("not refused by name: {other:?}")),
    }
}

/// Both runs have the verdicts of a single run, and neither removes objects of the other.
fn apart() -> Outcome {
    let expected = verdicts(&unbroken().view()?);
    within(async |world| {
        let before = world.objects();
        let options = |run: &str| RunOptions {
            lease: format!("winconform-{run}"),
            ..world.settings(run)
        };
        let (one, other) = (world.cluster(), world.cluster());
        let (first, second) = (options("r1"), options("r2"));
        let (first, second) = tokio::join!(undisturbed(&one, &first), undisturbed(&other, &second));
        world.unchanged(&before)?;
        for ran in [first, second] {
            ran.came_to(Exit::Conformant)?;
            let seen = verdicts(&ran.view()?);
            if seen != expected {
                return Err(format!("{seen:#?}, not {expected:#?}"));
            }
        }
        Ok(())
    })
}

/// A cleanup that waits for an object which does not go removes nothing of a run that starts meanwhile.
fn cleaned() -> Outcome {
    let left = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "left",
        "labels": {labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: "r0"},
        "finalizers": ["example.com/stays"]}, "spec": {"ports": [{"port": 80}]}});
    let left = ApiRequest {
        verb: Verb::Create,
        path: "/api/v1/namespaces/default/services".to_owned(),
        body: Some(left),
    };
    within(async |world| {
        let (one, other) = (world.cluster(), world.cluster());
        one.api.send(&left).await.expect("it is made");
        let begins = async {
            // After the cleanup has seen that no run is alive
            let _ = timeout(Duration::from_secs(14), std::future::pending::<()>()).await;
            let options = RunOptions {
                lease: "winconform-r1".to_owned(),
                ..world.settings("r1")
            };
            undisturbed(&other, &options).await
        };
        let (cleaned, ran) = tokio::join!(cleanup(&one.api, None, "this test", |_| {}), begins);
        ran.came_to(Exit::Conformant)?;
        match cleaned.map_err(|error| error.to_string())? {
            removed if removed.removed.is_empty() && removed.left.len() == 1 => Ok(()),
            removed => Err(format!("{removed:?}")),
        }
    })
}
