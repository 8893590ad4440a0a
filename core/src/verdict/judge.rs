//! The verdict of one round of assertions: one exhaustive match.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::claims::ClaimType;
use crate::facts::Pool;
use crate::fixture::FixtureKey;
use crate::method::{Comparison, Difference, ErrorKind, ObservationError, Result};
use crate::text::printable;

/// The verdict of a check.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// As documented.
    Pass,
    /// Not as documented.
    Fail,
    /// Does not work, as documented.
    KnownLimitation,
    /// Works, though documented not to.
    LimitationLifted,
    /// Not as recommended.
    Warn,
    /// Recorded for a person to judge.
    Informational,
    /// Not observed, for a stated reason.
    Skip,
    /// Observed without a conclusion, or not observed because of an error.
    Inconclusive,
}

crate::text::words!(Verdict);

impl Verdict {
    /// Whether a healthy cluster gives it, so that there is no reason to observe again.
    pub fn is_expected(self) -> bool {
        match self {
            Self::Pass | Self::KnownLimitation | Self::Informational | Self::Skip => true,
            Self::Fail | Self::LimitationLifted | Self::Warn | Self::Inconclusive => false,
        }
    }

    /// Whether it says something about the cluster rather than about the observation.
    pub fn is_conclusive(self) -> bool {
        !matches!(self, Self::Skip | Self::Inconclusive)
    }
}

/// Why a check was not observed; a closed set.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The cluster has no usable node of the kind the check needs.
    NoUsableNode {
        /// Which kind or pool.
        of: String,
        /// Why its nodes are not usable, such as `win-a is cordoned`.
        #[serde(default)]
        why: Vec<String>,
    },
    /// The image table has no image for the pool's build.
    NoImage {
        pool: String,
    },
    /// The container runtime of the pool's nodes lacks the handler for a RuntimeClass.
    NoHandler {
        pool: String,
        /// The handlers that all of them have.
        has: Vec<String>,
    },
    /// agnhost has no image for the pool's build, and nothing else in its pods can do what the check needs.
    NoAgnhost {
        pool: String,
    },
    /// The question of the check does not arise on this cluster.
    NotApplicable {
        reason: String,
    },
    NotAsked {
        reason: String,
    },
    /// A run spares the node, since others of its pool are there.
    Spared {
        node: String,
        /// What it is besides a machine for anybody's pods.
        by: String,
    },
    /// The claim's ledger entry does not cover this cluster and says to skip then.
    OutOfScope {
        /// Which part of the scope is not met.
        reason: String,
    },
    /// A server of this version or with these feature gates has nothing to observe.
    Version {
        reason: String,
    },
    /// It does not work for Linux either.
    NotWindowsSpecific {
        /// The control that shows it.
        control: String,
        /// What the control expects.
        expected: String,
        seen: String,
    },
    Interrupted,
    /// The run reached its deadline before the check.
    Deadline,
}

impl SkipReason {
    /// Whether a conformant cluster may give this reason. The other reasons leave a claim untested that
    /// should have been tested.
    pub fn is_legitimate(&self) -> bool {
        match self {
            Self::NotApplicable { .. }
            | Self::NotAsked { .. }
            | Self::Spared { .. }
            | Self::OutOfScope { .. }
            | Self::Version { .. }
            | Self::NotWindowsSpecific { .. } => true,
            Self::NoUsableNode { .. }
            | Self::NoImage { .. }
            | Self::NoHandler { .. }
            | Self::NoAgnhost { .. }
            | Self::Interrupted
            | Self::Deadline => false,
        }
    }

