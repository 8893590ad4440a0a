//! The faults that hold, how many requests have come since they were set, and where a server that
//! restarts stands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fault::Fault;

/// How many requests are reset while a server is away.
const REFUSED: u64 = 5;
/// How many requests a server that has come back cannot serve yet.
const STARTING: u64 = 3;

/// The faults since they were last set.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) faults: Arc<[Fault]>,
    requests: AtomicU64,
}

/// What a server that restarts does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uptime {
    /// It serves it.
    Up,
    /// It goes away with all its connections.
    Goes,
    /// There is nobody to take a connection.
    Away,
    /// It is back, but not ready.
    Starting,
}

impl Standing {
    pub(crate) fn new(faults: Vec<Fault>) -> Self {
        Self {
            faults: faults.into(),
            requests: AtomicU64::new(0),
        }
    }

    /// Counts a request: which it is, from 1, and whether there is a server to serve it.
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
