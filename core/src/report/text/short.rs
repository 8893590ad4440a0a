//! The report in short: what the run came to, the likely causes, how many checks hold where, and the first of those
//! that do not.

use std::collections::{BTreeMap, BTreeSet};

use super::ending::killed;
use super::folded::{add, is_amiss, reason};
use super::layout::{columns, pad};
use super::page::{LABEL, Page};
use super::patterns::{line, pattern};
use super::style::Style;
use super::terminal::{Colour, Detail, VERDICT, style};
use crate::record::{CheckView, RunView, Tally, exit};
use crate::report::causes::causes;
use crate::report::diff::{Diff, changes, counts};
use crate::report::findings::finding::word;
use crate::report::json::ending;
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// The most causes that the report names; it counts the others.
const CAUSES: usize = 3;
/// The most lines of checks to look at, and the fewest; more are counted.
const LINES: usize = 15;
const FEWEST: usize = 1;
/// The most lines of what changed since another run.
const CHANGED: usize = 6;
/// Lines of the page, without the last ones: the count of the other checks, and the tally.
const PAGE: usize = 51;

/// What a run came to, and how many checks speak against it, in a sentence.
pub(crate) fn outcome(view: &RunView) -> String {
    let (code, tally) = (ending(view).0, Tally::from_view(view));
    let some = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let counts = [
        some(tally.count(Verdict::Fail), "failed"),
        some(tally.count(Verdict::Inconclusive), "could not be told"),
        some(tally.unfinished, "unfinished"),
        some(tally.waived, "waived"),
    ];
    let mut counts: Vec<_> = counts.into_iter().flatten().collect();
    let of = counted(view.checks.len(), "check");
    if !counts.is_empty() {
        counts = vec![format!("of {of}, {}", counts.join(", "))];
    }
    if !tally.untested.is_empty() {
        let claims = counted(tally.untested.len(), "claim");
        counts.push(format!("{claims} not tested somewhere"));
    }
    counts.extend(some(view.unselected(), "not selected"));
    counts.extend(killed(view).map(str::to_owned));
    let of = match counts.is_empty() {
        true => String::new(),
        false => format!(": {}", counts.join("; ")),
    };
    format!("{} (exit {code}){of}", exit(view).as_str())
}

impl Page {
    /// What the run came to, and how many checks speak against it.
    pub(super) fn outcome(&mut self, view: &RunView) {
        self.sentence(&outcome(view), style(view));
        self.blank();
    }

    /// The likely causes, those that explain failures first.
    pub(super) fn causes(&mut self, view: &RunView) {
        let (causes, unexplained) = causes(view);
        let most = match self.detail {
            Detail::Short => CAUSES,
            Detail::Full => causes.len(),
        };
        if causes.is_empty() {
            return;
        }
        self.blank();
        self.title("likely causes");
        for cause in causes.iter().take(most) {
            let component: &str = cause.component.into();
            let count = counted(cause.checks.len(), "check");
            self.entry(component, Style::Bad, &format!("{} ({count})", cause.says));
            if !cause.beside.is_empty() {
                self.field(4, "works", &cause.beside);
            }
            match cause.is_likely {
                true => self.field(4, "likely", cause.likely),
                false => self.field(4, "", &format!("{} {}", cause.certainty(), cause.likely)),
            }
            if !cause.evidence.is_empty() {
                self.shortened(4, "evidence", &cause.evidence);
            }
            // What is copied is never broken
            self.whole(4, "look", &cause.look);
            let fits =
                |link: &&str| self.detail == Detail::Full || 4 + LABEL + link.len() <= self.width;
            if let Some(link) = cause.link.filter(fits) {
                self.whole(4, "see", link);
            }
        }
        if causes.len() > most {
            let more = format!("and {} more: --details", causes.len() - most);
            self.line(&format!("  {more}"));
        }
        if !unexplained.is_empty() {
            let unexplained = counted(unexplained.len(), "check");
            self.line(&format!(
                "  {}{unexplained}",
                pad("no known cause", VERDICT)
            ));
        }
    }

    /// What changed since the run that this one is compared with.
    pub(super) fn since(&mut self, view: &RunView) {
        let Some(diff) = Diff::since_baseline(view) else {
            return;
        };
        let most = match self.detail {
            Detail::Short => CHANGED,
            Detail::Full => usize::MAX,
        };
        self.blank();
        self.sentence(
            &format!("{}: {}", diff.since(), counts(&diff)),
            Style::Title,
        );
        let mut lines = Vec::new();
        for (word, checks) in changes(&diff, most, self.width - 2) {
            lines.push(self.paint(&format!("  {word}"), Style::Title));
            lines.extend(checks.iter().map(|line| format!("  {line}")));
        }
        if lines.len() > most {
            lines.truncate(most);
            lines.push("  --details names the others".to_owned());
        }
        for line in lines {
            self.line(&line);
        }
    }

