//! What became of each claim in each pool from run to run, oldest first, as `TestGrid` draws it.

use std::collections::BTreeMap;

use maud::html;

use super::{Checked, Report};
use crate::report::ci::fenced;
use crate::report::findings::signs::{rank, sign};
use crate::report::html::document;
use crate::report::text::layout::{columns, pad};
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// Runs in the order in which they began, and the claims that do not stand as well as one may in each of them.
#[derive(Debug)]
pub struct Trend {
    runs: Vec<Report>,
    strips: Vec<Strip>,
    /// How many claims in pools are the same, and well, in every run.
    steady: usize,
}

/// A claim in a pool over all runs.
#[derive(Debug)]
struct Strip {
    claim: String,
    /// Empty for what is in no pool.
    pool: String,
    cells: Vec<Option<Cell>>,
}

/// The checks of a strip in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cell {
    /// The verdict that counts most; `None` is unfinished.
    verdict: Option<Verdict>,
    flaky: bool,
}

impl Trend {
    pub fn new(mut runs: Vec<Report>) -> Self {
        runs.sort_by(|one, other| one.run.began.cmp(&other.run.began));
        let mut cells = BTreeMap::<_, Vec<Option<Cell>>>::new();
        for (at, report) in runs.iter().enumerate() {
            for check in &report.checks {
                let pool = check.point.pool.clone().unwrap_or_default();
                let strip = cells.entry((check.claim.clone(), pool));
                let strip = strip.or_insert_with(|| vec![None; runs.len()]);
                if let Some(cell) = strip.get_mut(at) {
                    *cell = Some(worst(*cell, check));
                }
            }
        }
        let strips = cells
            .into_iter()
            .map(|((claim, pool), cells)| Strip { claim, pool, cells });
        // A run that was killed before it had a plan tells nothing of its claims
        let planned: Vec<_> = runs.iter().map(|run| !run.checks.is_empty()).collect();
        let (strips, steady): (Vec<_>, Vec<_>) = strips.partition(|strip| strip.is_told(&planned));
        let steady = steady.len();
        Self {
            runs,
            strips,
            steady,
        }
    }

    /// The trend in Markdown, which reads as plain text, too. Foreign text comes out without control characters, and
    /// within blocks of code.
    pub fn markdown(&self) -> String {
        let name = |strip: &Strip| columns(&strip.name());
        let widest = self.strips.iter().map(name).max().unwrap_or_default();
        let runs = self.runs.iter().zip(1..);
        let runs: Vec<_> = runs
            .map(|(report, number)| format!("{number:>3}  {}\n", told(report)))
            .collect();
        // The last digit of each run's number, above its letters
        let numbers = (1..=self.runs.len()).map(|number| (number % 10).to_string());
        let numbers: Vec<_> = numbers.collect();
        let mut strips = format!("{}  {}\n", pad("", widest), numbers.join(" "));
        for strip in &self.strips {
            let line = [pad(&strip.name(), widest), strip.letters(), strip.words()].join("  ");
            strips += &format!("{}\n", line.trim_end());
        }
        format!(
            "### winconform: {}\n\n{}\n{}\n{}\n",
            counted(self.runs.len(), "run"),
            fenced(&runs.concat()),
            fenced(&strips),
            self.rest()
        )
    }

    /// The trend as a page that loads nothing.
    pub fn html(&self) -> String {
        let title = format!("winconform: {}", counted(self.runs.len(), "run"));
        let body = html! {
            main {
                h1 { (title) }
                ol { @for report in &self.runs { li { (told(report)) } } }
                div.scroll tabindex="0" role="region" aria-label="claims by run" {
                    table.map {
                        thead { tr {
                            td {}
                            @for number in 1..=self.runs.len() { th scope="col" { (number) } }
                            th scope="col" { "since when" }
                        } }
                        tbody {
                            @for strip in &self.strips {
                                tr {
                                    th scope="row" { (strip.name()) }
                                    @for cell in &strip.cells {
                                        @let (letter, class) = cell.map_or((".", "quiet"), |cell| sign(cell.verdict));
                                        td class=(class) { span { (letter) @if cell.is_some_and(|it| it.flaky) { "~" } } }
                                    }
                                    td.words { (strip.words()) }
                                }
                            }
                        }
                    }
                }
                p { (self.rest()) }
            }
        };
        document(&title, None, &body)
    }

    fn rest(&self) -> String {
        let steady = match self.steady {
            1 => "1 further claim in a pool is".to_owned(),
            steady => format!("{steady} further claims in pools are"),
        };
        format!(
            "P pass, F fail, ? inconclusive, U unfinished, K known limitation, L limitation lifted, W warn, i informational, \
             \u{2013} skip or waived, ~ flaky, . absent. {steady} neither bad nor changed."
        )
    }
}

/// One run in a line, with its likely causes.
fn told(report: &Report) -> String {
    let causes = report.causes.iter();
    let causes = causes.map(|cause| format!("; {}: {}", cause.component, cause.says));
    let causes: String = causes.collect();
    let (run, exit) = (&report.run, &report.exit);
    printable(&format!(
        "{} {}: {} (exit {}){causes}",
        run.began, run.id, exit.meaning, exit.code
    ))
}

