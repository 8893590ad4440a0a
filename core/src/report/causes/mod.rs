//! Causes: what the checks that are in trouble have in common. A pure function of the record, passes included.
//!
//! The catalogue is gone through in its order; each rule takes the checks that show it and that no rule before has
//! taken, finds the place that covers them, and takes there what it explains. A cause is likely, unless a check that
//! would show it passes in its place, or nothing but its claims is known: then the run is consistent with it. The
//! evidence that was collected after failures decides nothing: its most telling line is shown beside the cause.

mod catalogue;
mod evidence;
mod place;
mod read;
mod trouble;
mod within;

use std::collections::BTreeSet;

pub use catalogue::Component;
use catalogue::{CATALOGUE, Rule, Side};
pub use place::Scope;
use place::{Others, Place};
use trouble::{All, Seen};

use crate::claims::Pattern;
use crate::facts::PoolName;
use crate::record::{CheckView, RunView};
use crate::report::findings::places::{Pools, pools};
use crate::text::{is_dns_subdomain, printable};
use crate::verdict::Verdict;

/// How many places are named where the same passes.
const NAMED: usize = 4;

/// One statement that explains many verdicts.
pub struct Cause<'v> {
    /// The part of the cluster that is likely at fault.
    pub component: Component,
    pub scope: Scope,
    /// What does not work, and where. Printable.
    pub says: String,
    /// What works beside it; empty where nothing tells. Printable.
    pub beside: String,
    /// Whether it is likely; otherwise the run is only consistent with it.
    pub is_likely: bool,
    /// The component in words.
    pub likely: &'static str,
    /// The most telling line of what the run collected after failures; empty where none tells. Printable.
    pub evidence: String,
    /// A command to look with. Printable.
    pub look: String,
    pub link: Option<&'static str>,
    /// The checks that it explains, in their planned order.
    pub checks: Vec<&'v CheckView>,
}

impl Cause<'_> {
    /// How sure it is, as the start of what names the component.
    pub fn certainty(&self) -> &'static str {
        match self.is_likely {
            true => "likely",
            false => "consistent with",
        }
    }
}

/// The likely causes of all checks that failed or could not be told, what explains failures first, then by the number
/// of checks; and the checks that none of them explains.
pub fn causes(view: &RunView) -> (Vec<Cause<'_>>, Vec<&CheckView>) {
    let pools = pools(view);
    let all = All::of(view, &pools);
    let mut open: Vec<&Seen<'_>> = all.troubles.iter().collect();
    let mut taken: Vec<&Seen<'_>> = Vec::new();
    let mut causes = Vec::new();
    for rule in CATALOGUE.iter() {
        let fits = Fits::new(rule, &all);
        let shows: Vec<_> = open
            .iter()
            .copied()
            .filter(|seen| fits.shows(seen))
            .collect();
        for (place, shows) in fits.places(shows, &taken, &all, &pools) {
            let any_fails = shows.iter().any(|seen| seen.fails());
            let (of_it, rest): (Vec<_>, Vec<_>) = open
                .into_iter()
                .partition(|seen| fits.explains(seen, &place, &shows, any_fails));
            open = rest;
            causes.push(fits.cause(&place, &of_it, &all, &pools));
            taken.extend(of_it);
        }
    }
    causes.sort_by_key(|cause| {
        let mut verdicts = cause.checks.iter().map(|check| check.verdict());
        let fails = verdicts.any(|verdict| verdict == Some(Verdict::Fail));
        std::cmp::Reverse((fails, cause.checks.len()))
    });
    (causes, open.into_iter().map(|seen| seen.check).collect())
}

/// Which cases of a run a rule is about.
struct Fits<'r> {
    rule: &'static Rule,
    /// The cases by which its cause shows, by their places.
    about: Vec<bool>,
    explained: Vec<bool>,
    explained_from: Vec<bool>,
    /// Of checks that fail, where these are not the same.
    explained_failed: Option<Vec<bool>>,
    /// The pools in which something contradicts it.
    contradicted: BTreeSet<Option<&'r PoolName>>,
}

impl<'r> Fits<'r> {
    fn new(rule: &'static Rule, all: &'r All<'_>) -> Self {
        let covers = |patterns: &[Pattern]| {
            let cases = all.cases.iter();
            let covered = cases.map(|case| patterns.iter().any(|one| one.covers(case)));
            covered.collect::<Vec<_>>()
        };
        let unless = covers(&rule.unless);
        let against = all.troubles.iter().filter(|seen| unless[seen.case]);
        Self {
            rule,
            about: covers(&rule.shown_by),
            explained: covers(&rule.explains),
            explained_from: covers(&rule.explains_from),
            explained_failed: rule.explains_failed.as_deref().map(covers),
            contradicted: against.flat_map(pools_of).collect(),
        }
    }

