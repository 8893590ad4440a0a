//! Cleans up after runs that were killed, once it is certain that they are dead, and while no other run can
//! begin.

use std::collections::BTreeMap;

use futures::future::join_all;
use winconform_core::method::ObservationError;

use super::clean::{CLEANUP, CleanError, ObjectRef, Removal, Removed, check_run, remove_run};
use super::kinds::{ALL, LEASES};
use crate::cluster::lease::orphaned::delete_lease;
use crate::cluster::lease::{LEASE_NAME, LeaseError, acquire, lease_names};
use crate::transport::Api;

/// The progress of a clean-up, for the user.
#[derive(Clone, Debug)]
pub enum Cleaning {
    /// Leases exist, and the clean-up waits to see whether their holders live.
    Waits,
    /// The clean-up could not delete a Lease that it held; it expires by itself.
    Unreleased(ObservationError),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CleanupError {
    /// A run lives, or whether one lives is unknown.
    #[error("clean up: another run is under way")]
    Held(#[source] LeaseError),
    /// Nothing could be removed.
    #[error("clean up")]
    Clean(#[source] CleanError),
}

/// Removes all objects of one run, or of all runs. A run that is refused meanwhile shows `holder`.
pub async fn cleanup(
    api: &Api,
    run: Option<&str>,
    holder: &str,
    mut tell: impl FnMut(Cleaning),
) -> Result<Removed, CleanupError> {
    check_run(run).map_err(CleanupError::Clean)?;
    // A live run renews its Lease, so a Lease that can be taken over proves that its run is dead
    let mut names = lease_names(api, run).await.map_err(CleanupError::Held)?;
    if !names.is_empty() {
        tell(Cleaning::Waits);
    }
    // Hold this Lease meanwhile, so that no run begins and loses its objects
    let created = run.is_none() && names.insert(LEASE_NAME.to_owned());
    let mut held = Vec::new();
    let mut refused: Option<LeaseError> = None;
    let taking = names
        .iter()
        .map(|name| acquire(api, name, (CLEANUP, holder), api.durations(), |_| ()));
    for taken in join_all(taking).await {
        match taken {
            Ok(lease) => held.push(lease),
            Err(error) => {
                // The Lease may exist and be ours; if it cannot be deleted it expires by itself
                if let LeaseError::ObservationError { name, .. } = &error {
                    let _ = delete_lease(api, name, holder).await;
                }
                refused = Some(error);
            }
        }
    }
    // A run with an id of its own may have begun meanwhile
    if refused.is_none() {
        refused = match lease_names(api, run).await {
            Ok(now) => now.difference(&names).next().map(|name| LeaseError::Held {
                name: name.clone(),
                holder: "a run that has just begun".to_owned(),
            }),
            Err(error) => Some(error),
        };
    }
    let removed = match refused {
        Some(error) => Err(CleanupError::Held(error)),
        None => remove_run(api, run, api.durations().tear_down)
            .await
            .map_err(CleanupError::Clean),
    };
    for lease in held {
        if let Err(error) = lease.release().await {
            tell(Cleaning::Unreleased(error));
        }
    }
    let mut removed = removed?;
    if created {
        // This clean-up itself created it
        let guard = |object: &ObjectRef| *object.kind == LEASES && object.name == LEASE_NAME;
        removed.removed.retain(|object| !guard(object));
    }
    Ok(removed)
}

/// The number of objects of each run on the cluster besides its Lease, as far as this account may list them
/// within the time of one answer.
pub async fn remains(api: &Api) -> BTreeMap<String, usize> {
    let lists = Removal::new(api, None, api.durations().api_answer);
    let kinds = ALL.into_iter().filter(|kind| **kind != LEASES);
    let listing = kinds.map(|kind| lists.labelled(kind));
    let mut runs = BTreeMap::<String, usize>::new();
    for (_, object) in join_all(listing).await.into_iter().flatten().flatten() {
        *runs.entry(object.run).or_default() += 1;
    }
    runs
}
