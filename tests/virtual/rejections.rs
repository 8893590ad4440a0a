//! The rows that stand for each field of the rejections: a server that forgets its rule, or has one more.

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

/// What a server names where several fields do not go together.
const WHOLE: &str = "spec";

/// What is about pods without any of the fields.
const CONTROL: &str = "reject.control-accepted";

/// A check, what it expects, the field that this depends on, and how much goes with that.
struct Asked {
    id: String,
    expects: Expects,
    field: String,
    is_of_whole_pod: bool,
}

/// What a recorded server of the version that the embedded one is of is asked.
static ASKED: LazyLock<Vec<Asked>> = LazyLock::new(asked);

fn asked() -> Vec<Asked> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let version = hybrid_sim::server::Server::versions().next();
    let path = path.join(format!("v{}/facts.json", version.unwrap_or_default()));
    let facts = std::fs::read_to_string(path).expect("recorded facts");
    let facts: Facts = serde_json::from_str(&facts).expect("facts");
    let planned = plan(&ALL, &facts, &Config::default()).checks.into_iter();
    let asked = planned.filter_map(|check| {
        let Some(Test::Admission(assertion)) =
            check.assertions.first().map(|assertion| &assertion.test)
        else {
            return None;
        };
        // Their rule is of no field
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
        };
        let is_of_whole_pod = named.as_deref() == Some(WHOLE);
        Some(Asked {
            id: check.id.to_string(),
            expects,
            field: named.filter(|_| !is_of_whole_pod).unwrap_or(field),
            is_of_whole_pod,
        })
    });
    asked.collect()
}

/// The place that a server names, as of a pod, and as of any container.
fn as_in_a_pod(place: &str) -> String {
    let holders = [
        "spec.jobTemplate.spec.template.",
        "spec.template.",
        "template.",
    ];
    let mut own = holders
        .iter()
        .filter_map(|holder| place.strip_prefix(holder));
    let own = own.next().unwrap_or(place);
    match own.split_once("[0].") {
        Some((_, of_container)) => format!("container.{of_container}"),
        None => own.to_owned(),
    }
}

/// The rows that one stands for: of each field by itself, but for those that have a row of their own.
pub(crate) fn rows(row: &Row, expects: Expects) -> Vec<Row> {
    let all = || ASKED.iter().filter(|asked| asked.expects == expects);
    let mut fields = BTreeMap::<_, Vec<_>>::new();
    for asked in all() {
        fields.entry(asked.field.as_str()).or_default();
    }
    for (field, turned) in &mut fields {
        turned.extend(all().filter(|asked| match expects {
            Expects::Refused if !asked.is_of_whole_pod => goes_with(&asked.field, field),
            _ => asked.field == *field,
        }));
    }
    let row = |(field, turned): (&str, Vec<&Asked>)| {
        let exactly = |asked: &&Asked| Pattern::parse(&asked.id).expect("an id is a pattern");
        let turns = turned.iter().map(|asked| (exactly(asked), Verdict::Fail));
        Row {
            fault: row.fault.replace("FIELD", field),
            turns: turns.collect::<Ordered<_>>(),
            for_each: None,
            ..row.clone()
        }
    };
    let by_itself = |of: &Row| {
        let mut all = ROWS.iter();
        all.any(|row| row.fault == of.fault && row.topology == of.topology)
    };
    let rows = fields.into_iter().map(row);
    rows.filter(|row| !by_itself(row)).collect()
}

/// Whether what is said of one field is said of another: who forgets a field forgets what is in it, and that
/// the object which it is in is forbidden.
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
