//! What changed between two runs.

use serde_json::json;
use winconform_core::record::{CheckView, RunView};
use winconform_core::report::diff::{Change, Diff, Gate, Report, render};
use winconform_core::report::json::render as in_json;
use winconform_core::report::terminal::Detail;
use winconform_core::text::is_hostile;
use winconform_core::verdict::Verdict;

use crate::runs;

/// A report with these checks, by id and verdict.
fn report(checks: &[(&str, &str)]) -> Report {
    let checks = checks.iter().map(|(id, verdict)| {
        let reason = json!({"seen": "timeout", "cause": null});
        json!({"id": id, "verdict": verdict, "reason": reason})
    });
    let of_a = json!({
        "component": "dns",
        "says": "no name resolves \u{1b}[2J",
        "checks": ["net.a[pool=w]", "net.b"],
    });
    let report = json!({
        "schema": 1,
        "run": {"id": "r1", "began": "2026-03-01T02:00:00Z", "version": "0.1.0", "took-ms": 1000},
        "server": {"version": "v1.37.0"},
        "exit": {"code": 10, "meaning": "not conformant"},
        "checks": checks.collect::<Vec<_>>(),
        "causes": [of_a],
    });
    Report::read(&report.to_string()).expect("a report")
}

#[test]
fn each_check_has_one_change_or_none() {
    use Change::{Fixed, Flaky, Gained, Lost, New, Still};
    let cases = [
        (Some("pass"), Some("fail"), Some(New)),
        (None, Some("fail"), Some(New)),
        (Some("inconclusive"), Some("fail"), Some(New)),
        (Some("fail"), Some("fail"), Some(Still)),
        (Some("fail"), Some("pass"), Some(Fixed)),
        (Some("fail"), Some("inconclusive"), Some(Lost)),
        (Some("known-limitation"), Some("skip"), Some(Lost)),
        (Some("pass"), None, Some(Lost)),
        (Some("skip"), Some("pass"), Some(Gained)),
        (None, Some("pass"), Some(Gained)),
        (Some("skip"), Some("inconclusive"), None),
        (Some("skip"), None, None),
        (Some("pass"), Some("limitation-lifted"), None),
    ];
    for (before, after, expected) in cases {
        let of = |verdict: Option<&str>| report(&verdict.map_or(vec![], |it| vec![("net.a", it)]));
        let diff = Diff::new(of(before), of(after));
        for change in [New, Flaky, Lost, Still, Fixed, Gained] {
            let count = usize::from(expected == Some(change));
            assert_eq!(diff.count(change), count, "{before:?} {after:?} {change:?}");
        }
    }
}

#[test]
fn what_was_not_selected_is_not_lost_but_what_is_gone_besides_is() {
    let before = || report(&[("net.a", "pass"), ("net.b", "pass"), ("pod.c", "pass")]);
    let after = |left_out: serde_json::Value| {
        let report = json!({
            "schema": 1,
            "run": {"id": "r2", "began": "2026-03-02T02:00:00Z", "left-out": left_out},
            "exit": {"code": 0, "meaning": "conformant"},
            "checks": [],
        });
        Report::read(&report.to_string()).expect("a report")
    };
    for (left_out, unselected, lost) in [
        (json!({"net": 2, "pod": 1}), 3, 0),
        (json!({"net": 1, "pod": 1}), 3, 0),
        (json!({"pod": 1}), 1, 2),
        (json!({}), 0, 3),
    ] {
        let diff = Diff::new(before(), after(left_out));
        let counts = [Change::Unselected, Change::Lost].map(|change| diff.count(change));
        assert_eq!(counts, [unselected, lost]);
        assert_eq!(diff.passes(Gate::LostCoverage), lost == 0);
        let text = render(&diff, 100, Detail::Short);
        assert!(!text.contains("absent") || lost > 0, "{text}");
    }
    // Both are of the same part, of which one check is gone
    let of_part = |id: &str, checks: &[&str]| {
        let checks = checks.iter().map(|id| json!({"id": id, "verdict": "pass"}));
        let report = json!({
            "schema": 1,
            "run": {"id": id, "began": "2026-03-02T02:00:00Z", "left-out": {"net": 500}},
            "exit": {"code": 0, "meaning": "conformant"},
            "checks": checks.collect::<Vec<_>>(),
        });
        Report::read(&report.to_string()).expect("a report")
    };
    let diff = Diff::new(
        of_part("r1", &["net.a", "net.b"]),
        of_part("r2", &["net.a"]),
    );
    assert_eq!(diff.count(Change::Lost), 1);
}

