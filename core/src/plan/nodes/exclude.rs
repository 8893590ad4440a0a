//! Marks the nodes that the configuration excludes.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::NodeSelector;
use crate::document::{Diagnostics, Placed, nearest};
use crate::facts::{Facts, Known};
use crate::text::counted;

/// The most values of a label that a hint names.
const NAMED: usize = 5;

/// A node's name with its labels.
type Node = (String, BTreeMap<String, String>);

/// Marks the nodes that the configuration excludes. Refuses what matches no node, and what leaves a run none.
/// While the nodes are unknown, nothing is known to be wrong, and no pod is placed either.
pub fn exclude(facts: &mut Facts, exclude: &[Placed<NodeSelector>]) -> Result<(), Diagnostics> {
    // These are in no pool, and may be named nevertheless
    let others = others(facts);
    let (Known::Fact { value: nodes, .. }, Some(first)) = (&mut facts.nodes, exclude.first())
    else {
        return Ok(());
    };
    let mut problems = Vec::new();
    for Placed { value, at } in exclude {
        let mut met = others
            .iter()
            .any(|(name, labels)| value.covers(name, labels));
        for node in &mut *nodes {
            if value.covers(&node.name, &node.details.labels) {
                met = true;
                node.excluded.get_or_insert_with(|| value.to_string());
            }
        }
        if !met {
            let known = nodes.iter();
            let known = known.map(|node| (node.name.clone(), node.details.labels.clone()));
            let known: Vec<_> = known.chain(others.iter().cloned()).collect();
            let (message, hint) = unmatched(value, &known);
            problems.push(at.problem(message, Some(hint)));
        }
    }
    let mut usable = nodes.iter().filter(|node| node.usable).peekable();
    if usable.peek().is_some() && usable.all(|node| node.excluded.is_some()) {
        let message = "the configuration excludes every usable node of the cluster";
        let hint = "a run needs at least one node".to_owned();
        problems.push(first.at.problem(message, Some(hint)));
    }
    Diagnostics::check(problems)
}

/// The nodes that are in no pool.
fn others(facts: &Facts) -> Vec<Node> {
    let silent = facts.silent_nodes.value().into_iter().flatten();
    let silent = silent.map(|name| (name.clone(), BTreeMap::new()));
    let virtual_nodes = facts.virtual_nodes.value().into_iter().flatten();
    let virtual_nodes = virtual_nodes.map(|node| (node.name.clone(), node.labels.clone()));
    silent.chain(virtual_nodes).collect()
}

/// The problem of what matches no node, with what there is instead.
fn unmatched(selector: &NodeSelector, known: &[Node]) -> (String, String) {
    let names = || known.iter().map(|(name, _)| name.as_str());
    let there_are = format!("the cluster has {}", counted(known.len(), "node"));
    match selector {
        NodeSelector::Name(name) => {
            let hint = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`? {there_are}"),
                None => format!("{there_are}: {}", listed(names().collect())),
            };
            (format!("no node is called `{name}`"), hint)
        }
        NodeSelector::Label { key, .. } => {
            let labels = known.iter().flat_map(|(_, labels)| labels);
            let values: BTreeSet<_> = labels
                .clone()
                .filter(|(known, _)| *known == key)
                .map(|(_, value)| value.as_str())
                .collect();
            let keys = labels.map(|(key, _)| key.as_str());
            let hint = match (values.is_empty(), nearest(key, keys)) {
                (false, _) => format!("its values are: {}", listed(values)),
                (true, Some(near)) => format!("did you mean the label `{near}`?"),
                (true, None) => "`kubectl get nodes --show-labels` shows the labels".to_owned(),
            };
            (format!("no node has the label `{selector}`"), hint)
        }
    }
}

/// The first few of some words.
fn listed(words: BTreeSet<&str>) -> String {
    let more = words.len().saturating_sub(NAMED);
    let named: Vec<_> = words.into_iter().take(NAMED).collect();
    match more {
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::values::facts;
    use serde_json::json;

    fn cluster() -> Facts {
        let windows = |name: &str, team: &str| {
            json!({"name": name, "os": "windows", "build": "10.0.20348",
                "details": {"labels": {"team": team, "kubernetes.io/os": "windows"}}})
        };
        let fargate = json!({"name": "fargate-1", "os": "linux", "by": "EKS Fargate"});
        let nodes = json!({"nodes": [{"name": "lin"}, windows("win-a", "a"), windows("win-b", "b")],
            "virtual-nodes": [fargate]});
        facts(nodes.as_object().expect("values"))
    }

    /// The cluster with what a configuration excludes, or the problems.
    fn excluded(list: &str) -> Result<Facts, String> {
        let mut found = Vec::new();
        let text = format!("nodes:\n  exclude: [{list}]\n");
        let config = crate::config::read("c.yaml", &text, &mut found);
        assert_eq!(found, []);
        let mut facts = cluster();
        exclude(&mut facts, &config.nodes.exclude).map_err(|problems| problems.to_string())?;
        Ok(facts)
    }

    #[test]
    fn excluded_nodes_are_in_their_pool_and_not_used() {
        for list in ["win-a", "team=a", "team=a, win-a, fargate-1"] {
            let pools = excluded(list).expect("it matches").pools();
            let pool = &pools["windows-2022"];
            assert_eq!(
                (&pool.nodes[..], &pool.excluded[..]),
                (&["win-b".to_owned()][..], &["win-a".to_owned()][..])
            );
            assert_eq!(
                (pool.node(2).map(String::as_str), pool.total()),
                (Some("win-b"), 2)
            );
        }
        let all = excluded("team=*").expect("Linux is left");
        assert!(all.pools()["windows-2022"].nodes.is_empty());
    }

    #[test]
    fn what_matches_nothing_says_what_there_is() {
        for (list, problem) in [
            (
                "win-bb",
                "c.yaml:2:13: no node is called `win-bb`\n  hint: did you mean `win-b`? the cluster has 4 nodes",
            ),
            (
                "zzz",
                "c.yaml:2:13: no node is called `zzz`\n  hint: the cluster has 4 nodes: fargate-1, lin, win-a, win-b",
            ),
            (
                "team=c",
                "c.yaml:2:13: no node has the label `team=c`\n  hint: its values are: a, b",
            ),
            (
                "teem=*",
                "c.yaml:2:13: no node has the label `teem=*`\n  hint: did you mean the label `team`?",
            ),
            (
                "x/y=z",
                "c.yaml:2:13: no node has the label `x/y=z`\n  hint: `kubectl get nodes --show-labels` shows the labels",
            ),
            (
                "team=*, lin",
                "c.yaml:2:13: the configuration excludes every usable node of the cluster\n  hint: a run needs at least one node",
            ),
        ] {
            let problems = excluded(list).expect_err("a problem");
            assert_eq!(problems.strip_suffix("\n1 problem"), Some(problem));
        }
    }
}
