//! The four forms of a patch; each turns one object into another.

mod strategic;
mod withdraw;

use serde_json::Value;

use crate::server::checks::refusal::Refusal;
pub(crate) use withdraw::withdraw;

/// The form of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    Strategic,
    Apply,
}

impl Form {
    /// Returns the form for the media type of a body, without its parameters.
    pub(crate) fn from_media_type(media_type: &str) -> Option<Self> {
        Some(match media_type {
            "application/json-patch+json" => Self::Json,
            "application/merge-patch+json" => Self::Merge,
            "application/strategic-merge-patch+json" => Self::Strategic,
            "application/apply-patch+yaml" => Self::Apply,
            _ => return None,
        })
    }
}

/// Applies a patch to an object. An apply works like a strategic merge, and never conflicts, since
/// every apply counts as forced.
pub(crate) fn patched(form: Form, object: &Value, patch: Value) -> Result<Value, Refusal> {
    let mut object = object.clone();
    match form {
        Form::Json => {
            let objects = patch.as_array();
            if !objects.is_some_and(|list| list.iter().all(Value::is_object)) {
                return Err(Refusal::bad("a JSON patch is a list of operations"));
            }
            // Only the application of the operations checks which ones exist (apiserver, patch.go,
            // `applyJSPatch`; json-patch, `DecodePatch`)
            let operations: json_patch::Patch =
                serde_json::from_value(patch).map_err(Refusal::inapplicable)?;
            json_patch::patch(&mut object, &operations).map_err(Refusal::inapplicable)?;
        }
        Form::Merge => json_patch::merge(&mut object, &patch),
        Form::Strategic | Form::Apply => strategic::patch(&mut object, patch),
    }
    match object.is_object() {
        true => Ok(object),
        false => Err(Refusal::bad("the patch leaves no object")),
    }
}

/// The fields that identify the items of a list: kubernetes 1.37.0, `patchMergeKey` in
/// `staging/src/k8s.io/api/*/v1/types.go`; none for a list that is one value.
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

/// Returns the index of the item with the same keys; without keys, no item is the same.
fn place(items: &[Value], keys: &[&str], item: &Value) -> Option<usize> {
    let is_it = |other: &Value| keys.iter().all(|key| other.get(*key) == item.get(*key));
    let at = items.iter().position(is_it);
    at.filter(|_| !keys.is_empty())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        r#type: String,
        object: Value,
        patch: Value,
        becomes: Option<Value>,
        refused: Option<u16>,
    }

    #[test]
    fn what_objects_become() {
        let cases: Vec<Case> =
            serde_saphyr::from_str(include_str!("cases.yaml")).expect("cases.yaml");
        for case in cases {
            let form = Form::from_media_type(&case.r#type).expect("a form");
            let what = case.patch.to_string();
            let (becomes, refused) = match patched(form, &case.object, case.patch) {
                Ok(object) => (Some(object), None),
                Err(refusal) => {
                    let invalid = refusal.status()["reason"] == "Invalid";
                    assert_eq!(invalid, refusal.code == 422, "{what}");
                    (None, Some(refusal.code))
                }
            };
            assert_eq!((becomes, refused), (case.becomes, case.refused), "{what}");
        }
    }
}
