//! What a kubelet gets of the network: it is a Go program on the node itself.

use std::sync::Arc;

use super::go;
use super::seat::Seat;
use super::{Place, View};
use crate::files::Files;
use crate::image::Family;
use crate::network::Origin;
use crate::topology::Os;

pub(crate) use super::net::Net;

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
    work(&Seat {
        place: &place,
        view: *view,
    })
}

/// A refused connection.
pub(crate) fn refused(os: Os, at: &str) -> String {
    go::refused(os, at)
}
