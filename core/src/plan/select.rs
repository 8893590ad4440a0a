//! Which checks a user wants: those that terms name, or all, without those that `!` terms name.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Axis, Check, CheckId, Plan};
use super::named::{known_id, known_place, nearest_check};
use crate::claims::{Claim, ClaimId, ClaimType, Pattern};
use crate::document::{Diagnostic, Diagnostics, Place, Placed, did_you_mean};
use crate::facts::{Facts, IpFamily, Known};
use crate::method::{SourceKind, Test};
use crate::suite::{Across, Case, Suites};

/// Which checks are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    terms: Vec<Term>,
    unchecked: Vec<ClaimId>,
    /// Checks of an earlier run, in place of terms.
    again: Option<Again>,
}

#[derive(Clone, Debug, PartialEq)]
struct Again {
    run: String,
    checks: BTreeSet<CheckId>,
}

/// A plan divided by a selection.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The checks that are wanted.
    pub plan: Plan,
    /// How many checks are not wanted, by area.
    pub left_out: BTreeMap<String, usize>,
    /// The ids of the checks that are not wanted.
    pub unwanted: BTreeSet<CheckId>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    written: String,
    at: Place,
    negated: bool,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// Checks by their ids.
    Id(Pattern),
    Area(Pattern),
    ClaimType(Pattern),
    /// Checks by a value of their point.
    Axis(Axis, Pattern),
}

/// Whether a term names something; before a case has points this is not always known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hit {
    Yes,
    Perhaps,
    No,
}

impl Hit {
    fn certain(hit: bool) -> Self {
        if hit { Self::Yes } else { Self::No }
    }

    fn possible(hit: bool) -> Self {
        if hit { Self::Perhaps } else { Self::No }
    }
}

/// The keys of terms that are not axes.
const OF_CLAIMS: [&str; 2] = ["area", "type"];

impl Selection {
    /// Reads terms and reports problems to `found`. [`Selection::apply`] checks the names of pools, which are
    /// known only with a plan.
    pub fn read(written: &[Placed<String>], suites: &Suites, found: &mut Vec<Diagnostic>) -> Self {
        let mut terms = Vec::with_capacity(written.len());
        for Placed { value, at } in written {
            match Term::read(value, at, suites) {
                Ok(term) => terms.push(term),
                Err(problem) => found.push(problem),
            }
        }
        let mut selection = Self {
            terms,
            ..Self::default()
        };
        if !selection.is_everything() {
            let wanted = suites.claims.iter().filter(|claim| {
                suites.cases_of(&claim.id).next().is_none() && selection.may_want(claim, suites)
            });
            selection.unchecked = wanted.map(|claim| claim.id.clone()).collect();
        }
        selection
    }

    /// Only these checks of an earlier run; those that a plan does not have are left out.
    pub fn again(run: &str, checks: BTreeSet<CheckId>) -> Self {
        let run = run.to_owned();
        Self {
            again: Some(Again { run, checks }),
            ..Self::default()
        }
    }

    /// The terms as written, in their order; of checks of an earlier run, which run that was.
    pub fn written(&self) -> Vec<String> {
        if let Some(again) = &self.again {
            return vec![format!("what was amiss in run {}", again.run)];
        }
        self.terms.iter().map(|term| term.written.clone()).collect()
    }

    /// The checks of an earlier run, if these are wanted.
    pub fn of_earlier_run(&self) -> BTreeSet<CheckId> {
        self.again
            .as_ref()
            .map_or_else(BTreeSet::new, |again| again.checks.clone())
    }

    /// The claims that terms name and that have no case.
    pub fn unchecked(&self) -> &[ClaimId] {
        &self.unchecked
    }