    /// Whether the cause shows by a check.
    fn shows(&self, seen: &Seen<'_>) -> bool {
        let words = &self.rule.words;
        let fits = match words.is_empty() {
            true => seen.observed,
            false => words.iter().any(|word| seen.text.contains(word)),
        };
        let is_linux = from_pool(seen).is_some_and(|pool| *pool == PoolName::linux());
        self.about[seen.case]
            && fits
            && !(self.rule.from_windows && is_linux)
            && ![None, from_pool(seen)]
                .iter()
                .any(|pool| self.contradicted.contains(pool))
    }

    /// The checks that would show the cause by the same families of addresses as these do.
    fn like<'s, 'v>(
        &self,
        shows: &[&Seen<'_>],
        all: impl Iterator<Item = &'s Seen<'v>>,
    ) -> Vec<&'s Seen<'v>>
    where
        'v: 's,
    {
        let families: BTreeSet<_> = shows.iter().map(|seen| seen.family()).collect();
        let is_like = |seen: &&Seen<'_>| self.about[seen.case] && families.contains(&seen.family());
        all.filter(is_like).collect()
    }

    /// Where the cause is, with the checks that show it there. What is not in the whole cluster may have a cause of its
    /// own on Linux nodes, and one on Windows nodes; each claim of a guess is where it is.
    fn places<'s, 'v>(
        &self,
        shows: Vec<&'s Seen<'v>>,
        taken: &[&'s Seen<'v>],
        all: &'s All<'v>,
        pools: &Pools,
    ) -> Vec<(Place, Vec<&'s Seen<'v>>)> {
        let find = |shows: &[&Seen<'_>]| {
            let families: BTreeSet<_> = shows.iter().map(|seen| seen.family()).collect();
            let reaching = all
                .reaching
                .iter()
                .filter(|_| self.rule.side == Side::Reach);
            let reaching = reaching.filter(|(family, _)| families.contains(family));
            let others = Others {
                well: &self.like(shows, all.well.iter()),
                taken: &self.like(shows, taken.iter().copied()),
                reaching: reaching.map(|(_, end)| end).collect(),
            };
            Place::find(self.rule.side, shows, &others, pools)
        };
        if self.rule.guess {
            let mut places: Vec<(Place, Vec<_>)> = Vec::new();
            let claims: BTreeSet<_> = shows.iter().map(|seen| claim(seen)).collect();
            for one in claims {
                let of_it: Vec<_> = shows
                    .iter()
                    .copied()
                    .filter(|seen| claim(seen) == one)
                    .collect();
                let place = find(&of_it);
                match places.iter_mut().find(|(other, _)| *other == place) {
                    Some((_, shows)) => shows.extend(of_it),
                    None => places.push((place, of_it)),
                }
            }
            for (_, shows) in &mut places {
                shows.sort_by_key(|seen| std::ptr::from_ref(*seen));
            }
            return places;
        }
        if shows.is_empty() {
            return Vec::new();
        }
        let place = find(&shows);
        let linux = PoolName::linux();
        let from_linux = |seen: &&Seen<'_>| from_pool(seen) == Some(&linux);
        let known = shows.iter().all(|seen| seen.from.is_some());
        if self.rule.side != Side::From || !place.is_of_pools() || !known {
            return vec![(place, shows)];
        }
        let (of_linux, of_windows): (Vec<_>, Vec<_>) = shows.into_iter().partition(from_linux);
        let apart = [of_linux, of_windows].into_iter();
        let apart = apart.filter(|shows| !shows.is_empty());
        apart.map(|shows| (find(&shows), shows)).collect()
    }

    /// Whether the cause at a place, which checks show, explains a check; `any_fails` says whether one of them fails.
    fn explains(
        &self,
        seen: &Seen<'_>,
        place: &Place,
        shows: &[&Seen<'_>],
        any_fails: bool,
    ) -> bool {
        if self.shows(seen) {
            // They are in the order in which they lie
            let at = std::ptr::from_ref(seen);
            let found = shows.binary_search_by(|one| std::ptr::from_ref(*one).cmp(&at));
            return found.is_ok();
        }
        let explained = match seen.fails() {
            // What kept checks from being observed explains nothing that was seen of the network
            true if seen.check.planned.claim.area() == "net" && !any_fails => false,
            true => self.explained_failed.as_ref().unwrap_or(&self.explained)[seen.case],
            false => self.explained[seen.case],
        };
        explained && place.may_reach(seen)
            || self.explained_from[seen.case] && place.may_reach_from(seen)
    }

    fn cause<'v>(
        &self,
        place: &Place,
        of_it: &[&Seen<'v>],
        all: &All<'_>,
        pools: &Pools,
    ) -> Cause<'v> {
        let rule = self.rule;
        let shows: Vec<_> = of_it
            .iter()
            .copied()
            .filter(|seen| self.shows(seen))
            .collect();
        let like = self.like(&shows, all.well.iter());
        let mut passes = like.iter().filter(|seen| is_pass(seen));
        let contradicts = |seen: &&Seen<'_>| {
            place.holds(rule.side, seen) && shows.iter().any(|one| one.case == seen.case)
        };
        let is_likely = !rule.guess && !passes.any(contradicts);
        let claims = shows.iter().filter(|_| rule.guess);
        let claims = claims.map(|seen| claim(seen)).collect();
        let shows = shows.iter();
        let families: BTreeSet<_> = shows.clone().map(|seen| seen.family()).collect();
        let family = match families.first() {
            Some(Some(family)) if families.len() == 1 => format!(" over {family}"),
            _ => String::new(),
        };
        // Of a pool, the node that a check names: the others may be well
        let mut named = shows.flat_map(|seen| &seen.named);
        let named = named.find(|end| end.node.is_some() && place.may_hold(end));
        let node = named.and_then(|end| end.node.clone());
        let node = node.or_else(|| place.node(pools));
        // A name that means something to a shell is in no cluster, but may be in a record
        let node = node.filter(|node| is_dns_subdomain(node));
        let look = rule
            .look
            .replace("{node}", node.as_deref().unwrap_or("NODE"));
        Cause {
            component: rule.component,
            scope: place.scope(),
            says: format!("{}{}{family} {}", rule.says, listed(&claims), place.words()),
            beside: self.works(place, of_it, all),
            is_likely,
            likely: &rule.likely,
            evidence: all.evidence.telling(&rule.evidence, of_it, place),
            look: printable(&look),
            link: rule.link.as_deref(),
            checks: of_it.iter().map(|seen| seen.check).collect(),
        }
    }

