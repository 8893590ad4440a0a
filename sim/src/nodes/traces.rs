//! The objects that a simulator has created in a cluster and not yet removed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::base::lock::locked;

/// The objects that would stay behind if the simulator died now, without pods and leases, since they
/// disappear with their nodes. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Traces(Arc<Mutex<BTreeSet<String>>>);

impl Traces {
    /// Each object as `KIND/NAME`; those with a namespace are in `kube-system`. An object whose creation or
    /// removal is under way may not exist.
    pub fn objects(&self) -> Vec<String> {
        locked(&self.0).iter().cloned().collect()
    }

    /// Notes an object, before it is created.
    pub(crate) fn left(&self, kind: &str, name: &str) {
        locked(&self.0).insert(format!("{kind}/{name}"));
    }

    /// Drops an object, after it is removed, or if it was not created.
    pub(crate) fn gone(&self, kind: &str, name: &str) {
        locked(&self.0).remove(&format!("{kind}/{name}"));
    }
}
