//! The node that a run may boot.

use crate::config::{Allowed, Config};
use crate::document::{Diagnostic, nearest};
use crate::facts::{Facts, NodeFact, Os, Pool};
use crate::fixture::FixtureKey;
use crate::plan::build::Surroundings;

/// Refuses the name of a node that is no Windows node of the run, and any name where the configuration allows no
/// disruption: nothing of a run is to be left out for a mistake at its end.
pub fn disrupt(facts: &Facts, config: &Config) -> Result<(), Diagnostic> {
    let Some(node) = &config.disrupt else {
        return Ok(());
    };
    if !config.allow.contains(&Allowed::Disruption) {
        let hint = "write `allow: [disruption]` into the file of --config".to_owned();
        let message = "the configuration allows no disruption";
        return Err(node.at.problem(message, Some(hint)));
    }
    let pools = facts.pools();
    let windows = pools.values().filter(|pool| pool.os == Os::Windows);
    let names = || windows.clone().flat_map(|pool: &Pool| &pool.nodes);
    // While the nodes are unknown, no pod is placed either
    if facts.nodes.value().is_none() || names().any(|name| *name == node.value) {
        return Ok(());
    }
    let mut nodes = facts.nodes.value().into_iter().flatten();
    let there_are: Vec<_> = names().map(String::as_str).collect();
    let hint = match nodes.find(|one| one.name == node.value) {
        Some(known) => why_not(known),
        None => match nearest(&node.value, there_are.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if there_are.is_empty() => "the run uses no Windows node".to_owned(),
            None => format!("those are: {}", there_are.join(", ")),
        },
    };
    let message = format!(
        "`{}` is none of the Windows nodes that the run uses",
        node.value
    );
    Err(node.at.problem(message, Some(hint)))
}

/// Why a run does not use a node.
fn why_not(node: &NodeFact) -> String {
    match (&node.excluded, &node.spared) {
        _ if node.os != Os::Windows => "it runs Linux".to_owned(),
        (Some(by), _) => format!("the configuration excludes it: {by}"),
        _ if !node.usable => "it is not Ready, or not schedulable".to_owned(),
        (None, Some(by)) => format!("the run spares it: {by}"),
        (None, None) => "the run uses others of its pool".to_owned(),
    }
}

impl Surroundings<'_> {
    /// Whether a fixture that has its node boot is in the pool of the node that may.
    pub(in crate::plan) fn may_disrupt(&self, key: &FixtureKey) -> bool {
        let pool = key.pool.as_ref().and_then(|name| self.pools.get(name));
        let node = self.config.may_boot();
        node.is_some_and(|node| pool.is_some_and(|pool| pool.nodes.contains(&node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Placed;
    use crate::facts::values::facts;
    use serde_json::json;

    #[test]
    fn a_node_is_named_that_the_run_uses_and_may_boot() {
        let windows = |name: &str| json!({"name": name, "os": "windows", "build": "10.0.20348"});
        let nodes = json!({"nodes": [{"name": "lin"}, windows("win-a"), windows("win-b")]});
        let facts = facts(nodes.as_object().expect("values"));
        let refused = |node: Option<&str>, allow: &[Allowed]| {
            let node = node.map(str::to_owned);
            let config = Config {
                disrupt: node.map(|node| Placed::by_argument(node, "--yes-disrupt")),
                allow: allow.iter().copied().collect(),
                ..Config::default()
            };
            disrupt(&facts, &config)
                .err()
                .map(|problem| problem.to_string())
        };
        let all = [Allowed::Disruption];
        assert_eq!(refused(None, &[]), None);
        assert_eq!(refused(Some("win-b"), &all), None);
        let told = refused(Some("win-b"), &[]).expect("it is refused");
        assert!(
            told.starts_with("--yes-disrupt: the configuration allows no disruption"),
            "{told}"
        );
        for (node, hint) in [
            ("win-c", "did you mean `win-b`?"),
            ("lin", "it runs Linux"),
            ("gone", "those are: win-a, win-b"),
        ] {
            let told = refused(Some(node), &all).expect("it is refused");
            let words =
                format!("--yes-disrupt: `{node}` is none of the Windows nodes that the run uses");
            assert!(told.starts_with(&words) && told.contains(hint), "{told}");
        }
    }
}
