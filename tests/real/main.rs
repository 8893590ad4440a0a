//! Whole runs on simulated nodes joined to a real control plane: rows of the table of faults, runs that are
//! interrupted, accounts that may not do everything.
//!
//! Needs a control plane, found by `WINCONFORM_TEST_KUBECONFIG`; without it every trial is listed as ignored
//! and named as not run.

#![expect(
    clippy::print_stdout,
    reason = "trials tell what they found and what is not run"
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

use shared::{asking, products, runs, scheduling, suites, table, troubles};
use world::Trials;

fn main() {
    let mut trials = Trials::new();
    access::add(&mut trials);
    faults::add(&mut trials);
    life::add(&mut trials);
    trials.run()
}
