//! Reads the topology of `--topology`: one with a name, or a file, of which it reports all mistakes at once.

use std::collections::BTreeMap;
use std::path::Path;

use hybrid_sim::{
    IpFamilies, NamedTopology, NetworkMode, NetworkSpec, NodeSpec, Pool, TaintSpec, Topology,
};
use winconform_core::document::{
    Decoder, Diagnostic, Diagnostics, Fields, Node, Place, Value, did_you_mean, parse,
};
use winconform_core::text::{is_dns_label, is_label_key, is_label_value};

use crate::cli::error::CliError;
use crate::cli::settings::{LARGEST, read_bounded};

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

/// The topology with this name, or else in this file.
pub(crate) fn load(given: &str) -> Result<Topology, CliError> {
    let mut problems = Vec::new();
    let topology = look(given, &mut problems)?;
    Diagnostics::check(problems).map_err(CliError::Topology)?;
    Ok(topology)
}

/// Like [`load`], but adds mistakes to `problems`; with any of them the topology is of no use.
pub(crate) fn look(given: &str, problems: &mut Vec<Diagnostic>) -> Result<Topology, CliError> {
    if let Some(topology) = Topology::named(given) {
        return Ok(topology);
    }
    let path = Path::new(given);
    if path.symlink_metadata().is_ok() {
        return Ok(decoded(
            given,
            &read_bounded(path, "topology", LARGEST)?,
            problems,
        ));
    }
    let names = NamedTopology::all().iter().map(|it| it.name.as_str());
    let names: Vec<_> = names.collect();
    let message = format!("`{given}` is neither a topology that is known nor a file");
    let hint = did_you_mean(given, &names);
    problems.push(Place::argument("--topology").problem(message, Some(hint)));
    Ok(empty())
}

/// The further objects in the cluster of a named topology, for our own API server.
pub(crate) fn objects(given: &str, version: &str) -> Vec<serde_json::Value> {
    let known = NamedTopology::all()
        .iter()
        .find(|known| known.name == given);
    known.map_or_else(Vec::new, |known| known.objects(version))
}

/// What `--list-topologies` prints.
pub(crate) fn catalogue() -> String {
    let mut text = String::new();
    for known in NamedTopology::all() {
        text.push_str(&format!("{:<16} {}\n", known.name, known.what));
    }
    text
}

fn empty() -> Topology {
    Topology {
        nodes: Vec::new(),
        ip_families: IpFamilies::default(),
        outside: true,
        load_balancer: false,
    }
}

fn decoded(file: &str, text: &str, problems: &mut Vec<Diagnostic>) -> Topology {
    let mut topology = empty();
    match parse(file, text) {
        Ok(root) => {
            let mut decoder = Decoder::new(file);
            read_root(&mut decoder, &root, &mut topology);
            problems.extend(decoder.finish());
        }
        Err(error) => problems.push(error),
    }
    topology
}

fn read_root(decoder: &mut Decoder<'_>, root: &Node, topology: &mut Topology) {
    if root.value == Value::Null {
        let hint = "`nodes: [{name: win, pool: windows-2022}]` is the least".to_owned();
        return decoder.report(root, "the topology is empty", Some(hint));
    }
    let Some(mut fields) = decoder.fields(root, "the topology") else {
        return;
    };
    read_flag(decoder, &mut fields, "outside", &mut topology.outside);
    let balancer = &mut topology.load_balancer;
    read_flag(decoder, &mut fields, "load-balancer", balancer);
    let usual = IpFamilies::default();
    let families = fields.or(decoder, "ip-families", usual, read_families);
    topology.ip_families = families.unwrap_or_default();
    let network = fields.optional("network");
    let nodes = fields.required(decoder, "nodes");
    fields.finish(decoder);
    let usual = NetworkSpec::default();
    let network = network.map_or(usual, |node| read_network(decoder, node, usual));
    let Some(list) = nodes else { return };
    let Some(items) = decoder.list(list, "`nodes`") else {
        return;
    };
    let mut lines = BTreeMap::new();
    for item in items {
        read_nodes(decoder, item, network, &mut lines, &mut topology.nodes);
    }
    if items.is_empty() {
        decoder.report(list, "the topology has no nodes", None);
    }
    let (many, most) = (topology.nodes.len(), Topology::MOST_NODES);
    if many > most {
        let message = format!("{many} nodes are more than the {most} that one simulator can have");
        let hint = "several simulators can join, each with a `--prefix` of its own".to_owned();
        decoder.report(list, message, Some(hint));
    }
}

