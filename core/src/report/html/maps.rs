//! Maps of verdicts: claims by pool, and for the network where from by where to.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::findings::finding::word;
use super::super::findings::signs::{by_rank, sign};
use super::super::text::folded::is_amiss;
use super::findings::Shown;
use super::room::{MAP, Room, more};
use crate::claims::ClaimId;
use crate::record::{CheckView, RunView};
use crate::text::printable;
use crate::verdict::Verdict;

/// The checks of one cell.
#[derive(Default)]
struct Cell<'v> {
    checks: Vec<(usize, &'v CheckView)>,
}

impl Cell<'_> {
    /// The letter of its weightiest verdict, with the counts of all; it leads to the first finding that is shown.
    fn drawn(&self, shown: &Shown) -> Markup {
        let counts = by_rank(self.checks.iter().map(|(_, check)| check.verdict()));
        let Some(&(worst, times)) = counts.first() else {
            return html! { td {} };
        };
        let words = counts
            .iter()
            .map(|(verdict, count)| format!("{count} {}", word(*verdict)));
        let words = words.collect::<Vec<_>>().join(", ");
        let (letter, class) = sign(worst);
        let number = html! { @if times > 1 { small { " " (times) } } };
        let amiss = self
            .checks
            .iter()
            .filter(|(_, check)| is_amiss(check) && check.verdict() == worst);
        let amiss: Vec<_> = amiss.map(|(place, _)| *place).collect();
        let leads_to = amiss.iter().find(|place| shown.contains(*place));
        let leads_to = leads_to.map_or("#findings".to_owned(), |place| format!("#c{place}"));
        html! {
            td class=(class) title=(words) {
                @if amiss.is_empty() {
                    span aria-label=(words) role="img" { (letter) (number) }
                } @else {
                    a href=(leads_to) aria-label=(words) { (letter) (number) }
                }
            }
        }
    }
}

/// A table with a head, as far as there is room for its rows; those with the same group are together.
fn table(
    caption: &str,
    columns: &BTreeSet<String>,
    groups: &BTreeMap<String, BTreeMap<String, BTreeMap<String, Cell<'_>>>>,
    shown: &Shown,
) -> Markup {
    let nothing = Cell::default();
    let mut room = Room::of(MAP);
    let mut left_out = 0;
    let mut drawn = Vec::new();
    for (group, rows) in groups {
        let all = rows.len();
        let rows = rows.iter().map(|(row, cells)| {
            html! {
                tr {
                    th scope="row" { (row) }
                    @for column in columns { (cells.get(column).unwrap_or(&nothing).drawn(shown)) }
                }
            }
        });
        let rows = room.fill(rows);
        left_out += all - rows.len();
        if !rows.is_empty() {
            drawn.push((group, rows));
        }
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table.map {
                caption { (caption) }
                thead {
                    tr {
                        td {}
                        @for column in columns { th scope="col" { (column) } }
                    }
                }
                @for (group, rows) in &drawn {
                    tbody {
                        @if !group.is_empty() {
                            tr { th.group scope="rowgroup" colspan=(columns.len() + 1) { (group) } }
                        }
                        @for row in rows { (row) }
                    }
                }
            }
            @if left_out > 0 { p { (more(left_out)) } }
        }
    }
}

pub(super) fn claims(view: &RunView, shown: &Shown) -> Markup {
    let mut groups = BTreeMap::<_, BTreeMap<_, BTreeMap<_, Cell<'_>>>>::new();
    let mut columns = BTreeSet::new();
    for (place, check) in &view.checks {
        let planned = &check.planned;
        let pool = planned.point.pool.as_ref();
        let pool = pool.map_or("cluster".to_owned(), |pool| printable(pool.as_str()));
        let area = printable(planned.claim.area());
        columns.insert(pool.clone());
        let rows = groups.entry(area).or_default();
        let row = rows.entry(short(&planned.claim)).or_default();
        row.entry(pool).or_default().checks.push((*place, check));
    }
    html! {
        @if !groups.is_empty() {
            section #claims-by-pool {
                h2 { "Claims by pool" }
                p.legend {
                    @for verdict in [
                        Some(Verdict::Pass), Some(Verdict::Fail), Some(Verdict::Inconclusive), Some(Verdict::KnownLimitation),
                        Some(Verdict::LimitationLifted), Some(Verdict::Warn), Some(Verdict::Informational),
                        Some(Verdict::Skip), None,
                    ] {
                        @let (letter, class) = sign(verdict);
                        span { span class={ "key " (class) } { (letter) } " " (word(verdict)) }
                    }
                }
                (table("each cell has the verdict that counts most, and of how many checks", &columns, &groups, shown))
            }
        }
    }
}

/// A claim without its area.
fn short(claim: &ClaimId) -> String {
    let text = claim.as_str();
    printable(text.split_once('.').map_or(text, |(_, rest)| rest))
}

/// Checks of the network, by where they observe from and whose pods or nodes they are about.
pub(super) fn ways(view: &RunView, shown: &Shown) -> Markup {
    let mut rows = BTreeMap::<_, BTreeMap<_, Cell<'_>>>::new();
    let mut columns = BTreeSet::new();
    for (place, check) in &view.checks {
        let point = &check.planned.point;
        let (Some(source), Some(pool)) = (point.source, &point.pool) else {
            continue;
        };
        if check.planned.claim.area() != "net" {
            continue;
        }
        let from = match point.source_pool() {
            Some(pool) => format!("{} in {}", source.as_str(), pool.as_str()),
            None => source.as_str().to_owned(),
        };
        let to = printable(point.to.as_ref().unwrap_or(pool).as_str());
        columns.insert(to.clone());
        let row = rows.entry(printable(&from)).or_default();
        row.entry(to).or_default().checks.push((*place, check));
    }
    let groups = [(String::new(), rows)].into();
    html! {
        @if !columns.is_empty() {
            section #ways {
                h2 { "Network, from and to" }
                (table("from where checks observe, by the pool that they observe; in each cell the verdict that counts most", &columns, &groups, shown))
            }
        }
    }
}
