//! Expands a template row into one row for each field: a server that lacks its rule, or has an extra one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use winconform_core::claims::Pattern;
use winconform_core::config::Config;
use winconform_core::facts::Facts;
use winconform_core::method::{AdmissionExpectation, Change, Test};
use winconform_core::plan::plan;
use winconform_core::verdict::Verdict;

use crate::table::{Expects, Ordered, ROWS, Row};
use crate::world::ALL;

/// The path that a server names if several fields conflict.
const WHOLE: &str = "spec";

/// The claim about pods without any of the fields.
const CONTROL: &str = "reject.control-accepted";

/// A check, its expectation, the field that this depends on, and whether the server names the whole pod.
struct Asked {
    id: String,
    expects: Expects,
    field: String,
    is_of_whole_pod: bool,
}

/// The checks of a recorded server that has the embedded server's version.
static ASKED: LazyLock<Vec<Asked>> = LazyLock::new(asked);

fn asked() -> Vec<Asked> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let version = hybrid_sim::server::Server::versions().next();
    let path = path.join(format!("v{}/facts.json", version.unwrap_or_default()));
    let facts = std::fs::read_to_string(path).expect("recorded facts");
    let facts: Facts = serde_json::from_str(&facts).expect("facts");
    let planned = plan(&ALL, &facts, &Config::default()).checks.into_iter();
    let checks = planned.filter_map(|check| {
        let Some(Test::Admission(assertion)) =
            check.assertions.first().map(|assertion| &assertion.test)
        else {
            return None;
        };
        // Their rule is about no field
        if assertion.query.change == Change::Resize || check.claim.as_str() == CONTROL {
            return None;
        }
        let field = assertion.query.field.clone();
        let (expects, named) = match &assertion.expectation {
            AdmissionExpectation::Refused { field: named, .. } => {
                (Expects::Refused, named.as_deref().map(as_in_a_pod))
            }
            AdmissionExpectation::Accepted => (Expects::Accepted, None),
            AdmissionExpectation::Dropped => (Expects::Dropped, None),
            AdmissionExpectation::Denied { .. } => return None,
        };
        let is_of_whole_pod = named.as_deref() == Some(WHOLE);
        Some(Asked {
            id: check.id.to_string(),
            expects,
            field: named.filter(|_| !is_of_whole_pod).unwrap_or(field),
            is_of_whole_pod,
        })
    });
    checks.collect()
}

/// The path that a server names, relative to the pod, or relative to any container.
fn as_in_a_pod(place: &str) -> String {
    let holders = [
        "spec.jobTemplate.spec.template.",
        "spec.template.",
        "template.",
    ];
    let mut in_pod = holders
        .iter()
        .filter_map(|holder| place.strip_prefix(holder));
    let in_pod = in_pod.next().unwrap_or(place);
    match in_pod.split_once("[0].") {
        Some((_, of_container)) => format!("container.{of_container}"),
        None => in_pod.to_owned(),
    }
}

/// The rows of a template: one for each field that has no row of its own.
pub(crate) fn rows(row: &Row, expects: Expects) -> Vec<Row> {
    let checks = || ASKED.iter().filter(|check| check.expects == expects);
    let mut fields = BTreeMap::<_, Vec<_>>::new();
    for check in checks() {
        fields.entry(check.field.as_str()).or_default();
    }
    for (field, turned) in &mut fields {
        turned.extend(checks().filter(|check| match expects {
            Expects::Refused if !check.is_of_whole_pod => goes_with(&check.field, field),
            _ => check.field == *field,
        }));
    }
    let row = |(field, turned): (&str, Vec<&Asked>)| {
        let exactly = |check: &&Asked| Pattern::parse(&check.id).expect("an id is a pattern");
        let turns = turned.iter().map(|check| (exactly(check), Verdict::Fail));
        Row {
            fault: row.fault.replace("FIELD", field),
            turns: turns.collect::<Ordered<_>>(),
            for_each: None,
            ..row.clone()
        }
    };
    let by_itself = |of: &Row| {
        let mut rows = ROWS.iter();
        rows.any(|row| row.fault == of.fault && row.topology == of.topology)
    };
    let rows = fields.into_iter().map(row);
    rows.filter(|row| !by_itself(row)).collect()
}

/// Whether a server that lacks the rule of `forgotten` lacks the rule of `of`, too: that of a field within
/// it, and that of the object around it.
fn goes_with(of: &str, forgotten: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    within(of, forgotten)
        || forgotten
            .rsplit_once('.')
            .is_some_and(|(parent, _)| of == parent)
}
