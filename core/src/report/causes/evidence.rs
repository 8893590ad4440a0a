//! The evidence that a run collected after failures, and the piece of it that says most about a cause.

use std::collections::{BTreeMap, BTreeSet};

use super::place::Place;
use super::trouble::{End, Seen};
use crate::fixture::FixtureKey;
use crate::plan::CheckId;
use crate::record::{Evidence, EvidenceKind, RunView};
use crate::text::{printable, shorten};
use crate::verdict::Reason;

/// The most bytes of a line that are shown.
const SHOWN: usize = 160;

/// All evidence of a run.
#[derive(Default)]
pub(super) struct Collected<'v> {
    of_fixture: BTreeMap<&'v FixtureKey, Vec<Piece<'v>>>,
    /// The fixtures with evidence that failed checks depend on.
    of_check: BTreeMap<&'v CheckId, Vec<&'v FixtureKey>>,
}

/// A piece of evidence.
struct Piece<'v> {
    evidence: &'v Evidence,
    /// Its lines in lower case, with each byte where it was.
    lower: Vec<String>,
    /// The node that it is about, if it names one.
    node: Option<End>,
}

impl<'v> Collected<'v> {
    /// All evidence of a run; `node` finds the node that a text names.
    pub(super) fn from_view(view: &'v RunView, node: impl Fn(&str) -> Option<End>) -> Self {
        let mut collected = Self::default();
        for (fixture, diagnosis) in &view.diagnoses {
            let pieces = diagnosis.evidence.iter().map(|evidence| {
                let lower = evidence.lines.iter().map(|line| line.to_ascii_lowercase());
                Piece {
                    evidence,
                    lower: lower.collect(),
                    node: node(subject(evidence)),
                }
            });
            collected.of_fixture.insert(fixture, pieces.collect());
            for check in &diagnosis.checks {
                collected.of_check.entry(check).or_default().push(fixture);
            }
        }
        collected
    }

    /// The last line with the first of these words that any has, of what was collected about the fixtures that checks
    /// of a cause depend on; empty where none has one. Printable.
    pub(super) fn telling(&self, words: &[String], of_it: &[&Seen<'_>], place: &Place) -> String {
        if words.is_empty() || self.of_fixture.is_empty() {
            return String::new();
        }
        let mut fixtures = BTreeSet::new();
        for seen in of_it {
            if let Some(Reason::Fixture { fixture, .. }) = seen.check.reason() {
                fixtures.insert(fixture);
            }
            let depends = self.of_check.get(&seen.check.planned.id);
            fixtures.extend(depends.into_iter().flatten().copied());
        }
        let pieces = fixtures
            .into_iter()
            .filter_map(|fixture| self.of_fixture.get(fixture));
        let mut pieces: Vec<_> = pieces
            .flatten()
            .filter(|piece| piece.may_be_of(place))
            .collect();
        // An event says what a status says, and how often
        pieces.sort_by_key(|piece| piece.evidence.kind != EvidenceKind::Events);
        let mut shown = words
            .iter()
            .flat_map(|word| pieces.iter().filter_map(move |piece| piece.shown(word)));
        shown.next().unwrap_or_default()
    }
}

impl Piece<'_> {
    /// Whether it names no node, or one of a place.
    fn may_be_of(&self, place: &Place) -> bool {
        self.node.as_ref().is_none_or(|end| place.may_hold(end))
    }

    /// Its last line with a word, from the word on, with what it is about.
    fn shown(&self, word: &str) -> Option<String> {
        let mut lines = self.evidence.lines.iter().zip(&self.lower).rev();
        let (line, at) = lines.find_map(|(line, lower)| Some((line, lower.find(word)?)))?;
        let event = match self.evidence.kind == EvidenceKind::Events {
            true => event(line, at),
            false => None,
        };
        let about = event.unwrap_or_else(|| subject(self.evidence).to_owned());
        let mut said = line[at..].to_owned();
        shorten(&mut said, SHOWN);
        Some(printable(&format!("{about}: {said}")))
    }
}