    /// The pool, or kind of node, that it is about.
    pub fn place(&self) -> Option<&str> {
        match self {
            Self::NoUsableNode { of: place, .. }
            | Self::NoImage { pool: place }
            | Self::NoHandler { pool: place, .. }
            | Self::NoAgnhost { pool: place } => Some(place),
            Self::NotApplicable { .. }
            | Self::NotAsked { .. }
            | Self::Spared { .. }
            | Self::OutOfScope { .. }
            | Self::Version { .. }
            | Self::NotWindowsSpecific { .. }
            | Self::Interrupted
            | Self::Deadline => None,
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUsableNode { of, why } => {
                write!(f, "the cluster has no usable {of} node")?;
                match why.as_slice() {
                    [] => Ok(()),
                    why => write!(f, ": {}", printable(&why.join(", "))),
                }
            }
            Self::NoImage { pool } => write!(f, "the image table has no image for {pool}"),
            Self::NoHandler { pool, has } => {
                let has = match has.as_slice() {
                    [] => "no other".to_owned(),
                    has => printable(&has.join(", ")),
                };
                write!(
                    f,
                    "the container runtime of {pool} has no handler {} for a RuntimeClass, and has {has}",
                    Pool::HANDLER
                )
            }
            Self::NoAgnhost { pool } => write!(
                f,
                "agnhost has no image for {pool} (`images: {{agnhost-builds: …}}`): nothing in a pod \
                 of ours there sends datagrams or serves"
            ),
            Self::NotApplicable { reason } => write!(f, "not applicable: {reason}"),
            Self::NotAsked { reason } => write!(f, "not asked for: {reason}"),
            Self::Spared { node, by } => {
                let node = printable(node);
                write!(
                    f,
                    "not applicable: other nodes are there, and {node} is spared ({by})"
                )
            }
            Self::OutOfScope { reason } => write!(f, "out of the limitation's scope: {reason}"),
            Self::Version { reason } => write!(f, "not on this server: {reason}"),
            Self::NotWindowsSpecific {
                control,
                expected,
                seen,
            } => write!(
                f,
                "not a matter of Windows: it does not work for Linux either (control `{control}`): \
                 expected {expected}, seen {seen}"
            ),
            Self::Interrupted => f.write_str("the run was interrupted before it reached the check"),
            Self::Deadline => {
                f.write_str("the run reached its deadline before it reached the check")
            }
        }
    }
}

/// The result of one assertion: a comparison, or why there is none.
pub type Evaluation<'l> = Result<&'l Comparison, &'l ObservationError>;

/// Whether a limitation's ledger entry covers this cluster.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// It covers the cluster; a claim that is no limitation is always within.
    Within,
    /// It does not cover the cluster: the claim is judged as a capability.
    AsCapability,
}

/// What a control that does not hold means for its check.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Nothing is proven without it.
    #[default]
    SamePath,
    /// It observes the same of Linux, or of the outside, from Linux: what fails there too is not a matter of
    /// Windows.
    OtherOs,
}

impl Role {
    /// Whether it is the role of most controls.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    pub(crate) fn is_same_path(&self) -> bool {
        *self == Self::SamePath
    }
}

/// The result of a control's assertion.
#[derive(Clone, Copy, Debug)]
pub struct ControlOutcome<'l> {
    pub name: &'l str,
    /// What it means for the check if it does not hold.
    pub role: Role,
    pub observed: Evaluation<'l>,
}

impl<'l> ControlOutcome<'l> {
    /// What was seen if it does not work for the other operating system either.
    fn fails_there_too(&self) -> Option<&'l Difference> {
        match self.observed {
            _ if self.role == Role::SamePath => None,
            Ok(Comparison::NotMet(seen) | Comparison::Unexpected(seen)) => Some(seen),
            _ => None,
        }
    }

    /// Why it cannot be asked here, if nothing is proven without it.
    fn does_not_apply(&self) -> Option<&'l str> {
        match (self.role, self.observed) {
            (Role::SamePath, Ok(Comparison::NotApplicable(reason))) => Some(reason),
            _ => None,
        }
    }

    /// Why its check is skipped, if it is.
    fn skips(&self) -> Option<SkipReason> {
        let control = self.name.to_owned();
        if let Some(there) = self.fails_there_too() {
            return Some(SkipReason::NotWindowsSpecific {
                control,
                expected: there.expected.clone(),
                seen: there.seen.clone(),
            });
        }
        let reason = format!("control `{control}`: {}", self.does_not_apply()?);
        Some(SkipReason::NotApplicable { reason })
    }
}

