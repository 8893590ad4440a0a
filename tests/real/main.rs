//! Whole runs on simulated nodes joined to a real control plane: rows of the table of faults, interrupted
//! runs, accounts with missing permissions.
//!
//! Needs a control plane, found by `WINCONFORM_TEST_KUBECONFIG`; without it the harness lists every trial as
//! ignored, and prints that it did not run.

#![expect(
    clippy::print_stdout,
    reason = "trials print their totals and what is not run"
)]

mod access;
mod account;
mod byte_proxy;
mod faults;
mod life;
mod policy;
#[path = "../shared/mod.rs"]
mod shared;
mod world;

use shared::{asking, products, runs, scenarios, scheduling, suites, table, troubles};
use world::Trials;

fn main() {
    let mut trials = Trials::new();
    access::add(&mut trials);
    faults::add(&mut trials);
    life::add(&mut trials);
    trials.run()
}
