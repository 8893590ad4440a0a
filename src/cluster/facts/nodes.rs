//! The nodes, and the signs of products on them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use winconform_core::config::Nodes as Kept;
use winconform_core::facts::products::{NodeSigns, Rules, texts};
use winconform_core::facts::{
    ConditionFact, Marked, NodeDetails, NodeFact, Os, VirtualNodeFact, WindowsBuild,
};

use super::read::{Unread, fold, path_of};
use crate::cluster::objects::status::{is, items, word};
use crate::transport::Api;

pub(super) const NODES: &str = "/api/v1/nodes";

/// Taints of nodes that are in trouble or about to be removed (kubernetes well-known taints; cluster
/// autoscaler). `node.kubernetes.io/os` is not among them: GKE's Windows nodes always have it.
const UNUSABLE: [&str; 9] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
];

/// The number of images kept of one node, which is the kubelet's own bound.
const IMAGES: usize = 50;

const TAINTS: usize = 64;

const HANDLERS: usize = 64;

#[derive(Default)]
pub(super) struct Nodes {
    /// By name.
    pub(super) told: BTreeMap<String, NodeFact>,
    /// The names of nodes that do not report what they run.
    pub(super) silent: BTreeSet<String>,
    /// Nodes behind which no kubelet of a machine runs pods.
    pub(super) virtual_facts: Vec<VirtualNodeFact>,
    /// The signs of products on them.
    pub(super) signs: NodeSigns,
}

/// Reads the nodes, each with the labels that `named` names.
pub(super) async fn nodes(api: &Api, named: &Kept) -> Result<Nodes, Unread> {
    let rules = Rules::built_in();
    fold(api, NODES, "", |nodes: &mut Nodes, node| {
        nodes.signs.add(rules, node);
        let Marked {
            virtual_by,
            spared_by,
        } = Marked::read(node);
        if let Some(by) = virtual_by {
            return nodes.virtual_facts.push(virtual_node(node, by, named));
        }
        match read(node, spared_by, named) {
            Some(node) => drop(nodes.told.insert(node.name.clone(), node)),
            None => drop(nodes.silent.insert(path_of(node))),
        }
    })
    .await
}

fn virtual_node(node: &Json, by: String, named: &Kept) -> VirtualNodeFact {
    let mut labels = texts(&node["metadata"]["labels"]);
    labels.retain(|key, _| named.names_label(key));
    VirtualNodeFact {
        name: path_of(node),
        os: os(node),
        by,
        labels,
    }
}

fn os(node: &Json) -> Option<Os> {
    let os = node["status"]["nodeInfo"]["operatingSystem"].as_str()?;
    Os::ALL.iter().copied().find(|known| known.as_str() == os)
}

/// Reads a node; `None` if it does not report whether it runs Linux or Windows.
fn read(node: &Json, spared: Option<String>, named: &Kept) -> Option<NodeFact> {
    let os = os(node)?;
    let kernel = node["status"]["nodeInfo"]["kernelVersion"].as_str();
    let kernel = kernel.filter(|_| os == Os::Windows);
    let details = details(node, os, named);
    let keeps_away =
        |taint: &&Json| matches!(taint["effect"].as_str(), Some("NoSchedule" | "NoExecute"));
    let taints = details.all_taints.iter().filter(keeps_away);
    // Read all taints: tolerating one of these would put pods where the cluster wants none for now
    let keeping = items(&node["spec"]["taints"]).filter(keeps_away);
    let mut keys = keeping.filter_map(|taint| taint["key"].as_str());
    let leaving = keys.any(|key| UNUSABLE.contains(&key));
    Some(NodeFact {
        name: node["metadata"]["name"].as_str()?.to_owned(),
        os,
        build: kernel.and_then(WindowsBuild::parse_kernel),
        usable: is(node, "Ready") && !leaving && !details.unschedulable,
        excluded: None,
        spared,
        taints: taints.cloned().collect(),
        details,
    })
}

fn details(node: &Json, os: Os, named: &Kept) -> NodeDetails {
    let (metadata, spec, status) = (&node["metadata"], &node["spec"], &node["status"]);
    let info = &status["nodeInfo"];
    let mut labels = texts(&metadata["labels"]);
    let control_plane = ["control-plane", "master"]
        .iter()
        .any(|role| labels.contains_key(&format!("node-role.kubernetes.io/{role}")));
    labels.retain(|key, _| {
        is_of_kubernetes(key) || Rules::built_in().names_label(key) || named.names_label(key)
    });
    let images = match os {
        Os::Linux => Vec::new(),
        Os::Windows => items(&status["images"])
            .take(IMAGES)
            .filter_map(image)
            .collect(),
    };
    NodeDetails {
        labels,
        arch: word(&info["architecture"]),
        kernel: word(&info["kernelVersion"]),
        os_image: word(&info["osImage"]),
        runtime: word(&info["containerRuntimeVersion"]),
        kubelet: word(&info["kubeletVersion"]),
        boot_id: word(&info["bootID"]),
        all_taints: items(&spec["taints"]).take(TAINTS).map(taint).collect(),
        unschedulable: spec["unschedulable"] == true,
        control_plane,
        capacity: texts(&status["capacity"]),
        allocatable: texts(&status["allocatable"]),
        conditions: items(&status["conditions"]).map(condition).collect(),
        clock_ahead: clock_ahead(node),
        created: time(&metadata["creationTimestamp"]),
        pod_cidrs: items(&spec["podCIDRs"]).map(word).collect(),
        addresses: items(&status["addresses"])
            .map(|address| (word(&address["type"]), word(&address["address"])))
            .collect(),
        kubelet_port: status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok()),
        handlers: handlers(&status["runtimeHandlers"]),
        images,
    }
}