    /// How many checks of each area hold in each pool, and how many do not.
    pub(super) fn areas(&mut self, view: &RunView) {
        let mut table = BTreeMap::<&str, BTreeMap<&str, Counts>>::new();
        let mut pools = BTreeSet::new();
        for check in view.checks.values() {
            let Some(number) = number(check.verdict()) else {
                continue;
            };
            let pool = check
                .planned
                .point
                .pool
                .as_ref()
                .map_or("cluster", |pool| pool.as_str());
            pools.insert(pool);
            let row = table.entry(check.planned.claim.area()).or_default();
            row.entry(pool).or_default().0[number] += 1;
        }
        if table.is_empty() {
            return;
        }
        let rows = table.iter().map(|(area, cells)| {
            let cells = pools
                .iter()
                .map(|pool| cells.get(pool).map_or("-".to_owned(), Counts::words));
            std::iter::once(printable(area))
                .chain(cells)
                .collect::<Vec<_>>()
        });
        let head = std::iter::once(String::new()).chain(pools.iter().map(|pool| printable(pool)));
        let rows: Vec<Vec<_>> = std::iter::once(head.collect()).chain(rows).collect();
        let widest = |column: usize| {
            rows.iter()
                .map(|row| columns(&row[column]))
                .max()
                .unwrap_or_default()
        };
        self.blank();
        self.title(HEAD);
        for (index, row) in rows.iter().enumerate() {
            let cells = row
                .iter()
                .enumerate()
                .map(|(column, cell)| pad(cell, widest(column) + 2));
            let line = cells.collect::<String>();
            let line = line.trim_end();
            match index {
                0 => self.title(&format!("  {line}")),
                _ => self.line(&format!("  {line}")),
            }
        }
    }

    /// The checks that no healthy cluster has, as patterns that `--select` takes; where all were skipped, all.
    pub(super) fn checks(&mut self, view: &RunView) {
        let mut groups = Vec::new();
        let is_skipped = |check: &CheckView| check.verdict() == Some(Verdict::Skip);
        let none_was_made = view.checks.values().all(is_skipped);
        let checks = view.checks.values();
        for check in checks.filter(|check| none_was_made || is_amiss(check)) {
            let pattern = pattern(check.planned.id.as_str());
            add(&mut groups, (check.verdict(), pattern), check);
        }
        if groups.is_empty() {
            return;
        }
        let is_waived =
            |checks: &[&CheckView]| checks.iter().all(|check| view.waiver(check).is_some());
        groups.sort_by_key(|((verdict, _), checks)| match verdict {
            _ if is_waived(checks) => 4,
            Some(Verdict::Fail) => 0,
            None => 1,
            Some(Verdict::Inconclusive) => 2,
            Some(_) => 3,
        });
        self.blank();
        self.title("checks to look at");
        let mut ending = Self::new(self.width, Colour::Never, self.detail);
        ending.ending(view);
        let lines = self.text.lines().chain(ending.text.lines()).count();
        let room = PAGE.saturating_sub(lines);
        let more = groups.split_off(groups.len().min(room.clamp(FEWEST, LINES)));
        for ((verdict, pattern), checks) in &groups {
            let ids = checks.iter().map(|check| check.planned.id.as_str());
            let ids: Vec<_> = ids.collect();
            let reason = checks.first().map(|check| reason(view, check));
            let text = line(
                pattern,
                &ids,
                &brief(reason.unwrap_or_default()),
                self.width,
            );
            let word = self.paint(&pad(word(*verdict), VERDICT), Style::for_verdict(*verdict));
            self.line(&format!("  {word}{text}"));
        }
        let more: usize = more.iter().map(|(_, checks)| checks.len()).sum();
        let full = "--details tells all of them";
        match more {
            0 => self.line(&format!("  {full}")),
            _ => self.line(&format!("  and {more} more; {full}")),
        }
    }
}

/// A reason without curl's name and number, which the kind before them says.
fn brief(reason: String) -> String {
    let Some((kind, rest)) = reason.split_once("curl: (") else {
        return reason;
    };
    let words = rest.split_once(") ").map_or(rest, |(_, words)| words);
    format!("{kind}{words}")
}

/// What the numbers of a cell are.
const HEAD: &str = "checks: well/failed/untold/other";

/// The checks of an area in a pool, without those that were skipped: in the order of [`HEAD`].
#[derive(Default)]
struct Counts([usize; 4]);

/// The place of a verdict's number in a cell; a skipped check has none.
fn number(verdict: Option<Verdict>) -> Option<usize> {
    match verdict {
        Some(Verdict::Pass | Verdict::KnownLimitation | Verdict::Informational) => Some(0),
        Some(Verdict::Fail) => Some(1),
        Some(Verdict::Inconclusive) | None => Some(2),
        Some(Verdict::Warn | Verdict::LimitationLifted) => Some(3),
        Some(Verdict::Skip) => None,
    }
}

impl Counts {
    /// `31`, or `29/2` if two failed.
    fn words(&self) -> String {
        let last = self.0.iter().rposition(|count| *count > 0);
        let counts = self.0.iter().take(last.map_or(0, |last| last + 1));
        let counts: Vec<_> = counts.map(ToString::to_string).collect();
        match counts.is_empty() {
            true => "-".to_owned(),
            false => counts.join("/"),
        }
    }
}
