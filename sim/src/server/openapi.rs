//! As much of `OpenAPI` as kubectl asks for before it writes: whether patches are validated by the
//! server. There are no schemas, so `kubectl explain` explains nothing.

use serde_json::{Map, Value, json};

use super::discovery::{kinds_of, served};
use super::refusal::Refusal;

/// The media type of a document of version 2.
pub(super) const V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

pub(super) fn index() -> Value {
    let paths = served().into_iter().map(|(group, version)| {
        let path = match group {
            "" => format!("api/{version}"),
            group => format!("apis/{group}/{version}"),
        };
        let at = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
        (path, at)
    });
    json!({"paths": paths.collect::<Map<_, _>>()})
}

pub(super) fn document(group: &str, version: &str) -> Result<Value, Refusal> {
    let mut paths = Map::new();
    for kind in kinds_of(group, version)? {
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
