//! What a kubelet gets of the network: it is a Go program on the node itself.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::go;
use super::http::{Answer, Asked};
use super::net::{Link, Lookup, Peer, Speaks};
use super::seat::Seat;
use super::{Place, Sight, View};
use crate::files::Files;
use crate::image::Family;
use crate::names::{Query, Resolver};
use crate::network::Origin;
use crate::topology::Os;

pub(crate) use super::net::Net;

/// Linux says after three tries that nobody answers ARP.
const NO_ROUTE: Duration = Duration::from_millis(3070);

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Go's words, and after how long.
    Nothing { why: String, took: Duration },
    /// What the simulator cannot tell, in its own words.
    NotSimulated(&'static str),
}

/// Does something with the network of a node.
pub(crate) fn on_node<T>(
    node: &str,
    os: Os,
    view: &View<'_>,
    work: impl FnOnce(&dyn Net) -> T,
) -> T {
    let place = Place {
        os,
        family: Family::Agnhost,
        of_2021: false,
        host_process: false,
        origin: Origin::Node(node.to_owned()),
        hostname: node.to_owned(),
        env: Arc::default(),
        files: Files::new(os),
        directory: String::new(),
        user: None,
    };
    let spent = super::Spent::default();
    work(&Seat {
        place: &place,
        view: Sight::new(view, &spent),
    })
}

/// A refused connection.
pub(crate) fn refused(os: Os, at: &str) -> String {
    go::refused(os, "tcp", at)
}

/// `net.Dialer` with a time-out; else Go's words and after how long.
pub(crate) fn open(
    net: &dyn Net,
    (host, port): (&str, u16),
    limit: Duration,
) -> Result<Peer, (String, Duration)> {
    let query = Query {
        by: Resolver::Go,
        ..Query::address(host)
    };
    let (found, resolved) = net.find(&query);
    if resolved >= limit {
        return Err((format!("dial tcp: lookup {host}: i/o timeout"), limit));
    }
    let addresses = found.map_err(|why| {
        let error = go::lookup_error(net, host, &Lookup::from(Err(why)));
        (format!("dial tcp: {error}"), resolved)
    })?;
    let mut first = None;
    for address in addresses {
        match link(net, address, port, limit) {
            Ok(peer) => return Ok(peer),
            Err((why, took)) => {
                first.get_or_insert((why, (resolved + took).min(limit)));
            }
        }
    }
    let nobody = || {
        let error = go::lookup_error(net, host, &Lookup::NoSuchName);
        (format!("dial tcp: {error}"), resolved)
    };
    Err(first.unwrap_or_else(nobody))
}

fn link(
    net: &dyn Net,
    address: IpAddr,
    port: u16,
    limit: Duration,
) -> Result<Peer, (String, Duration)> {
    let os = net.os();
    let at = format!("{}:{port}", go::host(address));
    let too_late = || (format!("dial tcp {at}: i/o timeout"), limit);
    // Windows repeats the SYN after a reset (curl issue 14144)
    let refused = Duration::from_millis(if os == Os::Windows { 2040 } else { 1 });
    Err(match net.open(address, port) {
        Link::Open(peer) => return Ok(peer),
        Link::Refused if refused < limit => (go::refused(os, "tcp", &at), refused),
        Link::NoRoute if os == Os::Windows || NO_ROUTE < limit => {
            let took = if os == Os::Linux {
                NO_ROUTE
            } else {
                Duration::ZERO
            };
            (go::no_route(os, "tcp", &at), took)
        }
        Link::Unreachable => (go::unreachable(os, "tcp", &at), Duration::ZERO),
        Link::Refused | Link::NoRoute | Link::TimedOut => too_late(),
    })
}

