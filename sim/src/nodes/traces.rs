//! What a simulator has put into a cluster and not taken out again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::base::lock::locked;

/// The objects that stay behind if a simulator goes this instant; pods and leases are not among
/// them, since they follow their nodes. Clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Traces(Arc<Mutex<BTreeSet<String>>>);

impl Traces {
    /// Each as `KIND/NAME`; what has a namespace is in `kube-system`. One that was about to be made
    /// or removed may not be there.
    pub fn objects(&self) -> Vec<String> {
        locked(&self.0).iter().cloned().collect()
    }

    /// Before it is made.
    pub(crate) fn left(&self, kind: &str, name: &str) {
        locked(&self.0).insert(format!("{kind}/{name}"));
    }

    /// After it has gone, or was not made.
    pub(crate) fn gone(&self, kind: &str, name: &str) {
        locked(&self.0).remove(&format!("{kind}/{name}"));
    }
}
