//! Profiles and waivers in the outcome and in every report.

use winconform_core::claims::{ClaimId, ClaimType};
use winconform_core::config::{Profile, Waiver};
use winconform_core::method::ErrorKind;
use winconform_core::record::{Event, Exit, RunView, SIGNAL, Started, Tally, exit, read};
use winconform_core::report::terminal::{Colour, Detail, render};
use winconform_core::report::{json, junit};
use winconform_core::verdict::{Conclusion, Reason, SkipReason, Verdict};

use crate::runs::{self, Recorder, conclusion, ended, planned, saw, waiver};

/// A complete run of these checks, each with its conclusion.
fn run(profile: Profile, waivers: Vec<Waiver>, checks: &[(&str, Conclusion)]) -> Recorder {
    let mut recorder = Recorder::empty();
    recorder.push(Event::RunStarted(Started {
        profile,
        config: Some("c0".repeat(32)),
        selection: vec!["area=net".to_owned(), "!type=informational".to_owned()],
        waivers,
        ..runs::started()
    }));
    let at = |id: &str| {
        planned(
            id,
            ClaimType::Capability,
            runs::point_at(None),
            "what the claim says",
        )
    };
    recorder
        .push(Event::Facts(Box::new(runs::facts())))
        .push(Event::LeftOut([("env".to_owned(), 2)].into()))
        .push(Event::Plan(checks.iter().map(|(id, _)| at(id)).collect()));
    for (id, conclusion) in checks {
        recorder.push(Event::Verdict {
            check: at(id).id,
            conclusion: conclusion.clone(),
        });
    }
    recorder.push(ended(Exit::Conformant));
    recorder
}

fn saw_it(verdict: Verdict) -> Conclusion {
    saw(verdict, "200 with `ok`", "timeout: curl: (28) late")
}

fn flaky(verdict: Verdict) -> Conclusion {
    Conclusion {
        flaky: true,
        ..saw_it(verdict)
    }
}

fn broken() -> Conclusion {
    let cut = ErrorKind::ExecTransport.error("the session was cut");
    conclusion(Verdict::Inconclusive, Reason::ObservationError(cut))
}

fn skipped() -> Conclusion {
    conclusion(Verdict::Skip, Reason::Skipped(SkipReason::Deadline))
}

/// The exit of a run of one check under each profile, without a waiver and with one.
#[test]
fn every_cell_of_the_outcome() {
    use Exit::{Conformant as Good, CouldNotTell as Untold, NotConformant as Bad};
    let each = |strict| [(Good, Good), (Good, Good), strict];
    for (conclusion, expected) in [
        (saw_it(Verdict::Pass), each((Good, Good))),
        (saw_it(Verdict::Fail), [(Bad, Good); 3]),
        (saw_it(Verdict::KnownLimitation), each((Good, Good))),
        (saw_it(Verdict::LimitationLifted), each((Good, Good))),
        (saw_it(Verdict::Warn), each((Bad, Good))),
        (saw_it(Verdict::Informational), each((Good, Good))),
        (flaky(Verdict::Pass), each((Bad, Good))),
        (skipped(), [(Untold, Untold); 3]),
        (broken(), [(Untold, Untold); 3]),
    ] {
        let of = |profile| {
            let checks = [("net.a", conclusion.clone())];
            let plain = run(profile, Vec::new(), &checks).view();
            let waivers = vec![waiver("net.*", "known", "2026-03-01")];
            let waived = run(profile, waivers, &checks).view();
            (exit(&plain), exit(&waived))
        };
        let exits: Vec<_> = Profile::ALL.iter().copied().map(of).collect();
        assert_eq!(exits, expected, "{conclusion:?}");
    }
}

#[test]
fn a_waiver_takes_away_no_other_failure_and_no_doubt() {
    let waivers = || vec![waiver("net.a", "known", "2026-03-01")];
    let with = |other| {
        let checks = [("net.a", saw_it(Verdict::Fail)), ("net.b", other)];
        exit(&run(Profile::Default, waivers(), &checks).view())
    };
    assert_eq!(with(saw_it(Verdict::Fail)), Exit::NotConformant);
    assert_eq!(with(broken()), Exit::CouldNotTell);
    assert_eq!(with(saw_it(Verdict::Pass)), Exit::Conformant);
}

/// The clock at the time of a later report does not count.
#[test]
fn a_waiver_expires_by_the_day_the_run_began() {
    for (expires, expected) in [
        ("2026-03-01", Exit::Conformant),
        ("2026-02-28", Exit::NotConformant),
    ] {
        let checks = [("net.a", saw_it(Verdict::Fail))];
        let view = run(
            Profile::Default,
            vec![waiver("net.a", "known", expires)],
            &checks,
        )
        .view();
        assert_eq!(view.day().to_string(), "2026-03-01");
        assert_eq!(exit(&view), expected, "{expires}");
    }
}

