//! How a kubelet reaches what it probes (kubernetes 1.37.0, `pkg/probe/{http,tcp}`): its own pod,
//! or another target at the address that a probe names.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{HTTPGetAction, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::container::Slot;
use crate::program::kubernetes::kubelet::{self, Lost, NOT_SECURE};
use crate::program::web::http::Answer;
use crate::program::web::serve::{self, Exchange};
use crate::world::Page;

/// Sends an HTTP request from the node.
pub(crate) fn get(slot: Slot<'_>, get: &HTTPGetAction, limit: Duration) -> Result<Answer, Lost> {
    let to = target(slot, get.host.as_deref(), &get.port)?;
    let path = get.path.as_deref().unwrap_or("/");
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let url = format!("Get \"{scheme}://{to}{path}\"");
    let secure = scheme == "https";
    match page(slot, to) {
        Some(Ok(_)) if secure => Err(Lost::at_once(format!("{url}: {NOT_SECURE}"))),
        Some(Ok(page)) => {
            let address = slot.run.address().unwrap_or(slot.run.node.view.address);
            let exchange = Exchange {
                hostname: &slot.run.key.name,
                address: address.into(),
                source: slot.run.node.view.address.into(),
            };
            Ok(from_node(slot, |net| {
                serve::answer(page, &path, exchange, net)
            }))
        }
        Some(Err(why)) => Err(Lost::at_once(format!("{url}: {why}"))),
        None => {
            let got = from_node(slot, |net| kubelet::get(net, to, secure, &path, limit));
            got.map_err(|lost| match lost {
                Lost::Nothing { why, took } => Lost::Nothing {
                    why: format!("{url}: {why}"),
                    took,
                },
                unknown @ Lost::Unknown(_) => unknown,
            })
        }
    }
}

/// Opens a TCP connection.
pub(crate) fn open(slot: Slot<'_>, socket: &TCPSocketAction, limit: Duration) -> Result<(), Lost> {
    let to = target(slot, socket.host.as_deref(), &socket.port)?;
    match page(slot, to) {
        Some(Ok(_)) => Ok(()),
        Some(Err(why)) => Err(Lost::at_once(why)),
        None => from_node(slot, |net| kubelet::open(net, to, limit)).map(drop),
    }
}

/// The address that a probe targets: the pod's, if the probe names none.
fn target(slot: Slot<'_>, named: Option<&str>, port: &IntOrString) -> Result<SocketAddr, Lost> {
    let port = number(slot, port)?;
    let host = match named.filter(|host| !host.is_empty()) {
        None => slot.run.address().map(IpAddr::from),
        Some("localhost") => Some([127, 0, 0, 1].into()),
        Some(address) => address.parse().ok(),
    };
    let unknown = || Lost::Unknown("hybrid-sim probes addresses alone".to_owned());
    let host = host.ok_or_else(unknown)?;
    Ok(SocketAddr::new(host, port))
}

/// The page that the pod serves at the address, or its refusal; `None` if the address is not the pod's.
fn page(slot: Slot<'_>, to: SocketAddr) -> Option<Result<Page, String>> {
    let address = slot.run.address().map(IpAddr::from);
    let local = slot.run.host_network() && to.ip().is_loopback();
    if address != Some(to.ip()) && !local {
        return None;
    }
    let world = slot.cluster.world();
    let pod = world.pods.get(&slot.run.key);
    let page = pod.and_then(|pod| pod.listening.get(&to.port()).copied());
    Some(page.ok_or_else(|| kubelet::refused(slot.os(), &to.to_string())))
}

fn from_node<T>(slot: Slot<'_>, work: impl FnOnce(&dyn kubelet::Net) -> T) -> T {
    let world = slot.cluster.world();
    let view = slot.cluster.view(&world);
    kubelet::on_node(&slot.run.node.name, slot.os(), &view, work)
}

/// Resolves a port (`pkg/probe/util.go`, `ResolveContainerPort`).
fn number(slot: Slot<'_>, port: &IntOrString) -> Result<u16, Lost> {
    let number = match port {
        IntOrString::Int(port) => *port,
        IntOrString::String(name) => {
            let mut ports = slot.spec.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            named
                .map(|port| port.container_port)
                .or_else(|| name.parse().ok())
                .ok_or_else(|| format!("couldn't find port: {name} in container"))
                .map_err(Lost::Unknown)?
        }
    };
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| Lost::Unknown(format!("invalid port number: {number}")))
}