    /// Whether everything is wanted because there are no terms.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty() && self.again.is_none()
    }

    /// Whether a claim is wanted; with cases, `true` as long as one of its checks may be wanted.
    pub fn may_want(&self, claim: &Claim, suites: &Suites) -> bool {
        let mut cases = suites.cases_of(&claim.id).peekable();
        match cases.peek() {
            None => self.wants(|what| what.hit_claim(&claim.id, claim.claim_type)),
            Some(_) => cases.any(|case| self.may_want_case(case)),
        }
    }

    /// Whether a case is wanted: `true` as long as one of its checks may be wanted.
    pub fn may_want_case(&self, case: &Case) -> bool {
        if let Some(again) = &self.again {
            let id = case.id();
            let is_of_it = |check: &CheckId| {
                let rest = check.as_str().strip_prefix(id.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
            };
            return again.checks.iter().any(is_of_it);
        }
        self.wants(|what| what.hit_case(case))
    }

    /// Whether the wanted checks of a case depend on the cluster's pools and nodes.
    pub fn is_of_pools(&self) -> bool {
        let mut terms = self.terms.iter();
        self.again.is_some()
            || terms.any(|term| match &term.what {
                What::Axis(axis, _) => matches!(axis, Axis::Pool | Axis::To | Axis::Node),
                What::Id(pattern) => pattern.as_str().contains('='),
                What::Area(_) | What::ClaimType(_) => false,
            })
    }

    /// Whether a wanted case may need an image, whatever the cluster.
    pub fn may_pull(&self, suites: &Suites) -> bool {
        let mut cases = suites.cases.iter();
        cases.any(|case| pulls(case) && self.may_want_case(case))
    }

    /// Divides a plan. Refuses a term that names no pool, node or check of the cluster.
    pub fn apply(&self, plan: Plan, facts: &Facts) -> Result<Selected, Diagnostics> {
        let terms = self.terms.iter();
        let problems = terms.filter_map(|term| term.amiss(&plan, facts));
        Diagnostics::check(problems.collect())?;
        let mut left_out = BTreeMap::new();
        let (wanted, unwanted): (Vec<_>, Vec<_>) =
            plan.checks
                .into_iter()
                .partition(|check| match &self.again {
                    Some(again) => again.checks.contains(&check.id),
                    None => self.wants(|what| what.hit_check(check)),
                });
        for check in &unwanted {
            *left_out.entry(check.claim.area().to_owned()).or_default() += 1;
        }
        let plan = Plan { checks: wanted };
        let unwanted = unwanted.into_iter().map(|check| check.id).collect();
        Ok(Selected {
            plan,
            left_out,
            unwanted,
        })
    }

    fn wants(&self, hit: impl Fn(&What) -> Hit) -> bool {
        let hits = |negated| {
            let terms = self
                .terms
                .iter()
                .filter(move |term| term.negated == negated);
            terms.map(|term| hit(&term.what))
        };
        let named = hits(false).count() == 0 || hits(false).any(|hit| hit != Hit::No);
        named && hits(true).all(|hit| hit != Hit::Yes)
    }
}

impl Term {
    fn read(written: &str, at: &Place, suites: &Suites) -> Result<Self, Diagnostic> {
        let (negated, text) = match written.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, written),
        };
        let word = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let what = match text.split_once('=') {
            Some((key, value)) if word(key) => Self::read_value(key, value, at, suites)?,
            _ => {
                let pattern = read_pattern(text, at)?;
                known_id(&pattern, at, suites)?;
                What::Id(pattern)
            }
        };
        Ok(Self {
            written: written.to_owned(),
            at: at.clone(),
            negated,
            what,
        })
    }

    fn read_value(key: &str, value: &str, at: &Place, suites: &Suites) -> Result<What, Diagnostic> {
        let axis = key.parse::<Axis>().ok();
        if axis.is_none() && !OF_CLAIMS.contains(&key) {
            let known: Vec<_> = OF_CLAIMS
                .into_iter()
                .chain(Axis::ALL.iter().map(|axis| axis.as_str()))
                .collect();
            let message = format!("a selection has no key `{key}=`");
            return Err(at.problem(message, Some(did_you_mean(key, &known))));
        }
        let pattern = read_pattern(value, at)?;
        if axis == Some(Axis::Node) {
            known_place(value, at)?;
        }
        let known: Option<Vec<_>> = match (axis, key) {
            (Some(axis), _) => known_values(axis, suites),
            (None, "area") => Some(suites.claims.iter().map(|claim| claim.id.area()).collect()),
            (None, _) => Some(ClaimType::ALL.iter().map(|kind| kind.as_str()).collect()),
        };
        if let Some(known) = known {
            is_known(key, &pattern, &known, at)?;
        }
        Ok(match (axis, key) {
            (Some(axis), _) => What::Axis(axis, pattern),
            (None, "area") => What::Area(pattern),
            (None, _) => What::ClaimType(pattern),
        })
    }

    /// What is wrong with the term on this cluster.
    fn amiss(&self, plan: &Plan, facts: &Facts) -> Option<Diagnostic> {
        // While the nodes are unknown, no name of a pool is known to be wrong
        if matches!(facts.nodes, Known::Unknown { .. }) {
            return None;
        }
        match &self.what {
            What::Axis(axis @ (Axis::Pool | Axis::To | Axis::Node), pattern) => {
                // Pools that only a case names do not count
                let pools = facts.pools();
                let there = |value: &str| *axis == Axis::Node || pools.contains_key(value);
                let values = plan.checks.iter().filter_map(|check| check.point.on(*axis));
                let values: Vec<_> = values.filter(|value| there(value)).collect();
                let known: Vec<_> = values.iter().map(|value| &**value).collect();
                if known.is_empty() {
                    let none = match axis {
                        Axis::Node => "no pool of the cluster has several usable nodes",
                        _ => "the cluster has no Windows pool",
                    };
                    let message = format!("{none}, so none is `{pattern}`");
                    return Some(self.at.problem(message, None));
                }
                is_known(axis.as_str(), pattern, &known, &self.at).err()
            }
            What::Id(pattern) if pattern.is_of_a_check() => {
                let mut ids = plan.checks.iter().map(|check| &check.id);
                if ids.any(|id| pattern.covers(id.as_str())) {
                    return None;
                }
                let hint = match nearest_check(pattern, plan) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`winconform plan` lists the checks of this cluster".to_owned(),
                };
                let message = format!("no check of this cluster is called `{pattern}`");
                Some(self.at.problem(message, Some(hint)))
            }
            What::Id(_) | What::Area(_) | What::ClaimType(_) | What::Axis(..) => None,
        }
    }
}

