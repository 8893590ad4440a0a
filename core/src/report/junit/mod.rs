//! The report for CI servers: `JUnit` XML as Jenkins, GitLab and their kind read it.
//!
//! One test suite per area, one test case per check. The verdict is in the `type` of what is not a success
//! and in properties; attempts beside the deciding one are flaky or rerun elements.

mod xml;

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{
    FlakyOrRerun, NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus,
    TestRerun, TestSuite,
};

use xml::{clean, clean_line};

use super::json::ending;
use crate::record::{Attempted, CheckView, RunView};
use crate::report::findings::excerpt::{self, Excerpt};
use crate::report::findings::finding::{Finding, apart as apart_of, attempts, times, word};
use crate::report::findings::outcomes::Outcomes;
use crate::report::findings::places::observed_from;
use crate::report::findings::suspects::suspects;
use crate::report::findings::waivers::{Idle, idle, raised, waived};
use crate::report::text::ending::reservations;
use crate::report::text::summary::{pools, server, took_ms};
use crate::verdict::{Reason, Verdict};

/// Why a run cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The XML writer gave up.
    #[error("failed to write JUnit XML")]
    Xml(#[source] SerializeError),
}

/// Renders a run as one `JUnit` document. What leaves the run itself in doubt, such as a kill or objects left
/// behind, becomes a separate test case in error, so that no report of such a run is all green.
pub fn render(view: &RunView) -> Result<String, ReportError> {
    let mut report = Report::new("winconform");
    // The type is chrono's, which is not named here: both sides speak RFC 3339
    report.timestamp = view.began.to_string().parse().ok();
    report.set_time(Duration::from_millis(took_ms(view)));
    let (mut suites, outcomes) = (BTreeMap::new(), Outcomes::from_view(view));
    for check in view.checks.values() {
        let area = check.planned.claim.area();
        suites
            .entry(area)
            .or_insert_with(|| suite(view, area))
            .add_test_case(case(view, &outcomes, check));
    }
    report.add_test_suites(suites.into_values());
    let idle = idle(view);
    if !idle.is_empty() {
        let mut suite = suite(view, "waivers");
        suite.add_test_cases(idle.iter().map(waiver));
        report.add_test_suite(suite);
    }
    if let Some(case) = run(view) {
        let mut suite = suite(view, "run");
        suite.add_test_case(case);
        report.add_test_suite(suite);
    }
    report.to_string().map_err(ReportError::Xml)
}

fn suite(view: &RunView, area: &str) -> TestSuite {
    let mut suite = TestSuite::new(clean_line(&format!("winconform.{area}")));
    suite.timestamp = view.began.to_string().parse().ok();
    let (code, meaning) = ending(view);
    let pools = view.facts.as_ref().map(pools).unwrap_or_default();
    let pools = pools.join(", ");
    let left_out = view.unselected();
    let left_out = (left_out > 0).then(|| left_out.to_string());
    let left_out = left_out.unwrap_or_default();
    let resumed = view.resumed.as_ref().map_or("", |(run, _)| run.as_str());
    for (name, value) in [
        ("winconform.version", view.started.version.as_str()),
        ("winconform.run", &view.started.run),
        ("winconform.context", &view.started.context),
        (
            "winconform.unverified",
            if view.started.unverified { "true" } else { "" },
        ),
        ("winconform.server", &server(view.facts.as_ref())),
        ("winconform.pools", &pools),
        ("winconform.observed-from", &observed_from(view).join(", ")),
        ("winconform.profile", view.started.profile.as_str()),
        ("winconform.selection", &view.started.selection.join(" ")),
        ("winconform.left-out", &left_out),
        ("winconform.resumed", resumed),
        ("winconform.exit", meaning),
        ("winconform.exit-code", &code.to_string()),
    ] {
        if !value.is_empty() {
            suite.add_property(property(name, value));
        }
    }
    suite
}

fn property(name: &str, value: &str) -> Property {
    Property::new(clean_line(name), clean_line(value))
}

