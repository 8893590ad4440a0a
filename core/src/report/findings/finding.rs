//! One check's conclusion in words, generated from data.

use std::collections::BTreeMap;

use super::outcomes::{Outcomes, advice};
use crate::claims::ClaimType;
use crate::method::{AS_CREATED, Comparison, Difference, ErrorKind, ObservationError};
use crate::plan::CheckId;
use crate::record::{Attempted, CheckView, PlannedCheck};
use crate::text::printable;
use crate::verdict::{Conclusion, ControlOutcome, Reason, SkipReason, Verdict, reason_for};

/// What reports say of a check without a verdict.
pub(crate) const UNFINISHED: &str = "the run ended before it gave a verdict";

/// What a check came to, what was expected and seen, and the next step. Fields but [`Finding::sentence`] and
/// [`Finding::reason`] hold foreign text as recorded: each report makes it fit for its format.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    pub check: CheckId,
    /// Its verdict; `None` when the run ended before.
    pub verdict: Option<Verdict>,
    pub expected: Option<String>,
    pub seen: Option<String>,
    /// Why it is inconclusive or was not observed.
    pub cause: Option<String>,
    /// What to look at next.
    pub hint: String,
    /// What was seen or why nothing was, on one printable line; empty for a pass and without a verdict.
    pub reason: String,
    pub sentence: String,
}

impl Finding {
    /// The finding of a check; without a conclusion the finding says that the run ended before. Without its run the
    /// hint knows nothing of the other checks.
    pub(crate) fn of_check(check: &CheckView, run: Option<&Outcomes<'_>>) -> Self {
        let planned = &check.planned;
        match &check.conclusion {
            None => Self::make(planned, None, None, "", run),
            Some(Conclusion {
                verdict,
                reason,
                flaky,
                repeated,
            }) => {
                let disagreed = disagreed(*flaky, repeated);
                Self::make(planned, Some(*verdict), Some(reason), &disagreed, run)
            }
        }
    }

    pub(crate) fn of_attempt(planned: &PlannedCheck, attempt: &Attempted) -> Self {
        let reason = reason_of(attempt);
        Self::make(planned, Some(attempt.verdict), reason.as_ref(), "", None)
    }

    fn make(
        planned: &PlannedCheck,
        verdict: Option<Verdict>,
        reason: Option<&Reason>,
        disagreed: &str,
        run: Option<&Outcomes<'_>>,
    ) -> Self {
        let (expected, seen, cause) = sides(reason);
        let detail = match verdict {
            None => String::new(),
            Some(verdict) => detail(verdict, reason),
        };
        let (id, prefix) = (printable(planned.id.as_str()), prefix(verdict));
        let mut sentence = format!("{id}: {prefix}");
        if !detail.is_empty() {
            sentence.push_str(": ");
            sentence.push_str(&detail);
        }
        sentence.push_str(disagreed);
        let line = verdict.map_or_else(String::new, |verdict| reason_line(verdict, reason));
        Self {
            check: planned.id.clone(),
            verdict,
            expected,
            seen,
            cause,
            hint: hint(planned, verdict, reason, run),
            reason: line,
            sentence,
        }
    }
}

/// The round of an attempt that failed after another had held, if there was one, as an attempt of its own.
pub(crate) fn apart(planned: &PlannedCheck, attempt: &Attempted) -> Option<Attempted> {
    let verdict = match planned.claim_type == ClaimType::Advice {
        true => Verdict::Warn,
        false => Verdict::Fail,
    };
    (!attempt.came_apart.is_empty()).then(|| Attempted {
        verdict,
        assertions: attempt.came_apart.clone(),
        came_apart: Vec::new(),
        tried: None,
        ..attempt.clone()
    })
}

/// What the attempts at a check came to, in their order: `fail, pass`.
pub(crate) fn attempts(check: &CheckView) -> String {
    let verdicts = check.attempts.iter().map(|one| one.verdict.as_str());
    let verdicts = verdicts.collect::<Vec<_>>().join(", ");
    match check.unkept {
        0 => verdicts,
        more => format!("{verdicts}, and {more} more of these"),
    }
}

