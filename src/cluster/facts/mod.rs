//! What the cluster says of itself, each fact with where it was read or why it is unknown.

mod access;

use serde_json::Value as Json;
use winconform_core::facts::{Facts, Known, NodeDetails, NodeFact, Os, WindowsBuild};
use winconform_core::text::printable;
use winconform_core::way::{ApiReply, ApiRequest};

use crate::transport::{Api, encode};

pub use access::{ACCESS, Access, Subject};

const VERSION: &str = "/version";
const IDENTITY: &str = "/api/v1/namespaces/kube-system";
const NODES: &str = "/api/v1/nodes";

/// Taints of nodes that are in trouble or about to go (kubernetes well-known taints; cluster
/// autoscaler). `node.kubernetes.io/os` is not among them: GKE's Windows nodes have it for good.
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

/// Nodes in one answer.
const PAGE: usize = 500;
/// Times a list is begun again whose continuation expired.
const LISTS: usize = 3;

/// Asks for all facts at once.
pub async fn collect(api: &Api) -> Facts {
    let (server, cluster, nodes) = tokio::join!(
        text(api, VERSION, "/gitVersion"),
        text(api, IDENTITY, "/metadata/uid"),
        nodes(api),
    );
    Facts {
        server: known(server, VERSION),
        cluster: known(cluster, IDENTITY),
        nodes: known(nodes, NODES),
        ..Facts::default()
    }
}

fn known<T>(read: Result<T, String>, source: &str) -> Known<T> {
    match read {
        Ok(value) => Known::Fact {
            value,
            source: source.to_owned(),
        },
        Err(because) => Known::Unknown {
            because: format!("{source}: {because}"),
        },
    }
}

/// A text at a place (RFC 6901) of the answer at a path.
async fn text(api: &Api, path: &str, at: &str) -> Result<String, String> {
    let reply = api
        .send(&ApiRequest::get(path))
        .await
        .map_err(|trouble| trouble.to_string())?;
    if reply.status != 200 {
        return Err(refusal(&reply));
    }
    match reply.body.pointer(at).and_then(Json::as_str) {
        Some(text) if !text.is_empty() => Ok(printable(text)),
        _ => Err(format!("the answer has no `{at}`")),
    }
}

async fn nodes(api: &Api) -> Result<Vec<NodeFact>, String> {
    for _ in 0..LISTS {
        if let Some(mut nodes) = list_nodes(api).await? {
            nodes.sort_by(|a, b| a.name.cmp(&b.name));
            nodes.dedup_by(|a, b| a.name == b.name);
            return Ok(nodes);
        }
    }
    Err(format!("the list expired {LISTS} times before it was read"))
}

/// All pages of one list; `None` when its continuation expired.
async fn list_nodes(api: &Api) -> Result<Option<Vec<NodeFact>>, String> {
    let mut nodes = Vec::new();
    let mut continuation = String::new();
    loop {
        let path = match continuation.as_str() {
            "" => format!("{NODES}?limit={PAGE}"),
            token => format!("{NODES}?limit={PAGE}&continue={}", encode(token)),
        };
        let reply = api
            .send(&ApiRequest::get(path))
            .await
            .map_err(|t| t.to_string())?;
        let items = match (reply.status, reply.body["items"].as_array()) {
            (200, Some(items)) => items,
            // An empty list is null with some servers
            (200, None) if reply.body["kind"] == "NodeList" => &Vec::new(),
            (410, _) if !continuation.is_empty() => return Ok(None),
            _ => return Err(refusal(&reply)),
        };
        nodes.extend(items.iter().filter_map(read_node));
        match reply.body["metadata"]["continue"].as_str() {
            None | Some("") => return Ok(Some(nodes)),
            Some(token) if token == continuation => {
                return Err("the list continues with itself".to_owned());
            }
            Some(token) => token.clone_into(&mut continuation),
        }
    }
}