/// Judges one round of a check: its own assertion and its controls'.
///
/// A control that does not hold, or could not be observed, leaves all types but informational inconclusive:
/// without it a dead Service would confirm "nodes cannot reach Services", and a policy that refuses
/// everything would confirm every rejection. A check that fails for the other system, too, is skipped, and so
/// is one that holds where its control cannot be asked: it would hold anyway. One that holds passes without the
/// control of the other system, and one that fails is inconclusive unless another control shows that system.
pub fn judge(
    kind: ClaimType,
    observed: Evaluation<'_>,
    controls: &[ControlOutcome<'_>],
    scope: &Scope,
) -> Verdict {
    use ClaimType::{Advice, Capability, Informational, Limitation, Rejection, Requirement};
    use Comparison::{Met, NotApplicable, NotMet, Unexpected};
    let kind = match (kind, scope) {
        (Limitation, Scope::AsCapability) => Capability,
        (kind, Scope::Within | Scope::AsCapability) => kind,
    };
    let works = match (kind, observed) {
        (Limitation, Ok(NotMet(_))) => true,
        (Limitation, _) => false,
        (_, observed) => observed.is_ok_and(Comparison::holds),
    };
    let fails_for_all = !works && controls.iter().any(|one| one.fails_there_too().is_some());
    let mut others = controls.iter().filter(|one| one.role == Role::OtherOs);
    let works_there = others.any(|one| matches!(one.observed, Ok(Met(_))));
    let is_amiss = |one: &ControlOutcome<'_>| match (one.role, one.observed) {
        (_, Ok(Met(_))) => false,
        (Role::SamePath, _) => true,
        // Without a second node, say: nothing tells then that what does not work here works for the other system
        (Role::OtherOs, Ok(NotApplicable(_))) => !works && (kind == Limitation || !works_there),
        // A control does not cast doubt on what works
        (Role::OtherOs, _) => !works,
    };
    let mut amiss = controls.iter().filter(|one| is_amiss(one)).peekable();
    let is_proven = amiss.peek().is_none();
    let is_moot = !is_proven && amiss.all(|one| one.does_not_apply().is_some());
    match (kind, observed) {
        (_, Err(_)) => Verdict::Inconclusive,
        (_, Ok(NotApplicable(_))) => Verdict::Skip,
        (Informational, Ok(Met(_) | NotMet(_) | Unexpected(_))) => Verdict::Informational,
        (_, Ok(Met(_) | NotMet(_) | Unexpected(_))) if fails_for_all => Verdict::Skip,
        (Capability | Requirement | Rejection | Advice, Ok(Met(_))) if is_moot => Verdict::Skip,
        (_, Ok(Met(_) | NotMet(_) | Unexpected(_))) if !is_proven => Verdict::Inconclusive,
        (Capability | Requirement | Rejection | Advice, Ok(Met(_))) => Verdict::Pass,
        (Capability | Requirement | Rejection, Ok(NotMet(_) | Unexpected(_)))
        | (Limitation, Ok(Unexpected(_))) => Verdict::Fail,
        (Limitation, Ok(Met(_))) => Verdict::KnownLimitation,
        (Limitation, Ok(NotMet(_))) => Verdict::LimitationLifted,
        (Advice, Ok(NotMet(_) | Unexpected(_))) => Verdict::Warn,
    }
}

/// What a verdict depends on: the data from which reports generate every sentence about it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// What was expected and what was seen.
    Seen(Difference),
    /// Nothing could be observed.
    ObservationError(ObservationError),
    /// A fixture that the check needs did not become ready.
    Fixture {
        fixture: FixtureKey,
        error: ObservationError,
    },
    /// A control did not hold, so what was seen proves nothing.
    Control {
        /// The control's name.
        name: String,
        difference: Difference,
    },
    ControlError {
        /// The control's name.
        name: String,
        error: ObservationError,
    },
    Skipped(SkipReason),
}

impl Reason {
    /// The error that made the check inconclusive.
    pub fn error(&self) -> Option<&ObservationError> {
        match self {
            Self::ObservationError(error)
            | Self::Fixture { error, .. }
            | Self::ControlError { error, .. } => Some(error),
            Self::Seen(_) | Self::Control { .. } | Self::Skipped(_) => None,
        }
    }

    /// Whether it says something about the cluster.
    pub fn tells(&self) -> bool {
        matches!(
            self,
            Self::Seen(_)
                | Self::Control { .. }
                | Self::Skipped(SkipReason::NotWindowsSpecific { .. })
        )
    }

    /// Whether the check is inconclusive because something that it depends on changed.
    pub fn is_of_a_change(&self) -> bool {
        let error = self.error();
        error.is_some_and(|error| error.kind == ErrorKind::FixtureChanged)
    }
}

