//! Gives a record other names, for people who may not show their cluster's.
//!
//! The same name gets the same replacement everywhere. What a record knows to be a name of the cluster is
//! replaced in every text: nodes, hosts, other people's namespaces and pods, classes, webhooks, the context.
//! Addresses, UUIDs and hosts in URLs are found by their form. Words of other people's log lines that are none
//! of these stay.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value as Json;

/// Words of Kubernetes' and of the tool that may also be names, and then say nothing about whose cluster it is.
const PLAIN: [&str; 14] = [
    "default",
    "dns",
    "docker",
    "kube-dns",
    "kube-proxy",
    "kube-system",
    "kubernetes",
    "linux",
    "localhost",
    "node",
    "os",
    "true",
    "windows",
    "winconform",
];
/// Hosts and domains that everybody has.
const PUBLIC: [&str; 13] = [
    "cluster.local",
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "github.com",
    "k8s.io",
    "kubernetes.io",
    "mcr.microsoft.com",
    "msftconnecttest.com",
    "openshift.io",
    "pkg.dev",
    "quay.io",
    "projectcalico.org",
];
/// How the keys of the labels begin that stay: others may be names, or have names as values.
const LABELS: [&str; 5] = [
    "beta.kubernetes.io/",
    "kubernetes.io/",
    "node-role.kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
];
/// Fields of the tool's own words.
const OWN: [&str; 15] = [
    "at", "check", "checks", "claim", "exit", "fixture", "hint", "id", "point", "pool", "profile",
    "suites", "title", "type", "verdict",
];

static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9A-Fa-f:]*:[0-9A-Fa-f:]+(?:\.\d+){0,3}|\d+(?:\.\d+){3}"));
static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static HOST: LazyLock<Regex> = LazyLock::new(|| pattern(r"https?://([A-Za-z0-9.-]*[A-Za-z0-9])"));
static WORD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern that is built in is valid")
}

/// The record with other names.
///
/// # Errors
///
/// Returns the number of the line that is not JSON.
pub fn anonymized(record: &str) -> Result<String, usize> {
    let mut lines = Vec::new();
    for (at, line) in record.lines().enumerate() {
        match serde_json::from_str::<Json>(line) {
            Ok(json) => lines.push(json),
            // A kill may have cut off the last one
            Err(_) if at + 1 == record.lines().count() => {}
            Err(_) => return Err(at + 1),
        }
    }
    let mut names = Names::default();
    for line in &lines {
        names.learn(&line["event"]);
    }
    for found in HOST.captures_iter(record) {
        names.learn_host(&found[1]);
    }
    let replaced = lines.into_iter().map(|mut line| {
        if let Some(facts) = line["event"].get_mut("facts") {
            forget_labels(facts);
        }
        names.replace(&mut line);
        format!("{line}\n")
    });
    Ok(replaced.collect())
}

/// The names of a record, each with its replacement.
#[derive(Default)]
struct Names {
    known: BTreeMap<String, String>,
    /// How many names of each kind there are.
    counts: BTreeMap<&'static str, usize>,
    /// The number of each UUID and address.
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// Learns the names in an event.
    fn learn(&mut self, event: &Json) {
        if let Some(context) = event["run-started"]["context"].as_str() {
            self.add("context", context);
        }
        let facts = &event["facts"];
        for node in values(&facts["nodes"]) {
            self.learn_node(node);
        }
        let lists = [
            ("silent-nodes", "", "host"),
            ("runtime-classes", "name", "runtime-class"),
            ("storage-classes", "name", "storage-class"),
            ("webhooks", "configuration", "webhook-configuration"),
            ("webhooks", "name", "webhook"),
        ];
        for (fact, field, kind) in lists {
            for item in values(&facts[fact]) {
                let item = if field.is_empty() { item } else { &item[field] };
                for name in item.as_str().into_iter().flat_map(|text| text.split('/')) {
                    self.add(kind, name);
                }
            }
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
            let key = taint["key"].as_str().unwrap_or_default();
            if !LABELS.iter().any(|start| key.starts_with(start)) {
                key.split('/').for_each(|part| self.add("taint", part));
            }
            self.add("value", taint["value"].as_str().unwrap_or_default());
        }
        let images = values_of(&details["images"]).filter_map(Json::as_str);
        images.for_each(|image| self.learn_image(image));
    }

