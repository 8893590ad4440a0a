//! The objects of a namespace, without what differs between servers.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::seen::{Difference, Record, Rules, between, normal, rules};

/// Patterns of texts that differ between servers, and their replacements.
static RULES: LazyLock<Rules> = LazyLock::new(|| {
    rules(&[
        (r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "MOMENT"),
        // The minute at which a CronJob's Job is due, and the names of its pods
        (
            r"\b([a-z]+)-[0-9]{8}-[bcdfghjklmnpqrstvwxz2456789]{5}\b",
            "$1-MINUTE-NAME",
        ),
        (r"\b([a-z]+)-[0-9]{8}\b", "$1-MINUTE"),
        // The suffixes of templates and of `generateName`, in the letters of apimachinery's `pkg/util/rand`
        (
            r"\b([a-z]+)-[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b",
            "$1-HASH-NAME",
        ),
        (
            r"\b([a-z]+)-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b",
            "$1-HASH",
        ),
        (r"\b([a-z]+)-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "$1-NAME"),
    ])
});

/// Fields whose values each server chooses.
const OWN: [&str; 6] = [
    "resourceVersion",
    "managedFields",
    "nodePort",
    "healthCheckNodePort",
    "pod-template-hash",
    "controller-revision-hash",
];

/// The owner of each address, by normal name.
pub(crate) type Addresses = BTreeMap<String, String>;

/// Collects the addresses of pods, Services and nodes.
pub(crate) fn addresses(plural: &str, items: &[Value]) -> Addresses {
    let mut owners = Addresses::new();
    for item in items {
        let name = text(item["metadata"]["name"].as_str().unwrap_or_default());
        for at in ["/status/podIP", "/spec/clusterIP", "/status/hostIP"] {
            if let Some(address) = item.pointer(at).and_then(Value::as_str)
                && address != "None"
            {
                let whose = match at {
                    "/status/hostIP" => item["spec"]["nodeName"].as_str().unwrap_or_default(),
                    _ => &name,
                };
                let whose = format!("ADDRESS of {plural}/{whose}{at}");
                owners.entry(address.to_owned()).or_insert(whose);
            }
        }
    }
    owners
}

fn text(value: &str) -> String {
    normal(&RULES, value)
}

pub(crate) fn flatten(at: &str, value: &Value, known: &Addresses, into: &mut Record) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match OWN.contains(&name.as_str()) {
                    true => into.insert(format!("{at}.{name}"), "OWN".to_owned()),
                    false => {
                        flatten(&format!("{at}.{}", text(name)), value, known, into);
                        None
                    }
                };
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                flatten(&format!("{at}[{index}]"), value, known, into);
            }
        }
        Value::String(value) => {
            let whose = known.get(value).cloned();
            into.insert(at.to_owned(), whose.unwrap_or_else(|| text(value)));
        }
        value => drop(into.insert(at.to_owned(), value.to_string())),
    }
}

/// Records the objects of a kind by normal names; objects with equal names are numbered in the order of their
/// content.
pub(crate) fn record(plural: &str, items: &[Value], known: &Addresses) -> Record {
    let mut by_name: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for item in items {
        let mut one = Record::new();
        let mut item = item.clone();
        sort(&mut item);
        if item["status"]["observedGeneration"] == item["metadata"]["generation"]
            && item["metadata"]["generation"].is_number()
        {
            item["status"]["observedGeneration"] = "CURRENT".into();
        }
        flatten("", &item, known, &mut one);
        let name = text(item["metadata"]["name"].as_str().unwrap_or_default());
        by_name.entry(name).or_default().push(one);
    }
    let mut records = Record::new();
    for (name, mut alike) in by_name {
        alike.sort();
        for (index, one) in alike.into_iter().enumerate() {
            records.extend(
                one.into_iter()
                    .map(|(at, value)| (format!("{plural}/{name}[{index}]{at}"), value)),
            );
        }
    }
    records
}

