//! Label and field selectors, of requests and of objects.

use serde_json::Value;

use super::kinds::Kind;
use super::object::Object;
use super::refusal::Refusal;
use crate::query::Query;
use crate::world::Key;

/// What a list or a watch is narrowed to.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    kind: &'static Kind,
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
    Above(i64),
    Below(i64),
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
            Test::Above(than) => number(value).is_some_and(|is| is > *than),
            Test::Below(than) => number(value).is_some_and(|is| is < *than),
        }
    }
}

fn number(text: Option<&str>) -> Option<i64> {
    text?.parse().ok()
}

impl Selection {
    pub(super) fn of(kind: &'static Kind, query: &Query) -> Result<Self, Refusal> {
        Ok(Self {
            kind,
            labels: labels(query.first("labelSelector").unwrap_or_default())?,
            fields: fields(kind, query.first("fieldSelector").unwrap_or_default())?,
        })
    }

    /// Whether it takes an object: one that rests is not read for its name or its node.
    pub(super) fn takes(&self, key: &Key, object: &Object) -> bool {
        let known = |name: &str| match name {
            "metadata.name" => Some(key.name.as_str()),
            "metadata.namespace" => Some(key.namespace.as_str()),
            "spec.nodeName" => Some(object.node()),
            _ => None,
        };
        let mut unread = Vec::new();
        for one in &self.fields {
            match known(&one.key) {
                Some(value) if !one.holds(Some(value)) => return false,
                Some(_) => {}
                None => unread.push(one),
            }
        }
        if unread.is_empty() && self.labels.is_empty() {
            return true;
        }
        let value = object.read();
        let label = |name: &str| value["metadata"]["labels"][name].as_str();
        let field = |name: &str| field(self.kind, &value, name);
        self.labels.iter().all(|one| one.holds(label(&one.key)))
            && unread
                .into_iter()
                .all(|one| one.holds(Some(&field(&one.key))))
    }
}

/// What a kind can be selected by besides its name and namespace (kubernetes 1.37.0,
/// `AddFieldLabelConversionFunc` in `pkg/apis/*/v1/conversion.go`), where it is, and what it is where it
/// is not set (the kind's `ToSelectableFields` in `pkg/registry/`).
type Field = (&'static str, &'static [&'static str], &'static str);

fn fields_of(kind: &Kind) -> &'static [Field] {
    match kind.plural {
        "pods" => &[
            ("spec.nodeName", &["/spec/nodeName"], ""),
            ("spec.restartPolicy", &["/spec/restartPolicy"], ""),
            ("spec.schedulerName", &["/spec/schedulerName"], ""),
            ("spec.serviceAccountName", &["/spec/serviceAccountName"], ""),
            ("spec.hostNetwork", &["/spec/hostNetwork"], "false"),
            ("status.phase", &["/status/phase"], ""),
            ("status.podIP", &["/status/podIP"], ""),
            ("status.podIPs", &["/status/podIP"], ""),
            (
                "status.nominatedNodeName",
                &["/status/nominatedNodeName"],
                "",
            ),
        ],
        "nodes" => &[("spec.unschedulable", &["/spec/unschedulable"], "false")],
        "namespaces" => &[("status.phase", &["/status/phase"], "")],
        "secrets" => &[("type", &["/type"], "")],
        "services" => &[
            ("spec.clusterIP", &["/spec/clusterIP"], ""),
            ("spec.type", &["/spec/type"], ""),
        ],
        "replicationcontrollers" => &[("status.replicas", &["/status/replicas"], "0")],
        "jobs" => &[("status.successful", &["/status/succeeded"], "0")],
        "events" => &[
            ("involvedObject.kind", &["/involvedObject/kind"], ""),
            (
                "involvedObject.namespace",
                &["/involvedObject/namespace"],
                "",
            ),
            ("involvedObject.name", &["/involvedObject/name"], ""),
            ("involvedObject.uid", &["/involvedObject/uid"], ""),
            (
                "involvedObject.apiVersion",
                &["/involvedObject/apiVersion"],
                "",
            ),
            (
                "involvedObject.resourceVersion",
                &["/involvedObject/resourceVersion"],
                "",
            ),
            (
                "involvedObject.fieldPath",
                &["/involvedObject/fieldPath"],
                "",
            ),
            ("reason", &["/reason"], ""),
            ("reportingComponent", &["/reportingComponent"], ""),
            ("source", &["/source/component", "/reportingComponent"], ""),
            ("type", &["/type"], ""),
        ],
        _ => &[],
    }
}

/// What every kind can be selected by.
const ALWAYS: [Field; 2] = [
    ("metadata.name", &["/metadata/name"], ""),
    ("metadata.namespace", &["/metadata/namespace"], ""),
];

fn known_field(kind: &Kind, name: &str) -> Option<&'static Field> {
    let mut all = ALWAYS.iter().chain(fields_of(kind));
    all.find(|(known, ..)| *known == name)
}

