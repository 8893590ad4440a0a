//! A comparison for people.

use strum::VariantArray;

use super::{Change, Checked, Diff, Report, Why};
use crate::report::text::layout::{columns, fit, pad};
use crate::report::text::patterns::pattern;
use crate::report::text::summary::seconds;
use crate::text::{counted, printable};

/// Lines of one change; more are counted.
const LINES: usize = 15;
/// Columns a reason needs to say anything beside its checks.
const REASON: usize = 20;

/// Renders a comparison for a terminal of `width` columns; the last line counts the changes. Foreign text comes out
/// without control characters.
pub fn render(diff: &Diff, width: usize) -> String {
    let mut lines = vec![
        format!("before  {}", run(&diff.before)),
        format!("after   {}", run(&diff.after)),
    ];
    let new: &[Checked] = diff.changes.get(&Change::New).map_or(&[], Vec::as_slice);
    let causes = diff.after.causes.iter().filter_map(|cause| {
        let of_it = new
            .iter()
            .filter(|check| cause.checks.contains(&check.id))
            .count();
        let counts = format!("{of_it} of {}", counted(cause.checks.len(), "check"));
        let (component, says) = (printable(&cause.component), printable(&cause.says));
        (of_it > 0).then(|| format!("  {}{says} ({counts})", pad(&component, 19)))
    });
    let causes: Vec<_> = causes.collect();
    if !causes.is_empty() {
        lines.extend([
            String::new(),
            "likely causes of the new failures".to_owned(),
        ]);
        lines.extend(causes);
    }
    for (change, checks) in &diff.changes {
        lines.extend([String::new(), <&str>::from(change).to_owned()]);
        let mut groups = Vec::<(String, Vec<&Checked>)>::new();
        for check in checks {
            let pattern = pattern(&check.id);
            match groups.iter_mut().find(|(known, _)| *known == pattern) {
                Some((_, checks)) => checks.push(check),
                None => groups.push((pattern, vec![check])),
            }
        }
        let more = groups.split_off(groups.len().min(LINES));
        lines.extend(
            groups
                .iter()
                .filter_map(|(pattern, checks)| group(pattern, checks, width)),
        );
        let more: usize = more.iter().map(|(_, checks)| checks.len()).sum();
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
    }
    let counts = Change::VARIANTS.iter().map(|change| {
        let word: &str = change.into();
        format!("{} {word}", diff.count(*change))
    });
    let counts: Vec<_> = counts.collect();
    lines.extend([String::new(), counts.join(", "), String::new()]);
    lines.join("\n")
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

fn group(pattern: &str, checks: &[&Checked], width: usize) -> Option<String> {
    let first = checks.first()?;
    let text = match checks {
        [only] => printable(&only.id),
        many => format!("{} ({})", printable(pattern), many.len()),
    };
    let line = format!("  {}{text}", pad(&printable(&first.verdict), 19));
    let Why { seen, cause } = &first.reason;
    let is_told = first.fails() || !first.is_observed();
    let why = cause.as_deref().or(seen.as_deref()).filter(|_| is_told);
    let aside = width.saturating_sub(columns(&line) + 2);
    Some(match why {
        Some(why) if aside >= REASON => format!("{line}  {}", fit(&printable(why), aside)),
        _ => line,
    })
}
