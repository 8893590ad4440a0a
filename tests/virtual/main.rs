//! Whole runs in memory, in simulated time: no process, no socket and no control plane.
//!
//! Each trial has its own cluster, or several in turn: a simulated API server and two nodes. Trials that
//! disturb a run do so at every event of a run of a few checks, which have every kind of stage.
//! `WINCONFORM_TEST_SEEDS` is the number of seeds with each harness fault, 20 if it is not set; if it is more
//! than 1, all runs observe all checks.

#[path = "../shared/mod.rs"]
mod shared;

mod admission;
mod cost;
mod events;
mod families;
mod faults;
mod harness;
mod nodes;
mod portal;
mod repeated;
mod rows;
mod runtime_class;
mod same;
mod together;
mod world;

use libtest_mimic::{Arguments, run};

use shared::{asking, products, runs, scenarios, scheduling, suites, table, troubles};

/// A third of what whole runs do is to allocate.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trials = [
        // The longest first
        events::killed::trials(),
        events::signals::trials(),
        events::deadline::trials(),
        repeated::trials(),
        nodes::ring::trials(),
        same::trials(),
        together::trials(),
        runtime_class::trials(),
        rows::topologies::trials(),
        rows::reported::trials(),
        rows::trials(),
        families::trials(),
        admission::trials(),
        portal::trials(),
        faults::trials(),
        events::scenarios::trials(),
        events::clocks::trials(),
        events::passing::trials(),
        events::outages::trials(),
        rows::page::trials(),
        rows::claims::trials(),
        rows::permissions::trials(),
        cost::trials(),
        nodes::trials(),
        rows::shown::trials(),
        rows::told::trials(),
        rows::real::trials(),
        rows::pairs::trials(),
    ];
    let trials = trials.into_iter().flatten().collect();
    run(&Arguments::from_args(), trials).exit()
}