/// The value that an object is selected by.
fn field(kind: &Kind, object: &Value, name: &str) -> String {
    let Some((_, paths, unset)) = known_field(kind, name) else {
        return String::new();
    };
    let set = |path: &&str| match object.pointer(path)? {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string()),
        _ => None,
    };
    paths
        .iter()
        .find_map(set)
        .unwrap_or_else(|| (*unset).to_owned())
}

/// Reads `a=b,c!=d`, where a value may have a comma, a sign or a backslash behind a backslash
/// (apimachinery, `fields.ParseSelector`).
fn fields(kind: &Kind, text: &str) -> Result<Vec<Requirement>, Refusal> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        let ends = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        match (ends, terms.last_mut()) {
            (false, Some(term)) => term.push(c),
            _ => terms.push(String::new()),
        }
    }
    let terms = terms.iter().filter(|term| !term.is_empty());
    let requirement = |term: &String| {
        let Some((key, value)) = term.split_once('=') else {
            return Err(Refusal::bad(format_args!(
                "invalid selector: '{text}'; can't understand '{term}'"
            )));
        };
        let (is, key, value) = match key.strip_suffix('!') {
            Some(key) => (false, key, value),
            None => (true, key, value.strip_prefix('=').unwrap_or(value)),
        };
        if known_field(kind, key).is_none() {
            let always = ALWAYS.map(|(name, ..)| format!("{name:?}")).join(", ");
            return Err(match fields_of(kind) {
                [] => Refusal::bad(format_args!(
                    "{key:?} is not a known field selector: only {always}"
                )),
                _ => Refusal::bad(format_args!("field label not supported: {key}")),
            });
        }
        let values = vec![unescaped(value)];
        Ok(Requirement {
            key: key.to_owned(),
            test: if is {
                Test::In(values)
            } else {
                Test::NotIn(values)
            },
        })
    };
    terms.map(requirement).collect()
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

/// Reads `a=b,c!=d,e in (f,g),!h,i,j>1` (apimachinery, `labels.Parse`).
fn labels(text: &str) -> Result<Vec<Requirement>, Refusal> {
    let mut depth = 0_i32;
    let pieces = text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    let pieces = pieces.map(str::trim).filter(|piece| !piece.is_empty());
    pieces.map(requirement).collect()
}

fn requirement(piece: &str) -> Result<Requirement, Refusal> {
    let unreadable = || Refusal::bad(format_args!("unable to parse requirement: {piece:?}"));
    let (lacks, rest) = match piece.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, piece),
    };
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = rest.find(|c| !(inner(c) || c == '/')).unwrap_or(rest.len());
    let (key, rest) = rest.split_at(end);
    let rest = rest.trim();
    let value = |text: &str| {
        let text = text.trim();
        text.chars().all(inner).then(|| text.to_owned())
    };
    let set = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        inner.split(',').map(value).collect()
    };
    let one = |text: &str| value(text).map(|value| vec![value]);
    let than = |text: &str| text.trim().parse().ok();
    let test = if rest.is_empty() {
        Some(if lacks { Test::Lacks } else { Test::Exists })
    } else if lacks {
        None
    } else if let Some(values) = rest.strip_prefix("notin") {
        set(values).map(Test::NotIn)
    } else if let Some(values) = rest.strip_prefix("in") {
        set(values).map(Test::In)
    } else if let Some(value) = rest.strip_prefix("!=") {
        one(value).map(Test::NotIn)
    } else if let Some(value) = rest.strip_prefix("==").or(rest.strip_prefix('=')) {
        one(value).map(Test::In)
    } else if let Some(number) = rest.strip_prefix('>') {
        than(number).map(Test::Above)
    } else if let Some(number) = rest.strip_prefix('<') {
        than(number).map(Test::Below)
    } else {
        None
    };
    let test = test.filter(|_| !key.is_empty()).ok_or_else(unreadable)?;
    let key = key.to_owned();
    Ok(Requirement { key, test })
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
            ("fieldSelector=spec.unschedulable=false", false),
            ("fieldSelector=spec.hostNetwork==false", true),
            ("labelSelector=t>0,t<2", true),
            ("labelSelector=t>1", false),
            ("labelSelector=a in(b),z notin(b)", true),
            ("labelSelector=! z", true),
            ("labelSelector=kubernetes.io/os!=linux", true),
            ("fieldSelector=metadata.name=a\\,b", false),
        ] {
            let selection = Selection::of(kind(query), &Query::parse(Some(query))).expect(query);
            let key = Key::new("", "x");
            let kept = Object::new(object.clone());
            assert_eq!(selection.takes(&key, &kept), takes, "{query}");
            let rests = kept.at_rest();
            assert_eq!(selection.takes(&key, &rests), takes, "{query}");
            assert!(rests.is_at_rest(), "{query}");
        }
        for query in [
            "labelSelector=a in b",
            "labelSelector==b",
            "labelSelector=a b",
            "labelSelector=((",
            "labelSelector=a=(",
            "labelSelector=a=b:c",
            "labelSelector=a>b",
            "labelSelector=!a=b",
            "fieldSelector=metadata.name in (a)",
            "fieldSelector=metadata.name!a",
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