/// How attempts or repetitions disagreed.
fn disagreed(flaky: bool, repeated: &BTreeMap<Verdict, u32>) -> String {
    match (flaky, repeated.len()) {
        (false, _) => String::new(),
        (true, 0 | 1) => " (attempts disagreed)".to_owned(),
        (true, _) => format!(" (repetitions disagreed: {})", times(repeated)),
    }
}

/// How many repetitions came to which verdict: `2 × pass, 1 × fail`.
pub(crate) fn times(repeated: &BTreeMap<Verdict, u32>) -> String {
    let times = repeated.iter();
    let times: Vec<_> = times
        .map(|(verdict, times)| format!("{times} × {}", verdict.as_str()))
        .collect();
    times.join(", ")
}

/// What to look at next: the hint of the case, unless something other than its own assertion is wrong.
fn hint(
    planned: &PlannedCheck,
    verdict: Option<Verdict>,
    reason: Option<&Reason>,
    run: Option<&Outcomes<'_>>,
) -> String {
    if verdict == Some(Verdict::LimitationLifted) {
        return format!(
            "This works here, although Kubernetes documents that it does not: `winconform explain {}` \
             shows the versions and builds of the known limitation. You need to change nothing, \
             unless you rely on the limitation.",
            planned.claim
        );
    }
    if verdict == Some(Verdict::KnownLimitation) {
        return format!(
            "Nothing has to be done: Kubernetes documents that this does not work for Windows. `winconform explain {}` \
             shows where that is so.",
            planned.claim
        );
    }
    let error = reason.and_then(Reason::error);
    if error.is_some_and(|error| error.detail.ends_with(AS_CREATED)) {
        return "A webhook or policy of the cluster changed a pod of the run as it was created, so nothing is \
                proven: the cause names the field. Exempt the run's namespaces (`winconform-*`) from it, \
                and run again."
            .to_owned();
    }
    if reason.is_some_and(Reason::is_of_a_change) {
        return "What the check depends on changed during the run, so nothing is proven: the cause names \
                the object. Find out who deletes or replaces it (the audit log tells: a person, a \
                controller that cleans up, preemption) or why its pods are no longer Ready, and run \
                again."
            .to_owned();
    }
    match (reason, planned.claim_type) {
        (Some(Reason::Control { name, .. }), ClaimType::Rejection) => format!(
            "The check proves nothing about the field while control `{name}` does not hold: look at what \
             winconform observed for the control, and find out what gives this answer: a policy, a \
             webhook, a quota, or the API server itself."
        ),
        (Some(Reason::Control { name, .. }), _) => format!(
            "The check proves nothing while control `{name}` does not hold: look first at what winconform observed for the control."
        ),
        (Some(Reason::ControlError { name, .. }), _) => format!(
            "The check proves nothing without control `{name}`: the cause says why winconform could not \
             observe the control. Remove the cause, and run again."
        ),
        (Some(Reason::ObservationError(error)), _) if error.kind == ErrorKind::Interfered => {
            "Validation has not answered what was asked: the cause says who refused the object or what \
             was changed in it. Exempt the run's namespaces (`winconform-*`) from the webhook, policy or \
             quota that did it, and run again. A field that none of them dropped is one that the server \
             does not have, or whose feature gate is off; where servers of two versions answer, wait until \
             the upgrade is over."
                .to_owned()
        }
        (Some(Reason::Skipped(SkipReason::NotWindowsSpecific { .. })), _) => {
            "It does not work for Linux either, so it says nothing of Windows: where it should work, see \
             what all nodes have in common: the network's firewall, its security groups, the way out."
                .to_owned()
        }
        (Some(Reason::ObservationError(error)), _) if is_of_exec(error.kind) => {
            "The check proves nothing: the exec session in the prober failed, so winconform observed \
             nothing. See whether the prober's node is Ready and `kubectl exec` into a pod there works, \
             and run again."
                .to_owned()
        }
        (Some(Reason::ObservationError(_)), ClaimType::Rejection) => {
            "The field was neither refused nor accepted: mend what kept it from being observed, \
             which the cause names."
                .to_owned()
        }
        (Some(Reason::ObservationError(error)), _)
            if is_of_reading(error.kind) || verdict == Some(Verdict::Inconclusive) =>
        {
            "The check proves nothing: the cause says why winconform could not observe or read anything. \
             Remove the cause, and run again."
                .to_owned()
        }
        (Some(Reason::Fixture { .. }), _) => {
            "The check proves nothing, for what it needs is not ready: the cause says why. Remove the cause, and run \
             again."
                .to_owned()
        }
        _ => advice(planned, run.filter(|_| verdict == Some(Verdict::Fail))),
    }
}

