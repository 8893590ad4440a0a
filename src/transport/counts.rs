//! How many requests were sent, for the record.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::locked::locked;

/// The number of requests by name, and of their repetitions.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    by_name: Mutex<BTreeMap<String, u64>>,
}

impl Counts {
    /// Counts a request's first sending.
    pub(crate) fn sent(&self, name: &str) {
        self.add(name.to_owned());
    }

    /// Counts one repetition of a request.
    pub(crate) fn resent(&self, name: &str) {
        self.add(format!("resent {name}"));
    }

    /// All counts, sorted by name.
    pub(crate) fn snapshot(&self) -> Vec<(String, u64)> {
        locked(&self.by_name).clone().into_iter().collect()
    }

    fn add(&self, name: String) {
        let mut counts = locked(&self.by_name);
        *counts.entry(name).or_default() += 1;
    }
}
