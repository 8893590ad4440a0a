//! The report on a terminal.

use unicode_width::UnicodeWidthStr;
use winconform_core::claims::{ClaimType, Pattern};
use winconform_core::fixture::FixtureName;
use winconform_core::method::ErrorKind;
use winconform_core::record::{Diagnosis, Event, Exit, Line, SIMULATED, TornDown, read};
use winconform_core::report::terminal::{Colour, Detail, render};
use winconform_core::report::{Progress, alone};
use winconform_core::text::is_hostile;
use winconform_core::verdict::Verdict;

use crate::runs;

/// Renders a report twice, and compares the bytes.
fn rendered(view: &winconform_core::record::RunView, width: usize) -> String {
    let text = render(view, width, Colour::Never, Detail::Full);
    assert_eq!(text, render(view, width, Colour::Never, Detail::Full));
    text
}

/// Compares the short report of each record with the snapshot of that name.
#[test]
fn runs_are_told_in_short() {
    for (name, record, width) in [
        ("short_healthy", "healthy", 100),
        ("short_and_narrow", "every-verdict", 60),
        ("short_of_every_verdict", "every-verdict", 100),
        ("short_of_a_failed_fixture", "fixture-failed", 100),
        ("short_of_a_killed_run", "killed", 100),
        ("short_of_a_setup_that_died", "setup-died", 100),
    ] {
        let view = runs::recorded(record).view();
        insta::assert_snapshot!(name, render(&view, width, Colour::Never, Detail::Short));
    }
}

/// Compares the report of each record with the snapshot of that name.
#[test]
fn runs_are_told() {
    for (name, record, width) in [
        ("healthy", "healthy", 100),
        ("healthy_and_narrow", "healthy", 60),
        ("every_verdict", "every-verdict", 100),
        ("repeated_and_kept", "repeated-and-kept", 100),
        ("fixture_failed", "fixture-failed", 100),
        ("killed", "killed", 100),
        ("setup_died", "setup-died", 100),
    ] {
        insta::assert_snapshot!(name, rendered(&runs::recorded(record).view(), width));
    }
}

#[test]
fn one_check_is_told_with_what_its_attempts_saw() {
    let view = runs::recorded("every-verdict").view();
    let id = "net.b-fail[pool=windows-2022]";
    let text = alone::check(&view, id, 100, Colour::Never).expect("it has this check");
    insta::assert_snapshot!(text);
    assert_eq!(alone::check(&view, "net.b-fail", 100, Colour::Never), None);
    let like: Vec<_> = alone::like(&view, "net.b")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(like, [id]);
    let hostile = runs::hostile();
    for check in hostile.checks.values() {
        let text = alone::check(&hostile, check.planned.id.as_str(), 80, Colour::Never);
        let text = text.expect("it has this check");
        assert!(
            !text.contains(|c: char| c != '\n' && is_hostile(c)),
            "{text}"
        );
    }
}

#[test]
fn what_is_to_be_looked_at_can_be_selected() {
    for record in [
        "every-verdict",
        "failed-by-case",
        "fixture-failed",
        "killed",
    ] {
        let view = runs::recorded(record).view();
        let text = render(&view, 100, Colour::Never, Detail::Short);
        let (_, lines) = text
            .split_once("checks to look at\n")
            .expect("there are some");
        let lines: Vec<_> = lines
            .lines()
            .take_while(|line| !line.contains("--details"))
            .collect();
        assert!(!lines.is_empty(), "{text}");
        for line in lines {
            let pattern = line
                .split_whitespace()
                .nth(1)
                .expect("a verdict, then a pattern");
            let pattern = Pattern::parse(pattern).expect("a pattern");
            let mut checks = view.checks.values();
            assert!(
                checks.any(|check| pattern.covers(check.planned.id.as_str())),
                "{line}"
            );
        }
    }
}

#[test]
fn the_critical_path_is_told_beside_the_tear_down() {
    let text = rendered(&runs::recorded("healthy-with-spans").view(), 100);
    let lines: Vec<_> = text.lines().rev().take(4).collect();
    assert_eq!(
        lines[2],
        "critical path: 3.6 s of 9.0 s, of which 2.0 s tear-down"
    );
    assert!(lines[3].starts_with("tear-down: "), "{lines:?}");
}

