//! Causes: what the checks that are in trouble have in common. A pure function of the record, passes included.
//!
//! The catalogue is gone through in its order; each rule takes the checks that show it and that no rule before has
//! taken, finds the place that covers them and that no passed check contradicts, and takes there what it explains.

mod catalogue;
mod place;
mod trouble;

use std::collections::BTreeSet;

pub use catalogue::Component;
use catalogue::{CATALOGUE, Rule};
use place::Place;
pub use place::Scope;
use trouble::Seen;

use crate::record::{CheckView, RunView};
use crate::report::findings::places::{Pools, pools};
use crate::text::printable;
use crate::verdict::Verdict;

/// One statement that explains many verdicts.
pub struct Cause<'v> {
    /// The part of the cluster that is likely at fault.
    pub component: Component,
    pub scope: Scope,
    /// What does not work, and where. Printable.
    pub says: String,
    /// What works beside it; empty where nothing tells. Printable.
    pub beside: String,
    /// The component in words.
    pub likely: &'static str,
    /// A command to look with. Printable.
    pub look: String,
    pub link: Option<&'static str>,
    /// The checks that it explains, in their planned order.
    pub checks: Vec<&'v CheckView>,
}

/// The likely causes of all checks that did not come to what a healthy cluster gives, what explains failures first,
/// then by the number of checks; and the checks that none of them explains.
pub fn causes(view: &RunView) -> (Vec<Cause<'_>>, Vec<&CheckView>) {
    let pools = pools(view);
    let (troubles, well) = Seen::all(view, &pools);
    let mut open: Vec<&Seen<'_>> = troubles.iter().collect();
    let mut causes = Vec::new();
    for rule in CATALOGUE.iter() {
        let shows: Vec<_> = open
            .iter()
            .copied()
            .filter(|seen| rule.is_shown_by(seen, &troubles))
            .collect();
        if shows.is_empty() {
            continue;
        }
        let families: BTreeSet<_> = shows.iter().map(|seen| seen.family()).collect();
        let contradicts =
            |seen: &&Seen<'_>| rule.is_about(seen) && families.contains(&seen.family());
        let contradict: Vec<_> = well.iter().filter(contradicts).collect();
        let place = Place::find(rule.side, &shows, &contradict, &pools);
        let explains = |seen: &&Seen<'_>| {
            rule.is_shown_by(seen, &troubles)
                || rule.explains.iter().any(|one| one.covers(seen.id())) && place.may_reach(seen)
        };
        let (of_it, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(explains);
        open = rest;
        let family = match families.first() {
            Some(Some(family)) if families.len() == 1 => format!(" over {family}"),
            _ => String::new(),
        };
        causes.push(rule.cause(&place, &family, &of_it, &well, &pools));
    }
    causes.sort_by_key(|cause| {
        let fails = cause
            .checks
            .iter()
            .filter(|check| check.verdict() == Some(Verdict::Fail));
        let unsure = cause
            .checks
            .iter()
            .filter(|check| check.verdict() == Some(Verdict::Inconclusive));
        let (fails, unsure) = (fails.count(), unsure.count());
        std::cmp::Reverse((fails > 0, unsure > 0, cause.checks.len()))
    });
    (causes, open.into_iter().map(|seen| seen.check).collect())
}

impl Rule {
    /// Whether a check is one by which the cause shows.
    fn is_about(&self, seen: &Seen<'_>) -> bool {
        self.shown_by.iter().any(|one| one.covers(seen.id()))
    }

    fn is_shown_by(&self, seen: &Seen<'_>, troubles: &[Seen<'_>]) -> bool {
        let pool = |seen: &Seen<'_>| seen.from.as_ref().map(|from| from.pool.clone());
        let contradicts = |other: &Seen<'_>| {
            pool(other) == pool(seen) && self.unless.iter().any(|one| one.covers(other.id()))
        };
        self.is_about(seen)
            && (self.words.is_empty() || self.words.iter().any(|word| seen.text.contains(word)))
            && !troubles.iter().any(contradicts)
    }

    fn cause<'v>(
        &'static self,
        place: &Place,
        family: &str,
        of_it: &[&Seen<'v>],
        well: &[Seen<'v>],
        pools: &Pools,
    ) -> Cause<'v> {
        let node = place.node(pools);
        let look = self
            .look
            .replace("{node}", node.as_deref().unwrap_or("NODE"));
        Cause {
            component: self.component,
            scope: place.scope(),
            says: format!("{}{family} {}", self.says, place.words()),
            beside: self.works(place, of_it, well),
            likely: &self.likely,
            look: printable(&look),
            link: self.link.as_deref(),
            checks: of_it.iter().map(|seen| seen.check).collect(),
        }
    }

    /// What works beside the cause: what its rule names, in the same place, and the same checks elsewhere.
    fn works(&self, place: &Place, of_it: &[&Seen<'_>], well: &[Seen<'_>]) -> String {
        let Some(there) = place.pools() else {
            return String::new();
        };
        let is_there = |seen: &Seen<'_>| {
            seen.from
                .as_ref()
                .is_some_and(|from| there.contains(&from.pool))
        };
        let mut works = Vec::new();
        for beside in &self.beside {
            let holds = well
                .iter()
                .any(|seen| beside.checks.covers(seen.id()) && is_there(seen));
            let fails = of_it.iter().any(|seen| beside.checks.covers(seen.id()));
            if holds && !fails {
                works.push(beside.says.clone());
            }
        }
        let claims: BTreeSet<_> = of_it
            .iter()
            .filter(|seen| self.is_about(seen))
            .map(|seen| &seen.check.planned.claim)
            .collect();
        let elsewhere = well
            .iter()
            .filter(|seen| claims.contains(&seen.check.planned.claim));
        let elsewhere = elsewhere.filter_map(|seen| seen.from.as_ref());
        let elsewhere: BTreeSet<_> = elsewhere
            .filter(|from| !there.contains(&from.pool))
            .map(|from| printable(from.pool.as_str()))
            .collect();
        if !elsewhere.is_empty() {
            let names: Vec<_> = elsewhere.into_iter().collect();
            works.push(format!("the same is well in {}", names.join(", ")));
        }
        works.join("; ")
    }
}
