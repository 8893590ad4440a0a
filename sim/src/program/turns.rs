//! Decides which of several backends each connection goes to.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::lock::locked;
use crate::network::Protocol;

/// How many destinations are remembered, so that a port scan cannot grow the map beyond this.
const MOST: usize = 4096;

/// Counts connections by destination, so that those to one Service go round its backends, whatever else a
/// program connects to.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    all: AtomicU64,
    next: Mutex<HashMap<(Protocol, IpAddr, u16), u64>>,
}

impl Turns {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            all: AtomicU64::new(seed),
            ..Self::default()
        }
    }

    /// The turn of a connection.
    pub(crate) fn next_turn(&self, protocol: Protocol, to: IpAddr, port: u16) -> u64 {
        let total = self.all.fetch_add(1, Ordering::Relaxed);
        let mut next = locked(&self.next);
        if next.len() >= MOST {
            next.clear();
        }
        let next = next.entry((protocol, to, port)).or_insert(total);
        let turn = *next;
        *next = turn.wrapping_add(1);
        turn
    }

    /// The number of connections so far.
    pub(crate) fn taken(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }
}
