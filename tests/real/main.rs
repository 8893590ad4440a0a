//! Whole runs on simulated nodes joined to a real control plane: rows of the table of faults, runs that are
//! interrupted, accounts that may not do everything.
//!
//! Needs a control plane, found by `WINCONFORM_TEST_KUBECONFIG`; without it every trial is listed as ignored
//! and named as not run.

#![expect(
    clippy::print_stdout,
    reason = "trials tell what they found and what is not run"
)]

use world::Trials;

mod access;
mod account;
#[path = "../world/asking.rs"]
mod asking;
mod faults;
mod life;
#[path = "../world/policy.rs"]
mod policy;
#[path = "../world/products.rs"]
mod products;
#[path = "../world/runs.rs"]
mod runs;
#[path = "../world/scheduling.rs"]
mod scheduling;
#[path = "../world/suites.rs"]
mod suites;
#[path = "../world/table.rs"]
mod table;
#[path = "../world/troubles.rs"]
mod troubles;
#[path = "../world/mod.rs"]
mod world;

fn main() {
    let mut trials = Trials::new();
    access::add(&mut trials);
    faults::add(&mut trials);
    life::add(&mut trials);
    trials.run()
}
