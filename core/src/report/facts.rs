//! What the cluster says of itself, for people: each fact with its source, or why it is unknown.

use std::collections::BTreeMap;

use crate::facts::{
    ClusterDns, Cni, Facts, GmsaFact, Known, KubeProxy, LoadBalancerFact, NodeFact, Os, PullFact,
    VirtualNodeFact, WebhookFact, WorkloadsFact,
};
use crate::report::text::layout::{behind, pad, wrap};
use crate::text::printable;

/// Columns of the facts' names.
const NAMES: usize = 17;
/// Names shown of one list.
const SHOWN: usize = 10;

/// The facts as text of at most `width` columns, pools first.
pub fn render(facts: &Facts, width: usize) -> String {
    let mut out = Out {
        text: String::new(),
        width,
    };
    pools(&mut out, facts);
    nodes(&mut out, facts);
    out.group("cluster");
    out.fact("server", &facts.server, |version| vec![version.clone()]);
    out.fact("platform", &facts.platform, |platform| {
        vec![platform.clone()]
    });
    out.fact("identity", &facts.cluster, |uid| vec![uid.clone()]);
    out.fact("provider", &facts.provider, |provider| {
        vec![provider.clone().unwrap_or_else(|| "none known".to_owned())]
    });
    out.fact("feature gates", &facts.gates, gates);
    out.fact("metrics API", &facts.metrics_api, |available| {
        vec![yes(*available, "available", "not available")]
    });
    out.group("network");
    out.fact("network plugin", &facts.cni, |known| cni(known.as_ref()));
    out.fact("kube-proxy", &facts.kube_proxy, |known| {
        kube_proxy(known.as_ref())
    });
    out.fact("cluster DNS", &facts.dns, |known| dns(known.as_ref()));
    out.fact("load balancer", &facts.load_balancer, load_balancer);
    out.group("objects");
    out.list("runtime classes", &facts.runtime_classes, |class| {
        format!("{} ({})", class.name, class.handler)
    });
    out.list("storage classes", &facts.storage_classes, |class| {
        let default = if class.default { ", default" } else { "" };
        format!("{} ({}{default})", class.name, class.provisioner)
    });
    out.list("snapshot classes", &facts.snapshot_classes, |class| {
        format!("{} ({})", class.name, class.driver)
    });
    out.list("CSI drivers", &facts.csi_drivers, String::clone);
    out.list("CSI nodes", &facts.csi_nodes, |node| {
        format!("{}: {}", node.node, joined(&node.drivers))
    });
    out.list("admission", &facts.webhooks, webhook);
    out.fact("gMSA", &facts.gmsa, gmsa);
    out.group("what runs");
    out.fact("pods", &facts.workloads, workloads);
    out.fact("pulls", &facts.pulls, |pulls| some(longest(pulls)));
    out.text
}

struct Out {
    text: String,
    width: usize,
}

impl Out {
    fn group(&mut self, name: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(name);
        self.text.push('\n');
    }

