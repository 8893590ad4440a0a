//! Findings with their evidence: what failed, could not be told, or is news otherwise.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, PreEscaped, html};

use super::super::alone::attempts;
use super::super::findings::blame::Blame;
use super::super::findings::excerpt::{self, Excerpt};
use super::super::findings::finding::{Finding, in_words, word};
use super::super::findings::outcomes::Outcomes;
use super::super::findings::signs::rank;
use super::super::findings::suspects::{suspects, unoffered};
use super::super::findings::waivers::raised;
use super::super::text::folded::{is_amiss, kind_of};
use super::super::text::layout::fit;
use super::super::text::summary::seconds;
use super::mark;
use super::room::{FULL, Room, list};
use crate::record::{CheckView, RunView};
use crate::text::{bound, counted, printable};
use crate::verdict::Verdict;

/// The most bytes of evidence behind one finding, and of all, counted as markup; the record has the rest.
const EACH: usize = 64 << 10;
const ALL: usize = 5 << 20;
/// Columns on why a check is there that the page has no room for in full.
const REASON: usize = 80;

/// The places of the checks that a page shows, to which its maps can lead.
pub(super) type Shown = BTreeSet<usize>;

/// What the findings of a page have room for, and what they show so far.
struct Told<'r> {
    evidence: usize,
    full: Room,
    lists: &'r mut Room,
    shown: Shown,
}

/// The fixtures that failed with what each of them broke, and all other findings; in full as far as there is room.
pub(super) fn findings(view: &RunView, lists: &mut Room) -> (Markup, Shown) {
    let blame = Blame::from_view(view);
    let mut kinds = BTreeMap::<_, usize>::new();
    let mut alike = Vec::<Vec<(usize, &CheckView)>>::new();
    let amiss = view.checks.iter().filter(|(_, check)| is_amiss(check));
    for (place, check) in amiss.filter(|(_, check)| !blame.covers(check)) {
        let waiver = view.waiver(check).map(ToString::to_string);
        let kind = *kinds.entry((kind_of(check), waiver)).or_insert(alike.len());
        match alike.get_mut(kind) {
            Some(checks) => checks.push((*place, check)),
            None => alike.push(vec![(*place, check)]),
        }
    }
    alike.sort_by_key(|checks| checks.first().map(|(_, check)| rank(check.verdict())));
    let mut told = Told {
        evidence: ALL,
        full: Room::of(FULL),
        lists,
        shown: Shown::new(),
    };
    let fixtures = fixtures(view, &blame, &mut told);
    let run = Outcomes::from_view(view);
    let full = alike
        .iter()
        .map_while(|checks| finding(view, &run, checks, &mut told));
    let full: Vec<_> = full.collect();
    let short: Vec<_> = alike.iter().skip(full.len()).flatten().copied().collect();
    let mut checks = view.checks.values();
    let is_observed = checks.any(|check| check.verdict() != Some(Verdict::Skip));
    let markup = html! {
        (fixtures)
        section #findings {
            h2 { "Findings" }
            @if !is_observed {
                p { "No check was observed." }
            } @else if alike.is_empty() && blame.roots.values().all(|broke| broke.checks.is_empty()) {
                p { "Every check came to what a healthy cluster gives." }
            }
            @if !alike.is_empty() {
                // The script shows it
                p.filter hidden {
                    label { "show findings with " input type="search" id="filter" autocomplete="off"; }
                    " " output for="filter" id="shown" {}
                }
                @for finding in &full { (finding) }
                (in_short(&short, &mut told))
            }
        }
    };
    (markup, told.shown)
}

fn fixtures(view: &RunView, blame: &Blame<'_>, told: &mut Told<'_>) -> Markup {
    html! {
        @if !blame.roots.is_empty() {
            section #fixtures {
                h2 { "Fixtures that failed" }
                @for (key, broke) in &blame.roots {
                    article {
                        h3 { (printable(&key.to_string())) " " small { "after " (seconds(broke.took_ms)) } }
                        dl {
                            (field("cause", Some(in_words(broke.error))))
                            (field("suspect", unoffered(view, key, broke.error).map(|it| printable(&it))))
                            (lines(excerpt::of_fixture(view, key)))
                        }
                        (others("broke", &broke.checks, told))
                    }
                }
            }
        }
    }
}

