//! What became of each claim in each pool from run to run, oldest first, as `TestGrid` draws it.

use std::collections::BTreeMap;

use maud::{DOCTYPE, PreEscaped, html};

use super::{Checked, Report};
use crate::report::findings::signs::{rank, sign};
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// The style of the page: that of a run's.
const STYLE: &str = include_str!("../html/page.css");

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
        let (strips, steady): (Vec<_>, Vec<_>) = strips.partition(Strip::is_told);
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
        let widest = self
            .strips
            .iter()
            .map(|strip| strip.name().chars().count())
            .max();
        let widest = widest.unwrap_or_default();
        let mut text = format!(
            "### winconform: {}\n\n```text\n",
            counted(self.runs.len(), "run")
        );
        for (number, report) in self.runs.iter().enumerate() {
            text += &format!("{:>3}  {}\n", number + 1, told(report));
        }
        text += "```\n\n```text\n";
        for strip in &self.strips {
            let name = strip.name();
            let pad = " ".repeat(widest - name.chars().count());
            text += &format!("{name}{pad}  {}  {}\n", strip.letters(), strip.words());
        }
        text + &format!("```\n\n{}\n", self.rest())
    }

    /// The trend as a page that loads nothing.
    pub fn html(&self) -> String {
        let policy = format!(
            "default-src 'none'; style-src '{}'",
            super::super::html::hash(STYLE)
        );
        let title = format!("winconform: {}", counted(self.runs.len(), "run"));
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    main {
                        h1 { (title) }
                        ol { @for report in &self.runs { li { (told(report)) } } }
                        div.scroll tabindex="0" role="region" aria-label="claims by run" {
                            table.map {
                                thead { tr {
                                    td {}
                                    @for number in 1..=self.runs.len() { th scope="col" { (number) } }
                                    th scope="col" {}
                                } }
                                tbody {
                                    @for strip in &self.strips {
                                        tr {
                                            th scope="row" { (strip.name()) }
                                            @for cell in &strip.cells {
                                                @let (letter, class) = cell.map_or(("", ""), |cell| sign(cell.verdict));
                                                td class=(class) { span { (letter) @if cell.is_some_and(|it| it.flaky) { "~" } } }
                                            }
                                            th { (strip.words()) }
                                        }
                                    }
                                }
                            }
                        }
                        p { (self.rest()) }
                    }
                }
            }
        };
        page.into_string() + "\n"
    }

    fn rest(&self) -> String {
        format!(
            "P pass, F fail, ? inconclusive, U unfinished, K known limitation, L limitation lifted, W warn, i informational, \
             \u{2013} skip, ~ flaky, . absent. {} further claims in pools are neither bad nor changed.",
            self.steady
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
    let Some(cell) = cell else {
        return Cell {
            verdict,
            flaky: check.flaky,
        };
    };
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
    fn is_told(&self) -> bool {
        let mut cells = self.cells.iter().flatten();
        cells.any(|cell| cell.is_bad() || cell.flaky)
            || self.cells.windows(2).any(|two| two[0] != two[1])
    }

    /// A letter for each run.
    fn letters(&self) -> String {
        let letter = |cell: &Option<Cell>| match cell {
            None => ".".to_owned(),
            Some(cell) => {
                let flaky = if cell.flaky { "~" } else { "" };
                format!("{}{flaky}", sign(cell.verdict).0)
            }
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
        let mut words = match times {
            0 => Vec::new(),
            _ if self.cells.last().is_some_and(bad) => vec![format!("bad since run {since}")],
            _ => vec![format!(
                "bad {times} of {}, first in run {first}",
                counted(self.cells.len(), "time")
            )],
        };
        let flaky = self
            .cells
            .iter()
            .flatten()
            .filter(|cell| cell.flaky)
            .count();
        if flaky > 0 {
            words.push(format!(
                "flaky {flaky} of {}",
                counted(self.cells.len(), "time")
            ));
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
                "net.a in windows-2022 PFF bad since run 2",
                "net.b in windows-2022 ?.P bad 1 of 3 times, first in run 1",
                "net.c in windows-2022 PPP~ flaky 1 of 3 times",
                "net.d in windows-2022 .P. ",
            ]
        );
        assert_eq!(trend.steady, 0);
        assert!(trend.html().contains("bad since run 2") && trend.markdown().contains("PFF"));
    }
}