/// The names of handlers; the default one is listed once more, without its name.
fn handlers(list: &Json) -> Option<BTreeSet<String>> {
    let named = |handler: &Json| Some(word(&handler["name"])).filter(|name| !name.is_empty());
    let is_told = items(list).next().is_some();
    is_told.then(|| items(list).take(HANDLERS).filter_map(named).collect())
}

/// The parts of a taint that a toleration matches, each text bounded.
fn taint(taint: &Json) -> Json {
    let texts = ["key", "value", "effect"]
        .into_iter()
        .filter(|name| taint[*name].is_string());
    texts
        .map(|name| (name.to_owned(), Json::String(word(&taint[name]))))
        .collect()
}

fn condition(condition: &Json) -> ConditionFact {
    let mut why = vec![word(&condition["reason"])];
    if condition["type"] == "Ready" && condition["status"] != "True" {
        why.push(word(&condition["message"]));
    }
    why.retain(|why| !why.is_empty());
    ConditionFact {
        kind: word(&condition["type"]),
        status: word(&condition["status"]),
        since: time(&condition["lastTransitionTime"]),
        reason: why.join(": "),
    }
}

/// By how many seconds a node's clock is ahead. The kubelet writes `lastHeartbeatTime` by its clock, the API server
/// by its own when that field was last written.
fn clock_ahead(node: &Json) -> Option<i64> {
    let ready = items(&node["status"]["conditions"]).find(|one| one["type"] == "Ready")?;
    let said = time(&ready["lastHeartbeatTime"])?;
    let written = |entry: &&Json| {
        let conditions = &entry["fieldsV1"]["f:status"]["f:conditions"];
        !conditions["k:{\"type\":\"Ready\"}"]["f:lastHeartbeatTime"].is_null()
    };
    let arrived = items(&node["metadata"]["managedFields"]).filter(written);
    let arrived = arrived.filter_map(|entry| time(&entry["time"])).max()?;
    Some(said.duration_since(arrived).as_secs())
}

fn time(value: &Json) -> Option<jiff::Timestamp> {
    value.as_str()?.parse().ok()
}

/// Whether a label's domain belongs to Kubernetes.
fn is_of_kubernetes(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    ["kubernetes.io", "k8s.io"]
        .iter()
        .any(|theirs| domain == *theirs || domain.ends_with(&format!(".{theirs}")))
}

/// The most readable name of an image: one with a tag rather than a digest.
fn image(image: &Json) -> Option<String> {
    let mut names = items(&image["names"]);
    let tagged = names
        .clone()
        .find(|name| name.as_str().is_some_and(|name| !name.contains('@')));
    tagged.or_else(|| names.next()).map(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn taints_are_bounded_and_none_hides_that_a_node_is_leaving() {
        let long = "x".repeat(100_000);
        let mut taints = vec![json!({"key": long, "effect": "NoSchedule", "more": long}); 5_000];
        let node = |taints: &[Json]| {
            let node = json!({"metadata": {"name": "n"}, "spec": {"taints": taints},
                "status": {"nodeInfo": {"operatingSystem": "linux"},
                    "conditions": [{"type": "Ready", "status": "True"}]}});
            read(&node, None, &Kept::default()).expect("a node")
        };
        let kept = node(&taints);
        assert_eq!(kept.details.all_taints.len(), TAINTS);
        assert!(json!(kept).to_string().len() < 100_000);
        assert!(kept.usable);
        taints.push(json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}));
        assert!(!node(&taints).usable);
    }

    #[test]
    fn a_node_that_is_not_ready_says_why() {
        let ready = |status: &str, message: &str| {
            let json =
                json!({"type": "Ready", "status": status, "reason": "R", "message": message});
            condition(&json).reason
        };
        let of_pleg = ready("False", "PLEG is not healthy");
        assert_eq!(of_pleg, "R: PLEG is not healthy");
        assert_eq!(ready("Unknown", ""), "R");
        assert_eq!(ready("True", "kubelet is posting ready status"), "R");
        let pressed = json!({"type": "MemoryPressure", "status": "False", "message": "enough"});
        assert_eq!(condition(&pressed).reason, "");
    }
}
