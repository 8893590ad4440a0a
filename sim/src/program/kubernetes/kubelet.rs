//! The kubelet's view of the network: it is a Go program on the node itself.

use std::net::SocketAddr;
use std::time::Duration;

use crate::network::Origin;
use crate::nodes::image::Family;
use crate::program::go;
use crate::program::seat::Seat;
use crate::program::web::http::Answer;
use crate::program::web::net::{Peer, Speaks};
use crate::program::{Place, View};
use crate::topology::Os;

pub(crate) use crate::program::go::refused;
pub(crate) use crate::program::web::net::Net;

/// Why a probe or a hook gets no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No answer comes: Go's words, and after how long.
    Nothing { why: String, took: Duration },
    /// The request cannot be sent, or the simulator cannot compute its answer; the words are the simulator's.
    Unknown(String),
}

impl Lost {
    pub(crate) fn at_once(why: String) -> Self {
        let took = Duration::ZERO;
        Self::Nothing { why, took }
    }
}

/// Runs work on the network of a node.
pub(crate) fn on_node<T>(
    node: &str,
    os: Os,
    view: &View<'_>,
    work: impl FnOnce(&dyn Net) -> T,
) -> T {
    let place = Place::new(os, Family::Agnhost, Origin::Node(node.to_owned()), node);
    work(&Seat::new(&place, view))
}

/// `net.Dialer` with a time-out.
pub(crate) fn open(net: &dyn Net, to: SocketAddr, limit: Duration) -> Result<Peer, Lost> {
    go::dial(net, to).map_err(|failed| {
        let (why, took) = match failed.took < limit {
            true => (failed.words, failed.took),
            false => (format!("dial tcp {to}: i/o timeout"), limit),
        };
        Lost::Nothing { why, took }
    })
}

/// The error of `http.Client` for a server without TLS.
pub(crate) const NOT_SECURE: &str = "http: server gave HTTP response to HTTPS client";

/// `http.Client` with a time-out.
pub(crate) fn get(
    net: &dyn Net,
    to: SocketAddr,
    secure: bool,
    path: &str,
    limit: Duration,
) -> Result<Answer, Lost> {
    let too_late = || Lost::Nothing {
        why: "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            .to_owned(),
        took: limit,
    };
    let peer = open(net, to, limit).map_err(|lost| match lost {
        Lost::Nothing { took, .. } if took >= limit => too_late(),
        lost => lost,
    })?;
    let at = format!("{}:{}", go::host(peer.address), peer.port);
    match (&peer.speaks, secure) {
        // The body is read before the status counts (`pkg/probe/http/http.go`)
        (Speaks::Resets, _) | (Speaks::BreaksOff(_), false) => {
            Err(Lost::at_once(go::reset(net.os(), peer.source, &at)))
        }
        (Speaks::Silence, _) => Err(too_late()),
        (Speaks::Tls, true) => {
            let why = "hybrid-sim does not evaluate probes of a kubelet or an API server";
            Err(Lost::Unknown(why.to_owned()))
        }
        (_, true) => Err(Lost::at_once(NOT_SECURE.to_owned())),
        (_, false) => net.ask(&peer, path).ok_or_else(too_late),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::web::net::Link;
    use crate::program::windows::network_table::Table;
    use crate::world::Page;

    const SECOND: Duration = Duration::from_secs(1);

    fn net(os: Os) -> Table {
        Table::new(os)
            .page([10, 0, 0, 1], 80, Page::Iis)
            .peer([10, 0, 0, 1], 81, Speaks::Resets)
            .peer([10, 0, 0, 1], 443, Speaks::Tls)
            .link([10, 0, 0, 2], 80, Link::TimedOut)
            .link([10, 0, 0, 3], 80, Link::NoRoute)
    }

    #[test]
    fn a_connection_is_opened_or_gos_words_tell_why_not() {
        let why = |os, host: &str, port| {
            let to = SocketAddr::new(host.parse().expect("an address"), port);
            let opened = open(&net(os), to, SECOND);
            opened.map(|peer| peer.address).map_err(|lost| match lost {
                Lost::Nothing { why, .. } | Lost::Unknown(why) => why,
            })
        };
        let linux = |host, port| why(Os::Linux, host, port);
        assert_eq!(linux("10.0.0.1", 80), Ok([10, 0, 0, 1].into()));
        let failed = |text: &str| Err(text.to_owned());
        assert_eq!(
            linux("10.0.0.9", 80),
            failed("dial tcp 10.0.0.9:80: connect: connection refused")
        );
        // Both take longer than the time limit
        let late = |host: &str| failed(&format!("dial tcp {host}:80: i/o timeout"));
        assert_eq!(linux("10.0.0.2", 80), late("10.0.0.2"));
        assert_eq!(linux("10.0.0.3", 80), late("10.0.0.3"));
        assert_eq!(why(Os::Windows, "10.0.0.9", 80), late("10.0.0.9"));
    }

    #[test]
    fn an_answer_comes_or_gos_words_tell_why_not() {
        let ask = |host: &str, port, secure| {
            let to = SocketAddr::new(host.parse().expect("an address"), port);
            get(&net(Os::Linux), to, secure, "/nothing", SECOND)
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
        assert!(matches!(ask("10.0.0.1", 443, true), Err(Lost::Unknown(_))));
    }
}
