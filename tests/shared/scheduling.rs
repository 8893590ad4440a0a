//! Faults that are admission policies: neither faults of nodes nor interference before the API server.

/// A policy that adds a node selector for `spec.os` to pods without a selector.
pub(crate) const OS_SELECTS: &str = "os-selects";
/// A policy that lets no `PriorityClass` preempt.
pub(crate) const NEVER_PREEMPTS: &str = "never-preempts";
/// The faults that are admission policies.
pub(crate) const POLICIES: [&str; 2] = [OS_SELECTS, NEVER_PREEMPTS];
