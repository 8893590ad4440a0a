//! The run in one line, and the cluster in a few words.

use std::fmt::Write as _;

use crate::facts::{Facts, Os};
use crate::record::{RunView, Started, Tally, critical_path, exit};
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// The verdicts in the order a tally names them: what decides comes last.
const ORDER: [Verdict; 8] = [
    Verdict::Pass,
    Verdict::KnownLimitation,
    Verdict::Informational,
    Verdict::LimitationLifted,
    Verdict::Warn,
    Verdict::Skip,
    Verdict::Inconclusive,
    Verdict::Fail,
];

/// `6 checks: 4 pass, 1 fail (0 flaky) in 12.3 s — not conformant (exit 10)`.
pub(crate) fn tally(view: &RunView) -> String {
    let tally = Tally::from_view(view);
    let mut counts: Vec<_> = ORDER
        .into_iter()
        .map(|verdict| (tally.count(verdict), verdict.as_str().replace('-', " ")))
        .collect();
    counts.push((tally.unfinished, "unfinished".to_owned()));
    let counts: Vec<_> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| match word.as_str() {
            "known limitation" => counted(count, &word),
            "limitation lifted" => format!("{} lifted", counted(count, "limitation")),
            _ => format!("{count} {word}"),
        })
        .collect();
    let mut line = counted(view.checks.len(), "check");
    if !counts.is_empty() {
        let _ = write!(line, ": {} ({} flaky", counts.join(", "), tally.flaky);
        if tally.waived > 0 {
            let _ = write!(line, ", {} waived", tally.waived);
        }
        line.push(')');
    }
    let exit = exit(view);
    let took = seconds(took_ms(view));
    let _ = write!(
        line,
        " in {took} — {} (exit {})",
        exit.as_str(),
        view.process.unwrap_or(exit.code())
    );
    line
}

/// From the first line of the record to its last, in milliseconds.
pub(crate) fn took_ms(view: &RunView) -> u64 {
    if let Some(took) = view.ended.as_ref().and_then(|ended| ended.took_ms) {
        return took;
    }
    let took = view.last.duration_since(view.began).as_millis();
    // A clock set back makes it negative
    u64::try_from(took).unwrap_or_default()
}

/// The least that the run could have taken: `critical path: 96.1 s of 98.0 s, of which 71.2 s slow-starter in
/// windows-2022`.
pub(crate) fn path(view: &RunView) -> Option<String> {
    let path = critical_path(view)?;
    let (took, whole) = (seconds(path.took_ms), seconds(took_ms(view)));
    let longest = path.spans.iter().max_by_key(|span| span.took_ms)?;
    let (most, what) = (
        seconds(longest.took_ms),
        printable(&longest.what.to_string()),
    );
    Some(format!(
        "critical path: {took} of {whole}, of which {most} {what}"
    ))
}

/// Milliseconds as seconds: `12.3 s`.
pub(crate) fn seconds(ms: u64) -> String {
    // In whole numbers, so that every platform prints the same
    let tenths = ms.saturating_add(50) / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// Which cluster a run was on; printable.
pub(crate) fn context(started: &Started) -> String {
    let unverified = match started.unverified {
        true => ", whose certificate was not verified: another server may have answered",
        false => "",
    };
    printable(&started.context) + unverified
}

/// Which checks were selected, and how many of all; empty for all; printable.
pub(crate) fn selection(view: &RunView) -> String {
    let selected = &view.started.selection;
    if selected.is_empty() {
        return String::new();
    }
    let total = counted(view.checks.len() + view.unselected(), "check");
    let selected = printable(&selected.join(", "));
    let mut selected = format!("{selected} ({} of {total})", view.checks.len());
    let gone = view.gone();
    for (before, check) in ["; no longer there: ", ", ", ", "].into_iter().zip(&gone) {
        selected.push_str(before);
        selected.push_str(&printable(check.as_str()));
    }
    if gone.len() > 3 {
        let _ = write!(selected, " and {} more", gone.len() - 3);
    }
    selected
}

/// The server's version, or why it is unknown; printable.
pub(crate) fn server(facts: Option<&Facts>) -> String {
    let untold = Err("the run ended before it gave a verdict");
    match facts.map_or(untold, |facts| facts.server.known()) {
        Ok(version) => printable(version),
        Err(reason) => format!("unknown: {}", printable(reason)),
    }
}

/// Each pool with its nodes, or why they are unknown; printable.
pub(crate) fn pools(facts: &Facts) -> Vec<String> {
    let nodes = match facts.nodes.known() {
        Ok(nodes) => nodes,
        Err(reason) => return vec![format!("unknown: {}", printable(reason))],
    };
    let mut pools: Vec<_> = facts
        .pools()
        .iter()
        .map(|(name, pool)| {
            let name = printable(name.as_str());
            let total = counted(pool.total(), "node");
            match pool.unused().join(", ") {
                unused if unused.is_empty() => format!("{name} {total}"),
                unused => format!("{name} {total} ({unused})"),
            }
        })
        .collect();
    let nameless = nodes
        .iter()
        .filter(|node| node.os == Os::Windows && node.build.is_none());
    match nameless.count() {
        0 => {}
        count => pools.push(format!(
            "windows of unknown build {}",
            counted(count, "node")
        )),
    }
    let virtual_nodes = facts.virtual_nodes.value().map_or(0, Vec::len);
    if virtual_nodes > 0 {
        let nodes = counted(virtual_nodes, "virtual node");
        pools.push(format!("{nodes} (not used)"));
    }
    if pools.is_empty() {
        pools.push("none".to_owned());
    }
    pools
}
