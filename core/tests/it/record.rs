//! Records are read back as they were written, and refused when they were not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use winconform_core::claims::ClaimType;
use winconform_core::facts::{Facts, Known, Os};
use winconform_core::method::{ErrorKind, ReadyFixture, Served};
use winconform_core::plan::{Check, Plan, Selected};
use winconform_core::record::{
    Attempted, CheckView, Event, Exit, LONGEST, Line, ObjectName, RecordError, ResumeError, SCHEMA,
    Started, Tally, TornDown, Tried, exit, read, to_line,
};
use winconform_core::report::terminal::{self, Colour, Detail};
use winconform_core::report::{alone, html, junit};
use winconform_core::suite::{Condition, When};
use winconform_core::verdict::{Scope, Verdict};

use crate::runs::{self, Recorder, facts, planned, point_at, saw};

/// `every-event.jsonl` has every kind of event, and text that tests the encoding.
#[test]
fn every_event_is_read_back_as_written() {
    let none = serde_json::from_str::<Event>("\"none\"").expect_err("no kind of event");
    // The error names every kind of event
    let none = none.to_string();
    let kinds: Vec<_> = none.split('`').skip(3).step_by(2).collect();
    assert!(kinds.len() > 15, "{none}");
    let recorded = runs::recorded("every-event");
    for kind in kinds {
        let kind = format!("\"event\":{{\"{kind}\"").replace("{\"kept", "\"kept");
        assert!(recorded.text().contains(&kind), "{kind}");
    }
    for text in recorded.text().split_inclusive('\n') {
        let line: Line = serde_json::from_str(text).expect("a line");
        assert_eq!(to_line(&line).expect("a line"), text);
        assert!(!text.trim_end().contains(char::is_control), "{text}");
    }
}

#[test]
fn a_run_is_folded_from_its_lines() {
    let healthy = runs::recorded("healthy");
    let view = healthy.view();
    for line in healthy.text().lines() {
        let line: Line = serde_json::from_str(line).expect("a line");
        match line.event {
            Event::Facts(facts) => assert_eq!(view.facts, Some(*facts)),
            Event::Plan(plan) => {
                let planned = view.checks.values().map(|check| &check.planned);
                assert!(planned.eq(&plan));
            }
            _ => {}
        }
    }
    assert_eq!((view.checks.len(), &view.started), (6, &runs::started()));
    assert_eq!((view.intents.len(), view.fixtures.len()), (2, 2));
    assert!(view.planned && view.torn_down.is_some() && view.ended.is_some() && !view.cut);
    assert_eq!(exit(&view), Exit::Conformant);
}

#[test]
fn what_a_kill_leaves_is_read_and_conforms_to_nothing() {
    let view = runs::recorded("killed").view();
    assert!(view.cut && view.ended.is_none());
    assert_eq!(Tally::from_view(&view).unfinished, 4);
    assert_eq!(exit(&view), Exit::CouldNotTell);
}

/// Only the last line is missing: nothing is in doubt, and the kill is told.
#[test]
fn a_run_that_was_cut_off_after_its_last_verdict_has_told_all() {
    let healthy = runs::recorded("healthy");
    let lines: Vec<_> = healthy.text().split_inclusive('\n').collect();
    let said = "the run was cut off after its last verdict";
    for (kept, last, expected, sure) in [
        (1, "", Exit::Conformant, true),
        (1, "{\"seq\"", Exit::Conformant, true),
        (2, "", Exit::CouldNotTell, true),
        (3, "", Exit::CouldNotTell, false),
    ] {
        let text = lines[..lines.len() - kept].concat() + last;
        let view = read(text.as_bytes()).expect("a record");
        assert_eq!((exit(&view), view.ended.is_none()), (expected, true));
        let page = terminal::render(&view, 100, Colour::Never, Detail::Full);
        assert_eq!(page.contains(said), sure, "{page}");
        assert_eq!(page.contains("the run was killed"), !sure, "{page}");
        assert_eq!(html::render(&view).contains(said), sure);
        let junit = junit::render(&view).expect("XML");
        assert_eq!(junit.contains("type=\"killed\""), !sure, "{junit}");
        let errors = junit.contains("<error");
        assert_eq!(errors, expected == Exit::CouldNotTell, "{junit}");
    }
}

#[test]
fn objects_announced_and_never_torn_down_leave_a_run_untold() {
    let healthy = runs::recorded("healthy");
    let lines: Vec<_> = healthy.text().split_inclusive('\n').collect();
    let untorn = lines[..lines.len() - 2].concat();
    let view = read(untorn.as_bytes()).expect("a record");
    assert_eq!(Tally::from_view(&view).unfinished, 0);
    assert_eq!(exit(&view), Exit::CouldNotTell);
}

