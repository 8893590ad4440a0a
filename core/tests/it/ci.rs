//! What systems of continuous integration read of a run.

use winconform_core::report::ci::{azure, github, metadata, metrics, summary};
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
