//! The faults that hold at a moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use ordered_watch as watch;

use super::kind::FaultKind;
use super::parse::ProductFault;
use crate::topology::Pool;

/// The faults that hold at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSet {
    faults: BTreeSet<ProductFault>,
}

impl FaultSet {
    /// Whether a kind of fault holds anywhere.
    pub fn any(&self, kind: FaultKind) -> bool {
        self.with_kind(kind).next().is_some()
    }

    /// Whether a kind of fault holds on a node.
    pub fn on_node(&self, kind: FaultKind, node: &str, pool: Pool) -> bool {
        self.with_kind(kind)
            .any(|fault| fault.place.has_node(node, pool))
    }

    /// Whether a kind of fault holds for a pod.
    pub fn on_pod(&self, kind: FaultKind, namespace: &str, node: &str, pool: Pool) -> bool {
        self.with_kind(kind)
            .any(|fault| fault.place.has_pod(namespace, node, pool))
    }

    /// Whether a kind of fault holds from one node to another.
    pub fn on_way(&self, kind: FaultKind, from: (&str, Pool), to: (&str, Pool)) -> bool {
        self.with_kind(kind).any(|fault| {
            let begins = fault.place.has_node(from.0, from.1);
            let towards = fault.towards.as_ref();
            begins && towards.is_none_or(|towards| towards.has_node(to.0, to.1))
        })
    }

    /// The faults, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = &ProductFault> {
        self.faults.iter()
    }

    fn with_kind(&self, kind: FaultKind) -> impl Iterator<Item = &ProductFault> {
        self.faults.iter().filter(move |fault| fault.kind == kind)
    }
}

impl FromIterator<ProductFault> for FaultSet {
    fn from_iter<I: IntoIterator<Item = ProductFault>>(faults: I) -> Self {
        Self {
            faults: faults.into_iter().collect(),
        }
    }
}

/// Sets and lifts faults while the simulator runs; every node sees a change at once.
#[derive(Clone, Debug)]
pub struct FaultSwitch {
    faults: Arc<watch::Sender<FaultSet>>,
}

impl FaultSwitch {
    pub(crate) fn new(faults: FaultSet) -> Self {
        Self {
            faults: Arc::new(watch::Sender::new(faults)),
        }
    }

    /// Sets a fault.
    pub fn set(&self, fault: ProductFault) {
        self.faults
            .send_if_modified(|faults| faults.faults.insert(fault));
    }

    /// Lifts a fault.
    pub fn lift(&self, fault: &ProductFault) {
        self.faults
            .send_if_modified(|faults| faults.faults.remove(fault));
    }

    /// The faults that hold now.
    pub fn current(&self) -> FaultSet {
        self.faults.borrow().clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<FaultSet> {
        self.faults.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Build;

    const WS2019: Pool = Pool::Windows(Build::Ws2019);
    const WS2022: Pool = Pool::Windows(Build::Ws2022);

    #[test]
    fn a_switch_sets_and_lifts() {
        let fault = FaultKind::KubeProxyDead.on(WS2022);
        let switch = FaultSwitch::new(FaultSet::default());
        switch.set(fault.clone());
        let holds = |node, pool| {
            switch
                .current()
                .on_node(FaultKind::KubeProxyDead, node, pool)
        };
        assert!(holds("a", WS2022) && !holds("a", WS2019));
        switch.lift(&fault);
        assert_eq!(switch.current(), FaultSet::default());
    }

    #[test]
    fn a_way_has_a_direction() {
        let faults: FaultSet = ["traffic-cut-one-way=windows-2022:linux"
            .parse()
            .expect("a fault")]
        .into_iter()
        .collect();
        let cut = |from, to| faults.on_way(FaultKind::TrafficCutOneWay, from, to);
        assert!(cut(("w", WS2022), ("l", Pool::Linux)));
        assert!(!cut(("l", Pool::Linux), ("w", WS2022)));
        assert!(!cut(("w", WS2019), ("l", Pool::Linux)));
    }
}
