//! The network operations of a program.
//!
//! Programs know only this trait: the simulator implements it with the world, tests with a table.

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

/// The network as one program sees it.
pub(crate) trait Net {
    /// Finds the addresses of a name, best first, and how long that takes.
    fn find(&self, query: &Query<'_>) -> (Result<Vec<IpAddr>, NotFound>, Duration);
    /// Opens a TCP connection.
    fn open(&self, address: IpAddr, port: u16) -> Link;
    /// Sends a datagram and waits for the answer.
    fn datagram(&self, address: IpAddr, port: u16, payload: &str) -> Datagram;
    /// Sends an ICMP echo request of this many bytes.
    fn echo(&self, address: IpAddr, bytes: usize) -> Echo;
    /// GETs a path over an open connection that is not reset; `None` if no answer comes.
    fn ask(&self, peer: &Peer, path: &str) -> Option<Answer>;
    /// The address that the program sends from to another.
    fn source(&self, to: IpAddr) -> IpAddr;
    /// The time of day.
    fn now(&self) -> Timestamp;
    /// The operating system that the program runs on.
    fn os(&self) -> Os;
    /// The name server that the system asks, and the suffixes with which it completes names.
    fn settings(&self) -> Settings;
}

/// The outcome of opening a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Open(Peer),
    Refused,
    TimedOut,
    NoRoute,
    /// The system has no route to such an address.
    Unreachable,
    /// The system does not let the program connect.
    Forbidden,
}

/// The other end of an open connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// The turn of the connection, which picks a Service's backend.
    pub(crate) turn: u64,
    /// The address that the other end sees.
    pub(crate) source: IpAddr,
    pub(crate) speaks: Speaks,
}

/// What the other end answers to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Page(Box<Server>),
    /// A page; the connection is reset in the middle of the answer.
    BreaksOff(Box<Server>),
    /// TLS; it answers plain HTTP with an error.
    Tls,
    /// Its own page, whatever the request is.
    Captive,
    /// A web server outside the cluster.
    Outside(String),
    /// It resets the connection at the first data.
    Resets,
    /// It takes the request and never answers.
    Silence,
}

/// A program that serves a page, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) page: Page,
    pub(crate) hostname: String,
    pub(crate) address: IpAddr,
    pub(crate) origin: Origin,
}

/// The outcome of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datagram {
    Answered(String),
    /// An ICMP message reports that the port has no listener.
    Refused,
    Lost,
}

/// The outcome of an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// The addressee replies, with this time to live.
    Reply(u8),
    Lost,
    /// The router at this address reports that the addressee does not exist.
    Unreachable(IpAddr),
    /// The system has no route to such an address.
    NoWay,
}

impl Server {
    /// The answer of its page to a client.
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
    /// The answer of a server that is no page; `None` if it does not answer.
    pub(crate) fn own_answer(&self) -> Option<Answer> {
        match self {
            Self::Tls => Some(serve::tls_expected()),
            Self::Captive => Some(serve::captive()),
            Self::Outside(name) => Some(serve::outside(name)),
            Self::Page(_) | Self::BreaksOff(_) | Self::Resets | Self::Silence => None,
        }
    }
}