#[test]
fn details_are_all_that_changed() {
    let ids: Vec<_> = (0..20).map(|number| format!("net.a{number}")).collect();
    let of = |verdict| {
        let checks: Vec<_> = ids.iter().map(|id| (id.as_str(), verdict)).collect();
        report(&checks)
    };
    let diff = Diff::new(of("pass"), of("fail"));
    let short = render(&diff, 100, Detail::Short);
    assert!(
        short.contains("\n  and 5 more\n") && !short.contains("net.a19"),
        "{short}"
    );
    let full = render(&diff, 100, Detail::Full);
    let told = ids.iter().filter(|id| full.contains(&format!(" {id} ")));
    assert_eq!(told.count(), 20, "{full}");
    assert!(!full.contains(" more\n"), "{full}");
}

#[test]
fn gates_are_of_different_strictness() {
    let passes = |before, after| {
        let of = |verdict| report(&[("net.a", verdict)]);
        let diff = Diff::new(of(before), of(after));
        [Gate::NewFailures, Gate::AnyFailure, Gate::LostCoverage].map(|gate| diff.passes(gate))
    };
    assert_eq!(passes("pass", "pass"), [true, true, true]);
    assert_eq!(passes("pass", "fail"), [false, false, false]);
    assert_eq!(passes("fail", "fail"), [true, false, true]);
    assert_eq!(passes("pass", "inconclusive"), [true, true, false]);
}

