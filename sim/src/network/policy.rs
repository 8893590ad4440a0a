//! Ingress `NetworkPolicies`, enforced where the CNI supports them, on the node of the addressed pod.
//!
//! Semantics (networking.k8s.io/v1): policies add up; a pod that no policy selects is open; a pod's node
//! always reaches it. The rules read here select pods and namespaces by their labels, and ports by number.

use k8s_openapi::api::networking::v1::{
    NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::{Selector, SelectorExt};

use super::{Flow, Protocol};
use crate::fault::FaultKind;
use crate::world::{Key, Labels, Node, Pod, World};

/// Whether the policies that select a pod let a request pass to one of its ports.
pub(super) fn allows(
    flow: &Flow<'_>,
    there: Option<(&str, &Node)>,
    pod: Option<(&Key, &Pod)>,
    port: u16,
) -> bool {
    let world = flow.world;
    let (Some((key, pod)), Some((name, node))) = (pod, there) else {
        return true;
    };
    let kept = node.network.policies && !world.suffers(FaultKind::PolicyIgnored, name);
    if world.policies.is_empty() || !kept || (flow.is_host() && flow.is_on(name)) {
        return true;
    }
    let mut selecting = selecting(world, key, pod).peekable();
    if selecting.peek().is_none() {
        return true;
    }
    let from = world.pods.by_address(flow.source);
    let mut rules = selecting.flatten();
    !world.suffers(FaultKind::PolicyClosed, name)
        && rules.any(|rule| {
            let of_peer = |each: &NetworkPolicyPeer| {
                let (pods, namespaces) = (&each.pod_selector, &each.namespace_selector);
                let any_namespace = world.suffers(FaultKind::PolicyNamespacesIgnored, name);
                // One that selects neither is a block of addresses
                (pods.is_some() || namespaces.is_some())
                    && from.is_some_and(|(sender, pod)| {
                        let labels = world.namespaces.get(&sender.namespace);
                        let of_namespace = match namespaces {
                            None => sender.namespace == key.namespace,
                            Some(_) if any_namespace => true,
                            Some(namespaces) => {
                                labels.is_some_and(|labels| selects(namespaces, labels))
                            }
                        };
                        let all = pods.as_ref();
                        of_namespace && all.is_none_or(|pods| selects(pods, &pod.told.labels))
                    })
            };
            let to_port = |each: &NetworkPolicyPort| {
                let number = IntOrString::Int(port.into());
                Protocol::named(each.protocol.as_deref()) == Some(flow.request.protocol)
                    && each.port.as_ref().is_none_or(|port| *port == number)
            };
            let peers = rule.from.as_deref().unwrap_or_default();
            let ports = rule.ports.as_deref().unwrap_or_default();
            (peers.is_empty() || peers.iter().any(of_peer))
                && (ports.is_empty() || ports.iter().any(to_port))
        })
}

/// The rules of each policy that selects a pod.
fn selecting<'w>(
    world: &'w World,
    key: &Key,
    pod: &'w Pod,
) -> impl Iterator<Item = &'w [NetworkPolicyIngressRule]> {
    let namespace = key.namespace.clone();
    let policies = world
        .policies
        .range(Key::new(&namespace, "")..)
        .take_while(move |(each, _)| each.namespace == namespace);
    policies.filter_map(|(_, policy)| {
        let types = policy.policy_types.as_deref().unwrap_or_default();
        let is_of_ingress = types.is_empty() || types.iter().any(|one| one == "Ingress");
        let selector = policy.pod_selector.as_ref();
        let selects = selector.is_none_or(|selector| selects(selector, &pod.told.labels));
        (is_of_ingress && selects).then(|| policy.ingress.as_deref().unwrap_or_default())
    })
}

/// Whether a selector selects an object with these labels; an empty one selects all.
fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let read = Selector::try_from(selector.clone());
    read.is_ok_and(|selector| selector.matches(labels))
}
