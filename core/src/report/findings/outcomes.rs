//! What the checks of a run came to, for hints that depend on it.

use std::collections::{BTreeMap, BTreeSet};

use crate::method::{FailureClass, SourceKind};
use crate::plan::Point;
use crate::record::{PlannedCheck, RunView};
use crate::suite::Condition;
use crate::verdict::{Reason, Verdict};

/// Which checks of a run pass and which fail, by their cases and points: made once for a report, so that each
/// condition is a few look-ups.
pub(crate) struct Outcomes<'v> {
    /// `None` for those that do neither.
    checks: BTreeMap<(&'v str, &'v Point), Option<CameTo>>,
    /// From how many nodes a case passes and from how many it fails, by the point without its node.
    nodes: BTreeMap<(&'v str, Point), (usize, usize)>,
}

/// What a check came to that passes or fails.
#[derive(Clone, Copy, Eq, PartialEq)]
enum CameTo {
    Passes,
    /// At this step of a connection, if at one.
    Fails(Option<&'static str>),
}

impl CameTo {
    /// The step at which it failed, if that is known.
    fn step(self) -> Option<&'static str> {
        match self {
            Self::Passes => None,
            Self::Fails(step) => step,
        }
    }
}

impl<'v> Outcomes<'v> {
    pub(crate) fn from_view(view: &'v RunView) -> Self {
        let (mut checks, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        for check in view.checks.values() {
            let came_to = match check.verdict() {
                Some(Verdict::Pass | Verdict::LimitationLifted) => Some(CameTo::Passes),
                Some(Verdict::Fail | Verdict::KnownLimitation) => {
                    Some(CameTo::Fails(check.reason().and_then(step)))
                }
                Some(
                    Verdict::Warn | Verdict::Informational | Verdict::Skip | Verdict::Inconclusive,
                )
                | None => None,
            };
            let (case, point) = (check.planned.id.case(), &check.planned.point);
            checks.insert((case, point), came_to);
            if let (Some(came_to), Some(_)) = (came_to, point.node) {
                let counts: &mut (usize, usize) =
                    nodes.entry((case, without_node(point))).or_default();
                match came_to {
                    CameTo::Passes => counts.0 += 1,
                    CameTo::Fails(_) => counts.1 += 1,
                }
            }
        }
        Self { checks, nodes }
    }

    /// Whether something is so beside a check that failed; `None` where the run does not know.
    fn holds(&self, failed: &PlannedCheck, condition: &Condition) -> Option<bool> {
        let (own, here) = (failed.id.case(), failed.point.source);
        let came_to = |case: &str, source: Option<SourceKind>| {
            let point = Point {
                source,
                ..failed.point.clone()
            };
            self.checks.get(&(case, &point)).copied()
        };
        match condition {
            Condition::Passes { case, from } => {
                let beside = came_to(case.as_str(), from.or(here))??;
                Some(beside == CameTo::Passes)
            }
            Condition::FailsFrom(source) if here != Some(*source) => Some(false),
            Condition::FailsFrom(_) | Condition::FailsFromEverywhere => {
                let sources = SourceKind::ALL.iter().copied().map(Some);
                let others = sources.filter(|source| *source != here);
                let planned = others.filter_map(|source| came_to(own, source));
                let known: Vec<_> = planned.collect::<Option<_>>()?;
                if known.is_empty() {
                    return None;
                }
                let passes = |came_to: &CameTo| *came_to == CameTo::Passes;
                match condition {
                    Condition::FailsFrom(_) => Some(known.iter().all(passes)),
                    _ if known.iter().any(passes) => Some(false),
                    _ => {
                        let all = known.into_iter().chain(came_to(own, here)?);
                        let steps: BTreeSet<_> = all.map(CameTo::step).collect::<Option<_>>()?;
                        Some(steps.len() == 1)
                    }
                }
            }
            Condition::PassesOnOtherNodes => {
                let (well, badly) = *self.nodes.get(&(own, without_node(&failed.point)))?;
                // It is one of those that failed
                (well + badly > 1).then_some(well > 0)
            }
        }
    }
}

/// The step of a connection at which a check failed, if at one: sources that fail at different steps have no cause in
/// common. For a Service without endpoints Linux is refused and Windows waits in vain, at one step.
fn step(reason: &Reason) -> Option<&'static str> {
    let Reason::Seen(difference) = reason else {
        return None;
    };
    let is_status = |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((word, _)) = difference.seen.split_once(" with ")
        && is_status(word)
    {
        return Some("answer");
    }
    let (word, _) = difference.seen.split_once(": ")?;
    let class = FailureClass::ALL
        .iter()
        .find(|class| class.as_str() == word)?;
    match class {
        FailureClass::Dns => Some("name"),
        FailureClass::Refused
        | FailureClass::Timeout
        | FailureClass::NoRoute
        | FailureClass::NotConnected
        | FailureClass::NoAnswer
        | FailureClass::Reset => Some("connection"),
        FailureClass::BrokenAnswer
        | FailureClass::Tls
        | FailureClass::HttpStatus
        | FailureClass::WrongAnswer => Some("answer"),
    }
}

