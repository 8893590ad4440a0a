//! What a kubelet reaches of what it probes (kubernetes 1.37.0, `pkg/probe/{http,tcp}`): a pod of its own.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{HTTPGetAction, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::container::Slot;
use crate::program::http::Answer;
use crate::program::kubelet;
use crate::program::serve::{self, Exchange};
use crate::world::Page;

/// Asks by HTTP, as the node does; why nobody answers, or what the simulator does not do.
pub(super) fn get(slot: Slot<'_>, get: &HTTPGetAction) -> Result<Result<Answer, String>, String> {
    let to = target(slot, get.host.as_deref(), &get.port)?;
    let path = get.path.as_deref().unwrap_or("/");
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let url = format!("Get \"{scheme}://{to}{path}\"");
    let page = match page(slot, to) {
        Ok(_) if scheme == "https" => {
            Err("http: server gave HTTP response to HTTPS client".to_owned())
        }
        page => page,
    };
    Ok(page.map_err(|why| format!("{url}: {why}")).map(|page| {
        let exchange = Exchange {
            hostname: &slot.run.key.name,
            address: to.ip(),
            source: slot.run.node.view.address.into(),
        };
        let world = slot.cluster.world();
        let view = slot.cluster.view(&world);
        kubelet::on_node(&slot.run.node.name, slot.os(), &view, |net| {
            serve::answer(page, &path, exchange, net)
        })
    }))
}

/// Opens a TCP connection; why it cannot, or what the simulator does not do.
pub(super) fn open(slot: Slot<'_>, socket: &TCPSocketAction) -> Result<Result<(), String>, String> {
    let to = target(slot, socket.host.as_deref(), &socket.port)?;
    Ok(page(slot, to).map(|_| ()))
}

/// The pod, and its port.
fn target(slot: Slot<'_>, named: Option<&str>, port: &IntOrString) -> Result<SocketAddr, String> {
    let port = number(slot, port)?;
    let own = slot.run.address().unwrap_or(slot.run.node.view.address);
    match named {
        None | Some("") => Ok(SocketAddr::new(own.into(), port)),
        Some(_) => Err("hybrid-sim probes a pod's own address alone".to_owned()),
    }
}

/// What the pod serves there, or that it refuses.
fn page(slot: Slot<'_>, to: SocketAddr) -> Result<Page, String> {
    let world = slot.cluster.world();
    let pod = world.pods.get(&slot.run.key);
    let page = pod.and_then(|pod| pod.listening.get(&to.port()).copied());
    page.ok_or_else(|| kubelet::refused(slot.os(), &to.to_string()))
}

/// `pkg/probe/util.go`, `ResolveContainerPort`.
fn number(slot: Slot<'_>, port: &IntOrString) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(port) => *port,
        IntOrString::String(name) => {
            let mut ports = slot.spec.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            named
                .map(|port| port.container_port)
                .or_else(|| name.parse().ok())
                .ok_or_else(|| format!("couldn't find port: {name} in container"))?
        }
    };
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| format!("invalid port number: {number}"))
}
