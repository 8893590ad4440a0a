//! What the scheduler says of a pod that it finds no node for (kubernetes `pkg/scheduler`,
//! `framework/types.go`, `FitError`): `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) didn't
//! match Pod's node affinity/selector. preemption: …`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::method::failure::Hindrance;

impl Hindrance {
    /// Reads the words of the scheduler's plugins: `tainttoleration`, `nodeaffinity`, `noderesources/fit.go`,
    /// first as of 1.37, then of older versions. `didn't satisfy plugin(s)` is about nodes that a plugin
    /// ruled out beforehand (`NodeAffinity`: by name).
    fn from_words(text: &str) -> Self {
        const SELECTORS: [&str; 4] = [
            "node(s) didn't match Pod's node affinity",
            "node(s) didn't satisfy plugin(s) [NodeAffinity]",
            "node(s) didn't match node selector",
            "node(s) didn't match node affinity",
        ];
        match text {
            "Insufficient cpu" => Self::InsufficientCpu,
            "Insufficient memory" => Self::InsufficientMemory,
            "Insufficient hugepages-2Mi" => Self::InsufficientHugePages,
            _ if text.starts_with("node(s) had untolerated taint")
                || text.starts_with("node(s) had taint ") =>
            {
                Self::UntoleratedTaint
            }
            _ if SELECTORS.iter().any(|words| text.starts_with(words)) => Self::Selector,
            _ => Self::Other,
        }
    }
}

/// A reason that keeps a pod off a number of nodes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KeptOff {
    /// How many nodes. A node may count for several reasons.
    pub nodes: usize,
    pub by: Hindrance,
    /// The scheduler's words.
    pub words: String,
}

/// What the scheduler says of a pod that it finds no node for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Said {
    /// How many nodes the scheduler knows.
    pub of: usize,
    pub kept_off: Vec<KeptOff>,
}

impl Said {
    /// Reads the message of the condition `PodScheduled`.
    pub fn parse(message: &str) -> Option<Self> {
        let (nodes, rest) = message.split_once(" nodes are available: ")?;
        let of = nodes.strip_prefix("0/")?.parse().ok()?;
        let reasons = before_preemption(rest);
        let reasons = reasons.strip_suffix('.').unwrap_or(reasons);
        let kept_off = parts(reasons).map(KeptOff::parse).collect::<Option<_>>()?;
        Some(Self { of, kept_off })
    }

    /// Whether a node lacks what other pods on it may have: a resource, or the number of pods it takes
    /// (`noderesources/fit.go`).
    pub fn lacks_room(&self) -> bool {
        let mut words = self.kept_off.iter().map(|part| part.words.as_str());
        words.any(|words| words.starts_with("Insufficient ") || words == "Too many pods")
    }

    /// How many nodes this reason keeps the pod off.
    pub(super) fn nodes(&self, by: Hindrance) -> usize {
        let of_it = self.kept_off.iter().filter(|part| part.by == by);
        of_it.map(|part| part.nodes).sum()
    }
}

impl KeptOff {
    fn parse(part: &str) -> Option<Self> {
        let (nodes, words) = part.split_once(' ')?;
        Some(Self {
            nodes: nodes.parse().ok()?,
            by: Hindrance::from_words(words),
            words: words.to_owned(),
        })
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self
            .kept_off
            .iter()
            .map(|part| format!("{} {}", part.nodes, part.words))
            .collect();
        write!(f, "none of {} nodes: {}", self.of, parts.join(", "))
    }
}

/// What the scheduler says before what it could free, which is another question: `2 Insufficient cpu.
/// preemption: …`, or with claims of devices `2 Insufficient cpu. no new claims to deallocate, preemption: …`
/// (kubernetes `pkg/scheduler/framework/plugins/dynamicresources`, `PostFilter`).
pub(in crate::method::api) fn before_preemption(text: &str) -> &str {
    const BEGINS: [&str; 2] = [". preemption: ", ". no new claims to deallocate"];
    let ends = BEGINS.iter().filter_map(|words| text.find(words));
    ends.min().map_or(text, |end| &text[..end])
}

/// The reasons, each beginning with its number of nodes; their words may hold commas, too.
fn parts(reasons: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(reasons);
    std::iter::from_fn(move || {
        let text = rest?;
        let numbered = |at: &usize| text[at + 2..].starts_with(|c: char| c.is_ascii_digit());
        let end = text.match_indices(", ").map(|(at, _)| at).find(numbered);
        rest = end.map(|at| &text[at + 2..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("said.yaml");

    #[test]
    fn words_are_those_of_suites() {
        assert_eq!(Hindrance::UntoleratedTaint.as_str(), "untolerated-taint");
        assert_eq!(super::super::Ground::TaintedPool.as_str(), "tainted-pool");
    }

    fn read(message: &str) -> Option<(usize, Vec<(usize, Hindrance)>)> {
        let said = Said::parse(message)?;
        let parts = said.kept_off.iter().map(|part| (part.nodes, part.by));
        Some((said.of, parts.collect()))
    }

    #[test]
    fn the_schedulers_words_are_read_by_their_parts() {
        for (message, expected) in
            rows::<(String, (usize, Vec<(usize, Hindrance)>))>(TABLES, "said")
        {
            assert_eq!(read(&message), Some(expected), "{message}");
        }
    }

    #[test]
    fn other_words_are_not_read() {
        for message in [
            "",
            "no nodes available to schedule pods",
            "running PreFilter plugin \"VolumeBinding\": not found",
            "0/2 nodes are available: not as usual.",
            "2/2 nodes are available: 1 Insufficient cpu.",
        ] {
            assert_eq!(read(message), None, "{message}");
        }
    }
}
