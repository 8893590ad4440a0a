//! Runs a program in time: each piece of output appears when the program prints it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::base::clock;
use crate::base::log::Stream;
use crate::nodes::cluster::Cluster;
use crate::program::{Piece, Started};

/// The next thing that a program does.
pub(crate) enum Told {
    Printed(Stream, Vec<u8>),
    /// The program ended with this code.
    Ended(u32),
    /// The program serves, stays or does not start: no further output comes.
    Other(Started),
}

/// A program, and how far it has run.
pub(crate) struct Player<'a> {
    cluster: &'a Cluster,
    pieces: VecDeque<Piece>,
    /// The time that remains after the last piece: simulated, and slept.
    left: (Duration, Duration),
    /// When the current wait ends.
    until: Option<Instant>,
    /// The outcome after the last piece.
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

    /// Waits for the program's next step. A dropped wait loses nothing.
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