/// What a cell comes to with one check more.
fn worst(cell: Option<Cell>, check: &Checked) -> Cell {
    let verdict = Verdict::ALL
        .iter()
        .copied()
        .find(|one| one.as_str() == check.verdict);
    // A waiver is somebody's word that it does not count
    let verdict = match check.waived {
        Some(_) => Some(Verdict::Skip),
        None => verdict,
    };
    let cell = cell.unwrap_or(Cell {
        verdict,
        flaky: check.flaky,
    });
    Cell {
        verdict: std::cmp::min_by_key(cell.verdict, verdict, |one| rank(*one)),
        flaky: cell.flaky || check.flaky,
    }
}

impl Cell {
    fn is_bad(self) -> bool {
        rank(self.verdict) <= rank(Some(Verdict::Inconclusive))
    }
}

impl Strip {
    fn name(&self) -> String {
        let pool = match self.pool.as_str() {
            "" => String::new(),
            pool => format!(" in {pool}"),
        };
        printable(&(self.claim.clone() + &pool))
    }

    /// Whether something is amiss in it, or it is not the same in every run.
    fn is_told(&self, planned: &[bool]) -> bool {
        let cells = self.cells.iter().zip(planned);
        let cells: Vec<_> = cells.filter(|(_, is)| **is).map(|(cell, _)| cell).collect();
        let is_amiss = |cell: &Cell| cell.is_bad() || cell.flaky;
        cells.iter().copied().flatten().any(is_amiss)
            || cells.iter().any(|cell| Some(cell) != cells.first())
    }

    /// A letter for each run, and a mark behind it or a space.
    fn letters(&self) -> String {
        let letter = |cell: &Option<Cell>| {
            let letter = cell.map_or(".", |cell| sign(cell.verdict).0);
            let flaky = if cell.is_some_and(|it| it.flaky) {
                '~'
            } else {
                ' '
            };
            format!("{letter}{flaky}")
        };
        self.cells.iter().map(letter).collect()
    }

    /// Since when it is bad, or that it was; and how often it was flaky.
    fn words(&self) -> String {
        let bad = |cell: &Option<Cell>| cell.is_some_and(Cell::is_bad);
        let good = self.cells.iter().rposition(|cell| !bad(cell));
        let since = good.map_or(1, |last| last + 2);
        let times = self.cells.iter().filter(|cell| bad(cell)).count();
        let first = self.cells.iter().position(bad).map_or(0, |at| at + 1);
        let all = counted(self.cells.len(), "time");
        let often = format!("{times} of {all}, first in run {first}");
        let mut words = match (times, self.cells.last().is_some_and(bad)) {
            (0, _) => Vec::new(),
            (_, true) if since == first => vec![format!("bad since run {since}")],
            (_, true) => vec![format!("bad since run {since}, {often}")],
            (_, false) => vec![format!("bad {often}")],
        };
        let flaky = self
            .cells
            .iter()
            .flatten()
            .filter(|cell| cell.flaky)
            .count();
        if flaky > 0 {
            words.push(format!("flaky {flaky} of {all}"));
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(day: u32, checks: &[(&str, &str, bool)]) -> Report {
        let checks = checks.iter().map(|(claim, verdict, flaky)| {
            json!({"id": claim, "claim": claim, "verdict": verdict, "flaky": flaky, "point": {"pool": "windows-2022"}})
        });
        let report = json!({
            "schema": 1, "run": {"id": format!("r{day}"), "began": format!("2026-01-0{day}")},
            "exit": {"code": 0, "meaning": "conformant"}, "checks": checks.collect::<Vec<_>>(),
        });
        Report::read(&report.to_string()).expect("a report")
    }

    #[test]
    fn strips_tell_since_when_a_claim_is_bad() {
        // In another order than they began
        let trend = Trend::new(vec![
            run(
                3,
                &[
                    ("net.a", "fail", false),
                    ("net.b", "pass", false),
                    ("net.c", "pass", true),
                ],
            ),
            run(
                1,
                &[
                    ("net.a", "pass", false),
                    ("net.b", "inconclusive", false),
                    ("net.c", "pass", false),
                ],
            ),
            run(
                2,
                &[
                    ("net.a", "fail", false),
                    ("net.a", "pass", false),
                    ("net.c", "pass", false),
                    ("net.d", "pass", false),
                ],
            ),
        ]);
        let strips: Vec<_> = trend
            .strips
            .iter()
            .map(|it| format!("{} {} {}", it.name(), it.letters(), it.words()))
            .collect();
        assert_eq!(
            strips,
            [
                "net.a in windows-2022 P F F  bad since run 2",
                "net.b in windows-2022 ? . P  bad 1 of 3 times, first in run 1",
                "net.c in windows-2022 P P P~ flaky 1 of 3 times",
                "net.d in windows-2022 . P .  ",
            ]
        );
        assert_eq!(trend.steady, 0);
        let ends = ". absent. 0 further claims in pools are neither bad nor changed.";
        assert!(trend.rest().ends_with(ends), "{}", trend.rest());
        assert!(trend.html().contains("bad since run 2") && trend.markdown().contains("P F F"));
        let steady = Trend::new(vec![run(1, &[("net.a", "pass", false)])]);
        let ends = ". absent. 1 further claim in a pool is neither bad nor changed.";
        assert!(steady.rest().ends_with(ends), "{}", steady.rest());
    }
}