/// What a case says to look at. Of a check that failed in a run, what that run knows is not in doubt; a condition that
/// does not hold is left out, with all that follows where it names something to look at first.
pub(crate) fn advice(planned: &PlannedCheck, failed_in: Option<&Outcomes<'_>>) -> String {
    let always = Some(planned.hint.clone()).filter(|hint| !hint.is_empty());
    let mut parts: Vec<_> = always.into_iter().collect();
    for when in &planned.when {
        let holds = failed_in.and_then(|run| run.holds(planned, &when.condition));
        match (holds, when.condition.instead()) {
            (None, _) => parts.push(when.to_string()),
            (Some(true), _) => parts.push(when.holding()),
            (Some(false), None) => {}
            (Some(false), Some(instead)) => {
                parts.push(instead);
                break;
            }
        }
    }
    if parts.is_empty() {
        parts = planned.when.iter().map(ToString::to_string).collect();
    }
    joined(&parts)
}

/// The parts as sentences: a suite may have left out the full stop of one that others follow.
fn joined(parts: &[String]) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            let is_ended = text.ends_with(['.', '!', '?', ':']);
            text.push_str(if is_ended { " " } else { ". " });
        }
        text.push_str(part.trim_end());
    }
    text
}

fn without_node(point: &Point) -> Point {
    Point {
        node: None,
        ..point.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Finding;
    use super::*;
    use crate::claims::{ClaimId, ClaimType};
    use crate::facts::{NodeOrdinal, PoolName, WindowsBuild};
    use crate::method::Difference;
    use crate::plan::{CheckId, Disposition};
    use crate::record::CheckView;
    use crate::suite::When;
    use crate::verdict::{Conclusion, Reason};

    fn at(source: SourceKind, node: Option<NodeOrdinal>) -> Point {
        Point {
            pool: Some(PoolName::windows(WindowsBuild::SERVER_2022)),
            source: Some(source),
            node,
            ..Point::default()
        }
    }

    fn when(condition: Condition, then: &str) -> When {
        let then = then.to_owned();
        When { condition, then }
    }

    fn passes(case: &str, from: Option<SourceKind>) -> Condition {
        let case = case.to_owned();
        Condition::Passes { case, from }
    }

    /// A run with a check of each claim, at a point, with a verdict; the first has the hint and the conditions.
    fn next(hint: &str, when: &[When], checks: &[(&str, Point, Verdict)]) -> String {
        let checks = checks.iter().cloned();
        let checks: Vec<_> = checks.map(|check| (check, "timeout: none")).collect();
        next_of(hint, when, &checks)
    }

    /// A claim, a point, a verdict, and what was seen.
    type Check<'a> = ((&'a str, Point, Verdict), &'a str);

    /// The same with what each check saw.
    fn next_of(hint: &str, when: &[When], checks: &[Check<'_>]) -> String {
        let view = |(place, ((claim, point, verdict), seen)): (usize, &Check<'_>)| {
            let claim = ClaimId::parse(claim).expect("an id");
            let seen = Difference {
                expected: "an answer".to_owned(),
                seen: (*seen).to_owned(),
            };
            let planned = PlannedCheck {
                id: CheckId::new(&claim, None, point),
                claim,
                claim_type: ClaimType::Capability,
                title: String::new(),
                hint: hint.to_owned(),
                when: when.to_vec(),
                point: point.clone(),
                disposition: Disposition::Observe,
                limitation: None,
            };
            let conclusion = Conclusion {
                verdict: *verdict,
                reason: Reason::Seen(seen),
                flaky: false,
                repeated: BTreeMap::new(),
            };
            let check = CheckView {
                planned,
                attempts: Vec::new(),
                unkept: 0,
                unkept_ms: 0,
                conclusion: Some(conclusion),
            };
            (place, check)
        };
        let run = RunView {
            checks: checks.iter().enumerate().map(view).collect(),
            ..RunView::default()
        };
        Finding::of_check(&run.checks[&0], Some(&Outcomes::from_view(&run))).hint
    }

    #[test]
    fn another_case_at_the_same_point_decides() {
        let name = [
            when(passes("net.ip", None), "only the name fails."),
            when(Condition::FailsFrom(SourceKind::WindowsPod), "see HNS."),
        ];
        let here = || at(SourceKind::WindowsPod, None);
        let own = |verdict| ("net.name", here(), verdict);
        let of = |checks: &[_]| next("", &name, checks);
        let unknown = "If net.ip passes here, only the name fails. \
                       If it fails from Windows pods only, see HNS.";
        let elsewhere = ("net.ip", at(SourceKind::LinuxPod, None), Verdict::Pass);
        let untold = ("net.ip", here(), Verdict::Inconclusive);
        assert_eq!(
            of(&[own(Verdict::Fail), elsewhere.clone(), untold]),
            unknown
        );
        let ip = |verdict| ("net.ip", here(), verdict);
        assert_eq!(
            of(&[own(Verdict::Fail), ip(Verdict::Pass)]),
            "net.ip passes here: only the name fails. If it fails from Windows pods only, see HNS."
        );
        for verdict in [Verdict::Fail, Verdict::KnownLimitation] {
            assert_eq!(
                of(&[own(Verdict::Fail), ip(verdict), elsewhere.clone()]),
                "net.ip fails here, too: look at that first.",
                "{verdict}"
            );
        }
        // Of a check that did not fail nothing follows
        for verdict in [Verdict::Pass, Verdict::Inconclusive] {
            assert_eq!(of(&[own(verdict), ip(Verdict::Pass)]), unknown, "{verdict}");
        }
        let from_linux = [when(
            passes("net.ip", Some(SourceKind::LinuxPod)),
            "see HNS.",
        )];
        assert_eq!(
            next("Look.", &from_linux, &[own(Verdict::Fail), elsewhere]),
            "Look. net.ip passes from Linux pods: see HNS."
        );
    }

    #[test]
    fn each_part_of_advice_is_a_sentence() {
        let at_node = [
            when(Condition::PassesOnOtherNodes, "see its routes"),
            when(Condition::PassesOnOtherNodes, "ask whose they are?\n"),
            when(Condition::PassesOnOtherNodes, "see its taints"),
        ];
        let own = ("net.ip", at(SourceKind::WindowsPod, Some(1)), Verdict::Fail);
        assert_eq!(
            next("Look at kube-proxy", &at_node, &[own]),
            "Look at kube-proxy. If it passes on other nodes, see its routes. \
             If it passes on other nodes, ask whose they are? If it passes on other nodes, see its taints"
        );
    }

    #[test]
    fn the_sources_that_fail_decide() {
        let sources = [
            when(Condition::FailsFrom(SourceKind::WindowsPod), "see HNS."),
            when(Condition::FailsFrom(SourceKind::LinuxPod), "see iptables."),
            when(Condition::FailsFromEverywhere, "see the endpoints."),
        ];
        let of = |others: &[(SourceKind, Verdict)]| {
            let own = (SourceKind::WindowsPod, Verdict::Fail);
            let checks = [own].into_iter().chain(others.iter().copied());
            let checks = checks.map(|(source, verdict)| ("net.ip", at(source, None), verdict));
            next("", &sources, &checks.collect::<Vec<_>>())
        };
        assert_eq!(
            of(&[]),
            "If it fails from Windows pods only, see HNS. If it fails from everywhere, see the endpoints."
        );
        assert_eq!(
            of(&[(SourceKind::LinuxPod, Verdict::Pass)]),
            "It fails from Windows pods only: see HNS."
        );
        assert_eq!(
            of(&[(SourceKind::LinuxPod, Verdict::Fail)]),
            "It fails from everywhere: see the endpoints."
        );
        // None of the three
        assert_eq!(
            of(&[
                (SourceKind::LinuxPod, Verdict::Fail),
                (SourceKind::LinuxNode, Verdict::Pass),
            ]),
            "If it fails from Windows pods only, see HNS. If it fails from Linux pods only, see iptables. \
             If it fails from everywhere, see the endpoints."
        );
    }

    #[test]
    fn sources_that_fail_at_different_steps_do_not_fail_alike() {
        let everywhere = [when(Condition::FailsFromEverywhere, "see the DNS.")];
        let of = |own, other| {
            let check = |source, seen| (("net.name", at(source, None), Verdict::Fail), seen);
            let checks = [
                check(SourceKind::WindowsPod, own),
                check(SourceKind::LinuxPod, other),
            ];
            next_of("Look.", &everywhere, &checks)
        };
        let unnamed = "dns: curl: (28) Resolving timed out";
        let (late, refused) = ("timeout: curl: (28) timed out", "refused: curl: (7) Failed");
        for (own, other) in [
            (unnamed, unnamed),
            (late, refused),
            ("404 with `a`", "wrong-answer: b"),
        ] {
            let everywhere = "Look. It fails from everywhere: see the DNS.";
            assert_eq!(of(own, other), everywhere, "{own}, {other}");
        }
        for (own, other) in [(unnamed, late), (late, unnamed), (late, "404 with `a`")] {
            assert_eq!(of(own, other), "Look.", "{own}, {other}");
        }
        let unclear = "1 of 2 otherwise; http://a/: timeout: curl: (28) timed out";
        for (own, other) in [(unclear, late), (late, unclear), (unclear, unclear)] {
            let unknown = "Look. If it fails from everywhere, see the DNS.";
            assert_eq!(of(own, other), unknown, "{own}, {other}");
        }
    }

    #[test]
    fn the_other_nodes_decide() {
        let other_nodes = [when(Condition::PassesOnOtherNodes, "see its routes.")];
        let of = |others: &[Verdict]| {
            let verdicts = [Verdict::Fail].into_iter().chain(others.iter().copied());
            let checks = verdicts.zip(1..).map(|(verdict, node)| {
                let point = at(SourceKind::WindowsPod, Some(node));
                ("net.ip", point, verdict)
            });
            next("Look.", &other_nodes, &checks.collect::<Vec<_>>())
        };
        for others in [Vec::new(), vec![Verdict::Skip]] {
            assert_eq!(
                of(&others),
                "Look. If it passes on other nodes, see its routes."
            );
        }
        assert_eq!(
            of(&[Verdict::Fail, Verdict::Pass]),
            "Look. It passes on other nodes: see its routes."
        );
        assert_eq!(
            of(&[Verdict::Fail, Verdict::Skip]),
            "Look. It fails on other nodes, too: look for what they have in common."
        );
    }
}
