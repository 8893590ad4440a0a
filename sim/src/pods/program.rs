//! The first program of a container: what it reads, what it prints, and what listens while it runs.

use tokio::sync::mpsc;

use super::container::Slot;
use super::listening::Listening;
use crate::keyboard::Keyboard;
use crate::log::Stream;
use crate::play::{Player, Told};
use crate::program::{Input, Started};

impl Slot<'_> {
    /// What the first program reads: whatever is sent to who attaches, if its spec says so.
    pub(super) fn input(self) -> Input {
        let terminal = self.spec.tty == Some(true);
        match terminal || self.spec.stdin == Some(true) {
            true => Input::Open { terminal },
            false => Input::default(),
        }
    }

    /// Opens the container's input, if it has one.
    fn keyboard(self) -> Option<Keyboard> {
        let Input::Open { terminal } = self.input() else {
            return None;
        };
        let (sends, sent) = mpsc::unbounded_channel();
        let reads = self.spec.stdin == Some(true);
        self.book(|container| container.input = reads.then_some(sends));
        Some(Keyboard::new(self.os(), terminal, sent))
    }

    /// Lets the program run to its end, if it has one.
    pub(super) async fn run_program(self, started: Started) -> u32 {
        let clock = self.cluster.clock;
        let log = self.log();
        let print = |stream, bytes: &[u8]| log.print(stream, bytes);
        let mut player = Player::new(self.cluster, started, self.keyboard());
        let other = loop {
            match player.next().await {
                Told::Printed(stream, bytes) => print(stream, &bytes),
                Told::Ended(code) => return code,
                Told::Other(other) => break other,
                Told::TooMuch => {}
            }
        };
        // It reads nothing, so that what is sent to it goes nowhere
        drop(player);
        match other {
            Started::Serves {
                listening,
                listening_udp,
                warm_up,
                prints,
            } => {
                clock.pass(warm_up).await;
                print(Stream::Out, prints.as_bytes());
                let _listening = Listening::begin(self, listening, listening_udp);
                std::future::pending().await
            }
            Started::Stays { prints } => {
                print(Stream::Out, prints.as_bytes());
                std::future::pending().await
            }
            Started::Ended(_)
            | Started::GoesOn { .. }
            | Started::Reads { .. }
            | Started::Refused(_) => {
                unreachable!("it has been played, or was not started")
            }
        }
    }
}
