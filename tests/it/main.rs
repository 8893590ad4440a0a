//! What needs no simulated time, a file for each thing that is asked: the binary with bad input and as a demo, rules
//! of the sources, manifests and roles, recorded answers. `cluster` and one test of `manifests` need a control
//! plane, and say that they were not run without it.

mod bad_input;
mod cluster;
mod demo;
mod direction;
mod manifests;
mod pinned;
mod rbac;
mod recordings;
#[path = "../world/suites.rs"]
mod suites;