#[test]
fn a_run_goes_on_with_a_record_of_the_same_cluster_alone() {
    let uid = |uid: &str| Facts {
        cluster: Known::Fact {
            value: uid.to_owned(),
            source: "/api/v1/namespaces/kube-system".to_owned(),
        },
        ..facts()
    };
    let mut earlier = runs::recorded("every-verdict").view();
    earlier.facts = Some(uid("a"));
    let resumed = |started: &dyn Fn(&mut Started), facts: &Facts| {
        let mut now = runs::started();
        started(&mut now);
        let result = earlier.can_be_resumed(&now, facts);
        result.map_err(|error| error.to_string())
    };
    assert_eq!(resumed(&|_| {}, &uid("a")), Ok(()));
    let other = |what: &str, then: &str, now: &str| {
        Err(format!(
            "{what} was {then} in run k3x9 and is {now}: begin a new run"
        ))
    };
    let suites = "5f".repeat(32);
    for (seen, expected) in [
        (
            resumed(&|_| {}, &uid("b")),
            other("the cluster (the UID of kube-system)", "a", "b"),
        ),
        (
            resumed(&|now| now.suites = "00".to_owned(), &uid("a")),
            other("the suites' digest", &suites, "00"),
        ),
        (
            resumed(&|now| now.config = Some("00".to_owned()), &uid("a")),
            other("the config file's digest", "none", "00"),
        ),
        (
            resumed(&|now| now.version = "9".to_owned(), &uid("a")),
            other("winconform's version", "0.1.0", "9"),
        ),
        (
            resumed(&|_| {}, &Facts::default()),
            Err("whether it is the cluster of run k3x9 cannot be told: not asked".to_owned()),
        ),
    ] {
        assert_eq!(seen, expected);
    }
    let mut unasked = runs::recorded("setup-died").view();
    unasked.facts = None;
    let refused = unasked.can_be_resumed(&runs::started(), &uid("a"));
    assert!(
        matches!(refused, Err(ResumeError::UnknownCluster { .. })),
        "{refused:?}"
    );
}

#[test]
fn what_tells_nothing_of_the_cluster_is_observed_again() {
    let view = runs::recorded("every-verdict").view();
    let settled: BTreeSet<_> = view.settled().map(|check| &check.planned.id).collect();
    for check in view.checks.values() {
        let verdict = check.conclusion.as_ref().expect("it has one").verdict;
        let again = matches!(verdict, Verdict::Inconclusive | Verdict::Skip);
        assert_eq!(!again, settled.contains(&check.planned.id), "{verdict}");
    }
    assert!(runs::recorded("killed").view().settled().count() == 2);
}

#[test]
fn objects_that_were_to_stay_leave_nothing_untold() {
    let ends = |kept: bool, errors: &[&str]| {
        let healthy = runs::recorded("healthy");
        let mut view = healthy.view();
        view.kept = kept;
        view.torn_down = Some(TornDown {
            left: view.intents.iter().cloned().collect(),
            errors: errors.iter().map(ToString::to_string).collect(),
            ..TornDown::default()
        });
        exit(&view)
    };
    assert_eq!(ends(true, &[]), Exit::Conformant);
    assert_eq!(ends(false, &[]), Exit::CouldNotTell);
    assert_eq!(
        ends(true, &["the Lease is still there"]),
        Exit::CouldNotTell
    );
}

#[test]
fn without_a_plan_nothing_was_selected_or_not() {
    assert_eq!(
        exit(&runs::recorded("setup-died").view()),
        Exit::CouldNotTell
    );
    let mut recorder = Recorder::started();
    recorder.push(Event::Plan(Vec::new()));
    assert_eq!(exit(&recorder.view()), Exit::NothingSelected);
}

#[test]
fn any_prefix_of_a_record_is_read() {
    let healthy = runs::recorded("healthy");
    let text = healthy.text();
    let first = text.find('\n').expect("a line") + 1;
    for end in first..text.len() {
        if text.is_char_boundary(end) {
            let view = read(&text.as_bytes()[..end]).expect("a prefix is a record");
            assert_eq!(view.cut, !text[..end].ends_with('\n'));
        }
    }
}

