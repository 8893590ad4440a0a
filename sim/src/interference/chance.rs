//! Decides which requests are hit: a pure function of the seed and of the number of earlier requests.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::asked::{Asked, Expiry};
use super::fault::Fault;
use crate::interference::kinds::deleted;
use crate::interference::kinds::trouble::Trouble;

/// The seed, and the number of requests so far.
#[derive(Debug)]
pub(crate) struct Chance {
    seed: u64,
    requests: AtomicU64,
}

/// The trouble that hits a request, and its form.
pub(crate) type Hit = (Trouble, Form);

/// The form of a trouble that has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Reset before the server acts, cut before output, a Status in a 429, a slow answer in pieces, a watch
    /// that sends nothing.
    Early,
    /// Reset after the server acted, cut after output, plain text in a 429, a late answer, a watch that sends
    /// nothing more.
    Late,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            requests: AtomicU64::new(0),
        }
    }

    /// Draws for the next request; every fault draws, so that no fault shifts the draws of another.
    pub(crate) fn draw(&self, faults: &[Fault], asked: &Asked) -> Option<Hit> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(self.requests.fetch_add(1, Ordering::Relaxed));
        let mut first = None;
        for fault in faults {
            let Fault::Harness(trouble, share) = fault else {
                continue;
            };
            let drawn: f64 = random.random();
            let form = match random.random() {
                true => Form::Early,
                false => Form::Late,
            };
            if first.is_none() && drawn < *share && applies(*trouble, asked) {
                first = Some((*trouble, form));
            }
        }
        first
    }
}

fn applies(trouble: Trouble, asked: &Asked) -> bool {
    match trouble {
        Trouble::CutExec | Trouble::LoseExitFrame => asked.is_exec,
        Trouble::Gone => asked.expiry != Expiry::Never,
        Trouble::Slow | Trouble::TruncateBody => !asked.upgrades,
        Trouble::StaleList => asked.verb == "list",
        Trouble::SilentWatch => asked.verb == "watch",
        Trouble::DeleteCreated => deleted::can_be(asked),
        Trouble::TooManyRequests
        | Trouble::InternalError
        | Trouble::Hang
        | Trouble::Reset
        | Trouble::Html502 => true,
    }
}