/// `http.Client` with a time-out.
pub(crate) fn get(
    net: &dyn Net,
    to: (&str, u16),
    secure: bool,
    asked: &Asked,
    limit: Duration,
) -> Result<Answer, Lost> {
    let nothing = |why: String, took| Lost::Nothing { why, took };
    let too_late = || {
        let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
        nothing(why.to_owned(), limit)
    };
    let peer = open(net, to, limit).map_err(|(why, took)| match took >= limit {
        true => too_late(),
        false => nothing(why, took),
    })?;
    let at = format!("{}:{}", go::host(peer.address), peer.port);
    match (&peer.speaks, secure) {
        (Speaks::Resets, _) => Err(nothing(
            go::reset(net.os(), peer.source, &at),
            Duration::ZERO,
        )),
        (Speaks::Silence, _) => Err(too_late()),
        (Speaks::Tls, true) => Err(Lost::NotSimulated(
            "hybrid-sim does not evaluate probes of a kubelet or an API server",
        )),
        (_, true) => Err(nothing(
            "http: server gave HTTP response to HTTPS client".to_owned(),
            Duration::ZERO,
        )),
        (_, false) => net.ask(&peer, asked).ok_or_else(too_late),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::network_table::Table;
    use crate::world::Page;

    const SECOND: Duration = Duration::from_secs(1);

    fn net(os: Os) -> Table {
        Table::new(os)
            .name("web.test", Lookup::Address([10, 0, 0, 1].into()))
            .name("gone.test", Lookup::TimedOut)
            .page([10, 0, 0, 1], 80, Page::Iis)
            .peer([10, 0, 0, 1], 81, Speaks::Resets)
            .peer([10, 0, 0, 1], 443, Speaks::Tls)
            .link([10, 0, 0, 2], 80, Link::TimedOut)
            .link([10, 0, 0, 3], 80, Link::NoRoute)
    }

    #[test]
    fn a_connection_is_opened_or_gos_words_tell_why_not() {
        let why = |os, host, port| {
            let opened = open(&net(os), (host, port), SECOND);
            opened.map(|peer| peer.address).map_err(|(why, _)| why)
        };
        let linux = |host, port| why(Os::Linux, host, port);
        assert_eq!(linux("web.test", 80), Ok([10, 0, 0, 1].into()));
        let failed = |text: &str| Err(text.to_owned());
        assert_eq!(
            linux("10.0.0.9", 80),
            failed("dial tcp 10.0.0.9:80: connect: connection refused")
        );
        // Both take longer than the time there is
        let late = |host: &str| failed(&format!("dial tcp {host}:80: i/o timeout"));
        assert_eq!(linux("10.0.0.2", 80), late("10.0.0.2"));
        assert_eq!(linux("10.0.0.3", 80), late("10.0.0.3"));
        assert_eq!(why(Os::Windows, "10.0.0.9", 80), late("10.0.0.9"));
        let unknown = linux("nowhere", 80).expect_err("nobody");
        assert!(unknown.starts_with("dial tcp: lookup nowhere"), "{unknown}");
        assert!(unknown.ends_with("no such host"), "{unknown}");
    }

    #[test]
    fn an_answer_comes_or_gos_words_tell_why_not() {
        let ask = |host, port, secure| {
            let asked = Asked::get("/nothing");
            get(&net(Os::Linux), (host, port), secure, &asked, SECOND)
        };
        assert_eq!(ask("10.0.0.1", 80, false).map(|got| got.status), Ok(404));
        let why = |host, port, secure| match ask(host, port, secure) {
            Err(Lost::Nothing { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            why("10.0.0.2", 80, false),
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        );
        assert!(why("10.0.0.1", 81, false).ends_with("connection reset by peer"));
        assert_eq!(
            why("10.0.0.1", 80, true),
            "http: server gave HTTP response to HTTPS client"
        );
        assert_eq!(ask("10.0.0.1", 443, false).map(|got| got.status), Ok(400));
        assert!(matches!(
            ask("10.0.0.1", 443, true),
            Err(Lost::NotSimulated(_))
        ));
    }
}
