use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::super::fake::Fake;
use super::*;

/// The number of requests of a collection whose lists have one page.
const REQUESTS: usize = 32;

fn node(name: &str, os: &str, ready: &str) -> Json {
    json!({
        "metadata": {
            "name": name,
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"kubernetes.io/os": os, "example.com/secret": "x",
                "node.kubernetes.io/windows-build": "10.0.20348"},
        },
        "spec": {"podCIDRs": ["10.244.1.0/24"],
            "taints": [{"key": "os", "value": "windows", "effect": "NoSchedule"},
                {"key": "x", "effect": "PreferNoSchedule"}]},
        "status": {
            "capacity": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": ready,
                "lastTransitionTime": "2026-01-02T03:05:05Z", "reason": "KubeletReady"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "images": [{"names": ["a@sha256:0", "registry.k8s.io/pause:3.10"]}],
            "nodeInfo": {"operatingSystem": os, "kernelVersion": "10.0.20348.2700",
                "architecture": "amd64", "kubeletVersion": "v1.37.0",
                "containerRuntimeVersion": "containerd://2.1.0"},
        },
    })
}

/// A hybrid cluster by kubeadm with Flannel.
fn cluster() -> Fake {
    let fake = Fake::default();
    let objects: BTreeMap<String, Json> =
        serde_saphyr::from_str(include_str!("cluster.yaml")).expect("objects by path");
    for (path, object) in objects {
        fake.put(&path, object);
    }
    let gates = "# TYPE kubernetes_feature_enabled gauge\n\
                 kubernetes_feature_enabled{name=\"WinDSR\",stage=\"\"} 1\n";
    fake.script("GET /metrics ", 200, json!(gates));
    for (name, os) in [("w1", "windows"), ("l1", "linux")] {
        fake.put(&format!("/api/v1/nodes/{name}"), node(name, os, "True"));
    }
    fake
}

/// The names of the facts that are unknown, with why.
fn unknown(facts: &Facts) -> BTreeMap<String, String> {
    let facts = serde_json::to_value(facts).expect("is JSON");
    let all = facts.as_object().expect("an object").iter();
    let unknown = all.filter_map(|(name, fact)| {
        let reason = fact["unknown"]["reason"].as_str()?;
        Some((name.clone(), reason.to_owned()))
    });
    unknown.collect()
}

#[tokio::test(start_paused = true)]
async fn every_fact_is_read_with_its_source() {
    let fake = cluster();
    let mut cordoned = node("w2", "windows", "True");
    cordoned["spec"]["unschedulable"] = json!(true);
    cordoned["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = json!("");
    fake.put("/api/v1/nodes/w2", cordoned);
    fake.put("/api/v1/nodes/w3", node("w3", "windows", "Unknown"));
    fake.put("/api/v1/nodes/new", node("new", "", "False"));
    let facts = collect(&fake.api()).await;
    assert_eq!(unknown(&facts), BTreeMap::new());
    let facts = serde_json::to_string_pretty(&facts).expect("is JSON");
    insta::assert_snapshot!(facts);
}

/// The paths of the table.
fn paths() -> impl Iterator<Item = &'static str> {
    READ.iter().flat_map(|(_, paths)| paths.iter().copied())
}

/// The beginning of a request for a path of the table.
fn request(path: &str) -> String {
    // This request names the namespace of the DNS Service
    let slices = "/v1/endpointslices";
    let found = path.replace(slices, "/v1/namespaces/kube-system/endpointslices");
    format!("GET {found} ")
}

#[tokio::test(start_paused = true)]
async fn the_requests_are_those_of_the_table_and_no_more() {
    let fake = cluster();
    let api = fake.api();
    collect(&api).await;
    let log = fake.log();
    let made: BTreeSet<_> = log.iter().map(|line| format!("{line} ")).collect();
    let table: BTreeSet<_> = paths().map(request).collect();
    assert_eq!(made, table);
    assert_eq!(log.len(), made.len(), "each once");
    assert_eq!(log.len(), REQUESTS);
    let counted: u64 = api.counts().iter().map(|(_, count)| count).sum();
    assert_eq!(counted, log.len() as u64);
    // One page more is one request more
    for index in 0..=500 {
        fake.put(&format!("/api/v1/namespaces/a/pods/p{index}"), json!({}));
    }
    collect(&fake.api()).await;
    assert_eq!(fake.log().len(), 2 * REQUESTS + 1);
}

