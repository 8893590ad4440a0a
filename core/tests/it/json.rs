//! The report for programs.

use serde_json::Value;
use winconform_core::record::Event;
use winconform_core::report::json::render;
use winconform_core::text::is_hostile;

use crate::runs;

fn rendered(view: &winconform_core::record::RunView) -> String {
    let text = render(view);
    assert_eq!(text, render(view));
    text
}

#[test]
fn repeated_and_kept() {
    insta::assert_snapshot!(rendered(&runs::recorded("repeated-and-kept").view()));
}

#[test]
fn fixture_failed() {
    let mut view = runs::recorded("fixture-failed").view();
    (view.process, view.started.unverified) = (Some(1), true);
    insta::assert_snapshot!(rendered(&view));
}

#[test]
fn the_critical_path_is_there_when_it_is_known() {
    let of = |view| {
        let report: Value = serde_json::from_str(&rendered(&view)).expect("JSON");
        report["run"]["critical-path-ms"].clone()
    };
    assert_eq!(of(runs::recorded("healthy-with-spans").view()), 3_580);
    assert_eq!(of(runs::recorded("healthy").view()), Value::Null);
    let mut twice = runs::recorded("healthy-with-spans");
    twice.push(Event::Repetition { number: 2 });
    assert_eq!(of(twice.view()), Value::Null);
}

#[test]
fn a_run_that_was_gone_on_with_is_named() {
    let mut resumed = runs::recorded("healthy");
    let report = |view| -> Value { serde_json::from_str(&rendered(&view)).expect("JSON") };
    assert_eq!(report(resumed.view())["run"]["resumed"], Value::Null);
    let (run, checks) = ("r7".to_owned(), 3);
    resumed.push(Event::Resumed { run, checks });
    let named = &report(resumed.view())["run"]["resumed"];
    assert_eq!(*named, serde_json::json!({"run": "r7", "checks": 3}));
    let junit = winconform_core::report::junit::render(&resumed.view()).expect("XML");
    let property = r#"<property name="winconform.resumed" value="r7"/>"#;
    assert!(junit.contains(property), "{junit}");
}

#[test]
fn counts_and_checks_agree() {
    for view in [
        runs::recorded("healthy").view(),
        runs::recorded("every-verdict").view(),
        runs::recorded("killed").view(),
        runs::recorded("setup-died").view(),
        runs::hostile(),
    ] {
        let report: Value = serde_json::from_str(&rendered(&view)).expect("JSON");
        let checks = report["checks"].as_array().expect("checks");
        assert_eq!(checks.len(), view.checks.len());
        for (word, count) in report["tally"].as_object().expect("a tally") {
            let listed = checks
                .iter()
                .filter(|check| check["verdict"] == word.as_str())
                .count();
            assert_eq!(count.as_u64(), Some(listed as u64), "{word}");
        }
    }
}

#[test]
fn hostile_text_is_escaped_not_lost() {
    let text = rendered(&runs::hostile());
    assert!(!text.contains(|c: char| c != '\n' && is_hostile(c)));
    assert!(text.len() < 1 << 20, "{}", text.len());
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["run"]["context"], runs::HOSTILE);
    assert_eq!(report["checks"][0]["reason"]["expected"], runs::HOSTILE);
}