/// The test case of the run itself, if anything leaves it in doubt.
fn run(view: &RunView) -> Option<TestCase> {
    let reservations = reservations(view);
    let first = reservations.first()?;
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    let sentences: Vec<_> = reservations
        .iter()
        .map(|one| one.sentence.as_str())
        .collect();
    status.set_type(first.word);
    status.set_message(clean_line(&sentences.join("; ")));
    status.set_description(clean(&sentences.join("\n")));
    let mut case = TestCase::new("the run ended as planned", status);
    case.set_classname("winconform.run");
    Some(case)
}

/// The test case of a waiver that did nothing: neither a success nor a failure.
fn waiver(idle: &Idle<'_>) -> TestCase {
    let mut status = TestCaseStatus::skipped();
    status.set_type(format!("waiver-{}", idle.word));
    status.set_message(clean_line(&idle.sentence));
    let mut case = TestCase::new(clean_line(idle.waiver.check.as_str()), status);
    case.set_classname("winconform.waivers");
    case
}

fn case(view: &RunView, run: &Outcomes<'_>, check: &CheckView) -> TestCase {
    let planned = &check.planned;
    let finding = Finding::of_check(check, Some(run));
    let waiver = view.waiver(check);
    let raised = raised(view, check);
    let mut status = match finding.verdict {
        _ if waiver.is_some() => TestCaseStatus::skipped(),
        _ if raised => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Some(
            Verdict::Pass
            | Verdict::KnownLimitation
            | Verdict::LimitationLifted
            | Verdict::Warn
            | Verdict::Informational,
        ) => TestCaseStatus::success(),
        Some(Verdict::Fail) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Some(Verdict::Inconclusive) | None => TestCaseStatus::non_success(NonSuccessKind::Error),
        Some(Verdict::Skip) => TestCaseStatus::skipped(),
    };
    let flaky = check.is_flaky();
    let message = match (waiver, finding.verdict) {
        (Some(waiver), _) => format!("{}; {}", waived(waiver), finding.sentence),
        (None, Some(Verdict::Skip)) => finding.reason.clone(),
        (None, _) => finding.sentence.clone(),
    };
    status.set_message(clean_line(&message));
    status.set_type(match finding.verdict {
        _ if waiver.is_some() => "waived",
        Some(Verdict::Pass | Verdict::KnownLimitation | Verdict::Informational) if raised => {
            "flaky"
        }
        verdict => word(verdict),
    });
    status.set_description(clean(&description(
        view,
        &finding,
        suspects(view, check).as_deref(),
        excerpt(view, check),
    )));
    let kind = match finding.verdict {
        Some(Verdict::Fail | Verdict::Inconclusive) | None => FlakyOrRerun::Rerun,
        Some(_) if raised => FlakyOrRerun::Rerun,
        Some(_) => FlakyOrRerun::Flaky,
    };
    // A skipped test case has no attempts in this format; a property has them
    status.set_rerun_kind(kind);
    for attempt in others(check) {
        status.add_reruns(rerun(view, check, attempt, kind));
    }
    let apart = check.attempts.iter().filter(|_| flaky);
    for round in apart.filter_map(|attempt| apart_of(planned, attempt)) {
        status.add_reruns(rerun(view, check, &round, kind));
    }
    // The whole id: TestGrid shows no classname, and Azure Pipelines shows it elsewhere
    let mut case = TestCase::new(clean_line(planned.id.as_str()), status);
    case.set_classname(clean_line(planned.claim.as_str()));
    if let Some(tried) = check.tried() {
        case.timestamp = tried.began.to_string().parse().ok();
        case.set_time(Duration::from_millis(tried.took_ms));
    }
    let repeated = check
        .conclusion
        .as_ref()
        .map(|conclusion| times(&conclusion.repeated));
    let repeated = repeated.unwrap_or_default();
    for (name, value) in [
        ("winconform.verdict", word(finding.verdict)),
        ("winconform.type", planned.claim_type.as_str()),
        ("winconform.reason", &finding.reason),
        ("winconform.attempts", &attempts(check)),
        ("winconform.repetitions", &repeated),
    ] {
        if !value.is_empty() {
            case.add_property(property(name, value));
        }
    }
    if let Some(waiver) = waiver {
        let expires = waiver.expires.to_string();
        for (name, value) in [
            ("winconform.waived.owner", waiver.owner.as_str()),
            ("winconform.waived.reason", &waiver.reason),
            ("winconform.waived.expires", &expires),
        ] {
            case.add_property(property(name, value));
        }
    }
    if flaky {
        case.add_property(property("winconform.flaky", "true"));
    }
    case
}