    /// Learns the name of a host, its domain, and the name in it.
    fn learn_host(&mut self, host: &str) {
        if host.parse::<IpAddr>().is_ok() || is_public(host) {
            return;
        }
        self.add("host", host);
        if let Some((label, domain)) = host.split_once('.') {
            self.add("domain", domain);
            // A plain word in front of the domain stays
            if label.contains(|c: char| c.is_ascii_digit() || c == '-') {
                self.add("host", label);
            }
        }
    }

    fn learn_image(&mut self, image: &str) {
        let name = image.split('@').next().unwrap_or_default();
        let host = name.split('/').next().unwrap_or_default();
        if !host.contains(['.', ':']) || is_public(host) {
            return;
        }
        for part in name.split('/') {
            self.add("image", part.split(':').next().unwrap_or_default());
        }
    }

    fn add(&mut self, kind: &'static str, name: &str) {
        let is_plain = PLAIN.contains(&name) || is_public(name) || is_of_pool(name);
        let is_short = name.len() < 3 || name.chars().all(|c| c.is_ascii_digit());
        if is_plain || is_short || self.known.contains_key(name) {
            return;
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        self.known
            .insert(name.to_owned(), format!("{kind}-{count}"));
    }

    fn replace(&mut self, value: &mut Json) {
        match value {
            Json::String(text) => *text = self.text(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Json::Object(fields) => {
                let replaced = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                    // A verdict with its reason has the same key as the word alone
                    if value.is_object() || !OWN.contains(&key.as_str()) {
                        self.replace(&mut value);
                    }
                    (self.known.get(&key).cloned().unwrap_or(key), value)
                });
                *fields = replaced.collect();
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, replacement) in &self.known {
            // The context of a kubeconfig may be any text
            if name.contains(|c: char| !c.is_ascii_alphanumeric() && !".-_".contains(c)) {
                text = text.replace(name, replacement);
            }
        }
        let text = UUID.replace_all(&text, |found: &Captures<'_>| {
            format!("00000000-0000-4000-8000-{:012x}", self.number(&found[0]))
        });
        let text = ADDRESS.replace_all(&text, |found: &Captures<'_>| self.address(&found[0]));
        let text = WORD.replace_all(&text, |found: &Captures<'_>| self.longest(&found[0]));
        text.into_owned()
    }

    /// A word of letters, digits, dots and hyphens with its names replaced, the longest first.
    fn longest(&self, word: &str) -> String {
        if let Some(known) = self.known.get(word) {
            return known.clone();
        }
        let cuts: Vec<_> = word
            .match_indices(['.', '-', '_'])
            .map(|(at, _)| at)
            .collect();
        for at in cuts.iter().rev() {
            if let Some(known) = self.known.get(&word[..*at]) {
                let rest = self.longest(&word[at + 1..]);
                return format!("{known}{}{rest}", &word[*at..=*at]);
            }
        }
        match cuts.first() {
            Some(at) => format!("{}{}", &word[..=*at], self.longest(&word[at + 1..])),
            None => word.to_owned(),
        }
    }

    fn number(&mut self, text: &str) -> u32 {
        let next = u32::try_from(self.numbers.len() + 1).unwrap_or(u32::MAX);
        *self.numbers.entry(text.to_owned()).or_insert(next)
    }

    /// An address of the benchmarks' or the documentation's range for each that says something.
    fn address(&mut self, text: &str) -> String {
        const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
        const BENCHMARKS: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
        const DOCUMENTATION: u128 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).to_bits();
        match text.parse() {
            Ok(IpAddr::V4(it)) if it.is_loopback() || it.is_unspecified() || it == METADATA => {
                text.to_owned()
            }
            Ok(IpAddr::V6(it)) if it.is_loopback() || it.is_unspecified() => text.to_owned(),
            Ok(IpAddr::V4(_)) => {
                let nth = self.number(text) & 0x1_ffff;
                Ipv4Addr::from_bits(BENCHMARKS + nth).to_string()
            }
            Ok(IpAddr::V6(_)) => {
                let nth = u128::from(self.number(text));
                Ipv6Addr::from_bits(DOCUMENTATION + nth).to_string()
            }
            Err(_) => text.to_owned(),
        }
    }
}

/// Drops the labels of nodes that are not Kubernetes' own.
fn forget_labels(facts: &mut Json) {
    let nodes = facts["nodes"]["fact"]["value"].as_array_mut();
    for node in nodes.into_iter().flatten() {
        if let Some(labels) = node["details"]["labels"].as_object_mut() {
            labels.retain(|key, _| LABELS.iter().any(|start| key.starts_with(start)));
        }
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

    /// A record whose cluster has these names everywhere.
    fn record() -> String {
        let node = json!({
            "name": "ip-10-0-1-2.eu.corp.example", "os": "windows", "taints": [],
            "details": {
                "labels": {"kubernetes.io/os": "windows", "acme.example/team": "payments"},
                "addresses": [["InternalIP", "10.0.1.2"], ["Hostname", "ip-10-0-1-2.eu.corp.example"]],
                "all-taints": [{"key": "acme.example/dedicated", "value": "billing", "effect": "NoSchedule"}],
                "images": ["registry.acme.example/payments/api:1", "mcr.microsoft.com/windows/nanoserver:ltsc2022"],
            },
        });
        let lines = [
            json!({"run-started": {"context": "arn:aws:eks:eu-west-1:4711:cluster/acme"}}),
            json!({"facts": {
                "nodes": {"fact": {"value": [node], "source": "/api/v1/nodes"}},
                "webhooks": {"fact": {"value": [{"configuration": "acme-inject", "name": "inject.acme.example"}]}},
                "workloads": {"fact": {"value": {
                    "without-os": ["payments/api-7f"], "taken": {"ip-10-0-1-2.eu.corp.example": {"pods": "3"}},
                }}},
            }}),
            json!({"verdict": {"check": "env.cni", "conclusion": {"verdict": "pass", "reason": {"seen": "10.0.1.2 of acme-inject"}}}}),
            json!({"attempt": {"check": "net.dns-service[pool=windows-2022]", "verdict": "fail", "assertions": [{
                "comparison": {"not-met": {"seen": "http://portal.acme.example/ from 10.0.1.2:80 and [fd00::7]:80 on ip-10-0-1-2: 10.0.20348.2700 \
                    at 00:00:15; taint {acme.example/dedicated: billing}; host portal.acme.example; 4c1e0d1e-0000-4a4a-8b8b-0123456789ab; acme-inject refuses; arn:aws:eks:eu-west-1:4711:cluster/acme"}},
            }]}}),
        ];
        let lines = lines.map(|event| {
            format!(
                "{}\n",
                json!({"at": "2026-01-01T00:00:00Z", "event": event})
            )
        });
        lines.concat()
    }

    #[test]
    fn no_name_of_the_cluster_is_left() {
        let text = anonymized(&record()).expect("a record");
        for name in [
            "acme", "payments", "billing", "corp", "10.0.1.2", "ip-10", "fd00", "4711", "4c1e0d1e",
            "api-7f", "portal",
        ] {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn what_says_nothing_of_the_cluster_stays() {
        let text = anonymized(&record()).expect("a record");
        for word in [
            "net.dns-service[pool=windows-2022]",
            "10.0.20348.2700",
            "00:00:15",
            "2026-01-01T00:00:00Z",
            "mcr.microsoft.com/windows/nanoserver:ltsc2022",
            "kubernetes.io/os",
            "\"verdict\":\"fail\"",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn the_same_name_has_the_same_replacement() {
        let text = anonymized(&record()).expect("a record");
        let count = |word: &str| text.matches(word).count();
        // Name, address, key of what pods take
        assert_eq!(count("\"host-1\""), 3, "{text}");
        assert_eq!(count("198.18.0."), 3, "{text}");
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_another_one_is_told() {
        let torn = format!("{}{{\"at\"", record());
        assert_eq!(anonymized(&torn), anonymized(&record()));
        assert_eq!(anonymized("{}\nno\n{}\n"), Err(2));
    }
}