    /// What works beside the cause: what its rule names, in the same place, and the same checks elsewhere.
    fn works(&self, place: &Place, of_it: &[&Seen<'_>], all: &All<'_>) -> String {
        let there = place.pools();
        let is_in = |pool: &PoolName| there.as_ref().is_none_or(|pools| pools.contains(pool));
        let passes = |seen: &&Seen<'_>| is_pass(seen);
        let mut works = Vec::new();
        for beside in &self.rule.beside {
            let is_of_it = |seen: &Seen<'_>| beside.checks.covers(all.cases[seen.case]);
            let is_there = |seen: &Seen<'_>| from_pool(seen).is_some_and(is_in);
            let mut well = all.well.iter().filter(passes);
            if well.any(|seen| is_of_it(seen) && is_there(seen))
                && !all
                    .troubles
                    .iter()
                    .any(|seen| is_of_it(seen) && is_there(seen))
            {
                works.push(beside.says.clone());
            }
        }
        let fail: BTreeSet<_> = of_it.iter().filter_map(|seen| from_pool(seen)).collect();
        let cases: BTreeSet<_> = of_it
            .iter()
            .filter(|seen| self.about[seen.case])
            .map(|seen| seen.case)
            .collect();
        let well = all.well.iter().filter(passes);
        let elsewhere = well.filter(|seen| cases.contains(&seen.case));
        let elsewhere = elsewhere.filter_map(|seen| {
            let from = seen.from.as_ref()?;
            match (place.has_node(from), fail.contains(&from.pool)) {
                (Some(false), _) => from.node.clone(),
                (None, false) if !is_in(&from.pool) => Some(from.pool.to_string()),
                _ => None,
            }
        });
        let elsewhere: BTreeSet<_> = elsewhere.map(|name| printable(&name)).collect();
        if !elsewhere.is_empty() {
            let names: Vec<_> = elsewhere.into_iter().take(NAMED).collect();
            works.push(format!("the same passes in {}", names.join(", ")));
        }
        works.join("; ")
    }
}

/// The pool that a check observes from, and the one it observes.
fn pools_of<'a>(seen: &'a Seen<'_>) -> impl Iterator<Item = Option<&'a PoolName>> {
    let to = seen.to.as_ref().map(|to| Some(&to.pool));
    std::iter::once(from_pool(seen)).chain(to)
}

fn claim<'v>(seen: &Seen<'v>) -> &'v str {
    seen.check.planned.claim.as_str()
}

fn is_pass(seen: &Seen<'_>) -> bool {
    seen.check.verdict() == Some(Verdict::Pass)
}

/// Claims in parentheses, if there are any.
fn listed(claims: &BTreeSet<&str>) -> String {
    let named: Vec<_> = claims.iter().take(NAMED).copied().collect();
    let named = named.join(", ");
    match claims.len() {
        0 => String::new(),
        count if count > NAMED => format!(" ({named} and {} more)", count - NAMED),
        _ => format!(" ({named})"),
    }
}

fn from_pool<'a>(seen: &'a Seen<'_>) -> Option<&'a PoolName> {
    seen.from.as_ref().map(|from| &from.pool)
}
