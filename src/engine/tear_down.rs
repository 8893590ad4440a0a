//! How a run takes back what it created, or leaves it where that was asked for.

use tokio::time::Instant;
use winconform_core::record::{Event, Exit, ObjectName, TornDown, exit, read};

use super::journal::Journal;
use super::run::{RunError, RunOptions};
use crate::cluster::{
    CleanError, Cluster, LeaseHeld, ObjectRef, Removed, delete_lease, remove_run,
};
use crate::transport::{Api, words};

/// When what a run created stays in the cluster. What was interrupted never does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keep {
    /// Never.
    Never,
    /// Unless it comes to conformant.
    OnFailure,
    /// Whatever it comes to.
    Always,
}

/// Removes what the run created, or leaves it; lets others run, and puts it on record.
pub(super) async fn end(
    cluster: &Cluster,
    options: &RunOptions,
    journal: &Journal,
    lease: Option<LeaseHeld>,
) -> Result<(), RunError> {
    let torn_down = match keeps(options.keep, journal)? {
        None => tear_down(cluster, options, lease).await,
        Some(kept) => {
            let _ = journal.write(Event::Kept);
            release(cluster, options, lease, kept).await
        }
    };
    let _ = journal.write(Event::TornDown(torn_down));
    Ok(())
}

/// The objects that are to stay, if they are.
fn keeps(keep: Keep, journal: &Journal) -> Result<Option<Vec<ObjectName>>, RunError> {
    let mut view = read(&journal.text()).map_err(RunError::Record)?;
    let kept = view
        .intents
        .iter()
        .filter(|object| object.kind != "Lease")
        .cloned()
        .collect();
    // As if all were removed
    view.kept = true;
    view.torn_down = Some(TornDown::default());
    let stays = match keep {
        _ if view.interrupted.is_some() => false,
        Keep::Never => false,
        Keep::Always => true,
        Keep::OnFailure => exit(&view) != Exit::Conformant,
    };
    Ok(stays.then_some(kept))
}

/// Lets others run, and leaves the rest as it is.
async fn release(
    cluster: &Cluster,
    options: &RunOptions,
    lease: Option<LeaseHeld>,
    left: Vec<ObjectName>,
) -> TornDown {
    let mut torn_down = TornDown {
        left,
        ..TornDown::default()
    };
    let released = match lease {
        Some(lease) => lease.release().await,
        // It was not waited for, and may have come to be
        None => delete_lease(&cluster.api, &options.lease, &options.holder).await,
    };
    if let Err(error) = released {
        torn_down.troubles.push(error.to_string());
    }
    torn_down
}

pub(super) async fn tear_down(
    cluster: &Cluster,
    options: &RunOptions,
    lease: Option<LeaseHeld>,
) -> TornDown {
    let removed = remove(&cluster.api, &options.run).await;
    let mut troubles = Vec::new();
    if let Some(lease) = lease
        && let Err(error) = lease.release().await
    {
        troubles.push(error.to_string());
    }
    match removed {
        Ok(removed) => {
            let left = removed.left.iter().map(|left| name(&left.object)).collect();
            let unlisted = removed.unlisted.iter();
            troubles.extend(unlisted.map(|(kind, trouble)| format!("{}: {trouble}", kind.plural)));
            troubles.extend(
                removed
                    .left
                    .iter()
                    .map(|left| format!("{}: {}", left.object, left.why)),
            );
            TornDown {
                unlisted: !removed.unlisted.is_empty(),
                removed: removed.removed.iter().map(name).collect(),
                left,
                troubles,
            }
        }
        Err(error) => {
            troubles.push(words(&error));
            TornDown {
                unlisted: true,
                troubles,
                ..TornDown::default()
            }
        }
    }
}

/// Removes what a run made, once more where that met an outage of the server.
async fn remove(api: &Api, run: &str) -> Result<Removed, CleanError> {
    let (begun, budget) = (Instant::now(), api.durations().tear_down);
    let first = remove_run(api, Some(run), budget).await;
    if first.as_ref().is_ok_and(Removed::is_clean) || !api.is_back(begun).await {
        return first;
    }
    let mut removed = remove_run(api, Some(run), budget).await?;
    let first = first.unwrap_or_default();
    let left = first.left.into_iter().map(|left| left.object);
    for object in first.removed.into_iter().chain(left) {
        let is_left = removed.left.iter().any(|left| left.object == object);
        if !is_left && !removed.removed.contains(&object) {
            removed.removed.push(object);
        }
    }
    Ok(removed)
}

fn name(object: &ObjectRef) -> ObjectName {
    ObjectName {
        kind: object.kind.kind.to_owned(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}