#[test]
fn of_nodes_that_are_each_observed_from_it_tells_which_and_how_many() {
    let view = runs::recorded("from-each-node").view();
    let text = rendered(&view, 100);
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let expected = "observed    from windows-2022 1 of 3 nodes (win-0)";
    assert!(lines.contains(&expected), "{text}");
    assert!(lines.contains(&"from node   win-0"), "{text}");
    let json = winconform_core::report::json::render(&view);
    assert!(json.contains(r#""node-name": "win-0""#), "{json}");
    let junit = winconform_core::report::junit::render(&view).expect("a report");
    let property = r#"name="winconform.observed-from" value="windows-2022 1 of 3 nodes (win-0)""#;
    assert!(junit.contains(property), "{junit}");
}

/// One that observes it although it is not ready.
#[test]
fn a_fixture_that_failed_breaks_no_check_that_fails_by_itself() {
    let point = runs::point_at(None);
    let check = runs::planned("pod.density", ClaimType::Capability, point, "pods start");
    let id = check.id.clone();
    let error = ErrorKind::FixtureFailed.error("no sandbox");
    let mut recorder = runs::Recorder::started();
    recorder
        .push(Event::Facts(Box::new(runs::facts())))
        .push(Event::Plan(vec![check]))
        .push(runs::failed(FixtureName::WIN_WEBSERVER, error, 2_000))
        .push(Event::Verdict {
            check: id.clone(),
            conclusion: runs::saw(Verdict::Fail, "6 pods Ready", "5 Ready"),
        })
        .push(Event::Diagnosis(Diagnosis {
            fixture: runs::fixture(FixtureName::WIN_WEBSERVER),
            checks: vec![id],
            evidence: Vec::new(),
        }));
    let view = recorder.push(runs::ended(Exit::NotConformant)).view();
    let text = rendered(&view, 100);
    let failed = "fixture-failed: no sandbox\n    evidence    record.jsonl, fixture win-webserver";
    assert!(text.contains(failed), "{text}");
}

/// Nothing is known of the nodes, which is not that none of them works.
#[test]
fn a_run_that_was_killed_early_tells_nothing_of_its_nodes() {
    let mut view = runs::recorded("from-each-node").view();
    for check in view.checks.values_mut() {
        check.conclusion = None;
    }
    let none = "observed    from windows-2022 0 of 3 nodes";
    assert!(rendered(&view, 100).contains(none));
    view.ended = None;
    let text = rendered(&view, 100);
    assert!(!text.contains("observed    from"), "{text}");
}

#[test]
fn findings_stand_in_the_order_of_the_rows() {
    let text = rendered(&runs::recorded("failed-by-case").view(), 200);
    let (rows, findings) = text.split_once("findings").expect("there are some");
    let order = |text: &str| {
        let words = text.lines().filter_map(|line| {
            let id = line.trim().strip_prefix("fail ")?.trim_start();
            id.split(' ').next().map(str::to_owned)
        });
        words.collect::<Vec<_>>()
    };
    assert_eq!(order(rows).len(), 2, "{text}");
    assert_eq!(order(rows), order(findings), "{text}");
}

#[test]
fn of_a_simulation_nothing_is_to_be_cleaned_up() {
    let mut view = runs::recorded("killed").view();
    assert!(rendered(&view, 100).contains("winconform cleanup"));
    view.started.context = format!("{SIMULATED}; broken in it: dns-down");
    assert!(!rendered(&view, 100).contains("winconform cleanup"));
}

#[test]
fn hostile_text_stays_text() {
    let view = runs::hostile();
    for width in [0, 40, 80, 100, 250] {
        for detail in [Detail::Short, Detail::Full] {
            let text = render(&view, width, Colour::Never, detail);
            let hostile = text.contains(|c: char| c != '\n' && is_hostile(c));
            assert!(!hostile, "at {width}");
        }
        let text = rendered(&view, width);
        assert!(text.len() < 200_000, "{} bytes at {width}", text.len());
        // An address is never broken
        for line in text.lines().filter(|line| !line.contains("https://")) {
            assert!(
                line.width() <= width.max(40),
                "{} columns at {width}: {line}",
                line.width()
            );
        }
        let forged = text
            .lines()
            .any(|line| line.starts_with("10 checks: 10 pass"));
        assert!(!forged, "a foreign line end made a line of its own");
    }
}

#[test]
fn colours_are_asked_for() {
    let view = runs::recorded("every-verdict").view();
    let coloured = render(&view, 100, Colour::Always, Detail::Full);
    assert!(coloured.contains("\u{1b}[1;31mfail"));
    let mut plain = coloured;
    for code in ["0", "1", "2", "32", "33", "35", "36", "1;31"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(plain, rendered(&view, 100));
}

#[test]
fn the_tally_is_last_and_as_wide_as_the_rest() {
    for (view, last) in [
        (
            runs::recorded("healthy").view(),
            "6 checks: 5 pass, 1 known limitation (0 flaky) in 7.0 s — conformant (exit 0)",
        ),
        (
            runs::recorded("fixture-failed").view(),
            "6 checks: 2 pass, 3 inconclusive, 1 fail (0 flaky) in 7.5 s — not conformant (exit 10)",
        ),
        (
            runs::recorded("killed").view(),
            "6 checks: 1 pass, 1 known limitation, 4 unfinished (0 flaky) in 3.5 s — could not \
             tell (exit 11)",
        ),
    ] {
        assert_eq!(rendered(&view, 200).lines().last(), Some(last));
        let narrow = rendered(&view, 40);
        let (_, tally) = narrow
            .trim_end()
            .rsplit_once("\n\n")
            .expect("a part of its own");
        assert_eq!(tally.replace('\n', " "), last);
        assert!(tally.lines().all(|line| line.width() <= 40), "{tally}");
    }
}

#[test]
fn a_clock_that_is_set_meanwhile_changes_no_duration() {
    let mut view = runs::recorded("healthy").view();
    view.last = view.began - jiff::SignedDuration::from_hours(5);
    let ended = view.ended.as_mut().expect("it ended");
    ended.took_ms = Some(7_200);
    let report = rendered(&view, 100);
    let last = report.lines().last().unwrap_or_default();
    assert!(last.contains(" in 7.2 s "), "{last}");
}

#[test]
fn progress_tells_what_matters_on_one_line() {
    let run = runs::recorded("fixture-failed");
    let lines = run
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).expect("a line"));
    let lines: Vec<_> = lines.collect();
    let mut progress = Progress::new(Detail::Full, false);
    let full = lines.iter().flat_map(|line| progress.tell(line));
    let ready = "ready              namespaces after 0.1 s";
    assert_eq!(full.filter(|line| line == ready).count(), 1);
    let mut progress = Progress::new(Detail::Short, false);
    let mut told: Vec<_> = lines.iter().flat_map(|line| progress.tell(line)).collect();
    let mut recorder = runs::Recorder::started();
    for event in [
        Event::Interrupted {
            by: "SIGINT\u{1b}[2J".to_owned(),
        },
        Event::TornDown(TornDown::default()),
    ] {
        told.extend(progress.tell(&recorder.line(event)));
    }
    for line in &told {
        assert!(!line.contains(is_hostile), "{line}");
    }
    insta::assert_snapshot!(told.join("\n"));
    let mut drawn = Progress::new(Detail::Short, true);
    let drawn = lines.iter().flat_map(|line| drawn.tell(line));
    let counts = |line: &String| {
        ["planned", "observed"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    assert!(told.iter().any(counts) && !drawn.into_iter().any(|line| counts(&line)));
}

#[test]
fn what_a_registry_lacks_is_no_suspect_of_anything_else() {
    let report = |name, kind: ErrorKind| {
        let mut recorder = runs::Recorder::started();
        recorder
            .push(runs::unoffered())
            .push(runs::failed(name, kind.error("why"), 1));
        rendered(&read(recorder.text().as_bytes()).expect("a record"), 100)
    };
    for (name, kind, suspect) in [
        (FixtureName::WIN_WEBSERVER, ErrorKind::ImagePull, true),
        (FixtureName::WIN_WEBSERVER, ErrorKind::BuildMismatch, true),
        (FixtureName::WIN_WEBSERVER, ErrorKind::Unscheduled, false),
        (FixtureName::IIS, ErrorKind::ImagePull, false),
    ] {
        let text = report(name, kind);
        assert_eq!(text.contains("suspect"), suspect, "{text}");
    }
}

#[test]
fn what_could_not_be_looked_for_is_not_said_to_be_gone() {
    let mut view = runs::recorded("healthy").view();
    let announced = view.intents.len();
    assert!(announced > 1, "it creates something");
    let removed = view.intents.iter().take(1).cloned().collect();
    view.torn_down = Some(TornDown {
        removed,
        unlisted: true,
        errors: vec!["get deployments: unauthenticated".to_owned()],
        ..TornDown::default()
    });
    let text = rendered(&view, 100);
    assert!(!text.contains("nothing left"), "{text}");
    let up_to = format!("up to {} object", announced - 1);
    let same = "with the --kubeconfig and --context of the run, if it had them";
    for part in [
        up_to.as_str(),
        "winconform cleanup --run",
        same,
        "could not tell",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = winconform_core::report::json::render(&view);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["tear-down"]["done"], false);
    let left = json["tear-down"]["left"].as_array().expect("a list");
    assert_eq!(left.len(), announced - 1);
}

#[test]
fn fixtures_blamed_in_a_circle_are_still_told() {
    let needs = |name| {
        let detail = format!("{} does not stand", runs::fixture(name));
        ErrorKind::FixtureFailed.error(detail)
    };
    let mut recorder = runs::Recorder::started();
    let (a, b) = (FixtureName::WIN_WEBSERVER, FixtureName::WINDOWS_POD_PROBER);
    recorder
        .push(runs::failed(a, needs(b), 1))
        .push(runs::failed(b, needs(a), 1));
    let text = rendered(&read(recorder.text().as_bytes()).expect("a record"), 100);
    assert!(text.contains("win-webserver in windows-2022"), "{text}");
}

#[test]
fn what_changed_is_counted_in_short_and_some_of_it_named() {
    let mut view = runs::recorded("every-verdict").view();
    let baseline = runs::recorded("healthy").view();
    view.baseline = Some(winconform_core::report::json::render(&baseline));
    for (detail, lines, names_all) in [(Detail::Short, 9, false), (Detail::Full, 18, true)] {
        let text = render(&view, 100, Colour::Never, detail);
        let (_, since) = text.split_once("\nsince k3x9").expect("it is compared");
        let (since, _) = since.split_once("\n\n").expect("more follows");
        assert!(since.contains("1 new failure"), "{since}");
        assert!(
            since.contains("  fail               net.b-fail["),
            "{since}"
        );
        let told = (since.lines().count(), since.contains("net.e-lifted["));
        assert_eq!(told, (lines, names_all), "{since}");
    }
}

#[test]
fn no_id_is_broken_over_two_lines() {
    for record in [
        "every-verdict",
        "failed-by-case",
        "fixture-failed",
        "from-each-node",
        "killed",
    ] {
        let view = runs::recorded(record).view();
        for width in [60, 80, 120, 200] {
            for detail in [Detail::Short, Detail::Full] {
                let text = render(&view, width, Colour::Never, detail);
                let joined: String = text.lines().map(str::trim).collect();
                for check in view.checks.values() {
                    let id = check.planned.id.as_str();
                    let [whole, all] = [&text, &joined].map(|text| text.matches(id).count());
                    assert_eq!(whole, all, "{id} at {width} in {record}:\n{text}");
                }
            }
        }
    }
}

#[test]
fn no_id_without_a_pool_is_broken_over_two_lines() {
    let mut view = runs::recorded("every-verdict").view();
    let id = "net.pod-to-node/from-linux[source=linux-pod]";
    let check = view.checks.values_mut().next().expect("a check");
    check.planned.id = serde_json::from_value(serde_json::json!(id)).expect("an id");
    for width in [60, 80, 120, 200] {
        let text = rendered(&view, width);
        assert!(text.contains(id), "at {width}: {text}");
    }
}