/// A run that repeats for days: its record grows, and what a reader holds of it does not.
#[test]
fn attempts_that_came_to_the_same_are_counted() {
    let check = planned("net.x", ClaimType::Capability, point_at(None), "title");
    let attempt = |number: u32, verdict| Attempted {
        tried: Some(Tried {
            began: jiff::Timestamp::UNIX_EPOCH,
            took_ms: 2,
        }),
        check: check.id.clone(),
        number,
        rounds: 1,
        verdict,
        assertions: Vec::new(),
        came_apart: Vec::new(),
    };
    let held = |repetitions: u32| {
        let mut recorder = Recorder::started();
        recorder.push(Event::Plan(vec![check.clone()]));
        for number in 1..=repetitions {
            let verdict = match number {
                50 => Verdict::Inconclusive,
                _ => Verdict::Fail,
            };
            recorder.push(Event::Repetition { number });
            recorder.push(Event::Attempt(attempt(number, verdict)));
            let name = check.id.to_string();
            recorder.push(Event::Intent(ObjectName {
                kind: "Pod".to_owned(),
                namespace: None,
                name,
            }));
        }
        let failed = saw(Verdict::Fail, "a", "b");
        let check = check.id.clone();
        recorder.push(Event::Verdict {
            check,
            conclusion: failed,
        });
        recorder.view()
    };
    let view = held(100);
    let kept = view.checks[&0].attempts.iter().map(|one| one.number);
    assert!(kept.eq([1, 2, 3, 4, 50, 97, 98, 99, 100]));
    assert_eq!((view.checks[&0].attempted(), view.intents.len()), (100, 1));
    let took = view.checks[&0].tried().map(|tried| tried.took_ms);
    assert_eq!(took, Some(200));
    let few = held(8);
    assert_eq!(
        (few.checks[&0].attempts.len(), few.checks[&0].unkept),
        (8, 0)
    );
    let id = check.id.as_str();
    let told = alone::check(&view, id, 100, Colour::Never).expect("the check");
    for part in [
        "fail, inconclusive, fail, fail, fail, fail, and 91 more of these",
        "and 91 attempts between these with the same verdict",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let junit = junit::render(&view).expect("XML");
    assert_eq!(junit.matches("<rerunFailure").count(), 7, "{junit}");
}

/// What a writer may write a reader takes, and no more: a file without line ends must not fill the memory.
#[test]
fn a_line_is_bounded() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let refused = read(endless).expect_err("no line");
    assert!(
        matches!(refused, RecordError::Malformed { line: 1, .. }),
        "{refused}"
    );
    let line = Recorder::started().line(Event::Interrupted {
        by: "x".repeat(LONGEST),
    });
    let refused = to_line(&line).expect_err("too long").to_string();
    assert!(refused.contains("where a line may have"), "{refused}");
}

#[test]
fn a_record_that_fails_while_it_is_read_names_the_line() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let text = Recorder::started().text().to_owned();
    let broken = std::io::Read::chain(text.as_bytes(), Broken);
    let refused = read(std::io::BufReader::new(broken)).expect_err("it breaks");
    assert_eq!(
        refused.to_string(),
        "line 2 is not a record's: the disk is gone"
    );
}

#[test]
fn missing_and_swapped_lines_are_found() {
    let healthy = runs::recorded("healthy");
    let lines: Vec<_> = healthy.text().split_inclusive('\n').collect();
    let without: String = lines
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != 4)
        .map(|(_, l)| *l)
        .collect();
    assert_eq!(
        read(without.as_bytes()),
        Err(RecordError::Gap {
            line: 5,
            expected: 4,
            found: 5
        })
    );
    let mut swapped = lines.clone();
    swapped.swap(2, 3);
    assert_eq!(
        read(swapped.concat().as_bytes()),
        Err(RecordError::Gap {
            line: 3,
            expected: 2,
            found: 3
        })
    );
}

/// It changes no verdict, so that its hint is left out.
#[test]
fn a_condition_that_only_a_newer_version_knows_is_left_out() {
    let mut check = planned("net.x", ClaimType::Capability, point_at(None), "title");
    check.when = vec![When {
        condition: Condition::PassesOnOtherNodes,
        then: "look there.".to_owned(),
    }];
    let mut recorder = Recorder::started();
    recorder.push(Event::Plan(vec![check.clone()]));
    let known = r#"{"condition":"passes-on-other-nodes","then":"look there."}"#;
    let newer = r#"{"condition":{"passes-since":"1.40"},"then":"look here."}"#;
    assert_eq!(recorder.text().matches(known).count(), 1);
    let text = recorder.text().replace(known, &format!("{newer},{known}"));
    let view = read(text.as_bytes()).expect("a record");
    let plan: Vec<_> = view.checks.values().map(|it| &it.planned).collect();
    assert_eq!(plan, [&check]);
    let torn = r#"{"condition":"passes-on-other-nodes"}"#;
    let torn = read(recorder.text().replace(known, torn).as_bytes());
    assert!(
        matches!(torn, Err(RecordError::Malformed { line: 2, .. })),
        "{torn:?}"
    );
}