/// Whether an error is of the exec session, whatever it was to observe.
fn is_of_exec(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ExecTransport | ErrorKind::ExitStatusLost)
}

/// Whether an error means that something could not be observed, was not permitted, or had an unknown answer.
fn is_of_reading(kind: ErrorKind) -> bool {
    kind.is_denied()
        || matches!(
            kind,
            ErrorKind::Throttled
                | ErrorKind::ApiUnavailable
                | ErrorKind::NoView
                | ErrorKind::OutputTruncated
                | ErrorKind::UnrecognisedOutput
                | ErrorKind::ToolMissing
        )
}

/// A verdict in a report's words; a check without one is `unfinished`.
pub(crate) fn word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("unfinished", Verdict::as_str)
}

/// What a verdict says of its claim.
fn prefix(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => UNFINISHED,
        Some(Verdict::Pass) => "as documented",
        Some(Verdict::Fail) => "not as documented",
        Some(Verdict::KnownLimitation) => "does not work, as documented",
        Some(Verdict::LimitationLifted) => "works, though documented not to",
        Some(Verdict::Warn) => "not as recommended",
        Some(Verdict::Informational) => "informational",
        Some(Verdict::Skip) => "not observed",
        Some(Verdict::Inconclusive) => "could not be told",
    }
}

/// What was seen or why nothing was, on one printable line; empty for a pass.
pub(crate) fn reason_line(verdict: Verdict, reason: Option<&Reason>) -> String {
    match (verdict, reason) {
        (Verdict::Pass, _) => String::new(),
        (_, Some(Reason::Seen(difference))) => printable(&difference.seen),
        (_, reason) => detail(verdict, reason),
    }
}

/// What a verdict depends on, on one printable line.
fn detail(verdict: Verdict, reason: Option<&Reason>) -> String {
    let both = |expected: String, seen: String| {
        let (expected, seen) = (printable(&expected), printable(&seen));
        format!("expected {expected}, seen {seen}")
    };
    match sides(reason) {
        (Some(_), Some(seen), None) if verdict.is_expected() => printable(&seen),
        (Some(expected), Some(seen), None) => both(expected, seen),
        (Some(expected), Some(seen), Some(cause)) => {
            format!("{}: {}", printable(&cause), both(expected, seen))
        }
        (_, _, Some(cause)) => printable(&cause),
        (_, _, None) => "the record does not say why".to_owned(),
    }
}

/// An error on one printable line.
pub(crate) fn in_words(error: &ObservationError) -> String {
    printable(&error.to_string())
}

/// What was expected, what was seen, and the cause apart from both.
fn sides(reason: Option<&Reason>) -> (Option<String>, Option<String>, Option<String>) {
    let two = |difference: &Difference, cause| {
        (
            Some(difference.expected.clone()),
            Some(difference.seen.clone()),
            cause,
        )
    };
    let cause = match reason {
        None => return (None, None, None),
        Some(Reason::Seen(difference)) => return two(difference, None),
        Some(Reason::Control { name, difference }) => {
            return two(difference, Some(format!("control `{name}` did not hold")));
        }
        Some(Reason::ObservationError(error)) => error.to_string(),
        Some(Reason::Fixture { fixture, error }) => {
            format!("{fixture} is not ready: {error}")
        }
        Some(Reason::ControlError { name, error }) => {
            format!("control `{name}` could not be observed: {error}")
        }
        Some(Reason::Skipped(reason)) => reason.to_string(),
    };
    (None, None, Some(cause))
}

