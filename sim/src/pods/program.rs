//! The first program of a container: what it prints, and what listens while it runs.

use super::container::Slot;
use super::listening::Listening;
use crate::base::log::Stream;
use crate::nodes::play::{Player, Told};
use crate::program::Started;

impl Slot<'_> {
    /// Lets the program run to its end, if it has one.
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
