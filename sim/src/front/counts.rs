//! What came by: requests by kind, and what each fault hit.

use std::collections::BTreeMap;
use std::fmt;

/// What was asked, and what each fault hit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontCounts {
    /// Requests by verb and resource.
    pub requests: BTreeMap<RequestKind, u64>,
    /// Requests that each fault hit, by the fault's name.
    pub hits: BTreeMap<&'static str, u64>,
}

/// A verb as RBAC names it, and a resource with its subresource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct RequestKind {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// Such as `pods/exec`; the first segment of a path that is no resource, such as `/healthz`.
    pub resource: String,
}

impl fmt::Display for RequestKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.verb, self.resource)
    }
}

impl FrontCounts {
    /// All requests.
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// The requests of one kind, written `VERB RESOURCE`.
    pub fn of(&self, kind: &str) -> u64 {
        self.requests
            .iter()
            .find(|(known, _)| known.to_string() == kind)
            .map_or(0, |one| *one.1)
    }

    /// The requests that a fault of this name hit.
    pub fn hit_by(&self, name: &str) -> u64 {
        self.hits.get(name).copied().unwrap_or(0)
    }

    pub(super) fn saw(&mut self, kind: RequestKind) {
        *self.requests.entry(kind).or_default() += 1;
    }

    pub(super) fn hit(&mut self, name: &'static str) {
        *self.hits.entry(name).or_default() += 1;
    }
}
