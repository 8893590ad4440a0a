//! What the suites say before any run: the claims, and a plan.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::json;

use crate::claims::{Claim, ClaimType};
use crate::method::{ContainerOf, Test};
use crate::plan::{Check, CheckId, Disposition, Plan, PlannedAssertion, Selection};
use crate::report::text::folded::MANY;
use crate::report::text::layout::{columns, pad};
use crate::suite::Suites;
use crate::text::{counted, printable};
use crate::verdict::{Scope, Verdict};

/// The wanted claims by area, each with its number of cases, and why it says otherwise than its documents.
pub fn list_text(suites: &Suites, selection: &Selection) -> String {
    let claims = wanted(suites, selection);
    let mut text = String::new();
    let mut area = "";
    let widest = claims.iter().map(|claim| columns(claim.id.as_str())).max();
    let kinds = ClaimType::ALL
        .iter()
        .map(|kind| columns(kind.as_str()))
        .max();
    for claim in &claims {
        if area != claim.id.area() {
            let gap = if area.is_empty() { "" } else { "\n" };
            area = claim.id.area();
            let _ = writeln!(text, "{gap}{area}");
        }
        let cases = match suites.cases_of(&claim.id).count() {
            0 => "not implemented".to_owned(),
            _ => counted(cases(suites, selection, claim), "case"),
        };
        let id = pad(claim.id.as_str(), widest.unwrap_or_default());
        let kind = pad(claim.claim_type.as_str(), kinds.unwrap_or_default());
        let _ = writeln!(text, "  {id}  {kind}  {cases}");
        if let Some(why) = &claim.reworded {
            let _ = writeln!(text, "    reworded: {}", printable(why));
        }
    }
    let total = claims.len();
    let implemented = claims.iter().filter(|it| is_implemented(suites, it));
    let implemented = implemented.count();
    let missing = total - implemented;
    let _ = writeln!(
        text,
        "\n{implemented} of {} implemented, {missing} not implemented",
        counted(total, "claim")
    );
    if selection.is_of_pools() {
        text.push_str("`winconform plan` lists which checks of these a cluster has\n");
    }
    text
}

/// How many cases of a claim may be wanted.
fn cases(suites: &Suites, selection: &Selection, claim: &Claim) -> usize {
    let cases = suites.cases_of(&claim.id);
    cases.filter(|case| selection.may_want_case(case)).count()
}

/// The claims that are wanted as a JSON array: id, type, implemented, cases, source, reworded.
pub fn list_json(suites: &Suites, selection: &Selection) -> String {
    let listed = wanted(suites, selection).into_iter().map(|claim| {
        json!({
            "id": claim.id,
            "type": claim.claim_type.as_str(),
            "implemented": is_implemented(suites, claim),
            "cases": cases(suites, selection, claim),
            "source": claim.source,
            "reworded": claim.reworded,
        })
    });
    super::json::pretty(&listed.collect::<Vec<_>>())
}

/// The word of a check in a plan, its case, and the lines below.
type Planned<'a> = (&'a str, &'a str, String);

/// The checks of a plan in their order: where each observes from, what must be ready, and every skip with its
/// reason.
pub fn plan_text(plan: &Plan) -> String {
    let mut text = String::new();
    let mut counts = [0; 3];
    // What checks one after another of a case have in common, and their ids
    let mut rows: Vec<(Planned<'_>, Vec<&CheckId>)> = Vec::new();
    for check in &plan.checks {
        let because = |why: String| format!("          because {}\n", printable(&why));
        let (nth, word, below) = match &check.disposition {
            Disposition::Observe => (0, "observe", assertions_of(check)),
            Disposition::Skip(reason) => (1, "skip", because(reason.to_string())),
            Disposition::Inconclusive(error) => (2, "inconclusive", because(error.to_string())),
        };
        counts[nth] += 1;
        let row = (word, check.id.case(), below);
        match rows.last_mut() {
            Some((last, ids)) if *last == row => ids.push(&check.id),
            _ => rows.push((row, vec![&check.id])),
        }
    }
    for ((word, case, below), ids) in &rows {
        let ids: Vec<_> = match ids.len() {
            MANY.. => vec![format!(
                "{} ({})",
                printable(case),
                counted(ids.len(), "check")
            )],
            _ => ids.iter().map(|id| printable(id.as_str())).collect(),
        };
        for id in ids {
            let _ = write!(text, "{word:<14}{id}\n{below}");
        }
    }
    let fixtures = plan.fixtures();
    if !fixtures.is_empty() {
        text.push_str("\nfixtures\n");
    }
    for key in &fixtures {
        let _ = writeln!(text, "  {}", printable(&key.to_string()));
    }
    let [observe, skip, inconclusive] = counts;
    let total = counted(plan.checks.len(), "check");
    let _ = writeln!(
        text,
        "\n{total}: {observe} to observe, {skip} skipped, {inconclusive} inconclusive"
    );
    text
}

fn wanted<'s>(suites: &'s Suites, selection: &Selection) -> Vec<&'s Claim> {
    let claims = suites.claims.iter();
    claims
        .filter(|claim| selection.may_want(claim, suites))
        .collect()
}

pub(crate) fn words<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

pub(crate) fn is_implemented(suites: &Suites, claim: &Claim) -> bool {
    suites.cases_of(&claim.id).next().is_some()
}

fn assertions_of(check: &Check) -> String {
    let mut text = String::new();
    for (index, assertion) in check.assertions.iter().enumerate() {
        let role = match index {
            0 => String::new(),
            _ => format!("control {} ", printable(&assertion.name)),
        };
        let _ = writeln!(text, "          {role}{}", printable(&place(assertion)));
    }
    let needs = check
        .assertions
        .iter()
        .flat_map(|assertion| &assertion.needs);
    let needs: BTreeSet<_> = needs.map(|(key, _)| key).collect();
    if !needs.is_empty() {
        let needs: Vec<_> = needs
            .iter()
            .map(|key| printable(&key.to_string()))
            .collect();
        let _ = writeln!(text, "          needs {}", needs.join(", "));
    }
    if check.scope == Scope::AsCapability {
        let verdict = Verdict::KnownLimitation;
        let _ = writeln!(
            text,
            "          out of scope as {verdict}: judged as a capability"
        );
    }
    text
}

/// The container that an assertion is about.
fn inside(of: &ContainerOf) -> String {
    format!("in container {} of {}", of.container, of.pod.of.as_str())
}

/// Where an assertion observes from.
fn place(assertion: &PlannedAssertion) -> String {
    match (&assertion.from, &assertion.test) {
        (Some(vantage), _) => format!("from {vantage}"),
        (None, Test::Fact(_)) => "asks the facts".to_owned(),
        (None, Test::Program(program)) => inside(&program.query.within),
        (None, Test::Log(log)) => inside(&log.query),
        (None, Test::Scenario(scenario)) => inside(&scenario.query.within),
        (None, _) => "asks the API server".to_owned(),
    }
}
