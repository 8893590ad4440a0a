//! How a run takes back what it created, or leaves it where that was asked for.

use std::collections::BTreeSet;

use tokio::time::Instant;
use winconform_core::record::{Event, Exit, ObjectName, RunView, TornDown, exit, read};

use super::run::Life;
use crate::cluster::kinds::ALL;
use crate::cluster::{CleanError, LeaseHeld, ObjectRef, Removed, delete_lease, missed, remove_run};
use crate::transport::{Api, error_text};

/// When what a run created stays in the cluster. What was interrupted never does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keep {
    Never,
    /// Unless it comes to conformant.
    OnFailure,
    /// Whatever it comes to.
    Always,
}

/// Removes what the run created, or leaves it; lets others run, and puts it on record.
pub(super) async fn end(life: Life<'_>, lease: Option<LeaseHeld>) {
    let journal = life.journal;
    // A record that does not read back keeps nothing
    let view = read(&journal.text()).ok();
    let torn_down = match view.and_then(|view| keeps(life.options.keep, view)) {
        None => tear_down(life, lease).await,
        Some(kept) => {
            let _ = journal.write(Event::Kept);
            release(life, lease, kept).await
        }
    };
    let _ = journal.write(Event::TornDown(torn_down));
}

/// The objects that are to stay, if they are.
fn keeps(keep: Keep, mut view: RunView) -> Option<Vec<ObjectName>> {
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
    stays.then_some(kept)
}

/// Lets others run, and leaves the rest as it is.
async fn release(life: Life<'_>, lease: Option<LeaseHeld>, left: Vec<ObjectName>) -> TornDown {
    let options = life.options;
    let mut torn_down = TornDown {
        left,
        ..TornDown::default()
    };
    let released = match lease {
        Some(lease) => lease.release().await,
        // It was not waited for, and may have come to be
        None => delete_lease(&life.cluster.api, &options.lease, &options.holder).await,
    };
    if let Err(error) = released {
        torn_down.errors.push(error.to_string());
    }
    torn_down
}

pub(super) async fn tear_down(life: Life<'_>, lease: Option<LeaseHeld>) -> TornDown {
    let (api, run) = (&life.cluster.api, &life.options.run);
    let removed = remove(api, run).await;
    let mut errors = Vec::new();
    if let Some(lease) = lease
        && let Err(error) = lease.release().await
    {
        errors.push(error.to_string());
    }
    match removed {
        Ok(removed) => {
            let left = removed.left.iter().map(|left| name(&left.object)).collect();
            let unlisted = removed.unlisted.iter();
            errors.extend(unlisted.map(|(kind, error)| format!("{}: {error}", kind.plural)));
            errors.extend(removed.left.iter().map(ToString::to_string));
            let mut torn_down = TornDown {
                unlisted: !removed.unlisted.is_empty(),
                removed: removed.removed.iter().map(name).collect(),
                left,
                errors,
            };
            // Without a list all that was announced may be left
            if let (false, Ok(view)) = (torn_down.unlisted, read(&life.journal.text())) {
                reconcile(api, run, &view.intents, &mut torn_down).await;
            }
            torn_down
        }
        Err(error) => {
            errors.push(error_text(&error));
            TornDown {
                unlisted: true,
                errors,
                ..TornDown::default()
            }
        }
    }
}

/// Adds what was announced and is there still, or not known to be gone, though no label leads to it. What was in
/// a namespace that is removed is gone with it.
async fn reconcile(api: &Api, run: &str, announced: &[ObjectName], torn_down: &mut TornDown) {
    let is_gone = |object: &ObjectName| {
        torn_down.removed.iter().any(|gone| {
            gone == object
                || gone.kind == "Namespace" && object.namespace.as_ref() == Some(&gone.name)
        })
    };
    let mut unaccounted = BTreeSet::new();
    for object in announced {
        // Secrets, which are not listed, are there as long as their namespaces are
        let kind = ALL.into_iter().find(|kind| kind.kind == object.kind);
        if let Some(kind) = kind.filter(|_| !is_gone(object) && !torn_down.left.contains(object)) {
            unaccounted.insert(ObjectRef {
                kind,
                namespace: object.namespace.clone(),
                name: object.name.clone(),
            });
        }
    }
    for left in missed(api, run, unaccounted).await {
        torn_down.left.push(name(&left.object));
        torn_down.errors.push(left.to_string());
    }
}

/// Removes what a run made, once more where that met an outage of the server.
async fn remove(api: &Api, run: &str) -> Result<Removed, CleanError> {
    let (begun, budget) = (Instant::now(), api.durations().tear_down);
    let first = remove_run(api, Some(run), budget).await;
    if first.as_ref().is_ok_and(Removed::is_clean) || !api.is_back(begun).await {
        return first;
    }
    let Ok(mut removed) = remove_run(api, Some(run), budget).await else {
        return first;
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use serde_json::json;

    #[tokio::test(start_paused = true)]
    async fn what_was_announced_and_is_there_is_left_and_what_never_came_to_be_is_not() {
        let (fake, own) = (Fake::default(), "winconform-r1");
        // Somebody took its labels away
        let unlabelled = json!({"metadata": {"name": own}});
        fake.put("/api/v1/namespaces/winconform-r1", unlabelled);
        let another = json!({"metadata": {"name": own, "labels": {"winconform/run": "r2"}}});
        fake.put("/apis/node.k8s.io/v1/runtimeclasses/winconform-r1", another);
        let object = |kind: &str| ObjectName {
            kind: kind.to_owned(),
            namespace: None,
            name: own.to_owned(),
        };
        let announced = ["Namespace", "PriorityClass", "RuntimeClass"].map(object);
        let mut torn_down = TornDown::default();
        reconcile(&fake.api(), "r1", &announced, &mut torn_down).await;
        assert_eq!(torn_down.left, announced[..1]);
        let why = "Namespace winconform-r1: it is there, and its labels did not lead to it";
        assert_eq!(torn_down.errors, [why]);
    }
}
