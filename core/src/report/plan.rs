//! A plan for programs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::json::pretty;
use crate::plan::{Disposition, Plan, PlannedAssertion, Selection};

/// The version of this document's schema; a field may be added within a version, not changed.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'p> {
    schema: u32,
    selection: Vec<String>,
    left_out: &'p BTreeMap<String, usize>,
    checks: Vec<Check<'p>>,
    fixtures: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Check<'p> {
    id: &'p str,
    claim: &'p str,
    r#type: &'static str,
    title: &'p str,
    point: BTreeMap<&'static str, Cow<'p, str>>,
    disposition: &'static str,
    reason: Option<String>,
    assertions: Vec<Assertion<'p>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Assertion<'p> {
    name: &'p str,
    from: Option<String>,
    needs: Vec<String>,
}

/// What a run would check, and what it would skip and why, as JSON ending in a newline.
pub fn json(plan: &Plan, selection: &Selection, left_out: &BTreeMap<String, usize>) -> String {
    let checks = plan.checks.iter().map(|check| {
        let (disposition, reason) = match &check.disposition {
            Disposition::Observe => ("observe", None),
            Disposition::Skip(reason) => ("skip", Some(reason.to_string())),
            Disposition::Inconclusive(error) => ("inconclusive", Some(error.to_string())),
        };
        let point = check.point.values();
        Check {
            id: check.id.as_str(),
            claim: check.claim.as_str(),
            r#type: check.claim_type.as_str(),
            title: &check.title,
            point: point.map(|(axis, value)| (axis.as_str(), value)).collect(),
            disposition,
            reason,
            assertions: check.assertions.iter().map(assertion).collect(),
        }
    });
    pretty(&Document {
        schema: SCHEMA,
        selection: selection.written(),
        left_out,
        checks: checks.collect(),
        fixtures: plan.fixtures().iter().map(ToString::to_string).collect(),
    })
}

fn assertion(assertion: &PlannedAssertion) -> Assertion<'_> {
    Assertion {
        name: &assertion.name,
        from: assertion.from.as_ref().map(ToString::to_string),
        needs: assertion
            .needs
            .iter()
            .map(|(key, _)| key.to_string())
            .collect(),
    }
}
