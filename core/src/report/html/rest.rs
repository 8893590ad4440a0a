//! The rest of the page: what was not observed, known limitations, all claims, and where the time went.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::findings::finding::Finding;
use super::super::findings::signs::by_rank;
use super::super::text::summary::{path, seconds, took_ms};
use super::mark;
use super::room::{CLAIMS, Room, list, more};
use crate::record::{Activity, RunView, critical_path};
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// Units of the time line from its left to its right, and of a row from its top to the next.
const WIDE: u64 = 600;
const ROW: usize = 18;
/// Where the names of spans begin, behind their bars.
const NAME: u64 = 8;
/// The most spans that are drawn: the longest.
const SPANS: usize = 60;

/// The checks that were not observed, by why.
pub(super) fn skips(view: &RunView, lists: &mut Room) -> Markup {
    let checks = view.checks.values();
    let skipped = checks.filter(|check| check.verdict() == Some(Verdict::Skip));
    let mut reasons = BTreeMap::<_, Vec<_>>::new();
    for check in skipped {
        let finding = Finding::of_check(check, None);
        let checks = reasons.entry(finding.reason).or_default();
        checks.push(printable(check.planned.id.as_str()));
    }
    let all = reasons.len();
    let reasons = reasons.iter().map(|(reason, checks)| {
        let ids = checks.iter().map(|id| html! { li { code { (id) } } });
        html! {
            details {
                summary { (counted(checks.len(), "check")) ": " (reason) }
                (list(&lists.fill(ids), checks.len()))
            }
        }
    });
    let shown = Room::of(CLAIMS).fill(reasons);
    html! {
        @if all > 0 {
            section #skips {
                h2 { "Not observed" }
                @for reason in &shown { (reason) }
                @if shown.len() < all { p { (more(all - shown.len())) } }
            }
        }
    }
}

pub(super) fn limitations(view: &RunView, lists: &mut Room) -> Markup {
    let checks = view.checks.values();
    let known = checks.filter(|check| check.verdict() == Some(Verdict::KnownLimitation));
    let mut claims = BTreeMap::<_, (Vec<_>, _, _)>::new();
    for check in known {
        let finding = Finding::of_check(check, None);
        let kind = (&check.planned.claim, printable(&check.planned.title));
        let new = (Vec::new(), finding, check.planned.limitation.as_ref());
        let (checks, ..) = claims.entry(kind).or_insert(new);
        checks.push(printable(check.planned.id.as_str()));
    }
    html! {
        @if !claims.is_empty() {
            section #limitations {
                h2 { "Known limitations" }
                p { "Kubernetes documents that these do not work for Windows, and they do not." }
                @for ((claim, title), (checks, finding, documented)) in &claims {
                    details {
                        summary { code { (claim.as_str()) } " " (title) }
                        dl {
                            @if let Some(seen) = &finding.seen { div { dt { "seen" } dd { (printable(seen)) } } }
                            @if let Some(documented) = documented {
                                div { dt { "because" } dd { (printable(&documented.reason)) } }
                                div { dt { "holds for" } dd { (printable(&documented.holds)) } }
                                div { dt { "source" } dd { (printable(&documented.source)) } }
                            }
                            div { dt { "next" } dd { (printable(&finding.hint)) } }
                            div {
                                dt { "more" }
                                dd { code { "winconform explain " (claim.as_str()) } }
                            }
                        }
                        (list(&lists.fill(checks.iter().map(|id| html! { li { code { (id) } } })), checks.len()))
                    }
                }
            }
        }
    }
}

/// Every claim, with how many of its checks came to which verdict.
pub(super) fn claims(view: &RunView) -> Markup {
    let mut claims = BTreeMap::<_, Vec<_>>::new();
    for check in view.checks.values() {
        let verdicts = claims.entry(&check.planned.claim).or_default();
        verdicts.push(check.verdict());
    }
    let all = claims.len();
    let rows = claims.into_iter().map(|(claim, verdicts)| {
        html! {
            tr {
                th scope="row" { code { (claim.as_str()) } }
                td { @for (verdict, count) in by_rank(verdicts.into_iter()) { (count) " " (mark(verdict)) " " } }
            }
        }
    });
    let rows = Room::of(CLAIMS).fill(rows);
    html! {
        @if all > 0 {
            section #claims {
                h2 { "Claims" }
                details {
                    summary { (counted(all, "claim")) " observed" }
                    table {
                        thead { tr { th scope="col" { "claim" } th scope="col" { "checks" } } }
                        tbody { @for row in &rows { (row) } }
                    }
                    @if rows.len() < all { p { (more(all - rows.len())) } }
                }
            }
        }
    }
}

/// The fixtures and stages of the run on a line of time.
pub(super) fn times(view: &RunView) -> Markup {
    let mut spans: Vec<_> = view
        .spans
        .iter()
        .filter(|span| !matches!(span.what, Activity::Request | Activity::ExecSession(_)))
        .collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span.took_ms));
    spans.truncate(SPANS);
    spans.sort_by_key(|span| (span.began_ms, span.id));
    let chain = critical_path(view).map(|path| path.spans);
    let chain: BTreeSet<_> = chain.iter().flatten().map(|span| span.id).collect();
    let whole = took_ms(view).max(1);
    let at = |ms: u64| ms.min(whole) * WIDE / whole;
    let height = spans.len() * ROW;
    html! {
        @if !spans.is_empty() {
            section #times {
                h2 { "Time" }
                @if let Some(path) = path(view) { p { (path) } }
                svg.times viewBox=(format!("0 0 {} {height}", WIDE * 2)) role="img" aria-label="how long each fixture took" {
                    @for (row, span) in spans.iter().enumerate() {
                        @let (from, wide) = (at(span.began_ms), at(span.took_ms).max(1));
                        rect.critical[chain.contains(&span.id)] x=(from) y=(row * ROW + 3) width=(wide) height="12" {}
                        text x=(from + wide + NAME) y=(row * ROW + 13) {
                            (printable(&span.what.to_string())) " " (seconds(span.took_ms))
                        }
                    }
                }
                p { "Bars with an edge set how long the run takes: each waited for the one before." }
            }
        }
    }
}
