//! Reads the topology of `--topology`: one with a name, or a file, of which it reports all mistakes at once.

mod around;
mod nodes;

use std::collections::BTreeMap;
use std::path::Path;

use hybrid_sim::{IpFamilies, NamedTopology, NetworkSpec, Topology};
use winconform_core::document::{
    Decoder, Diagnostic, Diagnostics, Fields, Node, Place, Value, did_you_mean, parse,
};

use around::{read_api, read_group, read_network};
use nodes::read_nodes;

use crate::cli::error::CliError;
use crate::cli::settings::{LARGEST, read_bounded};
use crate::cli::simulated::described;

/// The topology with this name, or else in this file.
pub(crate) fn load(given: &str) -> Result<Topology, CliError> {
    let mut problems = Vec::new();
    let topology = look(given, &mut problems)?;
    let invalid = |problems| CliError::Invalid("the topology is not valid", problems);
    Diagnostics::check(problems).map_err(invalid)?;
    Ok(topology)
}

/// Like [`load`], but adds mistakes to `problems`; with any of them the topology is of no use.
pub(crate) fn look(given: &str, problems: &mut Vec<Diagnostic>) -> Result<Topology, CliError> {
    if let Some((_, topology)) = named(given) {
        return Ok(topology);
    }
    let path = Path::new(given);
    if path.symlink_metadata().is_ok() {
        let text = read_bounded(path, "topology", LARGEST)?;
        return Ok(read(given, &text, problems).1);
    }
    let names: Vec<_> = NamedTopology::ALL.iter().map(|known| known.name).collect();
    let message = format!("`{given}` is neither a topology that is known nor a file");
    let hint = did_you_mean(given, &names);
    problems.push(Place::argument("--topology").problem(message, Some(hint)));
    Ok(Topology::of(Vec::new()))
}

/// The topology with a name, and what it is.
pub fn named(name: &str) -> Option<(String, Topology)> {
    let known = NamedTopology::ALL.iter().find(|known| known.name == name)?;
    let mut problems = Vec::new();
    let (what, topology) = read(known.name, known.text, &mut problems);
    assert!(
        problems.is_empty(),
        "a built-in topology is valid: {problems:?}"
    );
    Some((what, topology))
}

/// What `--list-topologies` prints, for a terminal of `width` columns.
pub(crate) fn catalogue(width: usize) -> String {
    let known = NamedTopology::ALL.iter().filter_map(|known| {
        let (what, _) = named(known.name)?;
        Some(described(known.name, 17, &what, width))
    });
    known.flatten().collect::<Vec<_>>().join("\n") + "\n"
}

/// Reads what a topology is, and the topology.
fn read(file: &str, text: &str, problems: &mut Vec<Diagnostic>) -> (String, Topology) {
    let (mut what, mut topology) = (String::new(), Topology::of(Vec::new()));
    match parse(file, text) {
        Ok(root) => {
            let mut decoder = Decoder::new(file);
            read_root(&mut decoder, &root, &mut what, &mut topology);
            problems.extend(decoder.finish());
        }
        Err(error) => problems.push(error),
    }
    (what, topology)
}

fn read_root(decoder: &mut Decoder<'_>, root: &Node, what: &mut String, topology: &mut Topology) {
    if root.value == Value::Null {
        let hint = "`nodes: [{name: win, pool: windows-2022}]` is the least".to_owned();
        return decoder.report(root, "the topology is empty", Some(hint));
    }
    let Some(mut fields) = decoder.fields(root, "the topology") else {
        return;
    };
    let said = fields.maybe(decoder, "what", |decoder, node| {
        decoder.text(node, "`what`").map(str::to_owned)
    });
    *what = said.flatten().unwrap_or_default();
    read_flag(decoder, &mut fields, "outside", &mut topology.outside);
    let pings = &mut topology.outside_pings;
    read_flag(decoder, &mut fields, "outside-pings", pings);
    topology.between_nodes = fields.maybe(decoder, "between-nodes", read_group).flatten();
    topology.api = read_api(decoder, &mut fields);
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

#[cfg(test)]
mod tests {
    use hybrid_sim::NetworkMode;

    use super::*;

    #[test]
    fn the_example_reads() {
        let mut found = Vec::new();
        let text = include_str!("../../../../docs/topology.yaml");
        let (_, topology) = read("docs/topology.yaml", text, &mut found);
        assert_eq!(found, []);
        let nodes = topology.nodes.iter();
        let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
        assert_eq!(topology.api.effects.len(), 6);
        assert_eq!(names, ["linux-a", "linux-b", "win-a", "win-b", "stand-in"]);
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
            read("t.yaml", &text, &mut found);
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
                    handlers: [runhcs-wcow-hypervisor]\n  network: {dsr: true, host-ports: false, forwards-node-ports: false}\n";
        let mut found = Vec::new();
        let (_, topology) = read("t.yaml", text, &mut found);
        assert_eq!(found, []);
        let nodes = topology.nodes.iter();
        let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
        assert_eq!(
            (names, topology.outside, topology.load_balancer),
            (vec!["lin", "win-a", "win-b"], false, true)
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
            forwards_node_ports: false,
        };
        assert_eq!(win.network, network);
        assert!(lin.network.host_ports && !lin.network.dsr && lin.network.policies);
    }
}
