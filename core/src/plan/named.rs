//! What patterns of ids can name, and the id nearest to a pattern that names nothing.

use std::collections::BTreeSet;

use super::check::Plan;
use crate::claims::{Claim, ClaimId, Pattern};
use crate::config::Waiver;
use crate::document::{Diagnostic, Place, Placed, did_you_mean, nearest};
use crate::facts::NodeOrdinal;
use crate::suite::{Case, Suites};

/// Refuses a pattern that can be about no check of any case and about no claim without cases.
pub(super) fn known_id(pattern: &Pattern, at: &Place, suites: &Suites) -> Result<(), Diagnostic> {
    for value in node_values(pattern.as_str()) {
        known_place(value, at)?;
    }
    let has_case = |claim: &Claim| suites.cases_of(&claim.id).next().is_some();
    let is_case = |case: &Case| pattern.may_cover_case(&case.id());
    let mut unchecked = suites.claims.iter().filter(|claim| !has_case(claim));
    if suites.cases.iter().any(is_case) || unchecked.any(|it| pattern.may_cover(it.id.as_str())) {
        return Ok(());
    }
    let head = head(pattern.as_str());
    let named = Pattern::parse(head).ok();
    let is_named = |claim: &ClaimId| named.as_ref().is_some_and(|it| it.covers(claim.as_str()));
    let of_claims = suites.cases.iter().filter(|case| is_named(&case.claim));
    let of_claims: Vec<_> = of_claims.collect();
    if !of_claims.is_empty() {
        return Err(no_case(pattern, at, head, &of_claims));
    }
    let ids = suites.claims.iter().map(|claim| claim.id.as_str());
    let hint = match nearest(head, ids) {
        _ if suites.has_area(head) => format!("did you mean `{head}.*` or `area={head}`?"),
        Some(near) => format!("did you mean `{near}`?"),
        None => "`winconform list` names the claims".to_owned(),
    };
    let message = format!("no claim is called `{pattern}`");
    Err(at.problem(message, Some(hint)))
}

/// The problem of a pattern that names claims but none of their cases.
fn no_case(pattern: &Pattern, at: &Place, head: &str, cases: &[&Case]) -> Diagnostic {
    let rest = pattern.as_str()[head.len()..].strip_prefix('/');
    let name = rest.map(|rest| rest.split('[').next().unwrap_or_default());
    let names = cases.iter().filter_map(|case| case.name.as_deref());
    let names: Vec<_> = names.collect::<BTreeSet<_>>().into_iter().collect();
    let is_one = |name: &&str| names.contains(name);
    match name.filter(|name| !is_one(name)) {
        Some(name) if !names.is_empty() => {
            let message = format!("no case of `{head}` is called `{name}`");
            at.problem(message, Some(did_you_mean(name, &names)))
        }
        Some(_) => {
            let hint = format!("`{head}` is all there is of it");
            at.problem(format!("no case of `{head}` has a name"), Some(hint))
        }
        None => {
            let hint = match names.first() {
                Some(name) if cases.iter().all(|case| case.name.is_some()) => format!(
                    "its cases have names, which stand before the bracket, such as `{head}/{name}`: {}",
                    names.join(", ")
                ),
                _ => format!(
                    "a check's values stand in brackets behind its case, such as `{head}[pool=windows-2022*`"
                ),
            };
            at.problem(format!("no check can be called `{pattern}`"), Some(hint))
        }
    }
}

/// The part of a pattern before its case and its point.
fn head(pattern: &str) -> &str {
    pattern.split(['[', '/']).next().unwrap_or_default()
}

/// The values of the node axis in a pattern of ids, each up to a `*`.
fn node_values(pattern: &str) -> impl Iterator<Item = &str> {
    let parts = pattern.split(['[', ',']).skip(1);
    parts.filter_map(|part| {
        let (axis, value) = part.split_once('=')?;
        let is_it = axis.trim_start_matches(['*', '?']) == "node" || axis.ends_with("*node");
        let ends = value.find(['*', ']']).unwrap_or(value.len());
        (is_it && ends > 0).then(|| &value[..ends])
    })
}

/// Refuses a value that cannot be the place of a node in its pool.
pub(super) fn known_place(value: &str, at: &Place) -> Result<(), Diagnostic> {
    let is_pattern = value.contains(['*', '?']);
    let letters = value.trim_matches(['*', '?']);
    let is_number = letters
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"*?".contains(&byte));
    let is_place = value.parse().is_ok_and(|place: NodeOrdinal| place > 0);
    if is_place || is_pattern && is_number {
        return Ok(());
    }
    let message = format!("no node is `{value}` in the id of a check");
    let hint = "a node is called by its place in its pool, from 1 in the order of the names, such as `node=2`";
    Err(at.problem(message, Some(hint.to_owned())))
}

/// The check nearest to a pattern: of the same claim if the plan has it, then at as many of the pattern's
/// values as possible.
pub(super) fn nearest_check<'p>(pattern: &Pattern, plan: &'p Plan) -> Option<&'p str> {
    let written = pattern.as_str();
    let ids = plan.checks.iter().map(|check| check.id.as_str());
    let values: BTreeSet<_> = values(written).collect();
    let rank = |id: &&str| {
        let shared = self::values(id).filter(|value| values.contains(value));
        (head(id) == head(written), shared.count())
    };
    let best = ids.clone().map(|id| rank(&id)).max()?;
    nearest(written, ids.filter(|id| rank(id) == best))
}

/// The values of a point, each with its axis.
fn values(id: &str) -> impl Iterator<Item = &str> {
    let (_, point) = id.split_once('[').unwrap_or_default();
    let values = point.trim_end_matches(']').split([',', '*']);
    values.filter(|value| !value.is_empty())
}

/// Reports waivers that no check of the suites can ever meet.
pub fn check_waivers(waivers: &[Placed<Waiver>], suites: &Suites, found: &mut Vec<Diagnostic>) {
    for Placed { value, at } in waivers {
        found.extend(known_id(&value.check, at, suites).err());
    }
}
