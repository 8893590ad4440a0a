//! Learns the names of a cluster from the events of a record, and drops what is nothing but names.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value as Json;

use super::super::event::SIMULATED;
use super::Names;

/// Words that may also be names, and then say nothing about whose cluster it is: Kubernetes', the tool's vantage
/// points, and parts of the names of the images that it pulls.
const PLAIN: [&str; 30] = [
    "agnhost",
    "api",
    "apis",
    "default",
    "dns",
    "docker",
    "e2e-test-images",
    "iis",
    "kube-dns",
    "kube-proxy",
    "kube-system",
    "kubernetes",
    "library",
    "linux",
    "linux-node",
    "linux-pod",
    "localhost",
    "microsoft",
    "nanoserver",
    "node",
    "os",
    "outside",
    "pause",
    "servercore",
    "true",
    "windows",
    "windows-node",
    "windows-pod",
    "winconform",
    "mcr",
];
/// Hosts and domains that everybody has.
const PUBLIC: [&str; 12] = [
    "cluster.local",
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "github.com",
    "k8s.io",
    "kubernetes.io",
    "microsoft.com",
    "msftconnecttest.com",
    "pkg.dev",
    "quay.io",
    "projectcalico.org",
];
/// How the names of images begin that everybody has.
const IMAGES: [&str; 7] = [
    "docker.io/flannel/",
    "docker.io/library/",
    "ghcr.io/flannel-io/",
    "mcr.microsoft.com/",
    "quay.io/calico/",
    "registry.k8s.io/",
    "winconform/",
];
/// The labels of nodes that stay: the keys and values of others may be names.
const LABELS: [&str; 10] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "os",
];

impl Names {
    /// Learns the names in an event.
    pub(super) fn learn(&mut self, event: &Json) {
        let started = &event["run-started"];
        let context = started["context"].as_str().unwrap_or_default();
        if !context.starts_with(SIMULATED) {
            self.add("context", context);
            // As `gke_PROJECT_ZONE_NAME`, `arn:aws:eks:REGION:ACCOUNT:cluster/NAME` and `USER@CLUSTER`
            context
                .split([':', '/', '_', '@'])
                .filter(|part| part.len() > 3)
                .for_each(|part| self.add("context", part));
        }
        for waiver in values_of(&started["waivers"]) {
            self.add("owner", waiver["owner"].as_str().unwrap_or_default());
        }
        let facts = &event["facts"];
        for node in values(&facts["nodes"]) {
            self.learn_node(node);
        }
        for node in values(&facts["virtual-nodes"]) {
            self.learn_host(node["name"].as_str().unwrap_or_default());
        }
        for node in values(&facts["silent-nodes"]).filter_map(Json::as_str) {
            self.learn_host(node);
        }
        let lists = [
            ("runtime-classes", "name", "runtime-class"),
            ("storage-classes", "name", "storage-class"),
            ("snapshot-classes", "name", "snapshot-class"),
            ("webhooks", "configuration", "webhook-configuration"),
            ("webhooks", "name", "webhook"),
        ];
        for (fact, field, kind) in lists {
            let named = values(&facts[fact]).filter_map(|item| item[field].as_str());
            named.for_each(|name| self.add(kind, name));
        }
        let pulls = values(&facts["pulls"]).filter_map(|pull| pull["image"].as_str());
        pulls.for_each(|image| self.learn_image(image));
        let workloads = &facts["workloads"]["fact"]["value"];
        let lists = ["without-os", "without-requests", "problem-detectors"];
        let pods = lists.iter().flat_map(|list| texts(&workloads[*list]));
        for name in pods.flat_map(|pod| pod.split('/').collect::<Vec<_>>()) {
            self.add("name", name);
        }
    }

    fn learn_node(&mut self, node: &Json) {
        let details = &node["details"];
        let name = node["name"].as_str().unwrap_or_default();
        let hosts = values_of(&details["addresses"]).filter_map(|address| address[1].as_str());
        for host in hosts.chain([name]) {
            self.learn_host(host);
        }
        self.add("boot", details["boot-id"].as_str().unwrap_or_default());
        for taint in values_of(&details["all-taints"]).chain(values_of(&node["taints"])) {
            self.learn_label(taint["key"].as_str(), taint["value"].as_str());
        }
        if let Some(excluded) = node["excluded"]
            .as_str()
            .and_then(|text| text.split_once('='))
        {
            self.learn_label(Some(excluded.0), Some(excluded.1));
        }
        let images = values_of(&details["images"]).filter_map(Json::as_str);
        images.for_each(|image| self.learn_image(image));
    }

