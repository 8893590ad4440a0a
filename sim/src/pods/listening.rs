//! What a container serves, as long as its program runs.

use std::collections::BTreeMap;

use super::container::Slot;
use crate::world::Page;

/// Ports that a program holds open, until it is dropped.
pub(crate) struct Listening<'a> {
    slot: Slot<'a>,
    ports: Vec<u16>,
    udp: Vec<u16>,
}

impl<'a> Listening<'a> {
    pub(crate) fn begin(
        slot: Slot<'a>,
        listening: BTreeMap<u16, Page>,
        udp: BTreeMap<u16, Page>,
    ) -> Self {
        let begun = Self {
            slot,
            ports: listening.keys().copied().collect(),
            udp: udp.keys().copied().collect(),
        };
        slot.cluster.change(|world| {
            if let Some(pod) = world.pods.own_mut(&slot.run.key, &slot.run.uid) {
                pod.listening.extend(listening);
                pod.listening_udp.extend(udp);
            }
        });
        begun
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let Slot { cluster, run, .. } = self.slot;
        cluster.change(|world| {
            if let Some(pod) = world.pods.own_mut(&run.key, &run.uid) {
                pod.listening.retain(|port, _| !self.ports.contains(port));
                pod.listening_udp.retain(|port, _| !self.udp.contains(port));
            }
        });
    }
}
