//! Metrics of a run as text, for the textfile collector of Prometheus' node exporter, a Pushgateway, and GitLab.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::findings::finding::word;
use super::super::json::ending;
use super::super::text::summary::took_ms;
use crate::record::RunView;
use crate::text::printable;

/// Renders the metrics of a run. Their labels are areas, pools and verdicts, so that there are few series whatever the
/// cluster; text of a cluster is escaped.
pub fn metrics(view: &RunView) -> String {
    let mut text = String::new();
    let mut checks = BTreeMap::<_, usize>::new();
    for check in view.checks.values() {
        let planned = &check.planned;
        let pool = planned.point.pool.as_ref();
        let pool = pool.map_or("", |pool| pool.as_str());
        let kind = (planned.claim.area(), pool, word(check.verdict()));
        *checks.entry(kind).or_default() += 1;
    }
    head(&mut text, "checks", "Checks by area, pool and verdict.");
    for ((area, pool, verdict), count) in checks {
        let labels = [("area", area), ("pool", pool), ("verdict", verdict)];
        sample(&mut text, "checks", &labels, count);
    }
    let help = "Checks that the selection left out; 0 for a whole run.";
    head(&mut text, "checks_left_out", help);
    sample(&mut text, "checks_left_out", &[], view.unselected());
    let server = view.facts.as_ref();
    let server = server
        .and_then(|facts| facts.server.value())
        .map_or("", String::as_str);
    let version = view.started.version.as_str();
    head(
        &mut text,
        "run_info",
        "The program and the server of the run.",
    );
    sample(
        &mut text,
        "run_info",
        &[("server", server), ("version", version)],
        1,
    );
    let began = view.began.as_second();
    for (name, help, value) in [
        (
            "run_exit_code",
            "What the run ended with.",
            i64::from(ending(view).0),
        ),
        ("run_start_timestamp_seconds", "When the run began.", began),
    ] {
        head(&mut text, name, help);
        sample(&mut text, name, &[], value);
    }
    let took = took_ms(view);
    head(&mut text, "run_duration_seconds", "How long the run took.");
    let seconds = format!("{}.{:03}", took / 1000, took % 1000);
    sample(&mut text, "run_duration_seconds", &[], seconds);
    text
}

fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(
        text,
        "# HELP winconform_{name} {help}\n# TYPE winconform_{name} gauge"
    );
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    let labels = labels.iter().map(|(label, value)| {
        let value = printable(value).replace('\\', "\\\\").replace('"', "\\\"");
        format!("{label}=\"{value}\"")
    });
    let labels = labels.collect::<Vec<_>>().join(",");
    let labels = if labels.is_empty() {
        labels
    } else {
        format!("{{{labels}}}")
    };
    let _ = writeln!(text, "winconform_{name}{labels} {value}");
}