/// What an attempt depends on, from its recorded assertions.
fn reason_of(attempt: &Attempted) -> Option<Reason> {
    let mut assertions = attempt.assertions.iter().filter_map(|assertion| {
        let observed: Result<&Comparison, &ObservationError> =
            match (&assertion.comparison, &assertion.error) {
                (_, Some(error)) => Err(error),
                (Some(comparison), None) => Ok(comparison),
                (None, None) => return None,
            };
        Some(ControlOutcome {
            name: &assertion.name,
            role: assertion.role,
            observed,
        })
    });
    let first = assertions.next()?.observed;
    let controls: Vec<_> = assertions.collect();
    Some(reason_for(attempt.verdict, first, &controls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::ClaimId;
    use crate::method::ErrorKind;
    use crate::plan::Point;

    #[test]
    fn the_next_step_is_about_what_is_amiss() {
        let planned = |kind: ClaimType| PlannedCheck {
            id: CheckId::new(
                &ClaimId::parse("reject.hostPID").expect("an id"),
                None,
                &Point::default(),
            ),
            claim: ClaimId::parse("reject.hostPID").expect("an id"),
            claim_type: kind,
            title: String::new(),
            hint: "An accepted field points to a webhook.".to_owned(),
            when: Vec::new(),
            point: Point::default(),
            disposition: crate::plan::Disposition::Observe,
            limitation: None,
        };
        let difference = || Difference {
            expected: "accepted".to_owned(),
            seen: "refused".to_owned(),
        };
        let error = || ErrorKind::ApiUnavailable.error("status 500");
        let name = || "without-os".to_owned();
        let (seen, control) = (Reason::Seen(difference()), || Reason::Control {
            name: name(),
            difference: difference(),
        });
        let control_trouble = Reason::ControlError {
            name: name(),
            error: error(),
        };
        let of = |kind, reason: &Reason| hint(&planned(kind), None, Some(reason), None);
        let own = planned(ClaimType::Rejection).hint;
        assert_eq!(of(ClaimType::Rejection, &seen), own);
        for (kind, reason) in [
            (ClaimType::Rejection, control()),
            (ClaimType::Limitation, control()),
            (ClaimType::Rejection, control_trouble),
        ] {
            let hint = of(kind, &reason);
            assert!(hint.contains("control `without-os`"), "{hint}");
            assert!(!hint.contains("accepted field"), "{hint}");
        }
        assert_ne!(
            of(ClaimType::Rejection, &Reason::ObservationError(error())),
            own
        );
        let refused = ErrorKind::Interfered.error("admission webhook \"h\"");
        let hint = of(ClaimType::Rejection, &Reason::ObservationError(refused));
        assert!(hint.contains("Exempt the run's namespaces"), "{hint}");
        let hint = of(ClaimType::Capability, &Reason::ObservationError(error()));
        assert!(hint.contains("The check proves nothing"), "{hint}");
        let changed = || ErrorKind::FixtureChanged.error("Service a/b was deleted");
        let dropped = format!("something in the cluster changed spec.os of pod a {AS_CREATED}");
        let dropped = ErrorKind::FixtureChanged.error(dropped);
        let hint = of(ClaimType::Capability, &Reason::ObservationError(dropped));
        assert!(hint.contains("A webhook or policy"), "{hint}");
        for reason in [
            Reason::ObservationError(changed()),
            Reason::ControlError {
                name: name(),
                error: changed(),
            },
        ] {
            let hint = of(ClaimType::Limitation, &reason);
            assert!(hint.contains("changed during the run"), "{hint}");
        }
    }
}
