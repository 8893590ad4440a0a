//! Objects that differ from those that the nodes and controllers of a cluster create.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use winconform::transport::Api;
use winconform_core::method::Verb;

use crate::asking::send;
use crate::world::Outcome;

/// Separates the path of an object from the path of a value in it.
const IN: char = '#';

/// Changes objects as a row says: each by its path, or after `#` the path of a value in it. `null` deletes,
/// and the name of another object of the same kind creates a copy of that.
pub(crate) async fn change(api: &Api, objects: &BTreeMap<String, Value>) -> Outcome {
    for (path, value) in objects {
        let changed = match (path.split_once(IN), value) {
            (Some((path, pointer)), value) => set(api, path, pointer, value).await,
            (None, Value::Null) => send(api, Verb::Delete, path, Some(at_once()))
                .await
                .map(drop),
            (None, Value::String(like)) => another(api, path, like).await,
            (None, object) => make(api, path, object.clone()).await,
        };
        changed.map_err(|why| format!("{path}: {why}"))?;
    }
    Ok(())
}

async fn set(api: &Api, path: &str, pointer: &str, value: &Value) -> Outcome {
    let mut object = send(api, Verb::Get, path, None).await?;
    let (parent, key) = pointer.rsplit_once('/').ok_or("no path of a value")?;
    let key = key.replace("~1", "/");
    match (object.pointer_mut(parent), value) {
        (Some(Value::Object(parent)), Value::Null) => drop(parent.remove(&key)),
        (Some(parent @ Value::Object(_)), value) => parent[&key] = value.clone(),
        (Some(Value::Array(list)), value) => {
            let index: usize = key.parse().map_err(|_| format!("{key} is no index"))?;
            *list.get_mut(index).ok_or("no such element")? = value.clone();
        }
        _ => return Err(format!("nothing is at {parent}")),
    }
    let of_status = pointer.starts_with("/status/");
    let path = if of_status {
        &format!("{path}/status")
    } else {
        path
    };
    send(api, Verb::Replace, path, Some(object)).await.map(drop)
}

async fn another(api: &Api, path: &str, like: &str) -> Outcome {
    let (collection, name) = divided(path)?;
    let mut object = send(api, Verb::Get, &format!("{collection}/{like}"), None).await?;
    let labels = object["metadata"]["labels"].take();
    object["metadata"] = json!({"name": name, "labels": labels});
    make(api, path, object).await
}

async fn make(api: &Api, path: &str, object: Value) -> Outcome {
    let (collection, name) = divided(path)?;
    let mut object = object;
    object["metadata"]["name"] = json!(name);
    let created = send(api, Verb::Create, collection, Some(object.clone())).await?;
    if !object["status"].is_null() {
        // Without a version: it may have changed by now
        object["metadata"] = json!({"name": name, "labels": created["metadata"]["labels"]});
        let path = format!("{path}/status");
        send(api, Verb::Replace, &path, Some(object)).await?;
    }
    Ok(())
}

fn divided(path: &str) -> Result<(&str, &str), String> {
    path.rsplit_once('/')
        .ok_or(format!("{path} is no object's"))
}

fn at_once() -> Value {
    json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
}