impl What {
    fn hit_claim(&self, id: &ClaimId, kind: ClaimType) -> Hit {
        match self {
            Self::Id(pattern) => Hit::certain(pattern.covers(id.as_str())),
            Self::Area(pattern) => Hit::certain(pattern.matches(id.area())),
            Self::ClaimType(pattern) => Hit::certain(pattern.matches(kind.as_str())),
            Self::Axis(..) => Hit::No,
        }
    }

    fn hit_case(&self, case: &Case) -> Hit {
        match self {
            Self::Id(pattern) => hit_id(pattern, &case.id()),
            Self::Area(_) | Self::ClaimType(_) => self.hit_claim(&case.claim, case.claim_type),
            Self::Axis(axis, pattern) => Hit::possible(match axis {
                Axis::Pool => match &case.over.only_pool {
                    Some(only) => pattern.matches(only.as_str()),
                    None => case.over.windows_pools,
                },
                Axis::To => case.over.across == Across::Pools,
                Axis::Node => case.over.across == Across::Nodes,
                Axis::Source | Axis::Workload | Axis::Container | Axis::Value | Axis::Family => {
                    values_of(case, *axis)
                        .into_iter()
                        .any(|value| pattern.matches(value))
                }
            }),
        }
    }

    fn hit_check(&self, check: &Check) -> Hit {
        match self {
            Self::Id(pattern) if check.represents_all => hit_id(pattern, check.id.as_str()),
            Self::Id(pattern) => Hit::certain(pattern.covers(check.id.as_str())),
            Self::Area(_) | Self::ClaimType(_) => self.hit_claim(&check.claim, check.claim_type),
            Self::Axis(axis, pattern) => match check.point.on(*axis) {
                Some(value) => Hit::certain(pattern.matches(&value)),
                None => Hit::possible(check.represents_all),
            },
        }
    }
}

/// Whether a case needs running pods, of fixtures or probers.
fn pulls(case: &Case) -> bool {
    let controls = case.controls.iter();
    let of_controls = controls.filter_map(|control| control.test.as_ref());
    let pulls = |test: &Test| {
        let needs = test.needs();
        test.traits().needs_source || needs.iter().any(|(name, _)| name.image().is_some())
    };
    of_controls.chain([&case.test]).any(pulls)
}

/// Whether a pattern is about the checks of a claim or case with this id.
fn hit_id(pattern: &Pattern, id: &str) -> Hit {
    if pattern.covers(id) {
        Hit::Yes
    } else {
        Hit::possible(pattern.may_cover_case(id))
    }
}

/// The values of an axis that are known without a cluster.
fn known_values(axis: Axis, suites: &Suites) -> Option<Vec<&str>> {
    match axis {
        Axis::Pool | Axis::To | Axis::Node => None,
        Axis::Source => Some(SourceKind::ALL.iter().map(|one| one.as_str()).collect()),
        Axis::Family => Some(IpFamily::ALL.iter().map(|one| one.as_str()).collect()),
        Axis::Workload | Axis::Container | Axis::Value => {
            let cases = suites.cases.iter();
            Some(cases.flat_map(|case| values_of(case, axis)).collect())
        }
    }
}

/// The values of a case on an axis, as far as they are known without a cluster.
fn values_of(case: &Case, axis: Axis) -> Vec<&str> {
    let over = &case.over;
    match axis {
        Axis::Source => over.sources.iter().map(|one| one.as_str()).collect(),
        Axis::Workload => over.workloads.iter().map(|one| one.as_str()).collect(),
        Axis::Container => over.containers.iter().map(|one| one.as_str()).collect(),
        Axis::Value => over.values.keys().map(String::as_str).collect(),
        Axis::Family if over.families => IpFamily::ALL.iter().map(|one| one.as_str()).collect(),
        Axis::Pool | Axis::To | Axis::Node | Axis::Family => Vec::new(),
    }
}

fn read_pattern(text: &str, at: &Place) -> Result<Pattern, Diagnostic> {
    Pattern::parse(text).map_err(|error| {
        let message = format!("`{text}` selects nothing: it is not a pattern");
        at.problem(message, Some(error.to_owned()))
    })
}

fn is_known(key: &str, pattern: &Pattern, known: &[&str], at: &Place) -> Result<(), Diagnostic> {
    if known.iter().any(|value| pattern.matches(value)) {
        return Ok(());
    }
    let known: BTreeSet<_> = known.iter().copied().collect();
    let known: Vec<_> = known.into_iter().collect();
    let message = format!("there is no {key} `{pattern}`");
    Err(at.problem(message, Some(did_you_mean(pattern.as_str(), &known))))
}
