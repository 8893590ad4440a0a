//! What the server answers, request by request: the cases of the YAML files beside this one.
//!
//! Each case has a server of its own. A step is one of
//!
//! - `send: METHOD PATH`; a path without a leading slash names a kind in the namespace `default`, or in the
//!   one before a colon; with `type`, `accept` and `body`. The answer must have the `code`, or one below 300;
//!   it `shows` values at some paths, and `differs` from others: null is nothing, `*` anything, `~` begins a
//!   pattern. In a path `*` is each item of a list, in the order of their texts, `#` their number, and `a=b`
//!   the item that has it. `keep` stores values for `$NAME` in later steps.
//! - `node: NAME`, with `labels`: adds a node that is ready and has room
//! - `run: NAME`: makes a pod run and be ready; `*` for each pod of the namespace
//! - `elapse: SECONDS`
//! - `fault: NAME`: the only fault of the controllers from now on

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{APPLY, MERGE, STRATEGIC, Scene};
use crate::base::clock;
use crate::base::fields::Fields;
use crate::fault::{FaultSwitch, ProductFault};
use crate::server::kinds::Kind;
use crate::topology::IpFamilies;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    name: String,
    #[serde(default)]
    dual_stack: bool,
    steps: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Step {
    send: Option<String>,
    r#type: Option<String>,
    accept: Option<String>,
    body: Value,
    code: Option<u16>,
    shows: BTreeMap<String, Value>,
    differs: BTreeMap<String, Value>,
    keep: BTreeMap<String, String>,
    node: Option<String>,
    labels: Value,
    run: Option<String>,
    elapse: Option<u64>,
    fault: Option<String>,
}

async fn hold(cases: &str) {
    let cases: Vec<Case> = serde_saphyr::from_str(cases).expect("a list of cases");
    for case in cases {
        let scene = match case.dual_stack {
            true => Scene::with_families(IpFamilies::DualStack),
            false => Scene::new(),
        };
        let mut kept = BTreeMap::new();
        for (number, mut step) in case.steps.into_iter().enumerate() {
            fill(&mut step, &kept);
            let step = Step::deserialize(step).expect(&case.name);
            let at = format!("{}, step {}", case.name, number + 1);
            perform(&scene, &at, step, &mut kept).await;
        }
    }
}

async fn perform(scene: &Scene, at: &str, step: Step, kept: &mut BTreeMap<String, Value>) {
    if let Some(name) = &step.node {
        scene.node(name, step.labels).await;
    }
    if let Some(name) = &step.run {
        let mut pods = scene.pods("default").await;
        pods.retain(|pod| name == "*" || pod["metadata"]["name"] == **name);
        assert!(!pods.is_empty(), "{at}: there is no pod {name}");
        for pod in &pods {
            scene.run(pod).await;
        }
    }
    if let Some(seconds) = step.elapse {
        clock::elapse(Duration::from_secs(seconds)).await;
    }
    if let Some(fault) = &step.fault {
        let fault: ProductFault = fault.parse().expect(at);
        let faults = FaultSwitch::new(std::iter::once(fault).collect());
        scene.server.suffer(&faults);
    }
    let Some(send) = &step.send else {
        return;
    };
    let (method, path) = send.split_once(' ').expect(at);
    let media = match step.r#type.as_deref() {
        Some("strategic") => STRATEGIC,
        Some("apply") => APPLY,
        None if method == "PATCH" => MERGE,
        None => "application/json",
        Some(other) => panic!("{at}: there is no type {other}"),
    };
    let body = match step.body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let headers = [
        ("content-type", media),
        ("accept", step.accept.as_deref().unwrap_or("*/*")),
    ];
    let (code, answer) = scene.ask(method, &full(path), headers, body).await;
    let fits = step.code.map_or(code < 300, |wanted| wanted == code);
    assert!(fits, "{at}: {code} {answer}");
    for (path, wanted) in &step.shows {
        let found = find(&answer, path);
        assert!(is(&found, wanted), "{at}: {path} is {found}, not {wanted}");
    }
    for (path, unwanted) in &step.differs {
        let found = find(&answer, path);
        assert!(!is(&found, unwanted), "{at}: {path} is {found}");
    }
    kept.extend(
        step.keep
            .into_iter()
            .map(|(name, path)| (name, find(&answer, &path))),
    );
}

fn full(path: &str) -> String {
    let path = path.replace(' ', "%20").replace('>', "%3E");
    if path.starts_with('/') {
        return path;
    }
    let end = path.find(['/', '?']).unwrap_or(path.len());
    let (kind, rest) = path.split_at(end);
    let (namespace, plural) = kind.split_once(':').unwrap_or(("default", kind));
    format!("{}{rest}", Kind::named(plural).path(namespace))
}

/// Inserts the kept values.
fn fill(step: &mut Value, kept: &BTreeMap<String, Value>) {
    match step {
        Value::String(text) => {
            let whole = text
                .strip_prefix('$')
                .and_then(|name| kept.get(name))
                .cloned();
            for (name, value) in kept {
                *text = text.replace(&format!("${name}"), value.text());
            }
            if let Some(whole) = whole {
                *step = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, kept)),
        Value::Object(fields) => fields.values_mut().for_each(|value| fill(value, kept)),
        _ => {}
    }
}

fn find(value: &Value, path: &str) -> Value {
    let Some((name, rest)) = path.strip_prefix('/').map(|path| {
        // Names of labels have slashes
        let end = path.find('/').filter(|_| value.get(path).is_none());
        path.split_at(end.unwrap_or(path.len()))
    }) else {
        return value.clone();
    };
    match (name, name.split_once('=')) {
        ("*", _) => {
            let mut all: Vec<Value> = value.items().map(|item| find(item, rest)).collect();
            all.sort_by_cached_key(ToString::to_string);
            all.into()
        }
        ("#", _) => value.items().len().into(),
        (_, Some((field, is))) => {
            let found = value.items().find(|item| item[field] == *is);
            find(found.unwrap_or(&Value::Null), rest)
        }
        _ => {
            let found = value.pointer(&format!("/{}", name.replace('/', "~1")));
            find(found.unwrap_or(&Value::Null), rest)
        }
    }
}

fn is(found: &Value, wanted: &Value) -> bool {
    match wanted.text().strip_prefix('~') {
        Some(pattern) => Regex::new(pattern)
            .expect("a pattern")
            .is_match(found.text()),
        None => found == wanted || (*wanted == json!("*") && !found.is_null()),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_served_or_refused() {
    hold(include_str!("requests.yaml")).await;
}

#[tokio::test(start_paused = true)]
async fn objects_come_change_and_go() {
    hold(include_str!("objects.yaml")).await;
}

#[tokio::test(start_paused = true)]
async fn controllers_make_of_objects_what_real_ones_do() {
    hold(include_str!("controllers.yaml")).await;
}

#[tokio::test(start_paused = true)]
async fn pods_go_where_they_may_and_say_why_they_do_not() {
    hold(include_str!("scheduling.yaml")).await;
}

#[tokio::test(start_paused = true)]
async fn services_and_their_slices_are_of_their_families() {
    hold(include_str!("families.yaml")).await;
}
