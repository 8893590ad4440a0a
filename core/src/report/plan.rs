//! A plan for programs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::findings::places::axes;
use super::json::pretty;
use crate::facts::PoolName;
use crate::plan::{Disposition, Plan, PlannedAssertion, PoolCost, Selection};
use crate::text::{counted, printable};

/// The version of this document's schema; a field may be added within a version, not changed.
pub const SCHEMA: u32 = 1;

/// What a run would check, and what it would skip and why, as JSON ending in a newline.
pub fn json(
    plan: &Plan,
    costs: &BTreeMap<PoolName, PoolCost>,
    selection: &Selection,
    left_out: &BTreeMap<String, usize>,
) -> String {
    let checks = plan.checks.iter().map(|check| {
        let (disposition, reason) = match &check.disposition {
            Disposition::Observe => ("observe", None),
            Disposition::Skip(reason) => ("skip", Some(reason.to_string())),
            Disposition::Inconclusive(error) => ("inconclusive", Some(error.to_string())),
        };
        json!({
            "id": check.id,
            "claim": check.claim,
            "type": check.claim_type.as_str(),
            "title": check.title,
            "point": axes(&check.point),
            "disposition": disposition,
            "reason": reason,
            // Skipped though the question arises
            "not-tested": matches!(&check.disposition, Disposition::Skip(why) if !why.is_legitimate()),
            "assertions": check.assertions.iter().map(assertion).collect::<Vec<_>>(),
        })
    });
    let fixtures = plan.fixtures();
    let costs = costs.iter().map(|(pool, cost)| {
        let cost = json!({
            "pods": cost.pods,
            "cpu": cost.cpu,
            "memory": cost.memory,
            "images": cost.images,
            "placed": cost.placed,
            "at-once": cost.at_once,
            "gigabytes": f64::from(cost.tenths) / 10.0,
        });
        (pool.as_str(), cost)
    });
    pretty(&json!({
        "schema": SCHEMA,
        "selection": selection.written(),
        "left-out": left_out,
        "checks": checks.collect::<Vec<_>>(),
        "fixtures": fixtures.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "costs": costs.collect::<BTreeMap<_, _>>(),
    }))
}

/// What a run asks of the nodes of each pool, for people.
pub fn costs_text(costs: &BTreeMap<PoolName, PoolCost>) -> String {
    let mut text = String::new();
    for (pool, cost) in costs {
        let count = |pods| counted(usize::try_from(pods).unwrap_or(usize::MAX), "pod");
        let (pods, placed) = (count(cost.pods), count(cost.placed));
        let (cpu, memory) = (cost.cpu, cost.memory);
        let at_once = cost.at_once.get("pods");
        let at_once = at_once
            .map(|pods| format!("at most {pods} at once, "))
            .unwrap_or_default();
        let (images, pool) = (counted(cost.images, "image"), printable(pool.as_str()));
        let (whole, tenth) = (cost.tenths / 10, cost.tenths % 10);
        text += &format!(
            "  {pool}: {pods} that request {cpu} CPU and {memory} of memory, {at_once}{placed} that are there to be \
             placed, {images} of about {whole}.{tenth} GB\n"
        );
    }
    match text.as_str() {
        "" => text,
        _ => format!("\na run asks of each pool\n{text}"),
    }
}

fn assertion(assertion: &PlannedAssertion) -> Value {
    let needs = assertion.needs.iter().map(|(key, _)| key.to_string());
    json!({
        "name": assertion.name,
        "from": assertion.from.as_ref().map(ToString::to_string),
        "needs": needs.collect::<Vec<_>>(),
    })
}
