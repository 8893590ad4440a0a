//! What to look at under conditions that the run itself knows.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::over::{Across, Over};
use crate::document::{Decoder, Diagnostic, Node, Placed, Unread, nearest};
use crate::method::SourceKind;

/// What to look at when a check fails and something else is so, too. As text it begins with `If`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct When {
    pub condition: Condition,
    /// The rest of the sentence that the condition begins: `only the name fails.`
    pub then: String,
}

/// What may be so when a check fails. As text it is a part of a sentence.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// The check of this case at the same point passes, or the one that observes from this source.
    Passes {
        /// The claim of the case, with its name if it has one: `net.pod-to-pod-cross-os/to-linux`.
        case: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<SourceKind>,
    },
    /// Of the case's checks that differ in their sources, the one from this source alone fails.
    FailsFrom(SourceKind),
    /// The case's checks that differ in their sources all fail.
    FailsFromEverywhere,
    /// The case passes on another node of the pool.
    PassesOnOtherNodes,
}

impl When {
    /// The sentence where the condition holds.
    pub fn holding(&self) -> String {
        let condition = self.condition.to_string();
        match condition.strip_prefix("it ") {
            Some(rest) => format!("It {rest}: {}", self.then),
            None => format!("{condition}: {}", self.then),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "If {}, {}", self.condition, self.then)
    }
}

impl Condition {
    /// What to look at before all else where the condition does not hold.
    pub fn instead(&self) -> Option<String> {
        match self {
            Self::Passes { case, from } => {
                let place = place(*from);
                Some(format!("{case} fails {place}, too: look at that first."))
            }
            Self::PassesOnOtherNodes => {
                Some("It fails on other nodes, too: look for what they have in common.".to_owned())
            }
            Self::FailsFrom(_) | Self::FailsFromEverywhere => None,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passes { case, from } => write!(f, "{case} passes {}", place(*from)),
            Self::FailsFrom(source) => write!(f, "it fails {} only", place(Some(*source))),
            Self::FailsFromEverywhere => f.write_str("it fails from everywhere"),
            Self::PassesOnOtherNodes => f.write_str("it passes on other nodes"),
        }
    }
}

fn place(source: Option<SourceKind>) -> &'static str {
    match source {
        None => "here",
        Some(SourceKind::LinuxPod) => "from Linux pods",
        Some(SourceKind::WindowsPod) => "from Windows pods",
        Some(SourceKind::LinuxNode) => "from Linux nodes",
        Some(SourceKind::WindowsNode) => "from Windows nodes",
        Some(SourceKind::Outside) => "from outside",
    }
}

/// Reads the list `when` of a case; problems are reported to the decoder.
pub(super) fn read_when(decoder: &mut Decoder<'_>, node: &Node) -> Option<Vec<Placed<When>>> {
    let read = decoder.each(node, "`when`", read_item)?;
    if read.is_empty() {
        let hint = "give it an item; or remove it, and give the case a `hint`".to_owned();
        return decoder.fail(node, "`when` must not be empty", Some(hint));
    }
    Some(read)
}

fn read_item(decoder: &mut Decoder<'_>, node: &Node) -> Option<Placed<When>> {
    let mut fields = decoder.fields(node, "an item of `when`")?;
    let passes = fields.optional("passes");
    let from_node = fields.optional("from");
    let fails_from = fields.optional("fails-from");
    let passes_on = fields.optional("passes-on");
    let then = fields.text(decoder, "then");
    fields.finish(decoder);
    if let (Some(node), None) = (from_node, passes) {
        let message = "`from` is the source of what `passes`";
        return decoder.fail(node, message, Some("remove it".to_owned()));
    }
    let (at, condition) = match (passes, fails_from, passes_on) {
        (Some(at), None, None) => {
            let case = decoder.text(at, "`passes`").map(str::to_owned);
            let from = match from_node {
                None => Some(None),
                Some(node) => decoder.member(node, "source", SourceKind::ALL).map(Some),
            };
            let both = case.zip(from);
            (
                at,
                both.map(|(case, from)| Condition::Passes { case, from }),
            )
        }
        (None, Some(at), None) => (at, read_source(decoder, at)),
        (None, None, Some(at)) => {
            let other = decoder.member(at, "place", &["other-nodes"]);
            (at, other.map(|_| Condition::PassesOnOtherNodes))
        }
        _ => {
            let message = "an item of `when` must have exactly one condition";
            let hint = "one of: passes, fails-from, passes-on".to_owned();
            return decoder.fail(node, message, Some(hint));
        }
    };
    let (condition, then) = (condition?, then?);
    let value = When { condition, then };
    let at = decoder.place(at);
    Some(Placed { value, at })
}