#[test]
fn what_is_no_record_is_refused() {
    let newer = {
        let mut recorder = Recorder::empty();
        recorder.push(Event::RunStarted(Started {
            schema: SCHEMA + 1,
            ..runs::started()
        }));
        recorder.text().to_owned()
    };
    assert_eq!(
        read(newer.as_bytes()),
        Err(RecordError::OtherSchema { found: SCHEMA + 1 })
    );
    assert_eq!(read(&b""[..]), Err(RecordError::Empty));
    assert_eq!(read(&b"half a line"[..]), Err(RecordError::Empty));
    assert_eq!(read(&b"\0\n"[..]), Err(RecordError::Empty));
    // A power cut leaves a hole in place of lines that were not on the disk yet
    let holed = format!("{}\0\0\n{{}}\n", Recorder::started().text());
    let view = read(holed.as_bytes()).expect("what comes before is a record");
    assert!(view.cut);
    let mut unstarted = Recorder::empty();
    unstarted.push(Event::Facts(Box::new(facts())));
    assert_eq!(read(unstarted.text().as_bytes()), Err(RecordError::NoStart));
    for garbage in ["garbage\n", "\n", "{}\n", "[1]\n", "{\"seq\":0}\n"] {
        let result = read(garbage.as_bytes());
        assert!(
            matches!(result, Err(RecordError::Malformed { line: 1, .. })),
            "{result:?}"
        );
        let result = read(format!("{}{garbage}", Recorder::started().text()).as_bytes());
        assert!(
            matches!(result, Err(RecordError::Malformed { line: 2, .. })),
            "{result:?}"
        );
    }
    for (otherwise, found) in [
        ("{\"v\": 7, \"schema\": 7}\n", Some(7)),
        (
            r#"{"event": {"run-started": {"schema": 8, "by": {}}}}"#,
            Some(8),
        ),
        // Somebody else's schema
        ("{\"v\": 7, \"run\": {\"schema\": 7}}\n", None),
        ("{\"spec\": {\"schema\": {\"schema\": 7}}}\n", None),
    ] {
        let line = format!("{}\n", otherwise.trim_end());
        match (read(line.as_bytes()), found) {
            (Err(RecordError::OtherSchema { found: seen }), Some(found)) => assert_eq!(seen, found),
            (Err(RecordError::Malformed { line: 1, .. }), None) => {}
            (other, _) => panic!("{otherwise}: {other:?}"),
        }
    }
}

#[test]
fn what_cannot_have_happened_is_refused() {
    let check = planned("net.x", ClaimType::Capability, point_at(None), "title");
    let verdict = || Event::Verdict {
        check: check.id.clone(),
        conclusion: saw(Verdict::Pass, "a", "a"),
    };
    for (events, problem) in [
        (vec![Event::RunStarted(runs::started())], "started twice"),
        (vec![verdict()], "was not planned"),
        (
            vec![Event::Plan(vec![check.clone(), check.clone()])],
            "is planned twice",
        ),
        (
            vec![Event::Plan(vec![check.clone()]), verdict(), verdict()],
            "has two verdicts",
        ),
    ] {
        let mut recorder = Recorder::started();
        for event in events {
            recorder.push(event);
        }
        match read(recorder.text().as_bytes()) {
            Err(RecordError::Malformed { problem: seen, .. }) => {
                assert!(seen.contains(problem), "{seen}");
            }
            other => panic!("{problem}: {other:?}"),
        }
    }
}

/// A record may hold a fixture without pods.
#[test]
fn records_of_fixtures_without_pods_are_read() {
    let fixture = json!({"service": ["10.96.0.1", 80]});
    let fixture: ReadyFixture = serde_json::from_value(fixture).expect("as it was written");
    assert!(fixture.service.is_some() && fixture.pods.is_empty());
    assert_eq!(fixture.second, None);
    let second = json!({"name": "web", "second": {"service": null, "name": "web-ipv6"}});
    let fixture: ReadyFixture = serde_json::from_value(second).expect("as it was written");
    let name = Some("web-ipv6".to_owned());
    let served = Served {
        name,
        ..Served::default()
    };
    assert_eq!(fixture.second, Some(served));
}