/// What a piece of evidence is about: `Pod a/b` of `Pod a/b, container c`.
fn subject(evidence: &Evidence) -> &str {
    evidence.of.split(", ").next().unwrap_or_default()
}

/// An event's reason and how often it came, if this place is in its message: `event FailedMount, 12 times` of
/// `Warning FailedMount web-1 (12): …`.
fn event(line: &str, at: usize) -> Option<String> {
    let (head, _) = line.split_once("): ")?;
    let (names, count) = head.rsplit_once(" (")?;
    let reason = names.split(' ').nth(1)?;
    (head.len() < at).then(|| match count {
        "1" => format!("event {reason}"),
        _ => format!("event {reason}, {count} times"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(evidence: &Evidence) -> Piece<'_> {
        let lower = evidence.lines.iter().map(|line| line.to_ascii_lowercase());
        Piece {
            evidence,
            lower: lower.collect(),
            node: None,
        }
    }

    fn shown(kind: EvidenceKind, of: &str, text: &str, word: &str) -> Option<String> {
        piece(&Evidence::from_text(kind, of.to_owned(), text)).shown(word)
    }

    #[test]
    fn the_last_line_with_the_word_is_shown_from_the_word_on() {
        // kubernetes issue 139519
        let log = "E1 proxier.go] \"Policy creation failed\" err=\"hcnCreateLoadBalancer failed in \
                   Win32: The switch-port was not found. (0x803b0007)\"\n\
                   E2 proxier.go] \"Policy creation failed\" err=\"hcnCreateLoadBalancer failed in \
                   Win32: Cannot create a file when that file already exists. (0xb7)\"\n\
                   I3 proxier.go] \"Syncing proxy rules complete\"";
        let of = "kube-proxy on win-a, Pod kube-system/kube-proxy-x, container kube-proxy";
        let shown = |word| shown(EvidenceKind::KubeProxy, of, log, word);
        assert_eq!(
            shown("hcncreateloadbalancer failed").as_deref(),
            Some(
                "kube-proxy on win-a: hcnCreateLoadBalancer failed in Win32: Cannot create a file \
                 when that file already exists. (0xb7)\""
            )
        );
        assert_eq!(shown("source vip endpoint creation failed"), None);
    }

    #[test]
    fn an_event_is_shown_with_its_reason_and_its_count() {
        let shown = |text, word| shown(EvidenceKind::Events, "iis in windows-2022", text, word);
        // sig-windows-tools issue 292
        let many = "Warning FailedCreatePodSandBox iis-1 (12): Failed to create pod sandbox: \
                    plugin type=\"nat\" name=\"nat\" failed (add): hcnCreateNetwork failed in \
                    Win32: The object already exists. (0x1392)";
        assert_eq!(
            shown(many, "hcncreatenetwork failed").as_deref(),
            Some(
                "event FailedCreatePodSandBox, 12 times: hcnCreateNetwork failed in Win32: The \
                 object already exists. (0x1392)"
            )
        );
        let once = "Warning FailedMount iis-1 (1): MountVolume.SetUp failed for volume \"v\"";
        assert_eq!(
            shown(once, "mountvolume.setup failed").as_deref(),
            Some("event FailedMount: MountVolume.SetUp failed for volume \"v\"")
        );
        // What is before the message is no part of it
        assert_eq!(
            shown(once, "failedmount").as_deref(),
            Some(
                "iis in windows-2022: FailedMount iis-1 (1): MountVolume.SetUp failed for volume \
                 \"v\""
            )
        );
    }

    #[test]
    fn what_a_cluster_says_is_printable_and_bounded() {
        let text = format!(
            "\u{130} hnsCall failed \u{1b}[2J\u{202e}{}",
            "ü".repeat(400)
        );
        let log = shown(EvidenceKind::Log, "Pod a/\u{1b}b", &text, "hnscall failed");
        let log = log.expect("it has the word");
        let begins = "Pod a/\\u{1b}b: hnsCall failed \\u{1b}[2J\\u{202e}ü";
        assert!(log.starts_with(begins) && log.ends_with("ü"), "{log}");
        assert!(log.contains("ü … ü"), "{log}");
        assert!(log.len() < 220, "{log}");
    }
}
