//! What a kubelet reaches of what it probes (kubernetes 1.37.0, `pkg/probe/{http,tcp,grpc}`): its own
//! pod, or, where a probe names a host, whatever the node finds under that name.

use std::time::Duration;

use k8s_openapi::api::core::v1::{GRPCAction, HTTPGetAction, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::container::Slot;
use crate::program::http::{Answer, Asked};
use crate::program::kubelet::{self, Lost};
use crate::program::serve::{self, Exchange};
use crate::world::Page;

/// What a GET gave.
pub(super) enum Got {
    Answered(Answer),
    Redirected(String),
}

/// Why there is nothing to judge by.
pub(super) enum NotReached {
    /// Nobody answers, which fails a probe, after so long.
    Failed { why: String, took: Duration },
    /// It could not even be asked.
    Unknown(String),
}

impl NotReached {
    fn at_once(why: String) -> Self {
        Self::Failed {
            why,
            took: Duration::ZERO,
        }
    }
}

/// Asks by HTTP, as the node does.
pub(super) fn get(slot: Slot<'_>, get: &HTTPGetAction, limit: Duration) -> Result<Got, NotReached> {
    let port = number(slot, &get.port)?;
    let path = get.path.as_deref().unwrap_or("/");
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let host = host(slot, get.host.as_deref());
    let url = format!("Get \"{scheme}://{}:{port}{path}\"", bracketed(&host));
    let secure = scheme == "https";
    let headers = get.http_headers.iter().flatten();
    let asked = Asked {
        headers: headers
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect(),
        ..Asked::get(&path)
    };
    let answer = match page(slot, &host, port) {
        Some(Ok(_)) if secure => {
            let why = format!("{url}: http: server gave HTTP response to HTTPS client");
            return Err(NotReached::at_once(why));
        }
        // What a server of gRPC begins with: its settings
        Some(Ok(Page::Health { .. })) => {
            return Err(NotReached::at_once(format!(
                "{url}: net/http: HTTP/1.x transport connection broken: malformed HTTP response \
                 \"\\x00\\x00\\x06\\x04\\x00\\x00\\x00\\x00\\x00\\x00\\x05\\x00\\x00@\\x00\""
            )));
        }
        Some(Ok(page)) => {
            let own = slot.run.address().unwrap_or(slot.run.node.view.address);
            let exchange = Exchange {
                hostname: &slot.run.key.name,
                address: own.into(),
                source: slot.run.node.view.address.into(),
            };
            serve::respond(&page, &path, exchange)
        }
        Some(Err(why)) => return Err(NotReached::at_once(format!("{url}: {why}"))),
        None => from_node(slot, |net| {
            kubelet::get(net, (&host, port), secure, &asked, limit)
        })
        .map_err(|lost| match lost {
            Lost::Nothing { why, took } => NotReached::Failed {
                why: format!("{url}: {why}"),
                took,
            },
            Lost::NotSimulated(what) => NotReached::Unknown(what.to_owned()),
        })?,
    };
    Ok(match answer.status {
        300..400 => Got::Redirected(answer.body),
        _ => Got::Answered(answer),
    })
}

/// Opens a TCP connection.
pub(super) fn open(
    slot: Slot<'_>,
    socket: &TCPSocketAction,
    limit: Duration,
) -> Result<(), NotReached> {
    let port = number(slot, &socket.port)?;
    let host = host(slot, socket.host.as_deref());
    match page(slot, &host, port) {
        Some(Ok(_)) => Ok(()),
        Some(Err(why)) => Err(NotReached::at_once(why)),
        None => from_node(slot, |net| kubelet::open(net, (&host, port), limit))
            .map(|_| ())
            .map_err(|(why, took)| NotReached::Failed { why, took }),
    }
}

/// Asks for the health of a service by gRPC, which goes on dialling until its time is over
/// (`pkg/probe/grpc/grpc.go`; the error texts of grpc-go, `status.Error`).
pub(super) fn health(
    slot: Slot<'_>,
    action: &GRPCAction,
    limit: Duration,
) -> Result<(), NotReached> {
    let port = number(slot, &IntOrString::Int(action.port))?;
    let host = host(slot, None);
    let asked = action.service.as_deref().unwrap_or_default();
    match page(slot, &host, port) {
        Some(Ok(Page::Health { service })) if *service == *asked => Ok(()),
        Some(Ok(Page::Health { .. })) => Err(NotReached::at_once(
            "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
                .to_owned(),
        )),
        _ => {
            let seconds = limit.as_secs();
            let at = format!("{}:{port}", bracketed(&host));
            let why = format!(
                "timeout: failed to connect service \"{at}\" within {seconds}s: context deadline \
                 exceeded"
            );
            Err(NotReached::Failed { why, took: limit })
        }
    }
}

/// Whom a probe asks: the pod, where it says nothing.
fn host(slot: Slot<'_>, named: Option<&str>) -> String {
    let own = || {
        let address = slot.run.address();
        address
            .map(|address| address.to_string())
            .unwrap_or_default()
    };
    let named = named.filter(|host| !host.is_empty());
    named.map_or_else(own, str::to_owned)
}

/// `net.JoinHostPort`.
fn bracketed(host: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

/// What the pod itself serves there, or that it refuses; none where another is meant.
fn page(slot: Slot<'_>, host: &str, port: u16) -> Option<Result<Page, String>> {
    let own = slot.run.address().map(|address| address.to_string());
    let local = slot.run.host_network() && matches!(host, "localhost" | "127.0.0.1");
    if own.as_deref() != Some(host) && !local {
        return None;
    }
    let world = slot.cluster.world();
    let pod = world.pods.get(&slot.run.key);
    let page = pod.and_then(|pod| pod.listening.get(&port).cloned());
    Some(page.ok_or_else(|| kubelet::refused(slot.os(), &format!("{host}:{port}"))))
}

fn from_node<T>(slot: Slot<'_>, work: impl FnOnce(&dyn kubelet::Net) -> T) -> T {
    let world = slot.cluster.world();
    let view = slot.cluster.view(&world);
    kubelet::on_node(&slot.run.node.name, slot.os(), &view, work)
}

/// `pkg/probe/util.go`, `ResolveContainerPort`.
fn number(slot: Slot<'_>, port: &IntOrString) -> Result<u16, NotReached> {
    let number = match port {
        IntOrString::Int(port) => *port,
        IntOrString::String(name) => {
            let mut ports = slot.spec.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            named
                .map(|port| port.container_port)
                .or_else(|| name.parse().ok())
                .ok_or_else(|| format!("couldn't find port: {name} in container"))
                .map_err(NotReached::Unknown)?
        }
    };
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| NotReached::Unknown(format!("invalid port number: {number}")))
}
