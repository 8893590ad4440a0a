//! A client outside the cluster: what it asks, and what it is answered.

use std::net::IpAddr;

use super::http::Answer;
use super::net::{Link, Net, Speaks};
use super::seat::Seat;
use super::{Place, View};
use crate::image::Family;
use crate::network::Origin;
use crate::topology::Os;

/// What comes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Answer(Answer),
    Refused,
    NoRoute,
    Reset,
    /// The connection opens, and nothing comes.
    Silence,
    TimedOut,
}

/// GETs a path of whoever is at an address, as a program of the cluster does.
pub(crate) fn ask(view: &View<'_>, (address, port): (IpAddr, u16), path: &str) -> Reply {
    // The image that all programs are of which ask others in turn
    let place = Place::new(Os::Linux, Family::Agnhost, Origin::Outside, "");
    let seat = Seat {
        place: &place,
        view: *view,
    };
    let peer = match seat.open(address, port) {
        Link::Open(peer) => peer,
        Link::Refused => return Reply::Refused,
        Link::NoRoute | Link::Unreachable => return Reply::NoRoute,
        Link::TimedOut => return Reply::TimedOut,
    };
    match seat.ask(&peer, path) {
        Some(answer) => Reply::Answer(answer),
        None if peer.speaks == Speaks::Resets => Reply::Reset,
        None => Reply::Silence,
    }
}
