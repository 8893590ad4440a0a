//! The first program of a container: what it prints, and where it listens while it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::container::Slot;
use crate::base::log::Stream;
use crate::fault::FaultKind;
use crate::nodes::play::{Player, Told};
use crate::program::Started;
use crate::world::Page;

/// How much later a program listens on a node where that takes long.
const LATE: Duration = Duration::from_secs(150);

impl Slot<'_> {
    /// Runs the program to its end, if it has one. Returns the exit code.
    pub(crate) async fn run_program(self, started: Started) -> u32 {
        let clock = self.cluster.clock;
        let log = self.log();
        let print = |stream, bytes: &[u8]| log.print(stream, bytes);
        let mut player = Player::new(self.cluster, started);
        let other = loop {
            match player.next().await {
                Told::Printed(stream, bytes) => print(stream, &bytes),
                Told::Ended(code) => return code,
                Told::Other(other) => break other,
            }
        };
        match other {
            Started::Serves {
                listening,
                listening_udp,
                warm_up,
                prints,
            } => {
                clock.pass(warm_up).await;
                if self.run.suffers(FaultKind::ListensLate, self.cluster) {
                    clock.pass(LATE).await;
                }
                print(Stream::Out, prints.as_bytes());
                let _listening = Listening::begin(self, listening, listening_udp);
                std::future::pending().await
            }
            Started::Stays { prints } => {
                print(Stream::Out, prints.as_bytes());
                std::future::pending().await
            }
            Started::Ended(_) | Started::Refused(_) => {
                unreachable!("it has been played, or was not started")
            }
        }
    }
}

/// Ports that a program keeps open until this value is dropped.
struct Listening<'a> {
    slot: Slot<'a>,
    ports: Vec<u16>,
    udp: Vec<u16>,
}

impl<'a> Listening<'a> {
    fn begin(slot: Slot<'a>, listening: BTreeMap<u16, Page>, udp: BTreeMap<u16, Page>) -> Self {
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
