//! Reads the nodes of a topology.

use std::collections::BTreeMap;

use hybrid_sim::{NetworkSpec, NodeSpec, Pool, TaintSpec, letters};
use winconform_core::document::{Decoder, Node, Value};
use winconform_core::text::{is_dns_label, is_label_key, is_label_value};

use super::around::read_network;

const POOLS: [&str; 4] = ["linux", "windows-2019", "windows-2022", "windows-2025"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Labels that the simulator itself sets, to find its nodes.
const OWN_LABELS: [&str; 2] = ["kubernetes.io/hostname", "app.kubernetes.io/managed-by"];

/// Labels that the kubelet sets by itself, according to the pool.
const POOL_LABELS: [&str; 5] = [
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "node.kubernetes.io/windows-build",
];

const CPUS: (u32, u32) = (1, 256);
/// In MiB; the least still leaves memory after the reservations of a Windows node.
const MEMORY: (u32, u32) = (4 * 1024, 4096 * 1024);

/// Reads one entry of the list, for `count` nodes; `lines` has the line of each name so far.
pub(super) fn read_nodes(
    decoder: &mut Decoder<'_>,
    node: &Node,
    network: NetworkSpec,
    lines: &mut BTreeMap<String, u64>,
    nodes: &mut Vec<NodeSpec>,
) {
    let Some(mut fields) = decoder.fields(node, "a node") else {
        return;
    };
    let base = fields.read(decoder, "name", |decoder, node| {
        Some((node, read_name(decoder, node)?))
    });
    let pool = fields.read(decoder, "pool", |decoder, node| {
        decoder.word(node, "pool", &POOLS, |text| text.parse::<Pool>().ok())
    });
    let most = u32::try_from(hybrid_sim::Topology::MOST_NODES).unwrap_or(u32::MAX);
    // An invalid count gives one node
    let many = fields.maybe(decoder, "count", |decoder, node| {
        decoder.whole(node, "`count`", (1, most))
    });
    let many = many.unwrap_or(Some(1));
    let mut spec = NodeSpec::new("", pool.unwrap_or(Pool::Linux));
    let cpus = fields.or(decoder, "cpus", spec.cpus, |decoder, node| {
        decoder.whole(node, "`cpus`", CPUS)
    });
    let memory = fields.or(decoder, "memory", spec.memory, read_memory);
    (spec.cpus, spec.memory) = (cpus.unwrap_or(spec.cpus), memory.unwrap_or(spec.memory));
    let pods = fields.or(decoder, "pods", spec.pods, |decoder, node| {
        decoder.whole(node, "`pods`", (1, 1000))
    });
    spec.pods = pods.unwrap_or(spec.pods);
    let mut list = |key| fields.optional(key);
    let (labels, taints, handlers) = (list("labels"), list("taints"), list("handlers"));
    let (annotations, resources) = (list("annotations"), list("resources"));
    let reported = list("reported-handlers");
    spec.labels = labels.map_or_else(BTreeMap::new, |node| read_labels(decoder, node));
    spec.annotations =
        annotations.map_or_else(BTreeMap::new, |node| read_annotations(decoder, node));
    spec.taints = taints.map(|node| read_taints(decoder, node));
    spec.handlers = handlers.map_or_else(Vec::new, |node| read_handlers(decoder, node, false));
    spec.reported_handlers =
        reported.map_or_else(Vec::new, |node| read_handlers(decoder, node, true));
    spec.resources = resources.map_or_else(BTreeMap::new, |node| read_resources(decoder, node));
    let runtime = fields.or(decoder, "runtime", spec.runtime.clone(), read_runtime);
    spec.runtime = runtime.unwrap_or_default();
    let mut said = |key: &'static str| {
        let read = fields.maybe(decoder, key, |decoder, node| {
            decoder.text(node, &format!("`{key}`")).map(str::to_owned)
        });
        read.flatten()
    };
    (spec.kubelet, spec.stand_in) = (said("kubelet"), said("stand-in"));
    let node_network = fields.optional("network");
    spec.network = node_network.map_or(network, |node| read_network(decoder, node, network));
    fields.finish(decoder);
    let Some((at, base)) = base else { return };
    let names: Vec<String> = match many {
        None => vec![base],
        Some(many) => (0..many as usize)
            .map(|nth| format!("{base}-{}", letters(nth)))
            .collect(),
    };
    for name in names {
        if let Some(line) = lines.get(&name) {
            let message = format!("two nodes are called `{name}`, the other in line {line}");
            // Further names of the same entry would repeat this
            return decoder.report(at, message, None);
        }
        lines.insert(name.clone(), at.line);
        nodes.push(NodeSpec {
            name,
            ..spec.clone()
        });
    }
}

