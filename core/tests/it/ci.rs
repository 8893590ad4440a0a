//! What systems of continuous integration read of a run.

use winconform_core::record::RunView;
use winconform_core::report::ci::{azure, github, metadata, metrics, summary};
use winconform_core::report::junit::render;
use winconform_core::text::is_hostile;

use crate::runs;

#[test]
fn systems_are_told_what_a_run_came_to() {
    let view = runs::recorded("every-verdict").view();
    let told = [github(&view), azure(&view)].concat().join("\n");
    insta::assert_snapshot!("annotations", told);
    insta::assert_snapshot!("metrics", metrics(&view));
    insta::assert_snapshot!("metadata", metadata(&view));
    let summary = summary(&view);
    assert!(
        summary.starts_with("### winconform: not conformant\n\n```text\nnot conformant (exit 10)")
    );
    assert_eq!(summary.matches("```").count(), 4, "two blocks of code");
}

#[test]
fn what_a_cluster_says_is_neither_a_command_nor_markup() {
    for record in ["hostile", "fixture-failed", "killed", "setup-died"] {
        let view = runs::recorded(record).view();
        let (github, azure) = (github(&view), azure(&view));
        for line in github.iter().chain(&azure) {
            let hostile = line.chars().find(|one| is_hostile(*one));
            assert_eq!(hostile, None, "{record}: {line}");
        }
        for line in &github {
            assert!(
                line.starts_with("::") && line.len() < 4096,
                "{record}: {line}"
            );
        }
        let families = metrics(&view);
        for line in families.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(
                name.starts_with("winconform_") && value.parse::<f64>().is_ok(),
                "{line}"
            );
        }
        // No fence in it but its own
        let summary = summary(&view);
        let (fence, rest) = summary.split_once("text\n").expect("a block");
        let fence = fence.rsplit('\n').next().expect("a fence");
        assert_eq!(rest.matches(fence).count(), 3, "{record}");
    }
}

#[test]
fn every_report_tells_a_part_from_the_whole() {
    let mut view = runs::recorded("healthy").view();
    let whole = [summary(&view), metrics(&view), junit(&view)].concat();
    assert!(!whole.contains("not selected") && !whole.contains("winconform.left-out"));
    assert!(whole.contains("\nwinconform_checks_left_out 0\n"));
    let first = view.checks.values().next().expect("a check");
    let gone = ["a", "b", "c", "d", "e"].map(|name| serde_json::json!(format!("net.{name}")));
    let gone = gone.map(|id| serde_json::from_value(id).expect("an id"));
    view.started.again = gone.into_iter().chain([first.planned.id.clone()]).collect();
    view.started.selection = vec!["what was amiss in run r0".to_owned()];
    view.left_out.insert("net".to_owned(), 12);
    let (summary, metrics, junit) = (summary(&view), metrics(&view), junit(&view));
    assert!(
        summary.contains("conformant (exit 0): 12 not selected\n"),
        "{summary}"
    );
    let words = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    let selected = "run r0 (6 of 18 checks); no longer there: net.a, net.b, net.c and 2 more";
    assert!(words.contains(selected), "{words}");
    assert!(
        metrics.contains("\nwinconform_checks_left_out 12\n"),
        "{metrics}"
    );
    assert!(
        junit.contains("name=\"winconform.left-out\" value=\"12\""),
        "{junit}"
    );
}

fn junit(view: &RunView) -> String {
    render(view).expect("a report")
}