/// A node; one that has not yet said what it is, is none.
fn read_node(node: &Json) -> Option<NodeFact> {
    let info = &node["status"]["nodeInfo"];
    let (os, build) = match info["operatingSystem"].as_str()? {
        "linux" => (Os::Linux, None),
        "windows" => (
            Os::Windows,
            info["kernelVersion"]
                .as_str()
                .and_then(WindowsBuild::parse_kernel),
        ),
        _ => return None,
    };
    let conditions = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let ready = conditions
        .into_iter()
        .any(|c| c["type"] == "Ready" && c["status"] == "True");
    let keeps_away =
        |taint: &&Json| matches!(taint["effect"].as_str(), Some("NoSchedule" | "NoExecute"));
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    // Tolerating these would put pods where the cluster wants none for now
    let leaving = taints.clone().filter(keeps_away).any(|taint| {
        taint["key"]
            .as_str()
            .is_some_and(|key| UNUSABLE.contains(&key))
    });
    Some(NodeFact {
        name: node["metadata"]["name"].as_str()?.to_owned(),
        os,
        build,
        usable: ready && !leaving && node["spec"]["unschedulable"] != true,
        taints: taints.filter(keeps_away).cloned().collect(),
        details: NodeDetails::default(),
    })
}

fn refusal(reply: &ApiReply) -> String {
    let message = reply.body["message"].as_str().unwrap_or("no message");
    format!("status {}: {}", reply.status, printable(message))
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use serde_json::json;

    fn node(name: &str, os: &str, ready: &str) -> Json {
        json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/os": "windows"}},
            "spec": {"taints": [{"key": "os", "value": "windows", "effect": "NoSchedule"},
                {"key": "x", "effect": "PreferNoSchedule"}]},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "nodeInfo": {"operatingSystem": os, "kernelVersion": "10.0.20348.2700"},
            },
        })
    }

    #[tokio::test(start_paused = true)]
    async fn facts_are_read_with_their_sources() {
        let fake = Fake::default();
        fake.put(VERSION, json!({"gitVersion": "v1.37.0"}));
        fake.put(IDENTITY, json!({"metadata": {"name": "kube-system"}}));
        let mut cordoned = node("w1", "windows", "True");
        cordoned["spec"]["unschedulable"] = json!(true);
        for node in [
            node("w2", "windows", "Unknown"),
            cordoned,
            node("l1", "linux", "True"),
            node("new", "", "False"),
        ] {
            fake.put(&format!("{NODES}/{}", node["metadata"]["name"]), node);
        }
        let facts = collect(&fake.api()).await;
        assert_eq!(facts.kubernetes().map(|version| version.minor), Some(37));
        assert!(matches!(facts.cluster, Known::Fact { source, .. } if source == IDENTITY));
        let nodes = facts.nodes.value().expect("known");
        let shown: Vec<_> = nodes
            .iter()
            .map(|n| (n.name.as_str(), n.os, n.usable))
            .collect();
        let expected = [
            ("l1", Os::Linux, true),
            ("w1", Os::Windows, false),
            ("w2", Os::Windows, false),
        ];
        assert_eq!(shown, expected);
        assert_eq!(nodes[1].build, Some(WindowsBuild::SERVER_2022));
        assert_eq!(nodes[0].build, None);
        assert_eq!(nodes[0].taints.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_is_unknown_and_the_rest_is_not() {
        let fake = Fake::default();
        fake.put(VERSION, json!({"gitVersion": "v1.37.0"}));
        fake.script(
            "GET /api/v1/nodes",
            403,
            json!({"message": "nodes is forbidden"}),
        );
        fake.script("GET /api/v1/namespaces", 503, json!({"message": "etcd"}));
        let facts = collect(&fake.api()).await;
        assert!(facts.server.value().is_some());
        let Known::Unknown { because } = facts.nodes else {
            panic!("not to be known")
        };
        assert_eq!(because, "/api/v1/nodes: status 403: nodes is forbidden");
        assert!(matches!(facts.cluster, Known::Unknown { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_never_ends_is_unknown() {
        let fake = Fake::default();
        let page = json!({"kind": "NodeList", "metadata": {"continue": "x"}, "items": []});
        fake.script("GET /api/v1/nodes", 200, page);
        assert_eq!(
            nodes(&fake.api()).await,
            Err("the list continues with itself".to_owned())
        );
    }
}
