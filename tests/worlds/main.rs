//! Whole runs in clusters that are poor, strict or falling apart, on simulated nodes joined to a
//! real control plane. Whatever the world, nothing passes or fails that would not in a healthy one
//! save what is said here, the finding names the cause, nothing of a run is left, and what others
//! have in the cluster is as before.
//!
//! Elsewhere: single faults of nodes and network, a proxy that answers pods in the place of the
//! internet among them (`tests/faults.rs`); an API server in trouble of every kind (there and in
//! `tests/rejections.rs`, hostile texts among them); nodes that are wrong as objects
//! (`tests/environment`); every permission that is lacking (`tests/access`); an image of another
//! build, Pods that the quota or PodSecurity refuse as the sole thing there (`src/cluster/`).
//!
//! Needs a control plane, found by `WINCONFORM_TEST_KUBECONFIG`, without other nodes; without it
//! every world is listed as ignored and named as not run.

#![expect(
    clippy::print_stdout,
    reason = "worlds tell how long they took and what is not run"
)]

use std::path::PathBuf;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use earth::Earth;
use list::{WORLDS, World};

mod admission;
#[path = "../world/asking.rs"]
mod asking;
mod earth;
#[path = "../world/interfered.rs"]
mod interfered;
mod list;
mod others;
mod portal;
#[path = "../world/runs.rs"]
mod runs;
#[path = "../world/suites.rs"]
mod suites;
mod told;
#[expect(dead_code, reason = "nodes are joined anew for each kind of cluster")]
#[path = "../world/mod.rs"]
mod world;

/// Worlds at once, which mostly wait.
const AT_ONCE: usize = 4;

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(AT_ONCE);
    let runtime = Arc::new(Runtime::new().expect("a runtime starts"));
    let given = std::env::var_os(world::VARIABLE).filter(|_| !arguments.list);
    let earth = given.map(|path| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let earth = runtime.block_on(Earth::begin(PathBuf::from(path)));
        Arc::new(earth.expect("a cluster with something of others"))
    });
    let ignored = |world: &World| Trial::test(world.is, || Ok(())).with_ignored_flag(true);
    let trials = WORLDS.iter().map(|world| match &earth {
        Some(earth) if let Some(lack) = earth.lacks(world) => {
            println!("not run: {}: {lack}", world.is);
            ignored(world)
        }
        Some(earth) => {
            let (earth, runtime) = (Arc::clone(earth), Arc::clone(&runtime));
            Trial::test(world.is, move || {
                let lived = runtime.block_on(earth.live(world));
                lived.map_err(Failed::from)
            })
        }
        None => {
            if !arguments.list {
                println!("not run: {}: {} is not set", world.is, world::VARIABLE);
            }
            ignored(world)
        }
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if let Some(earth) = earth.and_then(Arc::into_inner) {
        runtime
            .block_on(earth.end())
            .expect("what was made is removed");
    }
    conclusion.exit()
}
