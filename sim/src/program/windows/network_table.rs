//! A network defined by tables, for tests of programs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::names::{Query, Settings};
use crate::network::Origin;
use crate::program::kubernetes::netexec;
use crate::program::web::http::Answer;
use crate::program::web::net::{Datagram, Echo, Link, Net, NotFound, Peer, Server, Speaks};
use crate::topology::Os;
use crate::world::Page;
use jiff::Timestamp;

/// Anything that is in no table does not exist: names are unknown, and connections are refused.
pub(crate) struct Table {
    pub(crate) os: Os,
    pub(crate) hostname: String,
    pub(crate) own: IpAddr,
    pub(crate) names: BTreeMap<String, Result<IpAddr, NotFound>>,
    pub(crate) links: BTreeMap<(IpAddr, u16), Link>,
    pub(crate) datagrams: BTreeMap<(IpAddr, u16), Datagram>,
    pub(crate) echoes: BTreeMap<IpAddr, Echo>,
    /// The address that answers `netexec`'s commands.
    pub(crate) netexec_udp: Option<(IpAddr, u16)>,
    pub(crate) server: Option<IpAddr>,
}

pub(crate) const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 244, 2, 9));

impl Table {
    pub(crate) fn new(os: Os) -> Self {
        Self {
            os,
            hostname: "prober".to_owned(),
            own: OWN,
            names: BTreeMap::new(),
            links: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            echoes: BTreeMap::new(),
            netexec_udp: None,
            server: Some([10, 96, 0, 10].into()),
        }
    }

    pub(crate) fn link(mut self, address: impl Into<IpAddr>, port: u16, link: Link) -> Self {
        self.links.insert((address.into(), port), link);
        self
    }

    pub(crate) fn name(mut self, name: &str, found: Result<IpAddr, NotFound>) -> Self {
        self.names.insert(name.to_owned(), found);
        self
    }

    /// Adds a listener that answers in a given way.
    pub(crate) fn peer(self, address: impl Into<IpAddr>, port: u16, speaks: Speaks) -> Self {
        let peer = Peer {
            address: address.into(),
            port,
            turn: 0,
            source: self.own,
            speaks,
        };
        let address = peer.address;
        self.link(address, port, Link::Open(peer))
    }

    /// Adds a server of a page with this table's host name.
    pub(crate) fn page(self, address: impl Into<IpAddr>, port: u16, page: Page) -> Self {
        let address = address.into();
        let server = Server {
            page,
            hostname: self.hostname.clone(),
            address,
            origin: Origin::Outside,
        };
        self.peer(address, port, Speaks::Page(Box::new(server)))
    }
}

impl Net for Table {
    fn find(&self, query: &Query<'_>) -> (Result<Vec<IpAddr>, NotFound>, Duration) {
        let literal = query.name.parse().map(Ok).ok();
        let found = literal.or_else(|| self.names.get(query.name).copied());
        match found.unwrap_or(Err(NotFound::NoSuchName)) {
            Ok(address) => (Ok(vec![address]), Duration::ZERO),
            Err(NotFound::TimedOut) => (Err(NotFound::TimedOut), Duration::from_secs(10)),
            Err(why) => (Err(why), Duration::ZERO),
        }
    }

    fn open(&self, address: IpAddr, port: u16) -> Link {
        self.links
            .get(&(address, port))
            .cloned()
            .unwrap_or(Link::Refused)
    }

    fn datagram(&self, address: IpAddr, port: u16, payload: &str) -> Datagram {
        if self.netexec_udp == Some((address, port)) {
            let answer = netexec::datagram(payload, &self.hostname);
            return answer.map_or(Datagram::Lost, Datagram::Answered);
        }
        self.datagrams
            .get(&(address, port))
            .cloned()
            .unwrap_or(Datagram::Refused)
    }

    fn echo(&self, address: IpAddr, _bytes: usize) -> Echo {
        self.echoes.get(&address).copied().unwrap_or(Echo::Lost)
    }

    fn ask(&self, peer: &Peer, path: &str) -> Option<Answer> {
        match &peer.speaks {
            Speaks::Page(server) | Speaks::BreaksOff(server) => {
                Some(server.answer(path, peer.source, self))
            }
            other => other.own_answer(),
        }
    }

    fn source(&self, to: IpAddr) -> IpAddr {
        if to.is_loopback() { to } else { self.own }
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn os(&self) -> Os {
        self.os
    }

    fn settings(&self) -> Settings {
        Settings {
            server: self.server,
            searches: vec!["test.svc.cluster.local".to_owned()],
            ndots: 5,
        }
    }
}
