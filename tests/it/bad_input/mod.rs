//! Runs the real binary with bad input, and checks the text that a person reads, and the exit code.
//!
//! No cluster: this process runs scripted servers. Tests compare all of standard error with a snapshot, in
//! which they replace ports and run ids.

mod closed;
mod cluster;
mod config;
mod contact;
mod demo;
mod folders;
mod kubeconfig;
mod record;
mod server;
mod simulate;
mod suites;
mod tool;
mod topology;