    /// A name with its lines; the name is before the first.
    fn lines(&mut self, name: &str, lines: &[String]) {
        let room = self.width.saturating_sub(NAMES + 4);
        let lines = lines.iter().flat_map(|line| wrap(&printable(line), room));
        for line in behind(&format!("  {}  ", pad(name, NAMES)), NAMES + 4, lines) {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    fn fact<T>(&mut self, name: &str, fact: &Known<T>, lines: impl Fn(&T) -> Vec<String>) {
        match fact {
            Known::Fact { value, source } => {
                let mut lines = lines(value);
                lines.push(format!("from {source}"));
                self.lines(name, &lines);
            }
            Known::Unknown { reason } => self.unknown(name, reason),
        }
    }

    fn list<T>(&mut self, name: &str, fact: &Known<Vec<T>>, line: impl Fn(&T) -> String) {
        self.fact(name, fact, |all| some(all.iter().map(&line)));
    }

    fn unknown(&mut self, name: &str, reason: &str) {
        self.lines(name, &[format!("unknown, because {reason}")]);
    }
}

fn pools(out: &mut Out, facts: &Facts) {
    out.group("pools");
    match &facts.nodes {
        Known::Unknown { reason } => out.unknown("nodes", reason),
        Known::Fact { source, .. } => {
            let pools = facts.pools();
            if pools.is_empty() {
                out.lines("nodes", &["none".to_owned()]);
            }
            for (name, pool) in &pools {
                let mut line = vec![format!("{} usable", pool.nodes.len())];
                line.extend(pool.unused());
                let mut line = line.join(", ");
                if let Some(build) = pool.build {
                    line.push_str(&format!(", build {build}"));
                }
                let taints: Vec<_> = pool.taints.iter().map(taint).collect();
                if !taints.is_empty() {
                    line.push_str(&format!(", tainted {}", joined(&taints)));
                }
                out.lines(name.as_str(), &[line]);
            }
            silent(out, &facts.silent_nodes);
            virtual_nodes(out, &facts.virtual_nodes);
            out.lines("", &[format!("from {source}")]);
        }
    }
}

/// The nodes that belong to no pool, if there are any.
fn silent(out: &mut Out, silent: &Known<Vec<String>>) {
    match silent {
        Known::Fact { value, .. } if value.is_empty() => {}
        Known::Fact { value, .. } => {
            let line = format!("{}: not told what they run", joined(value));
            out.lines("of no pool", &[line]);
        }
        Known::Unknown { reason } => out.unknown("of no pool", reason),
    }
}

/// The nodes behind which no kubelet of a machine runs pods, if there are any.
fn virtual_nodes(out: &mut Out, nodes: &Known<Vec<VirtualNodeFact>>) {
    let mut by = BTreeMap::<_, Vec<_>>::new();
    for node in nodes.value().into_iter().flatten() {
        by.entry(&node.by).or_default().push(node.name.clone());
    }
    let line = |(by, names): (&String, Vec<String>)| format!("{}: {by}", joined(&names));
    let lines: Vec<_> = by.into_iter().map(line).collect();
    if !lines.is_empty() {
        out.lines("not used", &lines);
    }
}

fn nodes(out: &mut Out, facts: &Facts) {
    let Some(nodes) = facts.nodes.value().filter(|nodes| !nodes.is_empty()) else {
        return;
    };
    out.group("nodes");
    let mut sorted: Vec<_> = nodes.iter().collect();
    sorted.sort_by_key(|node| (node.os != Os::Windows, node.build));
    for node in sorted.iter().take(2 * SHOWN) {
        let name = printable(&node.name);
        let lines = node_lines(node);
        // A long name has a line of its own
        if crate::report::text::layout::columns(&name) > NAMES {
            out.text.push_str(&format!("  {name}\n"));
            out.lines("", &lines);
        } else {
            out.lines(&name, &lines);
        }
    }
    if let Some(more) = sorted.len().checked_sub(2 * SHOWN).filter(|more| *more > 0) {
        out.lines("", &[format!("and {more} more: see --format json")]);
    }
}

fn node_lines(node: &NodeFact) -> Vec<String> {
    let details = &node.details;
    let mut first = node.os.as_str().to_owned();
    for word in [
        &details.arch,
        &details.kernel,
        &details.runtime,
        &details.kubelet,
    ] {
        if !word.is_empty() {
            first.push_str(&format!(", {word}"));
        }
    }
    let mut second = yes(node.usable, "usable", "not usable");
    if details.control_plane && node.spared.is_none() {
        second.push_str(", control plane");
    }
    if let Some(by) = &node.excluded {
        second.push_str(&format!(", excluded ({by})"));
    }
    if let Some(by) = &node.spared {
        second.push_str(&format!(", spared where others are there ({by})"));
    }
    if details.unschedulable {
        second.push_str(", cordoned");
    }
    for condition in &details.conditions {
        let good = if condition.kind == "Ready" {
            "True"
        } else {
            "False"
        };
        if condition.status != good {
            second.push_str(&format!(", {} is {}", condition.kind, condition.status));
        }
    }
    if let (Some(memory), Some(left)) = (
        details.capacity.get("memory"),
        details.allocatable.get("memory"),
    ) {
        second.push_str(&format!(", memory {memory}, allocatable {left}"));
    }
    vec![first, second]
}

fn taint(taint: &serde_json::Value) -> String {
    let text = |key: &str| taint[key].as_str().unwrap_or_default();
    match text("value") {
        "" => format!("{}:{}", text("key"), text("effect")),
        value => format!("{}={value}:{}", text("key"), text("effect")),
    }
}

fn gates(gates: &BTreeMap<String, bool>) -> Vec<String> {
    let on = gates.values().filter(|on| **on).count();
    let mut lines = vec![format!("{on} on, {} off", gates.len() - on)];
    // Gates that change what Windows nodes do
    let windows = gates.iter().filter(|(name, _)| name.contains("Win"));
    let windows: Vec<_> = windows
        .map(|(name, on)| format!("{name} {}", yes(*on, "on", "off")))
        .collect();
    if !windows.is_empty() {
        lines.push(joined(&windows));
    }
    lines
}

fn cni(cni: Option<&Cni>) -> Vec<String> {
    let Some(cni) = cni else {
        return vec!["none known".to_owned()];
    };
    let mut first = cni.product.clone();
    match cni.mode {
        Some(mode) => first.push_str(&format!(", {}", mode.title())),
        None => first.push_str(", mode not told by the API"),
    }
    if let Some(vxlan) = cni.vxlan {
        let number = |n: Option<u32>| n.map_or("default".to_owned(), |n| n.to_string());
        let port = number(vxlan.port.map(u32::from));
        first.push_str(&format!(", VNI {}, port {port}", number(vxlan.vni)));
    }
    signed(first, &cni.signs, &cni.unread)
}

fn kube_proxy(proxy: Option<&KubeProxy>) -> Vec<String> {
    let Some(proxy) = proxy else {
        return vec!["no sign of it".to_owned()];
    };
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "not written".to_owned());
    let dsr = match proxy.dsr {
        None => "not written",
        Some(true) => "on",
        Some(false) => "off",
    };
    let first = format!(
        "mode on Linux {}, on Windows {}, direct server return {dsr}",
        mode(&proxy.linux_mode),
        mode(&proxy.windows_mode)
    );
    signed(first, &proxy.signs, &proxy.unread)
}

fn signed(first: String, signs: &[String], unread: &[String]) -> Vec<String> {
    let mut lines = vec![first];
    lines.extend(signs.iter().map(|sign| format!("by {sign}")));
    lines.extend(unread.iter().map(|why| format!("unread: {why}")));
    lines
}

fn dns(dns: Option<&ClusterDns>) -> Vec<String> {
    let Some(dns) = dns else {
        return vec!["no Service of it".to_owned()];
    };
    let first = format!("{} at {}", dns.service, joined(&dns.addresses));
    let endpoints = dns.endpoints.iter().map(|endpoint| {
        let node = endpoint.node.as_deref().unwrap_or("a node not told");
        let ready = yes(endpoint.ready, "ready", "not ready");
        format!("{} on {node}, {ready}", endpoint.address)
    });
    let mut lines = vec![first];
    lines.extend(some(endpoints));
    lines
}

fn load_balancer(balancer: &LoadBalancerFact) -> Vec<String> {
    let mut lines = vec![format!(
        "{} Services have an address, {} wait for one",
        balancer.with_address, balancer.pending
    )];
    if !balancer.products.is_empty() {
        lines.push(joined(&balancer.products));
    }
    lines.extend(balancer.unread.iter().map(|why| format!("unread: {why}")));
    lines
}

fn webhook(webhook: &WebhookFact) -> String {
    let name = match webhook.name.as_str() {
        "" => String::new(),
        name => format!(" {name}"),
    };
    format!(
        "{} {}{name}: {} {}, failure policy {}{}",
        webhook.kind,
        webhook.configuration,
        yes(webhook.mutates, "may change", "sees"),
        joined(&webhook.resources),
        webhook.failure_policy,
        if webhook.dry_run {
            ""
        } else {
            ", not in a dry run"
        },
    )
}

fn gmsa(gmsa: &GmsaFact) -> Vec<String> {
    let served = yes(
        gmsa.crd,
        "GMSACredentialSpec served",
        "GMSACredentialSpec not served",
    );
    let webhooks = match gmsa.webhooks.as_slice() {
        [] => "no webhook".to_owned(),
        some => format!("webhook {}", joined(some)),
    };
    vec![format!("{served}, {webhooks}")]
}

fn workloads(fact: &WorkloadsFact) -> Vec<String> {
    let mut lines = vec![format!(
        "{} run, {} of them on Windows nodes",
        fact.pods, fact.windows_pods
    )];
    for (count, names, what) in [
        (
            fact.without_os_count,
            &fact.without_os,
            "without spec.os.name and an OS selector",
        ),
        (
            fact.without_requests_count,
            &fact.without_requests,
            "without requests, or with others than their limits",
        ),
    ] {
        if count > 0 {
            lines.push(format!(
                "{count} on Windows nodes {what}: {}",
                joined(names)
            ));
        }
    }
    let families = fact.windows_families.iter();
    let families: Vec<_> = families
        .map(|(families, count)| format!("{count} {families}"))
        .collect();
    if !families.is_empty() {
        lines.push(format!("addresses on Windows nodes: {}", joined(&families)));
    }
    let detectors = fact.problem_detectors.iter();
    let detectors: Vec<_> = detectors
        .map(|(pod, node)| format!("{pod} on {node}"))
        .collect();
    if !detectors.is_empty() {
        lines.push(format!("node-problem-detector: {}", joined(&detectors)));
    }
    lines
}

fn longest(pulls: &[PullFact]) -> impl Iterator<Item = String> {
    let mut sorted: Vec<_> = pulls.iter().collect();
    sorted.sort_by_key(|pull| std::cmp::Reverse(pull.took));
    sorted.into_iter().map(|pull| {
        let seconds = format!("{}.{} s", pull.took / 1000, pull.took % 1000 / 100);
        format!("{seconds}, {} to {}", pull.image, pull.node)
    })
}

/// The first lines, and how many more there are; `none` when there are none.
fn some(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut shown: Vec<_> = lines.collect();
    let more = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    match (shown.is_empty(), more) {
        (true, _) => vec!["none".to_owned()],
        (_, 0) => shown,
        (_, more) => {
            shown.push(format!("and {more} more: see --format json"));
            shown
        }
    }
}

fn joined(words: &[String]) -> String {
    let shown: Vec<_> = words.iter().take(SHOWN).map(String::as_str).collect();
    let more = words.len().saturating_sub(SHOWN);
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn yes(is: bool, then: &str, otherwise: &str) -> String {
    if is { then } else { otherwise }.to_owned()
}