/// Part of a DNS label, with room for a prefix and a number.
fn read_name(decoder: &mut Decoder<'_>, node: &Node) -> Option<String> {
    let text = decoder.text(node, "`name`")?;
    let fits = text.len() <= 40 && is_dns_label(text);
    if !fits {
        let message = "`name` must be 1 to 40 of a-z, 0-9 and -, not at either end";
        decoder.report(node, message, None);
    }
    fits.then(|| text.to_owned())
}

/// In MiB.
fn read_memory(decoder: &mut Decoder<'_>, node: &Node) -> Option<u32> {
    let read = |text: &str| {
        let (number, unit) = match text.strip_suffix("Gi") {
            Some(number) => (number, 1024),
            None => (text.strip_suffix("Mi")?, 1),
        };
        let memory = number.parse::<u32>().ok()?.checked_mul(unit)?;
        (MEMORY.0..=MEMORY.1).contains(&memory).then_some(memory)
    };
    let memory = match &node.value {
        Value::Text(text) => read(text),
        _ => None,
    };
    if memory.is_none() {
        let message = "`memory` must be from 4Gi to 4096Gi, as a whole number of Mi or Gi";
        decoder.report(node, message, None);
    }
    memory
}

fn read_labels(decoder: &mut Decoder<'_>, node: &Node) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for entry in decoder.entries(node, "`labels`").unwrap_or_default() {
        let key = entry.key.as_str();
        let (message, hint) = if OWN_LABELS.contains(&key) {
            (format!("the label `{key}` is the simulator's own"), None)
        } else if POOL_LABELS.contains(&key) {
            let hint = "the faults `node-label-wrong` and `node-labels-missing` change it";
            (
                format!("the label `{key}` follows from the pool"),
                Some(hint),
            )
        } else if !is_label_key(key) {
            let message = format!("`{key}` cannot be the key of a label");
            (message, Some(KEY_HINT))
        } else {
            let value = read_value(decoder, &entry.node, "the value of a label");
            labels.extend(value.map(|value| (key.to_owned(), value)));
            continue;
        };
        decoder.report(&entry.node, message, hint.map(str::to_owned));
    }
    labels
}

fn read_annotations(decoder: &mut Decoder<'_>, node: &Node) -> BTreeMap<String, String> {
    let entries = decoder.entries(node, "`annotations`").unwrap_or_default();
    let read = entries.iter().filter_map(|entry| {
        if !is_label_key(&entry.key) {
            let message = format!("`{}` cannot be the key of an annotation", entry.key);
            decoder.report(&entry.node, message, Some(KEY_HINT.to_owned()));
        }
        let text = decoder.text(&entry.node, "the value of an annotation")?;
        Some((entry.key.clone(), text.to_owned()))
    });
    read.collect()
}

/// Resources with a domain before their name, which the kubelet itself does not report.
fn read_resources(decoder: &mut Decoder<'_>, node: &Node) -> BTreeMap<String, u32> {
    let entries = decoder.entries(node, "`resources`").unwrap_or_default();
    let read = entries.iter().filter_map(|entry| {
        if !is_label_key(&entry.key) || !entry.key.contains('/') {
            let message = format!("`{}` cannot be the name of a further resource", entry.key);
            let hint = "a name behind a domain and /: `vpc.amazonaws.com/PrivateIPv4Address`";
            decoder.report(&entry.node, message, Some(hint.to_owned()));
        }
        let amount = decoder.whole(&entry.node, "an amount", (0, 1_000_000))?;
        Some((entry.key.clone(), amount))
    });
    read.collect()
}

