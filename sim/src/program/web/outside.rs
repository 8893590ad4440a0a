//! A client outside the cluster: its requests, and the answers to them.

use std::net::IpAddr;

use super::http::Answer;
use super::net::{Link, Net, Speaks};
use crate::network::Origin;
use crate::nodes::image::Family;
use crate::program::seat::Seat;
use crate::program::{Place, View};
use crate::topology::Os;

/// GETs a path of a server as a program of the cluster does; where no answer comes, returns 502 for a refusal
/// and 504 for silence, with the reason.
pub(crate) fn ask(view: &View<'_>, (address, port): (IpAddr, u16), path: &str) -> Answer {
    let failed =
        |status, why: &str| Answer::new(status, format!("connection to {address}:{port}: {why}"));
    // The image whose programs send requests to others
    let place = Place::new(Os::Linux, Family::Agnhost, Origin::Outside, "");
    let seat = Seat::new(&place, view);
    let peer = match seat.open(address, port) {
        Link::Open(peer) => peer,
        Link::Refused => return failed(502, "refused"),
        Link::NoRoute | Link::Unreachable | Link::Forbidden => return failed(502, "no route"),
        Link::TimedOut => return failed(504, "timed out"),
    };
    match seat.ask(&peer, path) {
        // This proxy answers as a whole
        Some(_) if matches!(peer.speaks, Speaks::BreaksOff(_)) => failed(502, "broken off"),
        Some(answer) => answer,
        None if peer.speaks == Speaks::Resets => failed(502, "reset"),
        None => failed(504, "opened, and then silent"),
    }
}
