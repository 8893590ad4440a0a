//! Faults that are policies of admission, which lie neither in nodes nor before the API server.

/// A policy that makes a selector of `spec.os` in pods that select nothing.
pub(crate) const OS_SELECTS: &str = "os-selects";
/// A policy by which no class of priority preempts.
pub(crate) const NEVER_PREEMPTS: &str = "never-preempts";
/// Faults that are policies of admission.
pub(crate) const POLICIES: [&str; 2] = [OS_SELECTS, NEVER_PREEMPTS];