/// Facts that depend on several signs, and report which of them they lack.
const BY_SIGNS: [&str; 4] = ["provider", "cni", "kube-proxy", "load-balancer"];

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_makes_its_facts_unknown_and_no_other() {
    for of in paths().collect::<BTreeSet<_>>() {
        let fake = cluster();
        let request = request(of);
        fake.script(&request, 403, json!({"message": "no\u{1b}[31m"}));
        let facts = collect(&fake.api()).await;
        let unknown = unknown(&facts);
        let stated = READ.iter().filter(|(_, paths)| paths.contains(&of));
        let stated: BTreeSet<_> = stated.map(|(fact, _)| *fact).collect();
        for (name, reason) in &unknown {
            assert!(stated.contains(name.as_str()), "{request}: {name}");
            let path = request.trim_start_matches("GET ").trim_end();
            let said = format!("{path}: status 403: no\\u{{1b}}[31m");
            assert!(reason.starts_with(&said), "{request}: {name}: {reason}");
        }
        let left = stated.iter().filter(|name| !unknown.contains_key(**name));
        let left: Vec<_> = left.filter(|name| !BY_SIGNS.contains(name)).collect();
        assert!(
            left.is_empty(),
            "{request}: {left:?} are known nevertheless"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_absent_is_known_to_be() {
    let fake = Fake::default();
    // The API server's answer for groups that are not served
    for path in [server::GMSA, objects::SNAPSHOT_CLASSES] {
        let request = format!("GET {path} ");
        fake.script(&request, 404, json!("404 page not found\n"));
    }
    fake.put("/apis", json!({"groups": []}));
    let facts = collect(&fake.api()).await;
    assert_eq!(facts.cni.value(), Some(&None));
    assert_eq!(facts.kube_proxy.value(), Some(&None));
    assert_eq!(facts.dns.value(), Some(&None));
    assert_eq!(facts.metrics_api.value(), Some(&false));
    assert_eq!(facts.gmsa.value(), Some(&GmsaFact::default()));
    assert_eq!(facts.snapshot_classes.value(), Some(&Vec::new()));
    // Without the version the provider is unknown
    assert!(matches!(facts.provider, Known::Unknown { .. }));
}

#[tokio::test(start_paused = true)]
async fn metrics_that_are_registered_and_not_available_are_unknown() {
    let fake = Fake::default();
    let conditions = json!([{"type": "Available", "status": "False"}]);
    fake.put(
        server::METRICS_API,
        json!({"status": {"conditions": conditions}}),
    );
    let facts = collect(&fake.api()).await;
    let Known::Unknown { reason } = &facts.metrics_api else {
        panic!("{:?}", facts.metrics_api);
    };
    assert!(reason.contains("its server is not available"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_behind_the_aggregator_costs_its_fact_alone() {
    let fake = cluster();
    let down = json!({"message": "service unavailable"});
    fake.script(&format!("GET {} ", server::GMSA), 503, down);
    let facts = collect(&fake.api()).await;
    let unknown = unknown(&facts);
    assert_eq!(unknown.keys().collect::<Vec<_>>(), ["gmsa"]);
    assert!(
        unknown["gmsa"].contains("status 503: service unavailable"),
        "{unknown:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nodes_of_a_large_cluster_keep_the_record_small() {
    let fake = cluster();
    for index in 0..5_000 {
        let name = format!("n{index:04}");
        let mut node = node(&name, "windows", "True");
        let image =
            json!({"names": ["x@sha256:0", "mcr.microsoft.com/windows/servercore:ltsc2022"]});
        node["status"]["images"] = json!(vec![image; 60]);
        node["status"]["nodeInfo"]["osImage"] = json!("x".repeat(2_000));
        fake.put(&format!("/api/v1/nodes/{name}"), node);
    }
    let facts = collect(&fake.api()).await;
    assert_eq!(facts.nodes.value().map(Vec::len), Some(5_002));
    let recorded = serde_json::to_string(&facts).expect("is JSON").len();
    assert!(recorded < 5_000 * 5_000, "{recorded} bytes");
}
