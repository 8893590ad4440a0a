//! A client outside the cluster: what it asks, and what it is answered.

use std::net::IpAddr;

use super::http::Answer;
use super::net::{Link, Net, Speaks};
use crate::network::Origin;
use crate::nodes::image::Family;
use crate::program::seat::Seat;
use crate::program::{Place, View};
use crate::topology::Os;

/// GETs a path of whoever is at an address, as a program of the cluster does; where nothing comes, the
/// answer says why: 502 where somebody says no, 504 where nobody says anything.
pub(crate) fn ask(view: &View<'_>, (address, port): (IpAddr, u16), path: &str) -> Answer {
    let failed =
        |status, why: &str| Answer::new(status, format!("connection to {address}:{port}: {why}"));
    // The image that all programs are of which ask others in turn
    let place = Place::new(Os::Linux, Family::Agnhost, Origin::Outside, "");
    let seat = Seat::new(&place, view);
    let peer = match seat.open(address, port) {
        Link::Open(peer) => peer,
        Link::Refused => return failed(502, "refused"),
        Link::NoRoute | Link::Unreachable => return failed(502, "no route"),
        Link::TimedOut => return failed(504, "timed out"),
    };
    match seat.ask(&peer, path) {
        Some(answer) => answer,
        None if peer.speaks == Speaks::Resets => failed(502, "reset"),
        None => failed(504, "opened, and then silent"),
    }
}
