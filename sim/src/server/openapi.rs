//! As much of `OpenAPI` as kubectl asks for before it writes: whether patches are validated by the
//! server. There are no schemas, so `kubectl explain` explains nothing.

use serde_json::{Map, Value, json};

use super::discovery::served;
use super::kinds::KINDS;
use super::refusal::Refusal;

/// The media type of a document of version 2.
pub(super) const V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

fn path(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

pub(super) fn index() -> Value {
    let paths: Map<String, Value> = served()
        .into_iter()
        .map(|(group, version)| {
            let path = path(group, version);
            let at = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
            (path, at)
        })
        .collect();
    json!({"paths": paths})
}

pub(super) fn document(group: &str, version: &str) -> Result<Value, Refusal> {
    if !served().contains(&(group, version)) {
        return Err(Refusal::no_such_resource());
    }
    let mut paths = Map::new();
    for kind in KINDS
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
    {
        let named = json!({"group": group, "version": version, "kind": kind.name});
        let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"]
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
        let operation = json!({"parameters": parameters, "x-kubernetes-group-version-kind": named,
            "responses": {"200": {"description": "OK"}}});
        let path = format!("{}/{{name}}", kind.path("{namespace}"));
        paths.insert(path, json!({"patch": operation}));
    }
    Ok(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths, "components": {"schemas": {}},
    }))
}
