//! Answers requests for objects, except watches.

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use serde_json::{Value, json};

use super::ask::{Ask, Verb};
use super::controllers;
use super::kinds::Kind;
use super::serve::{Answer, Shared, accepts, json, media_type, respond};
use crate::base::fields::Fields;
use crate::server::checks::refusal::{Cause, Refusal, details};
use crate::server::checks::shape;
use crate::server::kubectl::table;
use crate::server::storage::change::Part;
use crate::server::storage::create::bare;
use crate::server::storage::delete::{Deleted, Deletion};
use crate::server::storage::patch::{Form, patched};
use crate::server::storage::selector::Selection;
use crate::server::storage::state::State;
use crate::server::storage::store::Object;
use crate::world::Key;

pub(crate) fn answer(
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
    let (dry, part) = (ask.dry_run(), ask.part());
    let (ok, created) = (StatusCode::OK, StatusCode::CREATED);
    let (code, value) = shared.step(|state| match (ask.verb, ask.subresource.as_str()) {
        (Verb::Create, "binding") => {
            let target = json(body)?;
            bind(state, ask, &key, target["target"]["name"].text())
        }
        (Verb::Create, "") if ask.name.is_empty() => {
            let object = state.create(ask.kind, &ask.namespace, json(body)?, dry)?;
            Ok((created, object))
        }
        (Verb::Patch, "scale") => {
            let scale = scale_of(&*state.live(ask.kind, &key)?);
            let scale = patched(form_of(head)?, &scale, json(body)?)?;
            let changed = scaled(state, ask, &key, &scale)?;
            Ok((ok, scale_of(&changed).into()))
        }
        (Verb::Patch, _) => {
            let with = (form_of(head)?, json(body)?);
            let (object, is_new) = state.patch(ask.kind, &key, part, with, dry)?;
            Ok((if is_new { created } else { ok }, object))
        }
        (Verb::Update, below) if below != "scale" => {
            let changed = state.replace(ask.kind, &key, part, json(body)?, dry)?;
            Ok((ok, changed))
        }
        (Verb::Delete, _) => {
            let deleted = state.delete(ask.kind, &key, &deletion(ask, body)?)?;
            Ok((ok, deletion_told(ask, deleted)))
        }
        (_, below) => Err(Refusal::unserved(format_args!("this verb of `{below}`"))),
    })?;
    Ok(respond(code, value.as_ref()))
}

/// Refuses fields that the kind does not have, if the client wants that.
fn is_known(ask: &Ask, head: &Parts, body: &Bytes) -> Result<(), Refusal> {
    let of_kind = matches!(&*ask.subresource, "" | "status");
    // An apply is always strict, whatever the client wants
    let applied = ask.verb == Verb::Patch && form_of(head)? == Form::Apply;
    let strictly = applied || ask.query.first("fieldValidation") == Some("Strict");
    if !of_kind || !strictly || ask.verb == Verb::Delete {
        return Ok(());
    }
    let mut body = json(body)?;
    // A field that a patch removes has no type
    bare(&mut body);
    // A JSON patch is a list, not an object of the kind
    let unknown = match body.is_object() {
        true => shape::unknown_fields(ask.kind, &body)?,
        false => Vec::new(),
    };
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    let quoted = |field: &String| format!("unknown field {field:?}");
    let list: Vec<String> = unknown.iter().map(quoted).collect();
    let why = format!("strict decoding error: {}", list.join(", "));
    match ask.verb {
        Verb::Patch if applied => Err(Refusal::undeclared(ask.kind, &body["metadata"], first)),
        Verb::Patch => {
            let cause = Cause::invalid("patch", &json!(body.to_string()), &why);
            Err(Refusal::invalid_of("", "", "", &[cause]))
        }
        _ => Err(Refusal::undecodable(ask.kind, &why)),
    }
}

/// Returns a real server's recorded answer to the same dry run.
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
        // The object of a patch must exist
        let key = Key::new(&ask.namespace, &ask.name);
        state.store.get(ask.kind.plural, &key)?;
    }
    let (path, now) = (head.uri.path(), state.wall.now());
    let recorded = &mut state.recorded;
    let (code, answer) = recorded.answer((verb, path, &body), &ask.namespace, now)?;
    Some(respond(StatusCode::from_u16(code).ok()?, &answer))
}

fn form_of(head: &Parts) -> Result<Form, Refusal> {
    let media = media_type(head);
    Form::from_media_type(media).ok_or_else(|| Refusal::media_type(media))
}