#[test]
fn what_changed_is_told_with_its_cause() {
    let before = report(&[
        ("net.a[pool=w,source=x]", "pass"),
        ("net.a[pool=w]", "pass"),
        ("net.b", "fail"),
        ("net.c", "pass"),
    ]);
    let after = report(&[
        ("net.a[pool=w,source=x]", "fail"),
        ("net.a[pool=w]", "fail"),
        ("net.b", "pass"),
    ]);
    let text = render(&Diff::new(before, after), 100, Detail::Short);
    assert!(
        !text.contains(|c: char| c != '\n' && is_hostile(c)),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn one_new_failure_is_counted_as_one() {
    let diff = Diff::new(report(&[("net.a", "pass")]), report(&[("net.a", "fail")]));
    let text = render(&diff, 100, Detail::Short);
    let counts = "1 new failure, 0 newly flaky, 0 no longer observed, 0 still failing, 0 fixed, 0 newly observed";
    assert_eq!(text.lines().last(), Some(counts));
}

#[test]
fn the_checks_whose_time_grew_most_are_named() {
    let of = |times: &[(&str, Option<u64>)]| {
        let checks = times
            .iter()
            .map(|(id, took)| json!({"id": id, "verdict": "pass", "took-ms": took}));
        let report = json!({
            "schema": 1,
            "run": {"id": "r1", "began": "2026-03-01T02:00:00Z"},
            "exit": {"code": 0, "meaning": "conformant"},
            "checks": checks.collect::<Vec<_>>(),
        });
        Report::read(&report.to_string()).expect("a report")
    };
    let before = of(&[
        ("net.a", Some(500)),
        ("net.b", Some(0)),
        ("net.c", Some(9_000)),
        ("net.d", None),
        ("net.e", Some(100)),
        ("net.f", Some(100)),
        ("net.g", Some(100)),
        ("net.h", Some(100)),
    ]);
    let after = of(&[
        ("net.a", Some(12_500)),
        ("net.b", Some(999)),
        ("net.c", Some(1_000)),
        ("net.d", Some(60_000)),
        ("net.e", Some(1_300)),
        ("net.f", Some(1_100)),
        ("net.g", Some(2_100)),
        ("net.h", Some(2_100)),
        ("net.new", Some(60_000)),
    ]);
    let text = render(&Diff::new(before.clone(), after), 100, Detail::Short);
    let (_, slower) = text.split_once("\ntook longer\n").expect(&text);
    let slower: Vec<_> = slower.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(
        slower,
        [
            "  +12.0 s            net.a  0.5 s before, 12.5 s after",
            "  +2.0 s             net.g  0.1 s before, 2.1 s after",
            "  +2.0 s             net.h  0.1 s before, 2.1 s after",
            "  +1.2 s             net.e  0.1 s before, 1.3 s after",
            "  +1.0 s             net.f  0.1 s before, 1.1 s after",
        ]
    );
    let same = render(&Diff::new(before.clone(), before), 100, Detail::Short);
    assert!(!same.contains("took longer"), "{same}");
}

/// What was not observed since a run was killed is no coverage that the cluster or the plan has lost.
#[test]
fn a_side_that_was_killed_is_told_and_counted_apart() {
    let view = runs::recorded("every-verdict").view();
    let whole = Report::read(&in_json(&view)).expect("a report");
    let observed = |view: &RunView| {
        let is_observed = |it: &&CheckView| it.verdict().is_some_and(Verdict::is_conclusive);
        view.checks.values().filter(is_observed).count()
    };
    let (all, total) = (observed(&view), view.checks.len());
    assert!(all > 4);
    let killed = |verdicts: usize| {
        let mut view = view.clone();
        view.ended = None;
        for check in view.checks.values_mut().skip(verdicts) {
            check.conclusion = None;
        }
        view
    };
    let mut unplanned = killed(0);
    unplanned.checks.clear();
    for (view, told) in [
        (
            killed(total),
            "; killed after its last verdict\n".to_owned(),
        ),
        (
            killed(4),
            format!("; killed before {} verdicts\n", total - 4),
        ),
        (unplanned, "; killed before it had a plan\n".to_owned()),
    ] {
        let cost = all - observed(&view);
        let side = || Report::read(&in_json(&view)).expect("a report");
        let diff = Diff::new(whole.clone(), side());
        assert_eq!(
            (diff.count(Change::Cut), diff.count(Change::Lost)),
            (cost, 0)
        );
        assert_eq!(diff.passes(Gate::LostCoverage), cost == 0);
        let text = render(&diff, 100, Detail::Short);
        let (first, rest) = text.split_once('\n').expect("lines");
        assert!(!first.contains("killed") && rest.contains(&told), "{text}");
        let counted = format!("{cost} not observed before the run was killed, ");
        assert_eq!(text.contains(&counted), cost > 0, "{text}");
        let text = render(&Diff::new(side(), whole.clone()), 100, Detail::Short);
        assert!(
            text.contains(&told) && text.starts_with("before "),
            "{text}"
        );
    }
}

#[test]
fn the_reports_of_records_compare() {
    let read = |name: &str| {
        let view = runs::recorded(name).view();
        Report::read(&in_json(&view)).expect("a report")
    };
    let same = Diff::new(read("every-verdict"), read("every-verdict"));
    assert!(same.passes(Gate::LostCoverage) && same.count(Change::Flaky) == 0);
    let diff = Diff::new(read("healthy"), read("every-verdict"));
    assert!(!diff.passes(Gate::NewFailures));
    assert_eq!(diff.count(Change::Flaky), 1);
}

#[test]
fn what_is_no_report_is_refused() {
    let run = json!({"id": "r", "began": ""});
    let exit = json!({"code": 0, "meaning": ""});
    let newer = json!({"schema": 2, "run": run, "exit": exit, "checks": []}).to_string();
    for (text, says) in [
        ("{}", "it is no report of winconform"),
        ("", "it is no report of winconform"),
        (newer.as_str(), "its schema is 2"),
    ] {
        let error = Report::read(text).expect_err("it is refused").to_string();
        assert!(error.contains(says), "{error}");
    }
}
