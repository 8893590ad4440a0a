//! Label and field selectors, of requests and of objects.

use serde_json::Value;

use super::kinds::Kind;
use super::refusal::Refusal;
use crate::query::Query;

/// What a list or a watch is narrowed to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Lacks,
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Test::NotIn(values) => {
                !value.is_some_and(|value| values.iter().any(|one| one == value))
            }
            Test::Exists => value.is_some(),
            Test::Lacks => value.is_none(),
        }
    }
}

impl Selection {
    pub(super) fn of(kind: &Kind, query: &Query) -> Result<Self, Refusal> {
        let labels = parse(query.first("labelSelector").unwrap_or_default())?;
        let text = query.first("fieldSelector").unwrap_or_default();
        let fields = parse(text)?;
        for field in &fields {
            if matches!(field.test, Test::Exists | Test::Lacks) {
                let key = &field.key;
                return Err(Refusal::bad(format_args!(
                    "invalid selector: '{text}'; can't understand '{key}'"
                )));
            }
            let always = ["metadata.name", "metadata.namespace"];
            if !always
                .iter()
                .chain(fields_of(kind))
                .any(|known| *known == field.key)
            {
                return Err(Refusal::bad(format_args!(
                    "field label not supported: {}",
                    field.key
                )));
            }
        }
        Ok(Self { labels, fields })
    }

    pub(super) fn takes(&self, object: &Value) -> bool {
        let label = |name: &str| object["metadata"]["labels"][name].as_str();
        self.labels.iter().all(|one| one.holds(label(&one.key)))
            && self.fields.iter().all(|one| {
                let value = field(object, &one.key);
                // A field that is not set is empty
                one.holds(Some(value.as_deref().unwrap_or_default()))
            })
    }
}

/// What a kind can be selected by besides its name and namespace (kubernetes 1.37.0,
/// `AddFieldLabelConversionFunc` in `pkg/apis/*/v1/conversion.go`).
fn fields_of(kind: &Kind) -> &'static [&'static str] {
    match kind.plural {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        "nodes" => &["spec.unschedulable"],
        "namespaces" => &["status.phase"],
        "secrets" => &["type"],
        "services" => &["spec.clusterIP", "spec.type"],
        "replicasets" | "replicationcontrollers" => &["status.replicas"],
        "jobs" => &["status.successful"],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        _ => &[],
    }
}

/// The value at a path such as `spec.nodeName`.
fn field(object: &Value, path: &str) -> Option<String> {
    let value = path.split('.').try_fold(object, |at, name| at.get(name))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Reads `a=b,c!=d,e in (f,g),!h,i` (apimachinery, `labels.Parse`).
fn parse(text: &str) -> Result<Vec<Requirement>, Refusal> {
    let mut depth = 0_i32;
    let pieces = text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    let pieces = pieces.map(str::trim).filter(|piece| !piece.is_empty());
    pieces.map(requirement).collect()
}

fn requirement(piece: &str) -> Result<Requirement, Refusal> {
    let set = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|one| one.trim().to_owned()).collect())
    };
    let unreadable = || Refusal::bad(format_args!("unable to parse requirement: {piece:?}"));
    let one = |value: &str| vec![value.trim().to_owned()];
    let (key, test) = if let Some((key, values)) = piece.split_once(" notin ") {
        (key, Test::NotIn(set(values).ok_or_else(unreadable)?))
    } else if let Some((key, values)) = piece.split_once(" in ") {
        (key, Test::In(set(values).ok_or_else(unreadable)?))
    } else if let Some((key, value)) = piece.split_once("!=") {
        (key, Test::NotIn(one(value)))
    } else if let Some((key, value)) = piece.split_once("==").or_else(|| piece.split_once('=')) {
        (key, Test::In(one(value)))
    } else if let Some(key) = piece.strip_prefix('!') {
        (key, Test::Lacks)
    } else {
        (piece, Test::Exists)
    };
    let key = key.trim();
    let word = |text: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
        text.chars().all(inner)
    };
    let values = match &test {
        Test::In(values) | Test::NotIn(values) => values.as_slice(),
        Test::Exists | Test::Lacks => &[],
    };
    if key.is_empty() || !word(key) || !values.iter().all(|value| word(value)) {
        return Err(unreadable());
    }
    Ok(Requirement {
        key: key.to_owned(),
        test,
    })
}

/// Whether an object's own selector, `matchLabels` and `matchExpressions`, takes these labels; none
/// takes nothing, an empty one everything.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    let label = |name: &str| labels[name].as_str();
    let equal = selector["matchLabels"].as_object();
    equal
        .into_iter()
        .flatten()
        .all(|(name, value)| label(name) == value.as_str())
        && expressions(&selector["matchExpressions"], label)
}

/// Whether expressions of `key`, `operator` and `values` hold, as label and node selectors write
/// them.
pub(super) fn expressions<'a>(
    expressions: &Value,
    value_of: impl Fn(&str) -> Option<&'a str>,
) -> bool {
    let mut all = expressions.as_array().into_iter().flatten();
    all.all(|one| {
        let value = value_of(one["key"].as_str().unwrap_or_default());
        let mut values = one["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        match one["operator"].as_str().unwrap_or_default() {
            "In" => value.is_some_and(|value| values.any(|each| each == value)),
            "NotIn" => !value.is_some_and(|value| values.any(|each| each == value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            operator @ ("Gt" | "Lt") => {
                let number = |text: &str| text.parse::<i64>().ok();
                let pair = value.and_then(number).zip(values.next().and_then(number));
                pair.is_some_and(|(is, than)| {
                    if operator == "Gt" {
                        is > than
                    } else {
                        is < than
                    }
                })
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_of_requests() {
        let object = json!({"metadata": {"name": "x", "labels": {"a": "b", "t": "1"}},
            "spec": {"nodeName": "n", "unschedulable": true}});
        let kind = |query: &str| match query.contains("unschedulable") {
            true => Kind::named("nodes"),
            false => Kind::named("pods"),
        };
        for (query, takes) in [
            ("", true),
            ("labelSelector=a%3Db", true),
            ("labelSelector=a==b,t=2", false),
            ("labelSelector=a in (b,c),!z,t", true),
            ("labelSelector=a notin (b,c)", false),
            ("labelSelector=z notin (b)", true),
            ("fieldSelector=spec.nodeName!=", true),
            ("fieldSelector=spec.nodeName=,status.phase=Pending", false),
            ("fieldSelector=metadata.name=x,status.phase!=Failed", true),
            ("fieldSelector=spec.unschedulable=true", true),
        ] {
            let selection = Selection::of(kind(query), &Query::parse(Some(query))).expect(query);
            assert_eq!(selection.takes(&object), takes, "{query}");
        }
        for query in [
            "labelSelector=a in b",
            "labelSelector==b",
            "labelSelector=a b",
            "labelSelector=((",
            "labelSelector=a=(",
            "fieldSelector=a",
            "fieldSelector=spec.color=red",
        ] {
            let refused = Selection::of(kind(query), &Query::parse(Some(query))).expect_err(query);
            assert_eq!(refused.code, 400);
        }
    }

    #[test]
    fn selectors_of_objects() {
        let labels = json!({"a": "b", "n": "5"});
        for (selector, takes) in [
            (json!({}), true),
            (Value::Null, false),
            (json!({"matchLabels": {"a": "b"}}), true),
            (json!({"matchLabels": {"a": "c"}}), false),
            (
                json!({"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["4"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "z", "operator": "Exists"}]}),
                false,
            ),
        ] {
            assert_eq!(matches(&selector, &labels), takes, "{selector}");
        }
    }
}
