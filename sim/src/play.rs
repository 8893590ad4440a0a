//! A program as it runs in time: what it prints comes when it prints it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;
use crate::cluster::Cluster;
use crate::log::Stream;
use crate::program::{Piece, Ran, Started};

/// What came next.
pub(crate) enum Told {
    Printed(Stream, Vec<u8>),
    /// It has ended, with this code.
    Ended(u32),
    /// It serves, stays or does not start: nothing comes of it any more.
    Other(Started),
}

/// A program, and how far it has come.
pub(crate) struct Player<'a> {
    cluster: &'a Cluster,
    pieces: VecDeque<Piece>,
    /// What is left of its time after its last piece: simulated, and slept.
    left: (Duration, Duration),
    /// When the time has passed that is waited for.
    until: Option<Instant>,
    /// What it is then.
    next: Started,
}

impl<'a> Player<'a> {
    pub(crate) fn new(cluster: &'a Cluster, started: Started) -> Self {
        Self {
            cluster,
            pieces: VecDeque::new(),
            left: Default::default(),
            until: None,
            next: started,
        }
    }

    /// Waits for the next thing it does. Nothing is lost where the wait is given up.
    pub(crate) async fn next(&mut self) -> Told {
        loop {
            if let Some(piece) = self.pieces.front() {
                let (took, slept) = (piece.took, piece.slept);
                self.pass(took, slept).await;
                if let Some(piece) = self.pieces.pop_front() {
                    return Told::Printed(piece.stream, piece.bytes);
                }
            }
            let (took, slept) = self.left;
            self.pass(took, slept).await;
            self.left = Default::default();
            match self.next.clone() {
                Started::Ended(ran) if ran == Ran::default().ending(ran.code) => {
                    return Told::Ended(ran.code);
                }
                Started::Ended(ran) => {
                    self.take(&ran);
                    self.next = Started::Ended(Ran::default().ending(ran.code));
                }
                other => return Told::Other(other),
            }
        }
    }

    fn take(&mut self, ran: &Ran) {
        let (pieces, took, slept) = ran.pieces();
        self.pieces = pieces.into();
        self.left = (took, slept);
    }

    async fn pass(&mut self, took: Duration, slept: Duration) {
        if took.is_zero() && slept.is_zero() {
            return;
        }
        let whole = self.cluster.clock.real(took).saturating_add(slept);
        let until = *self.until.get_or_insert_with(|| clock::after(whole));
        clock::until(until).await;
        self.until = None;
    }
}
