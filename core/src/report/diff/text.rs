//! A comparison for people.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use strum::VariantArray;

use super::{Change, Checked, Diff, Report, UNFINISHED, Why};
use crate::report::text::folded::add;
use crate::report::text::layout::pad;
use crate::report::text::patterns::{line, pattern};
use crate::report::text::summary::seconds;
use crate::report::text::terminal::{Detail, VERDICT};
use crate::text::{counted, printable};

/// Lines of one change in short; more are counted.
const LINES: usize = 15;
/// The most checks that are named because they took longer.
const SLOWER: usize = 5;
/// How much longer one of them took at least, in milliseconds.
const LEAST_MS: u64 = 1_000;

/// Renders a comparison for a terminal of `width` columns; the last line counts the changes. Foreign text comes out
/// without control characters.
pub fn render(diff: &Diff, width: usize, detail: Detail) -> String {
    let mut lines = vec![
        format!("before  {}{}", run(&diff.before), killed(&diff.before)),
        format!("after   {}{}", run(&diff.after), killed(&diff.after)),
    ];
    let new: &[Checked] = diff.changes.get(&Change::New).map_or(&[], Vec::as_slice);
    let causes = diff.after.causes.iter().filter_map(|cause| {
        let of_it = new
            .iter()
            .filter(|check| cause.checks.contains(&check.id))
            .count();
        let counts = format!("{of_it} of {}", counted(cause.checks.len(), "check"));
        let (component, says) = (printable(&cause.component), printable(&cause.says));
        (of_it > 0).then(|| format!("  {}{says} ({counts})", pad(&component, VERDICT)))
    });
    let causes: Vec<_> = causes.collect();
    if !causes.is_empty() {
        lines.extend([
            String::new(),
            "likely causes of the new failures".to_owned(),
        ]);
        lines.extend(causes);
    }
    let most = match detail {
        Detail::Short => LINES,
        Detail::Full => usize::MAX,
    };
    for (word, checks) in changes(diff, most, width) {
        lines.extend([String::new(), word.to_owned()]);
        lines.extend(checks);
    }
    let slower = slower(diff);
    if !slower.is_empty() {
        lines.extend([String::new(), "took longer".to_owned()]);
        lines.extend(slower);
    }
    lines.extend([String::new(), counts(diff), String::new()]);
    lines.join("\n")
}

/// Each change with its checks, as patterns on at most so many printable lines; more are counted.
pub(crate) fn changes(diff: &Diff, most: usize, width: usize) -> Vec<(&'static str, Vec<String>)> {
    let change = |(change, checks): (&Change, &Vec<Checked>)| {
        let mut groups = Vec::new();
        for check in checks {
            add(&mut groups, pattern(&check.id), check);
        }
        let more = groups.split_off(groups.len().min(most));
        let groups = groups.iter();
        let lines = groups.filter_map(|(pattern, checks)| group(pattern, checks, width));
        let mut lines: Vec<_> = lines.collect();
        let more: usize = more.iter().map(|(_, checks)| checks.len()).sum();
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
        (change.into(), lines)
    };
    // A user who selects a part does not ask for the rest
    let changes = diff.changes.iter();
    let changes = changes.filter(|(change, _)| **change != Change::Unselected);
    changes.map(change).collect()
}

/// The checks whose time grew most, one a line.
fn slower(diff: &Diff) -> Vec<String> {
    let before = diff.before.checks.iter();
    let before: BTreeMap<_, _> = before
        .filter_map(|check| Some((&check.id, check.took_ms?)))
        .collect();
    let grown = diff.after.checks.iter().filter_map(|check| {
        let (had, has) = (*before.get(&check.id)?, check.took_ms?);
        let more = has.saturating_sub(had);
        (more >= LEAST_MS).then_some((Reverse(more), &check.id, had, has))
    });
    let mut grown: Vec<_> = grown.collect();
    grown.sort();
    let grown = grown.into_iter().take(SLOWER);
    let line = |(Reverse(more), id, had, has): (Reverse<u64>, &String, u64, u64)| {
        let more = pad(&format!("+{}", seconds(more)), VERDICT);
        let (had, has) = (seconds(had), seconds(has));
        format!("  {more}{}  {had} before, {has} after", printable(id))
    };
    grown.map(line).collect()
}

/// How many checks changed how.
pub(crate) fn counts(diff: &Diff) -> String {
    // Hardly any run is killed, and few are of a part
    let rare = [Change::Cut, Change::Unselected];
    let told = |change: &&Change| !rare.contains(change) || diff.count(**change) > 0;
    let counts = Change::VARIANTS.iter().filter(told);
    let counts = counts.map(|change| match (change, diff.count(*change)) {
        (Change::New, 1) => "1 new failure".to_owned(),
        (change, count) => format!("{count} {}", <&str>::from(change)),
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn run(report: &Report) -> String {
    let (run, exit) = (&report.run, &report.exit);
    let server = report
        .server
        .as_ref()
        .and_then(|server| server.version.as_deref());
    printable(&format!(
        "{}, began {}, winconform {}, server {}: {} (exit {}), {} in {}",
        run.id,
        run.began,
        run.version,
        server.unwrap_or("unknown"),
        exit.meaning,
        exit.code,
        counted(report.checks.len(), "check"),
        seconds(run.took_ms)
    ))
}

/// What a kill has cost a run, behind its line.
fn killed(report: &Report) -> String {
    let checks = report.checks.iter();
    let unfinished = checks.filter(|check| check.verdict == UNFINISHED).count();
    match (report.checks.len(), unfinished) {
        _ if !report.was_killed() => String::new(),
        (0, _) => "; killed before it had a plan".to_owned(),
        (_, 0) => "; killed after its last verdict".to_owned(),
        (_, some) => format!("; killed before {}", counted(some, "verdict")),
    }
}

fn group(pattern: &str, checks: &[&Checked], width: usize) -> Option<String> {
    let first = checks.first()?;
    let ids: Vec<_> = checks.iter().map(|check| check.id.as_str()).collect();
    let Why { seen, cause } = &first.reason;
    let is_told = first.fails() || !first.is_observed();
    let why = cause.as_deref().or(seen.as_deref()).filter(|_| is_told);
    let text = line(pattern, &ids, &printable(why.unwrap_or_default()), width);
    let verdict = pad(&printable(&first.verdict), VERDICT);
    Some(format!("  {verdict}{text}"))
}