/// The excerpt from the diagnosis of the fixture that broke the check, or of the fixtures that it observed.
fn excerpt(view: &RunView, check: &CheckView) -> Excerpt {
    match check.reason() {
        Some(Reason::Fixture { fixture, .. }) => excerpt::of_fixture(view, fixture),
        _ => excerpt::of_check(view, &check.planned.id),
    }
}

fn description(
    view: &RunView,
    finding: &Finding,
    suspect: Option<&str>,
    excerpt: Excerpt,
) -> String {
    let hint = Some(finding.hint.clone());
    let evidence = format!("record.jsonl, check {}", finding.check);
    let evidence = (!view.unwritten).then_some(evidence);
    let suspect = suspect.map(str::to_owned);
    let parts = [
        ("cause", finding.cause.clone()),
        ("expected", finding.expected.clone()),
        ("seen", finding.seen.clone()),
        ("suspect", suspect),
    ];
    let seen = excerpt.into_iter().map(|(word, line)| (word, Some(line)));
    let last = [("evidence", evidence), ("next", hint)];
    let lines = parts.into_iter().chain(seen).chain(last);
    let lines = lines.filter_map(|(word, value)| {
        // Each on its line: a line end within foreign text must not look like another part
        value.map(|value| format!("{word}: {}", clean_line(&value)))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The attempts beside the one that decided: the last of the concluded verdict.
fn others(check: &CheckView) -> impl Iterator<Item = &Attempted> {
    let concluded = check.verdict();
    let deciding = check
        .attempts
        .iter()
        .rposition(|attempt| Some(attempt.verdict) == concluded);
    let others = check.attempts.iter().enumerate();
    others
        .filter(move |(place, _)| Some(*place) != deciding)
        .map(|(_, attempt)| attempt)
}

/// An attempt as a flaky or rerun element, where there is one for its verdict. An inconclusive attempt is an
/// error of our own: it makes no success flaky. The property has all attempts.
fn rerun(
    view: &RunView,
    check: &CheckView,
    attempt: &Attempted,
    kind: FlakyOrRerun,
) -> Option<TestRerun> {
    let failed = match (attempt.verdict, kind) {
        (Verdict::Fail, _) => NonSuccessKind::Failure,
        (Verdict::Inconclusive, FlakyOrRerun::Rerun) => NonSuccessKind::Error,
        (
            Verdict::Inconclusive
            | Verdict::Pass
            | Verdict::KnownLimitation
            | Verdict::LimitationLifted
            | Verdict::Warn
            | Verdict::Informational
            | Verdict::Skip,
            _,
        ) => return None,
    };
    let finding = Finding::of_attempt(&check.planned, attempt);
    let mut rerun = TestRerun::new(failed);
    if let Some(tried) = attempt.tried {
        rerun.timestamp = tried.began.to_string().parse().ok();
        rerun.set_time(Duration::from_millis(tried.took_ms));
    }
    rerun.set_type(attempt.verdict.as_str());
    rerun.set_message(clean_line(&format!(
        "attempt {}: {}",
        attempt.number, finding.sentence
    )));
    rerun.set_description(clean(&description(view, &finding, None, Excerpt::new())));
    Some(rerun)
}
