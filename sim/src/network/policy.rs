//! `NetworkPolicies`, where the CNI keeps them: egress on the node a pod sends from, ingress on the
//! node it is reached on.
//!
//! Meanings are those of the API (networking.k8s.io/v1): policies add up; a pod that none selects
//! in a direction is open in it; a pod's own node always reaches it. Egress is judged by the
//! backend, after kube-proxy has chosen it. SCTP rules allow nothing here.

use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Flow, Protocol};
use crate::fault::FaultKind;
use crate::world::policy::{Direction, Rule};
use crate::world::{Key, Labels, Node, Pod, World};

/// The other end of a packet.
struct Peer<'a> {
    address: IpAddr,
    pod: Option<(&'a Key, &'a Pod)>,
}

/// What a packet is for: the port at its destination, and whose names of ports count.
struct Aim<'a> {
    protocol: Protocol,
    port: u16,
    pod: Option<&'a Pod>,
}

/// Whether the policies of both ends let a request pass to an address.
pub(super) fn allows(
    flow: &Flow<'_>,
    there: Option<(&str, &Node)>,
    pod: Option<(&Key, &Pod)>,
    (address, port): (IpAddr, u16),
) -> bool {
    let world = flow.world;
    if world.policies.is_empty() {
        return true;
    }
    let aim = Aim {
        protocol: flow.request.protocol,
        port,
        pod: pod.map(|(_, pod)| pod),
    };
    let start = flow
        .pod
        .and_then(|own| Some((own, world.nodes.get(&own.1.node)?)));
    // Elsewhere another node has sent it on
    if let Some((own, node)) = start
        && node.network.policies
        && flow.is_on(&own.1.node)
    {
        let peer = Peer { address, pod };
        if !passes(world, Direction::Egress, own, &peer, &aim) {
            return false;
        }
    }
    if let (Some(own), Some((name, node))) = (pod, there)
        && node.network.policies
        && !world.suffers(FaultKind::PolicyIgnored, name)
        && !(flow.is_host() && flow.is_on(name))
    {
        if world.suffers(FaultKind::PolicyClosed, name) {
            return selecting(world, Direction::Ingress, own).next().is_none();
        }
        let peer = Peer {
            address: flow.source,
            pod: world.pods.at(flow.source),
        };
        return passes(world, Direction::Ingress, own, &peer, &aim);
    }
    true
}

fn passes(
    world: &World,
    direction: Direction,
    (key, pod): (&Key, &Pod),
    peer: &Peer<'_>,
    aim: &Aim<'_>,
) -> bool {
    let mut selecting = selecting(world, direction, (key, pod)).peekable();
    selecting.peek().is_none()
        || selecting.flatten().any(|rule| {
            let to_peer = |each: &NetworkPolicyPeer| matches(world, &key.namespace, each, peer);
            let to_port = |each: &NetworkPolicyPort| aims(each, aim);
            (rule.peers.is_empty() || rule.peers.iter().any(to_peer))
                && (rule.ports.is_empty() || rule.ports.iter().any(to_port))
        })
}

/// The rules of each policy that selects a pod.
fn selecting<'w>(
    world: &'w World,
    direction: Direction,
    (key, pod): (&Key, &'w Pod),
) -> impl Iterator<Item = &'w [Rule]> {
    let namespace = key.namespace.clone();
    let own = world
        .policies
        .range(Key::new(&namespace, "")..)
        .take_while(move |(each, _)| each.namespace == namespace);
    own.filter(|(_, policy)| selects(&policy.selects, &pod.told.labels))
        .filter_map(move |(_, policy)| policy.rules(direction))
}

fn matches(world: &World, namespace: &str, rule: &NetworkPolicyPeer, peer: &Peer<'_>) -> bool {
    if let Some(block) = &rule.ip_block {
        let excepted = block
            .except
            .iter()
            .flatten()
            .any(|net| within(peer.address, net));
        return within(peer.address, &block.cidr) && !excepted;
    }
    let Some((key, pod)) = peer.pod else {
        return false;
    };
    let nowhere = Labels::new();
    let in_namespace = match &rule.namespace_selector {
        Some(selector) => selects(
            selector,
            world.namespaces.get(&key.namespace).unwrap_or(&nowhere),
        ),
        None => key.namespace == namespace,
    };
    let among_pods = rule.pod_selector.as_ref();
    in_namespace && among_pods.is_none_or(|selector| selects(selector, &pod.told.labels))
}

fn aims(rule: &NetworkPolicyPort, aim: &Aim<'_>) -> bool {
    if Protocol::named(rule.protocol.as_deref()) != Some(aim.protocol) {
        return false;
    }
    match &rule.port {
        None => true,
        Some(IntOrString::Int(first)) => {
            let last = rule.end_port.unwrap_or(*first);
            (*first..=last).contains(&i32::from(aim.port))
        }
        Some(IntOrString::String(name)) => aim.pod.is_some_and(|pod| {
            let mut ports = pod.told.ports.iter();
            ports.any(|each| {
                each.name == *name && each.port == aim.port && each.protocol == aim.protocol
            })
        }),
    }
}

/// Whether a selector selects an object with these labels; an empty one selects all.
fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let exact = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    exact
        .into_iter()
        .all(|(name, value)| labels.get(name) == Some(value))
        && expressions.into_iter().all(|each| {
            let value = labels.get(&each.key);
            let among = |value: &String| each.values.iter().flatten().any(|each| each == value);
            match each.operator.as_str() {
                "In" => value.is_some_and(among),
                "NotIn" => !value.is_some_and(among),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

fn within(address: IpAddr, net: &str) -> bool {
    let parsed = net.split_once('/').and_then(|(base, length)| {
        Some((base.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?))
    });
    let (bits, base, length, width) = match (address, parsed) {
        (IpAddr::V4(address), Some((IpAddr::V4(base), length))) => {
            let bits = |address| u128::from(u32::from(address));
            (bits(address), bits(base), length, 32)
        }
        (IpAddr::V6(address), Some((IpAddr::V6(base), length))) => {
            (address.into(), base.into(), length, 128)
        }
        _ => return false,
    };
    let Some(rest) = u32::checked_sub(width, length) else {
        return false;
    };
    let differ: u128 = bits ^ base;
    differ.checked_shr(rest).unwrap_or(0) == 0
}