fn read_runtime(decoder: &mut Decoder<'_>, node: &Node) -> Option<String> {
    let hint = "`containerd://` or `cri-o://` with a version: `containerd://2.1.0`";
    let wrong = ("is not a runtime that is simulated", Some(hint));
    decoder.parsed(node, "`runtime`", wrong, |text| {
        let (name, _) = text.split_once("://")?;
        matches!(name, "containerd" | "cri-o").then(|| text.to_owned())
    })
}

/// The value of a label or taint, which may be empty.
fn read_value(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<String> {
    if let Value::Text(text) = &node.value
        && (text.is_empty() || is_label_value(text))
    {
        return Some(text.clone());
    }
    // `text` reports that numbers and booleans need quotes
    let text = decoder.text(node, what)?;
    let message = format!("`{text}` cannot be {what}");
    decoder.fail(node, message, Some(VALUE_HINT.to_owned()))
}

fn read_taints(decoder: &mut Decoder<'_>, node: &Node) -> Vec<TaintSpec> {
    let items = decoder.list(node, "`taints`").unwrap_or_default();
    let mut taints: Vec<TaintSpec> = Vec::new();
    for item in items {
        let Some(taint) = read_taint(decoder, item) else {
            continue;
        };
        // The API server refuses this, too
        let same = |known: &TaintSpec| known.key == taint.key && known.effect == taint.effect;
        if taints.iter().any(same) {
            let (key, effect) = (&taint.key, &taint.effect);
            let message = format!("two taints have the key `{key}` and the effect {effect}");
            decoder.report(item, message, None);
        }
        taints.push(taint);
    }
    taints
}

pub(super) fn read_taint(decoder: &mut Decoder<'_>, node: &Node) -> Option<TaintSpec> {
    let mut fields = decoder.fields(node, "a taint")?;
    let key = fields.read(decoder, "key", |decoder, node| {
        let wrong = ("cannot be the key of a taint", Some(KEY_HINT));
        decoder.parsed(node, "`key`", wrong, |text| {
            is_label_key(text).then(|| text.to_owned())
        })
    });
    let value = fields.or(decoder, "value", String::new(), |decoder, node| {
        read_value(decoder, node, "the value of a taint")
    });
    let effect = fields.read(decoder, "effect", |decoder, node| {
        decoder.member(node, "effect", &EFFECTS)
    });
    fields.finish(decoder);
    Some(TaintSpec {
        key: key?,
        value: value?,
        effect: effect?.to_owned(),
    })
}

/// The names of handlers; among those that a node reports, the default has none.
fn read_handlers(decoder: &mut Decoder<'_>, node: &Node, reported: bool) -> Vec<String> {
    let what = if reported {
        "`reported-handlers`"
    } else {
        "`handlers`"
    };
    let items = decoder.list(node, what).unwrap_or_default();
    let mut handlers: Vec<String> = Vec::new();
    for item in items {
        if reported && item.value == Value::Text(String::new()) {
            handlers.push(String::new());
            continue;
        }
        let Some(text) = decoder.text(item, "a handler") else {
            continue;
        };
        // kubernetes 1.37.0, pkg/apis/node/validation/validation.go, `ValidateRuntimeClass`
        if text.len() > 63 || !is_dns_label(text) {
            let message = format!("`{text}` cannot be a handler of a RuntimeClass");
            let hint = "1 to 63 of a-z, 0-9 and -, not at either end: `runhcs-wcow-hypervisor`";
            decoder.report(item, message, Some(hint.to_owned()));
        } else if handlers.iter().any(|known| known == text) {
            let message = format!("the handler `{text}` appears twice");
            decoder.report(item, message, None);
        }
        handlers.push(text.to_owned());
    }
    handlers
}

const KEY_HINT: &str =
    "a name of at most 63 letters, digits and -_. , if need be after a domain and /";
const VALUE_HINT: &str = "at most 63 letters, digits and -_. , letter or digit at either end";
