//! Compares the same Linux pods on a real and a simulated node: status, events, exec and logs.
//!
//! The test needs the kubeconfig of a cluster with a real Linux node (`ci/real-node/up`) in
//! `WINCONFORM_REAL_NODE_KUBECONFIG`; without it, it reports that it was not run.
//!
//! `cases.yaml` lists the pods, `differences.yaml` the known differences and their reasons. The test fails
//! for a difference that is not listed, and for a listed one that does not occur.

mod cases;
mod differences;
mod record;
mod world;

use futures::{StreamExt, stream};

use super::say;
use cases::Case;
use differences::Known;
use world::World;

const VARIABLE: &str = "WINCONFORM_REAL_NODE_KUBECONFIG";

/// How many pods are compared at once: more slow the hooks and probes of the real node down to seconds.
const AT_ONCE: usize = 35;

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_node_is_like_a_real_one() {
    let Ok(kubeconfig) = std::env::var(VARIABLE) else {
        say(&format!(
            "not run: a_simulated_node_is_like_a_real_one: {VARIABLE} is not set"
        ));
        return;
    };
    let (cases, known) = (Case::all(), Known::all());
    let world = World::begin(kubeconfig).await;
    let compared = cases
        .iter()
        .map(|case| world.compare(case, known.for_case(&case.name)));
    let seen: Vec<_> = stream::iter(compared).buffered(AT_ONCE).collect().await;
    world.end().await;
    let observations: usize = seen.iter().map(|(_, observed)| observed).sum();
    let seen: Vec<_> = seen.into_iter().flat_map(|(seen, _)| seen).collect();
    say(&format!(
        "{observations} observations of {} pods compared, {} differences, {} known",
        cases.len(),
        seen.len(),
        known.len()
    ));
    let wrong = known.check(&seen);
    assert!(wrong.is_empty(), "{wrong}");
}
