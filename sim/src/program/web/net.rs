//! What a program can do on the network.
//!
//! Programs know this trait alone: the world stands behind it in the simulator, a table in tests.

use std::net::IpAddr;
use std::time::Duration;

use super::http::Answer;
use super::serve::{self, Exchange};
pub(crate) use crate::names::NotFound;
use crate::names::{Query, Settings};
use crate::network::Origin;
use crate::topology::Os;
use crate::world::Page;
use jiff::Timestamp;

/// A network as one program meets it.
pub(crate) trait Net {
    /// Finds the addresses of a name, best first, and how long that takes.
    fn find(&self, query: &Query<'_>) -> (Result<Vec<IpAddr>, NotFound>, Duration);
    /// Opens a TCP connection.
    fn open(&self, address: IpAddr, port: u16) -> Link;
    /// Sends a datagram and waits for one.
    fn datagram(&self, address: IpAddr, port: u16, payload: &str) -> Datagram;
    /// Sends an ICMP echo request with so many bytes.
    fn echo(&self, address: IpAddr, bytes: usize) -> Echo;
    /// GETs a path over an open connection that is not cut; `None` where nothing comes back.
    fn ask(&self, peer: &Peer, path: &str) -> Option<Answer>;
    /// The program's own address towards another.
    fn source(&self, to: IpAddr) -> IpAddr;
    /// The time of day.
    fn now(&self) -> Timestamp;
    /// The system that the program runs on.
    fn os(&self) -> Os;
    /// The name servers that the system asks, and what it completes names with.
    fn settings(&self) -> Settings;
}

/// What became of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Open(Peer),
    Refused,
    TimedOut,
    NoRoute,
    /// The system knows no way to such an address.
    Unreachable,
}

/// The other end of an open connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Which of a Service's backends it is.
    pub(crate) turn: u64,
    /// The address that the other end sees.
    pub(crate) source: IpAddr,
    pub(crate) speaks: Speaks,
}

/// What the other end does once it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Page(Box<Server>),
    /// TLS, and tells plain HTTP so.
    Tls,
    /// Its own page, whatever it is asked.
    Captive,
    /// A web server outside the cluster.
    Outside(String),
    /// It cuts the connection at the first data.
    Resets,
    /// It takes the request, and says nothing.
    Silence,
}

/// A program that serves a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) page: Page,
    pub(crate) hostname: String,
    pub(crate) address: IpAddr,
    pub(crate) origin: Origin,
}

/// What became of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datagram {
    Answered(String),
    /// An ICMP message says that nobody listens.
    Refused,
    Lost,
}

/// What became of an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// From there, with this time to live.
    Reply(u8),
    Lost,
    /// Whose router says that there is nobody.
    Unreachable(IpAddr),
    /// The system knows no way to such an address.
    NoWay,
}

impl Server {
    /// What its page answers somebody.
    pub(crate) fn answer(&self, path: &str, source: IpAddr, net: &dyn Net) -> Answer {
        let exchange = Exchange {
            hostname: &self.hostname,
            address: self.address,
            source,
        };
        serve::answer(self.page, path, exchange, net)
    }
}

impl Speaks {
    /// The answer of what is no page; `None` where nothing comes.
    pub(crate) fn own_answer(&self) -> Option<Answer> {
        match self {
            Self::Tls => Some(serve::tls_expected()),
            Self::Captive => Some(serve::captive()),
            Self::Outside(name) => Some(serve::outside(name)),
            Self::Page(_) | Self::Resets | Self::Silence => None,
        }
    }
}
