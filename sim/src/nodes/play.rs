//! Runs a program in time: each piece of output appears when the program prints it.

use std::time::Duration;
use std::vec::IntoIter;

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
    pieces: IntoIter<Piece>,
    /// The outcome after the last piece.
    end: Started,
}

impl<'a> Player<'a> {
    pub(crate) fn new(cluster: &'a Cluster, mut started: Started) -> Self {
        let pieces = match &mut started {
            Started::Ended(ran) => std::mem::take(&mut ran.pieces),
            _ => Vec::new(),
        };
        Self {
            cluster,
            pieces: pieces.into_iter(),
            end: started,
        }
    }

    /// Waits for the program's next step.
    pub(crate) async fn next(&mut self) -> Told {
        if let Some(piece) = self.pieces.next() {
            self.pass(piece.took, piece.slept).await;
            return Told::Printed(piece.stream, piece.bytes);
        }
        match self.end.clone() {
            Started::Ended(ran) => {
                self.pass(ran.took, ran.slept).await;
                Told::Ended(ran.code)
            }
            other => Told::Other(other),
        }
    }

    async fn pass(&self, took: Duration, slept: Duration) {
        if !took.is_zero() || !slept.is_zero() {
            clock::elapse(self.cluster.clock.real(took).saturating_add(slept)).await;
        }
    }
}
