//! What is asked of objects, but for watching them.

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde::Serialize;
use serde_json::{Value, json};

use super::ask::{Ask, Verb};
use super::change::Part;
use super::controllers;
use super::create::bare;
use super::delete::{Deleted, Deletion};
use super::patch::{Form, patched};
use super::refusal::{Cause, Refusal};
use super::selector::Selection;
use super::serve::{Answer, Shared, accepts, json, told};
use super::state::State;
use super::store::Object;
use super::{shape, table};
use crate::world::Key;

pub(super) fn answer(
    shared: &Shared,
    ask: &Ask,
    head: &Parts,
    body: &Bytes,
) -> Result<Answer, Refusal> {
    let key = Key::new(&ask.namespace, &ask.name);
    match ask.verb {
        Verb::List | Verb::Watch => return list(&shared.state(), ask, head),
        Verb::Get => return get(&shared.state(), ask, &key, head),
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => {}
    }
    if let Some(answer) = recorded(shared, ask, head, body) {
        return Ok(answer);
    }
    is_known(ask, head, body)?;
    shared.step(|state| match ask.verb {
        Verb::Create if ask.subresource == "binding" => {
            let target = json(body)?;
            let node = target["target"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            bound(state, ask, &key, &node)
        }
        Verb::Create if ask.subresource.is_empty() && ask.name.is_empty() => {
            let made = state.create(ask.kind, &ask.namespace, json(body)?, ask.dry_run())?;
            Ok(told(StatusCode::CREATED, made.to_string()))
        }
        Verb::Update if ask.subresource != "scale" => {
            let changed = state.replace(ask.kind, &key, part(ask), json(body)?, ask.dry_run())?;
            Ok(told(StatusCode::OK, changed.to_string()))
        }
        Verb::Patch => patch(state, ask, &key, head, body),
        Verb::Delete => {
            let deleted = state.delete(ask.kind, &key, &deletion(ask, body)?)?;
            Ok(told(StatusCode::OK, deletion_told(ask, &deleted)))
        }
        _ => Err(Refusal::unserved(format_args!(
            "this verb of `{}`",
            ask.subresource
        ))),
    })
}

/// Refuses fields that the kind does not have, where a client wants that.
fn is_known(ask: &Ask, head: &Parts, body: &Bytes) -> Result<(), Refusal> {
    let of_kind = matches!(&*ask.subresource, "" | "status");
    // A configuration is of its kind, whatever else may pass
    let applied = ask.verb == Verb::Patch && form_of(head)? == Form::Apply;
    let strictly = applied || ask.query.first("fieldValidation") == Some("Strict");
    if !of_kind || !strictly {
        return Ok(());
    }
    let mut body = match ask.verb {
        Verb::Create | Verb::Update | Verb::Patch => json(body)?,
        _ => return Ok(()),
    };
    // What a patch takes away has no type
    bare(&mut body);
    // A JSON patch is none of the kind
    if !body.is_object() {
        return Ok(());
    }
    let unknown = shape::unknown_fields(ask.kind, &body)?;
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    let all: Vec<String> = unknown
        .iter()
        .map(|field| format!("unknown field {field:?}"))
        .collect();
    let why = format!("strict decoding error: {}", all.join(", "));
    match ask.verb {
        Verb::Patch if applied => Err(Refusal::undeclared(ask.kind, &body["metadata"], first)),
        Verb::Patch => {
            let cause = Cause::invalid("patch", &json!(body.to_string()), &why);
            Err(Refusal::invalid_of("", "", "", vec![cause]))
        }
        _ => Err(Refusal::undecodable(ask.kind, &why)),
    }
}

/// What a real server answered to the same dry run.
fn recorded(shared: &Shared, ask: &Ask, head: &Parts, body: &Bytes) -> Option<Answer> {
    let verb = match ask.verb {
        Verb::Create => "create",
        Verb::Patch => "patch",
        _ => return None,
    };
    if !ask.dry_run() {
        return None;
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    let mut state = shared.state();
    if !ask.name.is_empty() {
        // Of an object that must be there
        state
            .store
            .get(ask.kind.plural, &Key::new(&ask.namespace, &ask.name))?;
    }
    let (code, answer) = state
        .recorded
        .answer(verb, head.uri.path(), &ask.namespace, &body)?;
    Some(told(StatusCode::from_u16(code).ok()?, answer.to_string()))
}

fn part(ask: &Ask) -> Part {
    match ask.names_status() {
        true => Part::Status,
        false => Part::Main,
    }
}

fn form_of(head: &Parts) -> Result<Form, Refusal> {
    let kind = head.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    Form::of(kind).ok_or_else(|| Refusal::media_type(kind))
}

fn patch(
    state: &mut State,
    ask: &Ask,
    key: &Key,
    head: &Parts,
    body: &Bytes,
) -> Result<Answer, Refusal> {
    let form = form_of(head)?;
    let body = json(body)?;
    if ask.subresource == "scale" {
        let scale = scale(state, ask, key)?;
        let changed = scaled(state, ask, key, &patched(form, &scale, body)?)?;
        return Ok(told(StatusCode::OK, scale_of(&changed).to_string()));
    }
    let (object, made) = state.patch(ask.kind, key, part(ask), (form, body), ask.dry_run())?;
    let code = if made {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(told(code, object.to_string()))
}

fn get(state: &State, ask: &Ask, key: &Key, head: &Parts) -> Result<Answer, Refusal> {
    if ask.subresource == "scale" {
        return Ok(told(StatusCode::OK, scale(state, ask, key)?.to_string()));
    }
    let found = state.store.get(ask.kind.plural, key);
    let found = found.ok_or_else(|| Refusal::not_found(ask.kind, &ask.name))?;
    if accepts(head, "Table") {
        let table = table::of(ask, std::slice::from_ref(found), state.store.version());
        return Ok(told(StatusCode::OK, table.to_string()));
    }
    Ok(told(StatusCode::OK, found.to_string()))
}

/// An object of which nothing but its metadata is told.
pub(super) fn metadata_of(value: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]})
}

