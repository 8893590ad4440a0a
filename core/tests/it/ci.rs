//! What systems of continuous integration read of a run.

use winconform_core::claims::ClaimType;
use winconform_core::record::{Event, Exit, RunView};
use winconform_core::report::causes::causes;
use winconform_core::report::ci::{azure, github, metadata, metrics, summary};
use winconform_core::report::junit::render;
use winconform_core::text::is_hostile;
use winconform_core::verdict::Verdict;

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

/// GitHub drops a summary above 1 MiB without a word.
#[test]
fn a_summary_is_cut_with_a_sentence_at_900_kib() {
    for (checks, cut) in [(30, false), (3_000, true)] {
        let view = runs::recorded("every-verdict").view();
        let view = runs::many(view, "net.b-fail[pool=windows-2022]", checks);
        let summary = summary(&view);
        let size = summary.len();
        assert!(size <= 900 << 10, "{checks}: {size} bytes");
        let sentence = "\n… the reports have the rest\n";
        assert_eq!(summary.contains(sentence), cut, "{checks}");
        assert!(!cut || size > 890 << 10, "{checks}: {size} bytes");
        // What is cut is still one block of code
        assert_eq!(summary.matches("```").count(), 4, "{checks}");
        assert!(summary.ends_with("```\n\n</details>\n"), "{checks}");
    }
}

/// What is seen where a cause shows, of each another one.
const OF_A_CAUSE: [&str; 13] = [
    "has booted",
    "admission webhook",
    "the kubelet refuses the api server",
    "forbidden: exec",
    "as it was created",
    "no runtime for",
    "no match for platform",
    "imagepullbackoff",
    "hostprocess container",
    "build-mismatch: pod ",
    "failed to setup network for sandbox",
    "containercreating",
    "0xc0000142",
];

/// A run with a check that fails for each of these sights, and before them one with this verdict, if one is given.
fn failed(seen: &[&str], first: Option<Verdict>) -> RunView {
    let first = first.map(|verdict| (verdict, "it works"));
    let failed = seen.iter().map(|seen| (Verdict::Fail, *seen));
    let verdicts: Vec<_> = first.into_iter().chain(failed).collect();
    let planned = |place: usize| {
        let claim = format!("a.c{place}");
        runs::planned(&claim, ClaimType::Capability, runs::point_at(None), "it")
    };
    let plan: Vec<_> = (0..verdicts.len()).map(planned).collect();
    let mut recorder = runs::Recorder::started();
    recorder
        .push(Event::Facts(Box::new(runs::facts())))
        .push(Event::Plan(plan.clone()));
    for (check, (verdict, seen)) in plan.into_iter().zip(verdicts) {
        recorder.push(Event::Verdict {
            check: check.id,
            conclusion: runs::saw(verdict, "one", seen),
        });
    }
    recorder.push(runs::ended(Exit::NotConformant)).view()
}

/// One says what the run came to.
#[test]
fn each_cause_has_an_annotation_and_what_exceeds_ten_is_counted() {
    for many in [3, 9, 10, OF_A_CAUSE.len()] {
        let view = failed(&OF_A_CAUSE[..many], None);
        let (causes, unexplained) = causes(&view);
        assert_eq!((causes.len(), unexplained.len()), (many, 0));
        let lines = github(&view);
        assert_eq!(lines.len(), (many + 1).min(10), "{lines:#?}");
        let told = if many < 10 { many } else { 8 };
        for (place, cause) in causes.iter().enumerate() {
            let of_it = lines.iter().filter(|line| line.contains(&cause.says));
            assert_eq!(of_it.count(), usize::from(place < told), "{}", cause.says);
        }
        let counted = format!("::and {} more: see the reports", many - told);
        let last = lines.last().expect("there are some");
        assert_eq!(last.ends_with(&counted), many > told, "{last}");
    }
}

#[test]
fn a_lifted_limitation_is_one_of_ten_annotations() {
    let view = failed(&OF_A_CAUSE, Some(Verdict::LimitationLifted));
    let lines = github(&view);
    assert!(lines.len() <= 10, "{lines:#?}");
}

fn junit(view: &RunView) -> String {
    render(view).expect("a report")
}