/// A record names the fields of a fixture so, and a malformed error is not read as no error.
#[test]
fn a_fixture_stands_in_the_record_by_the_names_of_its_fields() {
    let service = Some(("10.96.0.1".parse().expect("an address"), 80));
    let fixture = ReadyFixture {
        service,
        node_port: Some(30080),
        second_broken: Some(ErrorKind::Forbidden.error("no")),
        ..ReadyFixture::default()
    };
    let written = json!({
        "service": ["10.96.0.1", 80],
        "name": null,
        "node-port": 30080,
        "headless": null,
        "port": null,
        "udp": null,
        "pods": [],
        "domain": null,
        "balancer": null,
        "second-broken": {"kind": "forbidden", "detail": "no"},
    });
    assert_eq!(serde_json::to_value(&fixture).ok(), Some(written.clone()));
    let read = serde_json::from_value::<ReadyFixture>(written.clone());
    assert_eq!(read.ok(), Some(fixture));
    for no_trouble in [json!({"detail": "no"}), json!("no"), json!({})] {
        let mut written = written.clone();
        written["second-broken"] = no_trouble;
        let read = serde_json::from_value::<ReadyFixture>(written);
        assert!(read.is_err(), "{read:?}");
    }
}

/// The result of a selection: it keeps `wanted`, and leaves out `rest`.
fn selected<'c>(wanted: impl Iterator<Item = &'c CheckView>, rest: &[&CheckView]) -> Selected {
    let check = |view: &CheckView| Check {
        id: view.planned.id.clone(),
        claim: view.planned.claim.clone(),
        claim_type: view.planned.claim_type,
        title: view.planned.title.clone(),
        hint: view.planned.hint.clone(),
        when: view.planned.when.clone(),
        point: view.planned.point.clone(),
        represents_all: false,
        build: None,
        image: None,
        limitation: None,
        scope: Scope::Within,
        reads: BTreeSet::new(),
        disposition: view.planned.disposition.clone(),
        assertions: Vec::new(),
    };
    Selected {
        plan: Plan {
            checks: wanted.map(check).collect(),
        },
        left_out: BTreeMap::new(),
        unwanted: rest.iter().map(|view| view.planned.id.clone()).collect(),
    }
}

#[test]
fn what_was_told_is_not_dropped_by_a_run_of_less() {
    let view = runs::recorded("every-verdict").view();
    let settled: Vec<_> = view.settled().collect();
    let (first, rest) = settled.split_first().expect("some are settled");
    let kept = |selected: Selected| view.is_kept_by(&selected, &facts());
    assert_eq!(kept(selected(view.settled(), &[])), Ok(()));
    assert_eq!(kept(selected(view.checks.values(), &[])), Ok(()));
    let refused = kept(selected(rest.iter().copied(), &[*first]));
    assert_eq!(
        refused.expect_err("one is lost").to_string(),
        format!(
            "run k3x9 has verdicts of 1 check that this run does not select, such as {}: extend the \
             selection, or begin a new run",
            first.planned.id
        )
    );
    let refused = kept(selected([].into_iter(), &settled));
    let refused = refused.expect_err("all are lost").to_string();
    let many = format!(" {} checks that ", settled.len());
    assert!(refused.contains(&many), "{refused}");
}

/// No selection brings back checks that the cluster no longer has.
#[test]
fn what_was_told_of_a_cluster_that_has_changed_is_not_dropped() {
    let view = runs::recorded("every-verdict").view();
    let settled: Vec<_> = view.settled().collect();
    let (first, rest) = settled.split_first().expect("some are settled");
    let mut now = facts();
    if let Known::Fact { value, .. } = &mut now.nodes {
        value.retain(|node| node.os == Os::Linux);
    }
    let refused = |facts: &Facts| {
        let (last, rest) = rest.split_last().expect("more are settled");
        let selected = selected(rest.iter().copied(), &[*last]);
        let refused = view.is_kept_by(&selected, facts);
        refused.expect_err("one is lost").to_string()
    };
    let message = |now: &str| {
        let id = &first.planned.id;
        format!(
            "run k3x9 has verdicts of 1 check that this cluster no longer has, such as {id}; the cluster had \
             the pools linux of 2 nodes, windows-2022 of 3 nodes, 1 not usable and now has {now}: begin a new run"
        )
    };
    assert_eq!(refused(&now), message("the pools linux of 2 nodes"));
    now.nodes = Known::Unknown {
        reason: "it was not allowed\n!".to_owned(),
    };
    let unknown = "nodes that are unknown (it was not allowed⏎!)";
    assert_eq!(refused(&now), message(unknown));
}