fn selected(state: &State, ask: &Ask) -> Result<Vec<Object>, Refusal> {
    let selection = Selection::of(ask.kind, &ask.query)?;
    let all = state.store.all(ask.kind.plural, &ask.namespace);
    let all = all.map(|(_, object)| object);
    let taken = all.filter(|object| selection.takes(object));
    Ok(taken.cloned().collect())
}

fn list(state: &State, ask: &Ask, head: &Parts) -> Result<Answer, Refusal> {
    let items = selected(state, ask)?;
    let version = state.store.version();
    if accepts(head, "Table") {
        return Ok(told(
            StatusCode::OK,
            table::of(ask, &items, version).to_string(),
        ));
    }
    let (kind, api, items) = match accepts(head, "PartialObjectMetadataList") {
        true => (
            "PartialObjectMetadata",
            "meta.k8s.io/v1".to_owned(),
            items.iter().map(|own| metadata_of(own).into()).collect(),
        ),
        false => (ask.kind.name, ask.kind.api_version(), items),
    };
    let list = List {
        kind: format!("{kind}List"),
        api_version: api,
        metadata: json!({"resourceVersion": version.to_string()}),
        items: items.iter().map(AsRef::as_ref).collect(),
    };
    let list = serde_json::to_string(&list).map_err(Refusal::internal)?;
    Ok(told(StatusCode::OK, list))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    kind: String,
    api_version: String,
    metadata: Value,
    items: Vec<&'a Value>,
}

/// `DeleteOptions`, from the body, and from the query where it is silent.
fn deletion(ask: &Ask, body: &Bytes) -> Result<Deletion, Refusal> {
    let options = match body.is_empty() {
        true => json!({}),
        false => json(body)?,
    };
    let query = |name: &str| ask.query.first(name);
    let propagation = options["propagationPolicy"].as_str();
    let propagation = propagation.or(query("propagationPolicy"));
    if propagation.is_some_and(|policy| policy != "Background") {
        return Err(Refusal::unserved("deletions but in the background"));
    }
    let grace = options["gracePeriodSeconds"].as_i64();
    let dry = options["dryRun"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok(Deletion {
        grace: grace.or_else(|| query("gracePeriodSeconds")?.parse().ok()),
        uid: text(&options["preconditions"]["uid"]),
        version: text(&options["preconditions"]["resourceVersion"]),
        dry: dry || ask.dry_run(),
    })
}

/// Whose deletion is answered with what is deleted (`ReturnDeletedObject` of the registries).
const RETURNED: [&str; 6] = [
    "pods",
    "services",
    "serviceaccounts",
    "persistentvolumes",
    "persistentvolumeclaims",
    "podtemplates",
];

fn deletion_told(ask: &Ask, deleted: &Deleted) -> String {
    match deleted {
        Deleted::Goes(object) => object.to_string(),
        Deleted::Gone(object) if RETURNED.contains(&ask.kind.plural) => object.to_string(),
        Deleted::Gone(object) => {
            let mut details = json!({"name": ask.name, "kind": ask.kind.plural, "uid": object["metadata"]["uid"]});
            if !ask.kind.group.is_empty() {
                details["group"] = json!(ask.kind.group);
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            status.to_string()
        }
    }
}

fn bound(state: &mut State, ask: &Ask, key: &Key, node: &str) -> Result<Answer, Refusal> {
    let pod = state.store.get("pods", key);
    let pod = pod.ok_or_else(|| Refusal::not_found(ask.kind, &key.name))?;
    if let Some(has) = pod["spec"]["nodeName"]
        .as_str()
        .filter(|has| !has.is_empty())
    {
        let why = format!("pod {} is already assigned to node \"{has}\"", key.name);
        return Err(Refusal::conflict(ask.kind, &key.name, &why));
    }
    if !ask.dry_run() {
        controllers::bind(state, key, node);
    }
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(told(StatusCode::CREATED, status.to_string()))
}

fn scale(state: &State, ask: &Ask, key: &Key) -> Result<Value, Refusal> {
    let found = state.store.get(ask.kind.plural, key);
    let found = found.ok_or_else(|| Refusal::not_found(ask.kind, &key.name))?;
    Ok(scale_of(found))
}

fn scale_of(value: &Value) -> Value {
    let meta = &value["metadata"];
    let labels = value["spec"]["selector"]["matchLabels"].as_object();
    let selector: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    let named = |field: &str| meta[field].clone();
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": named("name"), "namespace": named("namespace"), "uid": named("uid"),
            "resourceVersion": named("resourceVersion"), "creationTimestamp": named("creationTimestamp")},
        "spec": {"replicas": value["spec"]["replicas"]},
        "status": {"replicas": value["status"]["replicas"].as_i64().unwrap_or(0), "selector": selector.join(",")},
    })
}

fn scaled(state: &mut State, ask: &Ask, key: &Key, scale: &Value) -> Result<Object, Refusal> {
    let found = state.store.get(ask.kind.plural, key);
    let found = found.ok_or_else(|| Refusal::not_found(ask.kind, &key.name))?;
    let mut value = Value::clone(found);
    let wanted = scale["spec"]["replicas"]
        .as_i64()
        .filter(|wanted| *wanted >= 0);
    let wanted = wanted.ok_or_else(|| Refusal::bad("spec.replicas is no number of pods"))?;
    value["spec"]["replicas"] = json!(wanted);
    value["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
    state.replace(ask.kind, key, Part::Main, value, ask.dry_run())
}