/// One finding, with the others of its kind, if there is room for it.
fn finding(
    view: &RunView,
    run: &Outcomes<'_>,
    checks: &[(usize, &CheckView)],
    told: &mut Told<'_>,
) -> Option<Markup> {
    let ((place, check), more) = checks.split_first()?;
    let finding = Finding::of_check(check, Some(run));
    let text = |text: Option<String>| text.map(|text| printable(&text));
    let counts = format!("against the cluster (profile {})", view.started.profile);
    let head = html! {
        h3 { (mark(finding.verdict)) " " code { (printable(finding.check.as_str())) } }
        p { (printable(&check.planned.title)) }
        dl {
            (field("cause", text(finding.cause)))
            (field("expected", text(finding.expected)))
            (field("seen", text(finding.seen)))
            (field("waived", view.waiver(check).map(|waiver| printable(&waiver.to_string()))))
            (field("counts", raised(view, check).then_some(counts)))
            (field("suspect", text(suspects(view, check))))
            (lines(excerpt::of_check(view, &check.planned.id)))
            (field("next", Some(printable(&finding.hint))))
        }
    };
    if !told.full.try_fit(&head) {
        return None;
    }
    told.shown.insert(*place);
    Some(html! {
        article.finding id={ "c" (place) } {
            (head)
            @match evidence(check, &mut told.evidence) {
                Some(seen) if seen.0.is_empty() => {},
                Some(seen) => details { summary { "what was seen" } pre tabindex="0" { (seen) } },
                None => p { "What was seen is in the record alone: this page has its share of evidence." },
            }
            (others("also", more, told))
        }
    })
}

/// Checks in a list that cells of maps lead to.
fn others(what: &str, checks: &[(usize, &CheckView)], told: &mut Told<'_>) -> Markup {
    listed(what, checks, told, |_| html! {})
}

/// Checks that the page has no room for in full, each with a few words on why it is there.
fn in_short(checks: &[(usize, &CheckView)], told: &mut Told<'_>) -> Markup {
    let listed = listed("in short", checks, told, |check| {
        let finding = Finding::of_check(check, None);
        html! { " " (word(finding.verdict)) ": " (fit(&finding.reason, REASON)) }
    });
    // The filter hides these, too
    html! { @if !checks.is_empty() { div #in-short { (listed) } } }
}

fn listed(
    what: &str,
    checks: &[(usize, &CheckView)],
    told: &mut Told<'_>,
    says: impl Fn(&CheckView) -> Markup,
) -> Markup {
    if checks.is_empty() {
        return html! {};
    }
    let lines = checks.iter().map(|(place, check)| {
        let id = printable(check.planned.id.as_str());
        html! { li id={ "c" (place) } { code { (id) } (says(check)) } }
    });
    let lines = told.lists.fill(lines);
    let shown = checks.iter().take(lines.len());
    told.shown.extend(shown.map(|(place, _)| *place));
    html! {
        details {
            summary { (what) " " (counted(checks.len(), "check")) }
            (list(&lines, checks.len()))
        }
    }
}

/// What the attempts of a check saw, as far as there is room for it.
fn evidence(check: &CheckView, left: &mut usize) -> Option<Markup> {
    let seen = attempts(check);
    let PreEscaped(mut seen) = html! { (seen) };
    if bound(&mut seen, EACH) {
        // Of an escaped character, which is `&`, letters and `;`, no part stays
        let begun = seen.rfind('&').filter(|at| !seen[*at..].contains(';'));
        seen.truncate(begun.unwrap_or(seen.len()));
        seen.push_str("\n… the record has the rest\n");
    }
    *left = left.checked_sub(seen.len())?;
    Some(PreEscaped(seen))
}

fn lines(excerpt: Excerpt) -> Markup {
    html! { @for (name, line) in excerpt { (field(name, Some(line))) } }
}

/// A name and a value that is printable, if there is one.
fn field(name: &str, value: Option<String>) -> Markup {
    html! {
        @if let Some(value) = value.filter(|value| !value.is_empty()) {
            div { dt { (name) } dd { (value) } }
        }
    }
}