/// Reads a source, or the word for all of them.
fn read_source(decoder: &mut Decoder<'_>, node: &Node) -> Option<Condition> {
    let sources = SourceKind::ALL.iter().map(|one| one.as_str());
    let known: Vec<_> = sources.chain([EVERYWHERE]).collect();
    decoder.word(node, "source", &known, |word| {
        let source = SourceKind::ALL.iter().find(|one| one.as_str() == word);
        match source {
            Some(source) => Some(Condition::FailsFrom(*source)),
            None => (word == EVERYWHERE).then_some(Condition::FailsFromEverywhere),
        }
    })
}

/// The word for every source of a case.
const EVERYWHERE: &str = "everywhere";

/// Reports conditions that no run can know: of cases that do not exist, and of points without checks.
pub(super) fn report_unknowable(cases: &[Case], unread: &Unread, problems: &mut Vec<Diagnostic>) {
    let known: BTreeMap<_, _> = cases.iter().map(|case| (case.id(), &case.over)).collect();
    let whens = cases
        .iter()
        .flat_map(|case| case.when.iter().map(move |when| (case, when)));
    for (own, Placed { value: when, at }) in whens {
        let over = &own.over;
        let is_known = match &when.condition {
            Condition::Passes { case, from } => match known.get(case) {
                Some(other) => {
                    let is_itself = from.is_none() && *case == own.id();
                    !is_itself && is_beside(over, *from, other)
                }
                // The problem that hides the case is reported at its own place
                None if unread.may_hold(case.split('/').next().unwrap_or_default()) => continue,
                None => {
                    let hint = match nearest(case, known.keys().map(String::as_str)) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "a case is CLAIM, or CLAIM/NAME if it has a name".to_owned(),
                    };
                    problems.push(at.problem(format!("unknown case `{case}`"), Some(hint)));
                    continue;
                }
            },
            Condition::FailsFrom(source) => over.sources.contains(source) && over.sources.len() > 1,
            Condition::FailsFromEverywhere => over.sources.len() > 1,
            Condition::PassesOnOtherNodes => over.across == Across::Nodes,
        };
        if !is_known {
            let message = "no run can know whether this is so beside a check of the case";
            let hint = "it needs checks at the same points: compare the axes in `over`".to_owned();
            problems.push(at.problem(message, Some(hint)));
        }
    }
}

/// Whether at each point of one case there is a check of another, or one from this source.
fn is_beside(over: &Over, from: Option<SourceKind>, other: &Over) -> bool {
    let sources = from
        .as_ref()
        .map_or(over.sources.as_slice(), std::slice::from_ref);
    sources.iter().all(|source| other.sources.contains(source))
        && sources.is_empty() == other.sources.is_empty()
        && over.windows_pools == other.windows_pools
        && over.across == other.across
        && (other.families || !over.families)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_begins_a_sentence() {
        let passes = |from| Condition::Passes {
            case: "net.service-ip-from-pod".to_owned(),
            from,
        };
        let of = |condition| {
            let then = "look there.".to_owned();
            let when = When { condition, then };
            let instead = when.condition.instead();
            [
                when.to_string(),
                when.holding(),
                instead.unwrap_or_default(),
            ]
        };
        assert_eq!(
            of(passes(None)),
            [
                "If net.service-ip-from-pod passes here, look there.",
                "net.service-ip-from-pod passes here: look there.",
                "net.service-ip-from-pod fails here, too: look at that first.",
            ]
        );
        assert_eq!(
            of(passes(Some(SourceKind::LinuxNode))),
            [
                "If net.service-ip-from-pod passes from Linux nodes, look there.",
                "net.service-ip-from-pod passes from Linux nodes: look there.",
                "net.service-ip-from-pod fails from Linux nodes, too: look at that first.",
            ]
        );
        assert_eq!(
            of(Condition::FailsFrom(SourceKind::Outside)),
            [
                "If it fails from outside only, look there.",
                "It fails from outside only: look there.",
                "",
            ]
        );
        assert_eq!(
            of(Condition::FailsFromEverywhere),
            [
                "If it fails from everywhere, look there.",
                "It fails from everywhere: look there.",
                "",
            ]
        );
        assert_eq!(
            of(Condition::PassesOnOtherNodes),
            [
                "If it passes on other nodes, look there.",
                "It passes on other nodes: look there.",
                "It fails on other nodes, too: look for what they have in common.",
            ]
        );
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        for (condition, json) in [
            (
                Condition::Passes {
                    case: "net.a/b".to_owned(),
                    from: None,
                },
                r#"{"condition":{"passes":{"case":"net.a/b"}},"then":"x."}"#,
            ),
            (
                Condition::FailsFrom(SourceKind::LinuxPod),
                r#"{"condition":{"fails-from":"linux-pod"},"then":"x."}"#,
            ),
            (
                Condition::PassesOnOtherNodes,
                r#"{"condition":"passes-on-other-nodes","then":"x."}"#,
            ),
        ] {
            let then = "x.".to_owned();
            let when = When { condition, then };
            assert_eq!(serde_json::to_string(&when).expect("JSON"), json);
            let read: When = serde_json::from_str(json).expect("an item");
            assert_eq!(read, when);
        }
    }
}
