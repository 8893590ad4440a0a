//! The four forms of a patch, each a function from an object to another.

mod apply;
mod json;
mod merge;
mod strategic;

pub(super) use apply::{Applied, apply, fields};
pub(super) use merge::merge;

use serde_json::Value;

use super::refusal::Refusal;

/// How a patch is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    Strategic,
    Apply,
}

impl Form {
    /// By the media type of the body, without its parameters.
    pub(super) fn of(media_type: &str) -> Option<Self> {
        Some(match media_type {
            "application/json-patch+json" => Self::Json,
            "application/merge-patch+json" => Self::Merge,
            "application/strategic-merge-patch+json" => Self::Strategic,
            "application/apply-patch+yaml" => Self::Apply,
            _ => return None,
        })
    }
}

/// What an object becomes by a patch that is no apply.
pub(super) fn patched(form: Form, object: &Value, patch: Value) -> Result<Value, Refusal> {
    let mut object = object.clone();
    match form {
        Form::Json => json::patch(&mut object, &patch)?,
        Form::Merge => merge(&mut object, patch),
        Form::Strategic | Form::Apply => strategic::patch(&mut object, patch)?,
    }
    match object.is_object() {
        true => Ok(object),
        false => Err(Refusal::bad("the patch leaves no object")),
    }
}

/// By which fields the items of a list are told apart that is not one value: kubernetes 1.37.0,
/// `patchMergeKey` in `staging/src/k8s.io/api/*/v1/types.go`; none for a list that is one value.
fn keys_of(list: &str, item: &Value) -> &'static [&'static str] {
    match list {
        "conditions" | "addresses" => &["type"],
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "secrets" => &["name"],
        "ports" if item.get("containerPort").is_some() => &["containerPort"],
        "ports" if item.get("port").is_some() && item.get("to").is_none() => &["port"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "podIPs" | "hostIPs" | "hostAliases" => &["ip"],
        "taints" => &["key"],
        "ownerReferences" => &["uid"],
        "topologySpreadConstraints" => &["topologyKey"],
        _ => &[],
    }
}

/// The item of a list that has the same keys.
fn place(items: &[Value], keys: &[&str], item: &Value) -> Option<usize> {
    items
        .iter()
        .position(|other| keys.iter().all(|key| other.get(*key) == item.get(*key)))
}
