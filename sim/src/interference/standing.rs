//! The faults that hold, the number of requests since they were set, and the phase of a server that restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fault::Fault;

/// How many requests are reset while the server is down.
const REFUSED: u64 = 5;
/// How many requests the restarted server cannot serve yet.
const STARTING: u64 = 3;

/// The faults, and the number of requests since they were set.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) faults: Arc<[Fault]>,
    requests: AtomicU64,
}

/// What a server that restarts does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uptime {
    /// It serves the request.
    Up,
    /// It stops, and closes all its connections.
    Goes,
    /// It is down, so the connection is refused.
    Away,
    /// It runs again, but is not ready.
    Starting,
}

impl Standing {
    pub(crate) fn new(faults: Vec<Fault>) -> Self {
        Self {
            faults: faults.into(),
            requests: AtomicU64::new(0),
        }
    }

    /// Counts a request; returns its number, from 1, and the server's phase.
    pub(crate) fn request(&self) -> (u64, Uptime) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let since = self.faults.iter().filter_map(|fault| match fault {
            Fault::ServerRestarts(after) => number.checked_sub(after.saturating_add(1)),
            _ => None,
        });
        let uptime = match since.min() {
            Some(0) => Uptime::Goes,
            Some(since) if since <= REFUSED => Uptime::Away,
            Some(since) if since <= REFUSED + STARTING => Uptime::Starting,
            _ => Uptime::Up,
        };
        (number, uptime)
    }
}