    fn learn_label(&mut self, key: Option<&str>, value: Option<&str>) {
        let key = key.unwrap_or_default();
        let (domain, name) = key.split_once('/').unwrap_or(("", key));
        if !is_public(domain) {
            self.add("label", domain);
            self.add("label", name);
        }
        if !LABELS.contains(&key) {
            self.add("value", value.unwrap_or_default());
        }
    }

    /// Learns the name of a host, its domain, and the name in it.
    pub(super) fn learn_host(&mut self, host: &str) {
        if host.parse::<IpAddr>().is_ok() || is_public(host) {
            return;
        }
        self.add("host", host);
        let Some((label, domain)) = host.split_once('.') else {
            return;
        };
        let is_end = PUBLIC.iter().any(|public| public.ends_with(domain));
        if !is_end && !domain.starts_with("winconform") && !domain.starts_with("svc") {
            self.add("domain", domain);
        }
        // A plain word in front of the domain stays
        if label.contains(|c: char| c.is_ascii_digit() || c == '-') {
            self.add("host", label);
        }
    }

    fn learn_image(&mut self, image: &str) {
        let name = image.split('@').next().unwrap_or_default();
        if !name.contains('/') || IMAGES.iter().any(|start| name.starts_with(start)) {
            return;
        }
        for part in name.split('/').filter(|part| !is_public(part)) {
            self.add("image", part.split(':').next().unwrap_or_default());
        }
    }

    fn add(&mut self, kind: &'static str, written: &str) {
        let name = written.to_ascii_lowercase();
        let is_plain = PLAIN.contains(&name.as_str()) || is_public(&name) || is_of_pool(&name);
        let is_short = name.len() < 2 || name.chars().all(|c| c.is_ascii_digit());
        if is_plain || is_short || self.words.contains(&name) || self.known.contains_key(&name) {
            return;
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let replacement = format!("{kind}-{count}");
        if name.contains(|c: char| !c.is_ascii_alphanumeric() && !".-_".contains(c)) {
            self.phrases.push((written.to_owned(), replacement.clone()));
        }
        self.known.insert(name, replacement);
    }
}

/// Drops the labels of nodes that are not Kubernetes' own, and the labels by which a `RuntimeClass` places pods.
pub(super) fn forget(facts: &mut Json) {
    for nodes in ["/nodes/fact/value", "/virtual-nodes/fact/value"] {
        let nodes = facts.pointer_mut(nodes).and_then(Json::as_array_mut);
        for node in nodes.into_iter().flatten() {
            for labels in ["/details/labels", "/labels"] {
                if let Some(labels) = node.pointer_mut(labels).and_then(Json::as_object_mut) {
                    labels.retain(|key, _| LABELS.contains(&key.as_str()));
                }
            }
        }
    }
    let classes = facts
        .pointer_mut("/runtime-classes/fact/value")
        .and_then(Json::as_array_mut);
    for class in classes.into_iter().flatten() {
        class["node-selector"] = Json::Object(serde_json::Map::new());
        class["tolerations"] = Json::Array(Vec::new());
    }
}

/// The items of a fact that is a list.
fn values(fact: &Json) -> impl Iterator<Item = &Json> {
    values_of(&fact["fact"]["value"])
}

fn values_of(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

/// All texts in a value.
fn texts(value: &Json) -> BTreeSet<&str> {
    match value {
        Json::String(text) => [text.as_str()].into(),
        Json::Array(items) => items.iter().flat_map(texts).collect(),
        _ => BTreeSet::new(),
    }
}

/// Whether a host is one that everybody has, or below it.
fn is_public(host: &str) -> bool {
    let mut domains = PUBLIC.iter().filter_map(|domain| host.strip_suffix(domain));
    domains.any(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a name is that of a pool, as checks' ids have it.
fn is_of_pool(name: &str) -> bool {
    let rest = name.strip_prefix("windows-");
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_facts_stay_as_they_are() {
        let unknown = json!({"unknown": {"reason": "403"}});
        let facts = json!({"nodes": unknown, "runtime-classes": unknown});
        let mut without = facts.clone();
        forget(&mut without);
        assert_eq!(without, facts);
    }
}
