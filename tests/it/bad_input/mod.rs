//! The real binary with bad input: what a person reads, and the exit code.
//!
//! No cluster: servers are scripted in this process. Each answer is held against a snapshot of
//! the whole of standard error; ports and run ids are replaced.

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