/// Reads one entry of the list, for `count` nodes; `lines` has the line of each name so far.
fn read_nodes(
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
    let most = u32::try_from(Topology::MOST_NODES).unwrap_or(u32::MAX);
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
    let mut list = |key| fields.optional(key);
    let (labels, taints, handlers) = (list("labels"), list("taints"), list("handlers"));
    spec.labels = labels.map_or_else(BTreeMap::new, |node| read_labels(decoder, node));
    spec.taints = taints.map(|node| read_taints(decoder, node));
    spec.handlers = handlers.map_or_else(Vec::new, |node| read_handlers(decoder, node));
    let node_network = fields.optional("network");
    spec.network = node_network.map_or(network, |node| read_network(decoder, node, network));
    fields.finish(decoder);
    let Some((at, base)) = base else { return };
    let names: Vec<String> = match many {
        None => vec![base],
        Some(many) => (1..=many).map(|nth| format!("{base}-{nth}")).collect(),
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

fn read_flag(
    decoder: &mut Decoder<'_>,
    fields: &mut Fields<'_>,
    key: &'static str,
    flag: &mut bool,
) {
    let read = fields.or(decoder, key, *flag, |decoder, node| {
        decoder.flag(node, &format!("`{key}`"))
    });
    *flag = read.unwrap_or(*flag);
}

fn read_families(decoder: &mut Decoder<'_>, node: &Node) -> Option<IpFamilies> {
    let items = decoder.list(node, "`ip-families`")?;
    let words = items.iter().map(|item| match &item.value {
        Value::Text(text) => text.as_str(),
        _ => "",
    });
    match words.collect::<Vec<_>>()[..] {
        ["IPv4"] => Some(IpFamilies::IPv4),
        ["IPv4", "IPv6"] => Some(IpFamilies::DualStack),
        _ => {
            let message = "`ip-families` must be [IPv4] or [IPv4, IPv6]";
            let hint = "the API server reaches the nodes over IPv4: on loopback IPv6 has one address alone";
            decoder.report(node, message, Some(hint.to_owned()));
            None
        }
    }
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
    decoder.report(node, message, Some(VALUE_HINT.to_owned()));
    None
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

fn read_taint(decoder: &mut Decoder<'_>, node: &Node) -> Option<TaintSpec> {
    let mut fields = decoder.fields(node, "a taint")?;
    let key = fields.read(decoder, "key", |decoder, node| {
        let text = decoder.text(node, "`key`")?;
        if !is_label_key(text) {
            let message = format!("`{text}` cannot be the key of a taint");
            decoder.report(node, message, Some(KEY_HINT.to_owned()));
        }
        Some(text.to_owned())
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

fn read_handlers(decoder: &mut Decoder<'_>, node: &Node) -> Vec<String> {
    let items = decoder.list(node, "`handlers`").unwrap_or_default();
    let mut handlers: Vec<String> = Vec::new();
    for item in items {
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

fn read_network(decoder: &mut Decoder<'_>, node: &Node, usual: NetworkSpec) -> NetworkSpec {
    let mut network = usual;
    let Some(mut fields) = decoder.fields(node, "`network`") else {
        return network;
    };
    let known = NetworkMode::ALL.map(NetworkMode::name);
    let find = |text: &str| {
        let mut modes = NetworkMode::ALL.into_iter();
        modes.find(|mode| mode.name() == text)
    };
    let mode = fields.or(decoder, "mode", usual.mode, |decoder, node| {
        decoder.word(node, "mode", &known, find)
    });
    network.mode = mode.unwrap_or(usual.mode);
    read_flag(decoder, &mut fields, "dsr", &mut network.dsr);
    read_flag(decoder, &mut fields, "policies", &mut network.policies);
    read_flag(decoder, &mut fields, "host-ports", &mut network.host_ports);
    fields.finish(decoder);
    network
}

const KEY_HINT: &str =
    "a name of at most 63 letters, digits and -_. , if need be after a domain and /";
const VALUE_HINT: &str = "at most 63 letters, digits and -_. , letter or digit at either end";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_reads() {
        let mut found = Vec::new();
        let text = include_str!("../../../docs/topology.yaml");
        let topology = decoded("docs/topology.yaml", text, &mut found);
        assert_eq!(found, []);
        let nodes = topology.nodes.iter();
        let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["linux-1", "linux-2", "win-1", "win-2"]);
    }

    #[test]
    fn families_begin_with_ipv4() {
        for (families, taken) in [
            ("[IPv4]", true),
            ("[IPv4, IPv6]", true),
            ("[IPv6]", false),
            ("[IPv6, IPv4]", false),
            ("[]", false),
            ("[ipv4]", false),
            ("[4]", false),
        ] {
            let mut found = Vec::new();
            let text = format!("ip-families: {families}\nnodes: [{{name: a, pool: linux}}]\n");
            decoded("t.yaml", &text, &mut found);
            let said: Vec<_> = found.iter().map(|found| found.message.as_str()).collect();
            let wrong = ["`ip-families` must be [IPv4] or [IPv4, IPv6]"];
            assert_eq!(said, if taken { &[][..] } else { &wrong }, "{families}");
        }
    }

    #[test]
    fn a_file_with_everything() {
        let text = "outside: false\nload-balancer: true\nip-families: [IPv4, IPv6]\nnetwork: {mode: overlay, policies: true}\nnodes:\n\
                    - name: lin\n  pool: linux\n\
                    - name: win\n  pool: windows-2025\n  count: 2\n  cpus: 8\n  memory: 32Gi\n  \
                    labels: {example.com/disk: ssd, empty: \"\"}\n  \
                    taints: [{key: os, value: windows, effect: NoExecute}]\n  \
                    handlers: [runhcs-wcow-hypervisor]\n  network: {dsr: true, host-ports: false}\n";
        let mut found = Vec::new();
        let topology = decoded("t.yaml", text, &mut found);
        assert_eq!(found, []);
        let nodes = topology.nodes.iter();
        let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
        assert_eq!(
            (names, topology.outside, topology.load_balancer),
            (vec!["lin", "win-1", "win-2"], false, true)
        );
        assert_eq!(topology.ip_families, IpFamilies::DualStack);
        let [lin, .., win] = topology.nodes.as_slice() else {
            panic!("{topology:?}")
        };
        assert_eq!((lin.cpus, lin.memory, &lin.taints), (4, 16 * 1024, &None));
        assert_eq!((win.cpus, win.memory), (8, 32 * 1024));
        assert_eq!(win.labels["example.com/disk"], "ssd");
        assert_eq!(win.taints.as_ref().map(Vec::len), Some(1));
        let network = NetworkSpec {
            mode: NetworkMode::Overlay,
            dsr: true,
            policies: true,
            host_ports: false,
        };
        assert_eq!(win.network, network);
        assert!(lin.network.host_ports && !lin.network.dsr && lin.network.policies);
    }
}