/// What the verdict of a round depends on.
pub fn reason_for(
    verdict: Verdict,
    observed: Evaluation<'_>,
    controls: &[ControlOutcome<'_>],
) -> Reason {
    match observed {
        Err(error) => Reason::ObservationError(error.clone()),
        Ok(Comparison::NotApplicable(reason)) => Reason::Skipped(SkipReason::NotApplicable {
            reason: reason.clone(),
        }),
        Ok(
            Comparison::Met(difference)
            | Comparison::NotMet(difference)
            | Comparison::Unexpected(difference),
        ) => {
            let mut controls = controls.iter();
            let amiss = match verdict {
                Verdict::Skip => controls.find_map(|one| one.skips().map(Reason::Skipped)),
                Verdict::Inconclusive => controls.find_map(control_amiss),
                // The other operating system does not matter here
                _ => controls
                    .filter(|one| one.role.is_same_path())
                    .find_map(control_amiss),
            };
            amiss.unwrap_or_else(|| Reason::Seen(difference.clone()))
        }
    }
}

/// What is wrong with a control, if anything is.
fn control_amiss(control: &ControlOutcome<'_>) -> Option<Reason> {
    let name = control.name.to_owned();
    match control.observed {
        Ok(Comparison::Met(_)) => None,
        Ok(Comparison::NotMet(difference) | Comparison::Unexpected(difference)) => {
            Some(Reason::Control {
                name,
                difference: difference.clone(),
            })
        }
        Ok(Comparison::NotApplicable(reason)) => {
            let expected = "a control that can be asked here".to_owned();
            let difference = Difference {
                expected,
                seen: reason.clone(),
            };
            Some(Reason::Control { name, difference })
        }
        Err(error) => Some(Reason::ControlError {
            name,
            error: error.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::ErrorKind;

    fn difference() -> Difference {
        Difference {
            expected: "this".to_owned(),
            seen: "that".to_owned(),
        }
    }

    fn columns() -> [Result<Comparison>; 5] {
        [
            Ok(Comparison::Met(difference())),
            Ok(Comparison::NotMet(difference())),
            Ok(Comparison::Unexpected(difference())),
            Ok(Comparison::NotApplicable("old server".to_owned())),
            Err(ErrorKind::ExecTransport.error("cut")),
        ]
    }

    fn row(kind: ClaimType, controls: &[Evaluation<'_>], scope: &Scope) -> [Verdict; 5] {
        let controls: Vec<_> = controls
            .iter()
            .map(|one| outcome_of(Role::SamePath, *one))
            .collect();
        row_beside(kind, &controls, scope)
    }

    fn outcome_of(role: Role, observed: Evaluation<'_>) -> ControlOutcome<'_> {
        let name = "control";
        ControlOutcome {
            name,
            role,
            observed,
        }
    }

    fn row_beside(kind: ClaimType, controls: &[ControlOutcome<'_>], scope: &Scope) -> [Verdict; 5] {
        columns()
            .each_ref()
            .map(|observed| judge(kind, observed.as_ref(), controls, scope))
    }

    #[test]
    fn what_fails_for_the_other_system_too_is_no_matter_of_windows() {
        use Verdict::{Fail, Inconclusive, KnownLimitation, LimitationLifted, Pass, Skip};
        let [both, lifted] = [[Pass, Skip, Skip], [Skip, LimitationLifted, Skip]];
        // A row each for a control that holds, two that do not, one that does not apply, one not observed
        let cells = [
            (
                ClaimType::Capability,
                [
                    [Pass, Fail, Fail],
                    both,
                    both,
                    [Pass, Inconclusive, Inconclusive],
                    [Pass, Inconclusive, Inconclusive],
                ],
            ),
            (
                ClaimType::Limitation,
                [
                    [KnownLimitation, LimitationLifted, Fail],
                    lifted,
                    lifted,
                    [Inconclusive, LimitationLifted, Inconclusive],
                    [Inconclusive, LimitationLifted, Inconclusive],
                ],
            ),
        ];
        let refuted = Comparison::NotMet(difference());
        let other_control = outcome_of(Role::SamePath, Ok(&refuted));
        for (kind, expected) in cells {
            for (control, expected) in columns().iter().zip(expected) {
                let control = outcome_of(Role::OtherOs, control.as_ref());
                let row = row_beside(kind, &[control], &Scope::Within);
                assert_eq!(row[..3], expected, "{kind}: {control:?}");
                assert_eq!(row[3..], [Skip, Inconclusive]);
                let without = row_beside(kind, &[control, other_control], &Scope::Within);
                let skipped = |verdict| if verdict == Skip { Skip } else { Inconclusive };
                assert_eq!(without, row.map(skipped), "{kind}: {control:?}");
            }
        }
        let control = outcome_of(Role::OtherOs, Ok(&refuted));
        let of = |verdict| reason_for(verdict, Ok(&refuted), &[control]);
        assert_eq!(of(Pass), Reason::Seen(difference()));
        let Reason::Skipped(reason) = of(Skip) else {
            panic!("it is skipped");
        };
        assert!(reason.is_legitimate());
        let why = "it does not work for Linux either (control `control`): expected this, seen that";
        assert_eq!(
            reason.to_string(),
            format!("not a matter of Windows: {why}")
        );
        assert_eq!(reason.place(), None);
        let pool = "windows-2022".to_owned();
        assert_eq!(SkipReason::NoImage { pool }.place(), Some("windows-2022"));
        // A check that is inconclusive for lack of the other system's answer says so
        let lost = ErrorKind::ExecTransport.error("cut");
        let control = ControlOutcome {
            observed: Err(&lost),
            ..control
        };
        let why = reason_for(Inconclusive, Ok(&refuted), &[control]);
        assert_eq!(why.error(), Some(&lost));
    }

    #[test]
    fn every_cell_of_the_table() {
        use Verdict::{
            Fail, Inconclusive, Informational, KnownLimitation, LimitationLifted, Pass, Skip, Warn,
        };
        for (kind, expected) in [
            (
                ClaimType::Capability,
                [Pass, Fail, Fail, Skip, Inconclusive],
            ),
            (
                ClaimType::Requirement,
                [Pass, Fail, Fail, Skip, Inconclusive],
            ),
            (ClaimType::Rejection, [Pass, Fail, Fail, Skip, Inconclusive]),
            (
                ClaimType::Limitation,
                [KnownLimitation, LimitationLifted, Fail, Skip, Inconclusive],
            ),
            (ClaimType::Advice, [Pass, Warn, Warn, Skip, Inconclusive]),
            (
                ClaimType::Informational,
                [
                    Informational,
                    Informational,
                    Informational,
                    Skip,
                    Inconclusive,
                ],
            ),
        ] {
            assert_eq!(row(kind, &[], &Scope::Within), expected, "{kind}");
            let holds = Comparison::Met(difference());
            assert_eq!(
                row(kind, &[Ok(&holds)], &Scope::Within),
                expected,
                "{kind} with control"
            );
        }
    }

    #[test]
    fn without_its_control_nothing_is_told() {
        use Verdict::{Inconclusive, Informational, Skip};
        for control in &columns()[1..] {
            let holds = Comparison::Met(difference());
            let controls = [Ok(&holds), control.as_ref()];
            for &kind in ClaimType::ALL {
                let told = if kind == ClaimType::Informational {
                    Informational
                } else {
                    Inconclusive
                };
                let is_asked = !matches!(control, Ok(Comparison::NotApplicable(_)));
                let holds = match kind {
                    ClaimType::Informational | ClaimType::Limitation => told,
                    _ if is_asked => told,
                    _ => Skip,
                };
                assert_eq!(
                    row(kind, &controls, &Scope::Within),
                    [holds, told, told, Skip, Inconclusive]
                );
            }
        }
    }

    #[test]
    fn out_of_scope_a_limitation_is_a_capability() {
        for &kind in ClaimType::ALL {
            let expected = match kind {
                ClaimType::Limitation => row(ClaimType::Capability, &[], &Scope::Within),
                other => row(other, &[], &Scope::Within),
            };
            assert_eq!(row(kind, &[], &Scope::AsCapability), expected, "{kind}");
        }
    }

    #[test]
    fn a_failed_control_is_named() {
        let (holds, refuted) = (
            Comparison::Met(difference()),
            Comparison::NotMet(difference()),
        );
        let named = |name, observed| ControlOutcome {
            name,
            ..outcome_of(Role::SamePath, observed)
        };
        let controls = [named("first", Ok(&holds)), named("second", Ok(&refuted))];
        let reason = reason_for(Verdict::Inconclusive, Ok(&holds), &controls);
        assert!(matches!(reason, Reason::Control { name, .. } if name == "second"));
        let moot = Comparison::NotApplicable("a webhook does".to_owned());
        let controls = [named("first", Ok(&holds)), named("second", Ok(&moot))];
        let Reason::Skipped(reason) = reason_for(Verdict::Skip, Ok(&holds), &controls) else {
            panic!("it is skipped");
        };
        assert_eq!(
            reason.to_string(),
            "not applicable: control `second`: a webhook does"
        );
    }

    #[test]
    fn a_verdict_is_shown_as_its_word() {
        for &verdict in Verdict::ALL {
            assert_eq!(verdict.to_string(), verdict.as_str());
            let read: Verdict = serde_json::from_value(verdict.as_str().into()).expect("known");
            assert_eq!(read, verdict);
        }
    }

    #[test]
    fn a_reason_tells_something_of_the_cluster_where_something_was_seen() {
        let error = ErrorKind::NotApplied.error("");
        assert!(Reason::Seen(difference()).tells());
        assert!(!Reason::ObservationError(error).tells());
        assert!(!Reason::Skipped(SkipReason::Deadline).tells());
    }
}
