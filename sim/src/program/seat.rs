//! The network as a program at a place sees it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::ping::Language;
use super::{Place, View};
use crate::fault::FaultKind;
use crate::names::{self, Query, Settings};
use crate::network::{self, Backend, Origin, Outcome, Protocol, Request};
use crate::program::kubernetes::netexec;
use crate::program::web::http::Answer;
use crate::program::web::net::{Datagram, Echo, Link, Net, NotFound, Peer, Server, Speaks};
use crate::topology::Os;
use crate::world::{Key, Node, Page, Pod};
use jiff::Timestamp;

/// A place and its view of the cluster.
pub(crate) struct Seat<'a> {
    pub(crate) place: &'a Place,
    pub(crate) view: View<'a>,
}

impl<'a> Seat<'a> {
    pub(crate) fn new(place: &'a Place, view: &View<'a>) -> Self {
        Self { place, view: *view }
    }

    /// The node that the program runs on.
    pub(crate) fn node(&self) -> Option<&Node> {
        let world = self.view.world;
        world.nodes.get(self.place.origin.node(world)?)
    }

    /// The language of Windows' own programs on its node.
    pub(crate) fn language(&self) -> Language {
        let world = self.view.world;
        match self.place.origin.node(world) {
            Some(node) if world.suffers(FaultKind::ToolsLocalised, node) => Language::Japanese,
            _ => Language::English,
        }
    }

    /// The place of the program behind a server.
    fn place_of(&self, server: &Server) -> Place {
        Place {
            os: server.origin.os(self.view.world),
            origin: server.origin.clone(),
            hostname: server.hostname.clone(),
            host_process: false,
            ..self.place.clone()
        }
    }

    /// The IPv4 address of the program's pod or node.
    fn address(&self) -> IpAddr {
        let world = self.view.world;
        let address = match &self.place.origin {
            Origin::Pod(key) | Origin::HostPod(key) => world.pods.get(key).map(|pod| pod.address),
            Origin::Node(name) => world.nodes.get(name).map(|node| node.address),
            Origin::Outside => Some(world.network.client),
        };
        address.unwrap_or(Ipv4Addr::UNSPECIFIED).into()
    }

    fn server(&self, key: &Key, page: Page, to: IpAddr) -> Server {
        let pod = self.view.world.pods.get(key);
        // A pod on its node's network uses the node's host name
        let (origin, hostname) = match pod {
            Some(pod) if pod.host_network => (Origin::HostPod(key.clone()), &pod.node),
            _ => {
                let own_name = pod.and_then(|pod| pod.told.own_name.as_ref());
                (Origin::Pod(key.clone()), own_name.unwrap_or(&key.name))
            }
        };
        Server {
            page,
            hostname: hostname.clone(),
            address: pod.and_then(|pod: &Pod| pod.like(to)).unwrap_or(to),
            origin,
        }
    }
}

