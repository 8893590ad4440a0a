//! The evidence about something that failed, as the record has it: bounded, and without what looks
//! like a secret. It explains a verdict and never decides one.

use serde::{Deserialize, Serialize};

use super::redact::redact;
use crate::fixture::FixtureKey;
use crate::plan::CheckId;

/// The most lines that one piece of evidence keeps: the last ones.
pub(super) const LINES: usize = 30;
/// The most bytes of one line.
pub(super) const LINE: usize = 400;

/// The evidence about one fixture, read before its tear-down.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Diagnosis {
    /// The fixture.
    pub fixture: FixtureKey,
    /// The failed checks that depend on it; none where the fixture itself failed.
    pub checks: Vec<CheckId>,
    /// The evidence.
    pub evidence: Vec<Evidence>,
}

/// The kind of a piece of evidence.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// The status of a pod and its containers.
    Status,
    /// Events about pods and about the objects that create them.
    Events,
    /// The end of a container's log.
    Log,
    /// The end of the log of the container before its last restart.
    PreviousLog,
    /// Conditions and versions of a node; on Windows the version of its kernel ends in the patch
    /// revision.
    Node,
    /// The load balancers of the Host Networking Service, `hnsdiag list loadbalancers`.
    Hns,
    /// The end of the log of kube-proxy on a Windows node.
    KubeProxy,
}

/// One piece of evidence.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Evidence {
    /// Its kind.
    pub kind: EvidenceKind,
    /// What it is about: `Pod a/b, container c`; of kube-proxy's log, `kube-proxy on NODE` is before that.
    pub of: String,
    /// The last lines: foreign text, unchanged except for secrets; none where there was nothing.
    pub lines: Vec<String>,
    /// Whether lines, or ends of lines, are cut off.
    pub cut: bool,
    /// Why the evidence could not be read, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Evidence {
    /// The end of a text: at most [`LINES`] lines of at most [`LINE`] bytes each.
    pub fn from_text(kind: EvidenceKind, of: String, text: &str) -> Self {
        let clean = redact(text);
        let lines: Vec<_> = clean
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let first = lines.len().saturating_sub(LINES);
        let mut cut = first > 0;
        let lines = lines[first..].iter().map(|line| {
            let mut line = (*line).to_owned();
            cut |= crate::text::shorten(&mut line, LINE);
            line
        });
        Self {
            kind,
            of,
            lines: lines.collect(),
            cut,
            unknown: None,
        }
    }

    /// Evidence that could not be read, with the reason.
    pub fn unknown(kind: EvidenceKind, of: String, why: &str) -> Self {
        let mut why = redact(why);
        crate::text::bound(&mut why, LINE);
        Self {
            unknown: Some(why),
            ..Self::from_text(kind, of, "")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_no_more() {
        let lines: Vec<_> = (0..100).map(|n| format!("line {n}")).collect();
        let text = lines.join("\n\n");
        let evidence = Evidence::from_text(EvidenceKind::Log, "Pod a/b".to_owned(), &text);
        assert!(evidence.cut);
        assert_eq!(evidence.lines.len(), LINES);
        assert_eq!(evidence.lines.last().map(String::as_str), Some("line 99"));
        let long = "ü".repeat(LINE);
        let evidence = Evidence::from_text(EvidenceKind::Log, "Pod a/b".to_owned(), &long);
        assert!(evidence.cut && evidence.lines[0].len() <= LINE);
        let whole = Evidence::from_text(EvidenceKind::Log, "Pod a/b".to_owned(), "one\ntwo");
        assert!(!whole.cut);
        assert_eq!(whole.lines, ["one", "two"]);
    }

    #[test]
    fn a_secret_is_struck_out_even_where_it_would_be_cut() {
        let long = format!("{}password=hunter2", "x ".repeat(LINE / 2 - 6));
        let evidence = Evidence::from_text(EvidenceKind::Log, String::new(), &long);
        assert!(!evidence.lines[0].contains("hun"), "{:?}", evidence.lines);
        let unknown = Evidence::unknown(EvidenceKind::Log, String::new(), "http://u:p@h/ failed");
        assert_eq!(unknown.unknown.as_deref(), Some("http://***@h/ failed"));
    }
}