fn get(state: &State, ask: &Ask, key: &Key, head: &Parts) -> Result<Answer, Refusal> {
    let object = state.live(ask.kind, key)?;
    let body = if ask.subresource == "scale" {
        scale_of(&object)
    } else if accepts(head, "Table") {
        table::render(state, ask, &[object])
    } else {
        return Ok(respond(StatusCode::OK, object.as_ref()));
    };
    Ok(respond(StatusCode::OK, &body))
}

/// Reduces an object to its metadata.
pub(crate) fn metadata_of(value: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]})
}

fn list(state: &State, ask: &Ask, head: &Parts) -> Result<Answer, Refusal> {
    let items = Selection::from_query(ask.kind, &ask.query)?.all(&state.store, ask);
    let version = state.store.version();
    if accepts(head, "Table") {
        let table = table::render(state, ask, &items);
        return Ok(respond(StatusCode::OK, &table));
    }
    let (kind, api_version, items) = match accepts(head, "PartialObjectMetadataList") {
        true => (
            "PartialObjectMetadata",
            "meta.k8s.io/v1".to_owned(),
            items.iter().map(|one| metadata_of(one).into()).collect(),
        ),
        false => (ask.kind.name, ask.kind.api_version(), items),
    };
    let list = List {
        kind: format!("{kind}List"),
        api_version,
        metadata: json!({"resourceVersion": version.to_string()}),
        items: items.iter().map(AsRef::as_ref).collect(),
    };
    Ok(respond(StatusCode::OK, &list))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    kind: String,
    api_version: String,
    metadata: Value,
    items: Vec<&'a Value>,
}

/// Reads `DeleteOptions` from the body, and from the query where the body says nothing.
fn deletion(ask: &Ask, body: &Bytes) -> Result<Deletion, Refusal> {
    let options = match body.is_empty() {
        true => json!({}),
        false => json(body)?,
    };
    let query = |name: &str| ask.query.first(name);
    let propagation = options["propagationPolicy"].as_str();
    let propagation = propagation.or(query("propagationPolicy"));
    if propagation.is_some_and(|policy| policy != "Background") {
        return Err(Refusal::unserved(
            "deletions that are not in the background",
        ));
    }
    let grace = options["gracePeriodSeconds"].as_i64();
    let dry = options["dryRun"].items().len() > 0;
    Ok(Deletion {
        grace: grace.or_else(|| query("gracePeriodSeconds")?.parse().ok()),
        preconditions: options["preconditions"].clone(),
        dry: dry || ask.dry_run(),
    })
}

/// Whether the answer to a deletion is the deleted object (`ReturnDeletedObject` of the registries).
fn returns(kind: &Kind) -> bool {
    let others = ["pods", "services", "serviceaccounts", "podtemplates"];
    // Persistent volumes and their claims
    kind.plural.starts_with("persistentvolume") || others.contains(&kind.plural)
}

fn deletion_told(ask: &Ask, deleted: Deleted) -> Object {
    match deleted {
        Deleted::Goes(object) => object,
        Deleted::Gone(object) if returns(ask.kind) => object,
        Deleted::Gone(object) => {
            let mut status = success();
            status["details"] = details(ask.kind, &ask.name);
            status["details"]["uid"] = object["metadata"]["uid"].clone();
            status.into()
        }
    }
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
}

fn bind(
    state: &mut State,
    ask: &Ask,
    key: &Key,
    node: &str,
) -> Result<(StatusCode, Object), Refusal> {
    let pod = state.live(ask.kind, key)?;
    let has = pod["spec"]["nodeName"].text();
    if !has.is_empty() {
        let why = format!("pod {} is already assigned to node \"{has}\"", key.name);
        return Err(Refusal::conflict(ask.kind, &key.name, &why));
    }
    if !ask.dry_run() {
        controllers::bind(state, key, node);
    }
    let mut status = success();
    status["code"] = json!(201);
    Ok((StatusCode::CREATED, status.into()))
}

fn scale_of(value: &Value) -> Value {
    let meta = &value["metadata"];
    let labels = value["spec"]["selector"]["matchLabels"].fields();
    let selector = labels.map(|(name, value)| format!("{name}={}", value.text()));
    let selector = selector.collect::<Vec<_>>().join(",");
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"]},
        "spec": {"replicas": value["spec"]["replicas"]},
        "status": {"replicas": value["status"]["replicas"].number(), "selector": selector},
    })
}

fn scaled(state: &mut State, ask: &Ask, key: &Key, scale: &Value) -> Result<Object, Refusal> {
    let mut value = Value::clone(&*state.live(ask.kind, key)?);
    let wanted = scale["spec"]["replicas"].as_u64();
    let wanted = wanted.ok_or_else(|| Refusal::bad("spec.replicas is no number of pods"))?;
    value["spec"]["replicas"] = json!(wanted);
    value["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
    state.replace(ask.kind, key, Part::Main, value, ask.dry_run())
}