impl Net for Seat<'_> {
    fn find(&self, query: &Query<'_>) -> (Result<Vec<IpAddr>, NotFound>, Duration) {
        // Turns are for connections: if each look-up took one too, every other backend would be left out
        let query = Query {
            turn: self.view.turns.taken(),
            ..*query
        };
        match names::resolve(self.view.world, &self.place.origin, &query) {
            Ok((addresses, took)) => (Ok(addresses), took),
            Err((why, took)) => (Err(why), took),
        }
    }

    fn open(&self, address: IpAddr, port: u16) -> Link {
        let is_of_pod = matches!(self.place.origin, Origin::Pod(_));
        if self.place.apart && is_of_pod && address.is_loopback() {
            return Link::Refused;
        }
        let turn = self.view.turns.next_turn(Protocol::Tcp, address, port);
        let request = Request::tcp(self.place.origin.clone(), address, port, turn);
        let (source, speaks) = match network::connect(self.view.world, &request) {
            Outcome::Refused => return Link::Refused,
            Outcome::TimedOut => return Link::TimedOut,
            Outcome::NoRoute => return Link::NoRoute,
            Outcome::Unreachable => return Link::Unreachable,
            Outcome::Forbidden => return Link::Forbidden,
            Outcome::Reset => (self.source(address), Speaks::Resets),
            Outcome::WrongAnswer => (self.source(address), Speaks::Captive),
            Outcome::Stalled => (self.source(address), Speaks::Silence),
            Outcome::BrokenOff {
                backend: Backend::Pod { pod, page },
                source,
            } => {
                let server = self.server(&pod, page, address);
                (source, Speaks::BreaksOff(Box::new(server)))
            }
            Outcome::Answered { backend, source } | Outcome::BrokenOff { backend, source } => (
                source,
                match backend {
                    Backend::Kubelet { .. } | Backend::ApiServer => Speaks::Tls,
                    // They take a request that they do not understand, and close
                    Backend::Dns | Backend::Echo => Speaks::Resets,
                    Backend::Outside { name } => Speaks::Outside(name),
                    Backend::Pod { pod, page } => {
                        Speaks::Page(Box::new(self.server(&pod, page, address)))
                    }
                },
            ),
        };
        Link::Open(Peer {
            address,
            port,
            turn,
            source,
            speaks,
        })
    }

    fn datagram(&self, address: IpAddr, port: u16, payload: &str) -> Datagram {
        let turn = self.view.turns.next_turn(Protocol::Udp, address, port);
        let mut request = Request {
            payload: payload.len(),
            ..Request::udp(self.place.origin.clone(), address, port, turn)
        };
        match network::connect(self.view.world, &request) {
            Outcome::Refused => Datagram::Refused,
            Outcome::Answered {
                backend: Backend::Pod { pod, page },
                ..
            } => {
                let server = self.server(&pod, page, address);
                let text = netexec::datagram(payload, &server.hostname);
                // An empty datagram also counts as lost for the waiting client
                let Some(text) = text.filter(|text| !text.is_empty()) else {
                    return Datagram::Lost;
                };
                // The answer arrives only if the network passes its size
                request.payload = payload.len().max(text.len());
                match network::connect(self.view.world, &request) {
                    Outcome::Answered { .. } => Datagram::Answered(text),
                    _ => Datagram::Lost,
                }
            }
            _ => Datagram::Lost,
        }
    }

    fn echo(&self, address: IpAddr, bytes: usize) -> Echo {
        let world = self.view.world;
        let request = Request {
            payload: bytes,
            ..Request::ping(self.place.origin.clone(), address)
        };
        match network::connect(world, &request) {
            Outcome::Answered { .. } => {
                // The sender's initial value: 128 on Windows, 64 on Linux and for outside addresses; routers,
                // which subtract one each, are ignored
                let node = match world.pods.by_address(address) {
                    Some((_, pod)) => world.nodes.get(&pod.node),
                    None => world.nodes.by_address(address).map(|(_, node)| node),
                };
                let windows = node.is_some_and(|node| node.pool.os() == Os::Windows);
                Echo::Reply(if windows { 128 } else { 64 })
            }
            Outcome::NoRoute => Echo::Unreachable(self.source(address)),
            Outcome::Unreachable | Outcome::Forbidden => Echo::NoWay,
            _ => Echo::Lost,
        }
    }

    fn ask(&self, peer: &Peer, path: &str) -> Option<Answer> {
        let answer = match &peer.speaks {
            Speaks::Page(server) | Speaks::BreaksOff(server) => {
                let place = self.place_of(server);
                server.answer(path, peer.source, &Seat::new(&place, &self.view))
            }
            speaks => speaks.own_answer()?,
        };
        // A hop silently drops what is too large for it
        let request = Request {
            payload: path.len().max(answer.body.len()),
            ..Request::tcp(
                self.place.origin.clone(),
                peer.address,
                peer.port,
                peer.turn,
            )
        };
        match network::connect(self.view.world, &request) {
            Outcome::Stalled => None,
            _ => Some(answer),
        }
    }

    fn source(&self, to: IpAddr) -> IpAddr {
        let source = self.place.origin.like(self.view.world, to);
        source.unwrap_or_else(|| if to.is_loopback() { to } else { self.address() })
    }

    fn now(&self) -> Timestamp {
        self.view.world.wall.now()
    }

    fn os(&self) -> Os {
        self.place.os
    }

    fn settings(&self) -> Settings {
        names::settings(self.view.world, &self.place.origin)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Started;
    use super::super::tests::{argv, place};
    use super::super::{Turns, View, start};
    use super::*;
    use crate::nodes::image::Family;
    use crate::topology::{Build, Pool};
    use crate::world::Page;
    use crate::world::{Endpoint, Nodes, Service, ServicePort, Slice, Told, World};

    const LINUX: [u8; 4] = [127, 77, 1, 1];
    const WINDOWS: [u8; 4] = [127, 77, 1, 2];

    /// One Linux and one Windows node, each with a pod; the pod on Linux is the prober, and serves.
    fn world() -> World {
        let windows = Pool::Windows(Build::Ws2022);
        let node =
            |pool, address: [u8; 4], third| Node::new(pool, address, 10250, [10, 244, third]);
        let prober = Pod {
            listening: BTreeMap::from([(8080, Page::Netexec)]),
            ..Pod::new("linux", [10, 244, 1, 9], Told::default())
        };
        let other = Pod::new("windows", [10, 244, 2, 9], Told::default());
        let mut world = World {
            nodes: Nodes::from_iter([
                ("linux".to_owned(), node(Pool::Linux, LINUX, 1)),
                ("windows".to_owned(), node(windows, WINDOWS, 2)),
            ]),
            ..World::default()
        };
        for (name, pod) in [("prober", prober), ("other", other)] {
            world.pods.insert(Key::new("test", name), pod);
        }
        world
    }

    #[test]
    fn an_echo_has_the_time_to_live_of_its_sender() {
        let (world, turns) = (world(), Turns::default());
        let place = place(Os::Linux, Family::Agnhost);
        let view = View {
            world: &world,
            turns: &turns,
        };
        let outside = world.network.outside[0].address;
        let (linux, windows) = ("linux", "windows");
        // A Windows node lets no echo request from elsewhere in
        for (from, address, ttl) in [
            (windows, LINUX.into(), 64),
            (windows, WINDOWS.into(), 128),
            (linux, [10, 244, 1, 9].into(), 64),
            (linux, [10, 244, 2, 9].into(), 128),
            (linux, outside, 64),
        ] {
            let place = Place {
                origin: Origin::Node(from.to_owned()),
                ..place.clone()
            };
            let seat = Seat {
                place: &place,
                view,
            };
            assert_eq!(seat.echo(address, 32), Echo::Reply(ttl), "{address}");
        }
    }

    #[test]
    fn each_connection_of_a_program_has_its_turn() {
        let mut world = world();
        let endpoints = [("a", 11), ("b", 12)].map(|(name, last)| {
            let address = [10, 244, 2, last];
            let pod = Pod {
                listening: BTreeMap::from([(8080, Page::Netexec)]),
                ..Pod::new("windows", address, Told::default())
            };
            world.pods.insert(Key::new("test", name), pod);
            Endpoint::ready(address)
        });
        let port = ServicePort {
            name: "http".to_owned(),
            protocol: Protocol::Tcp,
            port: 80,
            node_port: None,
        };
        let service = Service {
            addresses: vec![[10, 96, 0, 9].into()],
            ports: vec![port],
            ..Service::default()
        };
        world.services.insert(Key::new("test", "web"), service);
        let slice = Slice {
            service: "web".to_owned(),
            ports: BTreeMap::from([("http".to_owned(), 8080)]),
            endpoints: endpoints.into(),
        };
        world.slices.insert(Key::new("test", "web-1"), slice);
        let turns = Turns::default();
        let place = place(Os::Linux, Family::Agnhost);
        let view = View {
            world: &world,
            turns: &turns,
        };
        let url = "http://web/hostname";
        let config = "silent\nheader = \"Connection: close\"\nwrite-out = \"\\n\"\n".to_owned()
            + &format!("url = \"{url}\"\nurl = \"http://10.244.1.9:8080/\"\n").repeat(4);
        let started = start(
            &place,
            &argv(&["curl", "-q", "-K", "-"]),
            config.as_bytes(),
            &view,
        );
        let Started::Ended(ran) = started else {
            panic!("{started:?}")
        };
        let text = String::from_utf8_lossy(&ran.all(crate::base::log::Stream::Out)).into_owned();
        let names: Vec<&str> = text.lines().step_by(2).collect();
        let two = [["a", "b", "a", "b"], ["b", "a", "b", "a"]];
        assert!(two.iter().any(|two| names == two), "{text}");
    }
}