#[test]
fn a_record_from_before_profiles_is_read() {
    let text = run(
        Profile::Strict,
        Vec::new(),
        &[("net.a", saw_it(Verdict::Warn))],
    );
    assert_eq!(exit(&text.view()), Exit::NotConformant);
    let mut old = text.text().replace("\"schema\":2", "\"schema\":1");
    let from = old.find(",\"profile\"").expect("it has one");
    let to = old.find("}}}\n").expect("the line ends");
    old.replace_range(from..to, "");
    let view = read(old.as_bytes()).expect("an old record");
    assert_eq!(view.started.profile, Profile::Default);
    assert_eq!(exit(&view), Exit::Conformant);
}

/// Everything that profiles, waivers and selection add to reports.
fn all_of_it() -> RunView {
    let me = |check: &str, reason: &str, expires: &str| Waiver {
        owner: "platform@example.com".to_owned(),
        ..waiver(check, reason, expires)
    };
    let waivers = vec![
        me("net.a-*", "replaced in spring", "2026-04-30"),
        me("net.b-fail", "was to be mended by now", "2026-02-01"),
        me("net.c-pass", "mended long ago", "2026-12-31"),
        me("net.z", "not selected", "2026-12-31"),
        me("net.g-broken", "known", "2026-12-31"),
    ];
    let checks = [
        ("net.a-fail", saw_it(Verdict::Fail)),
        ("net.a-warn", saw_it(Verdict::Warn)),
        ("net.b-fail", saw_it(Verdict::Fail)),
        ("net.c-pass", saw_it(Verdict::Pass)),
        ("net.d-warn", saw_it(Verdict::Warn)),
        ("net.e-lifted", saw_it(Verdict::LimitationLifted)),
        ("net.f-flaky", flaky(Verdict::Pass)),
        ("net.g-broken", broken()),
        ("net.h-skip", skipped()),
    ];
    run(Profile::Strict, waivers, &checks).view()
}

#[test]
fn terminal() {
    insta::assert_snapshot!(render(&all_of_it(), 100, Colour::Never, Detail::Full));
}

#[test]
fn junit_xml() {
    insta::assert_snapshot!(junit::render(&all_of_it()).expect("rendered"));
}

#[test]
fn report_json() {
    insta::assert_snapshot!(json::render(&all_of_it()));
}

#[test]
fn what_counts_is_counted_apart_from_verdicts() {
    let tally = Tally::from_view(&all_of_it());
    assert_eq!((tally.against, tally.waived), (3, 2));
    assert_eq!(tally.count(Verdict::Fail), 2);
}

#[test]
fn a_deadline_is_told_and_leaves_the_rest_untold() {
    for (verdict, expected) in [
        (Verdict::Fail, Exit::NotConformant),
        (Verdict::Pass, Exit::CouldNotTell),
    ] {
        let checks = [("net.a", saw_it(verdict)), ("net.b", skipped())];
        let mut recorder = run(Profile::Default, Vec::new(), &checks);
        recorder.push(Event::Deadline {
            after_ms: 1_200_000,
        });
        let view = recorder.view();
        assert_eq!(exit(&view), expected);
        let text = render(&view, 100, Colour::Never, Detail::Full);
        let words = "the run's deadline, 20m, came before its end";
        assert!(text.contains(words), "{text}");
        let words = "the run reached its deadline before it reached the check\n";
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn what_interrupts_a_run_without_a_signal_leaves_it_untold() {
    let lost = "the loss of its Lease: it is held by `thief`";
    for (by, verdict, expected) in [
        (SIGNAL, Verdict::Pass, Exit::Interrupted),
        (SIGNAL, Verdict::Fail, Exit::Interrupted),
        (lost, Verdict::Pass, Exit::CouldNotTell),
        (lost, Verdict::Fail, Exit::NotConformant),
    ] {
        let mut recorder = run(Profile::Default, Vec::new(), &[("net.a", saw_it(verdict))]);
        recorder.push(Event::Interrupted { by: by.to_owned() });
        assert_eq!(exit(&recorder.view()), expected, "{by}, {verdict:?}");
    }
}

#[test]
fn nothing_selected_says_what_there_is() {
    let view = run(Profile::Default, Vec::new(), &[]).view();
    assert_eq!(exit(&view), Exit::NothingSelected);
    let text = render(&view, 100, Colour::Never, Detail::Full);
    assert!(
        text.contains("nothing is selected; there is env (2 checks)"),
        "{text}"
    );
    let claim = |id| ClaimId::parse(id).expect("an id");
    for (unchecked, reason) in [
        (vec![claim("net.a")], "net.a has no checks yet; there is"),
        (
            vec![claim("net.a"), claim("net.b")],
            "none of the 2 claims it names has checks yet; there is",
        ),
    ] {
        let mut view = view.clone();
        view.started.unchecked = unchecked;
        let text = render(&view, 100, Colour::Never, Detail::Full);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains(&format!("nothing is selected: {reason}")),
            "{text}"
        );
    }
}
