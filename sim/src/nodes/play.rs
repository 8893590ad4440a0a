//! A program as it runs in time: what it prints comes when it prints it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::base::clock;
use crate::base::log::Stream;
use crate::nodes::cluster::Cluster;
use crate::program::{Piece, Started};

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
        let (pieces, took, slept) = match &started {
            Started::Ended(ran) => (ran.pieces.clone(), ran.took, ran.slept),
            _ => Default::default(),
        };
        Self {
            cluster,
            pieces: pieces.into(),
            left: (took, slept),
            until: None,
            next: started,
        }
    }

    /// Waits for the next thing it does. Nothing is lost where the wait is given up.
    pub(crate) async fn next(&mut self) -> Told {
        let piece = self.pieces.front();
        let (took, slept) = piece.map_or(self.left, |piece| (piece.took, piece.slept));
        self.pass(took, slept).await;
        if let Some(piece) = self.pieces.pop_front() {
            return Told::Printed(piece.stream, piece.bytes);
        }
        self.left = Default::default();
        match self.next.clone() {
            Started::Ended(ran) => Told::Ended(ran.code),
            other => Told::Other(other),
        }
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