/// Sorts lists whose order has no meaning.
fn sort(item: &mut Value) {
    for at in ["/status/conditions", "/endpoints", "/metadata/finalizers"] {
        if let Some(Value::Array(items)) = item.pointer_mut(at) {
            items.sort_by_cached_key(|item| match item["type"].as_str() {
                Some(condition) => condition.to_owned(),
                None => text(&item.to_string()),
            });
        }
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { case, at, .. } = self;
        write!(
            f,
            "{case}: {at}: {:?}, in memory {:?}",
            self.real, self.simulated
        )
    }
}

/// Known differences with one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    because: String,
    /// Patterns of the places at which they occur, in any case.
    at: Vec<String>,
}

/// The list of known differences.
pub(crate) struct Allowed(Vec<Regex>);

static OBJECTS: LazyLock<Allowed> =
    LazyLock::new(|| Allowed::read(include_str!("differences.yaml")));
static ANSWERS: LazyLock<Allowed> =
    LazyLock::new(|| Allowed::read(include_str!("other-answers.yaml")));

impl Allowed {
    fn read(text: &str) -> Self {
        let groups: Vec<Group> = serde_saphyr::from_str(text).expect("a list of differences");
        let patterns = groups.into_iter().flat_map(|group| {
            assert!(!group.because.trim().is_empty(), "it has its reason");
            group.at
        });
        let pattern = |pattern: String| Regex::new(&format!("^(?:{pattern})$")).expect("a pattern");
        Self(patterns.map(pattern).collect())
    }

    /// The known differences between objects.
    pub(crate) fn objects() -> &'static Self {
        &OBJECTS
    }

    /// The known differences between answers.
    pub(crate) fn answers() -> &'static Self {
        &ANSWERS
    }

    pub(crate) fn knows(&self, difference: &Difference) -> bool {
        self.0.iter().any(|at| at.is_match(&difference.at))
    }

    /// The patterns that match no difference.
    pub(crate) fn unused(&self, differences: &[Difference]) -> Vec<String> {
        let unused = self.0.iter();
        let unused = unused.filter(|at| !differences.iter().any(|one| at.is_match(&one.at)));
        unused.map(ToString::to_string).collect()
    }
}

#[test]
fn what_is_a_servers_own_is_left_out_and_nothing_else() {
    let pod = |name: &str, address: &str, phase: &str| {
        serde_json::json!({"metadata": {"name": name, "resourceVersion": address},
            "status": {"phase": phase, "podIP": address}})
    };
    let of = |pod: Value| {
        let pods = [pod];
        record("pods", &pods, &addresses("pods", &pods))
    };
    let real = of(pod("web-7d4b9c6f5d-x2x4z", "10.1.2.3", "Running"));
    let same = of(pod("web-6b8d5c4f9f-bcdfg", "10.9.9.9", "Running"));
    assert_eq!(between("it", &real, &same), []);
    assert_eq!(text("tick-29934012"), "tick-MINUTE");
    assert_eq!(text("tick-29934012-x2x4z"), "tick-MINUTE-NAME");
    // These look similar, but are no such suffixes
    let alike = "kube-proxy not-found web-bcdfa tick-2993401";
    assert_eq!(text(alike), alike);
    let slice = |address: &str| serde_json::json!({"endpoints": [{"addresses": [address]}]});
    let pods = [pod("web-6b8d5c4f9f-bcdfg", "10.9.9.9", "Running")];
    let known = addresses("pods", &pods);
    let right = record("endpointslices", &[slice("10.9.9.9")], &known);
    let wrong = record("endpointslices", &[slice("10.9.9.8")], &known);
    assert_eq!(between("it", &right, &wrong).len(), 1);
    let other = of(pod("web-6b8d5c4f9f-bcdfg", "10.9.9.9", "Failed"));
    let found = between("it", &real, &other);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].at, "pods/web-HASH-NAME[0].status.phase");
    let none = between("it", &real, &Record::new());
    assert_eq!(none.len(), 4, "{none:?}");
}
