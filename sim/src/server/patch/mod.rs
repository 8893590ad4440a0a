//! The four forms of a patch, each a function from an object to another.

mod strategic;
mod withdraw;

use serde_json::Value;

use super::refusal::Refusal;
pub(super) use withdraw::withdraw;

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

/// What an object becomes by a patch. What is applied is as a strategic merge, and there are no conflicts, as every
/// apply is taken for forced.
pub(super) fn patched(form: Form, object: &Value, patch: Value) -> Result<Value, Refusal> {
    let mut object = object.clone();
    match form {
        Form::Json => {
            let objects = patch.as_array();
            if !objects.is_some_and(|all| all.iter().all(Value::is_object)) {
                return Err(Refusal::bad("a JSON patch is a list of operations"));
            }
            // Which operations there are is asked only as they are applied (apiserver, patch.go,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations() {
        let mut object = json!({"a": [1, 2], "b/c": "d"});
        let operations = json!([
            {"op": "test", "path": "/b~1c", "value": "d"},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "remove", "path": "/a/0"},
            {"op": "replace", "path": "/a/0", "value": 4},
            {"op": "move", "from": "/b~1c", "path": "/e"},
            {"op": "copy", "from": "/a", "path": "/f"},
        ]);
        object = patched(Form::Json, &object, operations).expect("they fit");
        assert_eq!(object, json!({"a": [4, 3], "e": "d", "f": [4, 3]}));
        for (wrong, code) in [
            (json!({}), 400),
            (json!("x"), 400),
            (json!([1]), 400),
            (json!([{"op": "test", "path": "/e", "value": "x"}]), 422),
            (json!([{"op": "remove", "path": "/a/7"}]), 422),
            (json!([{"op": "add", "path": "/none/x", "value": 1}]), 422),
            (json!([{"op": "replace", "path": "/none", "value": 1}]), 422),
            (json!([{"op": "sing", "path": "/a"}]), 422),
            (json!([{"op": "add"}]), 422),
        ] {
            let refusal = patched(Form::Json, &object, wrong.clone());
            let status = refusal.expect_err("it does not fit").status();
            let reason = if code == 422 { "Invalid" } else { "BadRequest" };
            assert_eq!(
                (&status["code"], &status["reason"]),
                (&json!(code), &json!(reason)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (object, patch, becomes) in [
            (r#"{"a": "b"}"#, r#"{"a": "c"}"#, r#"{"a": "c"}"#),
            (r#"{"a": "b", "b": "c"}"#, r#"{"a": null}"#, r#"{"b": "c"}"#),
            (r#"{"a": ["b"]}"#, r#"{"a": "c"}"#, r#"{"a": "c"}"#),
            (r#"{"a": [{"b": "c"}]}"#, r#"{"a": [1]}"#, r#"{"a": [1]}"#),
            (
                "{}",
                r#"{"a": {"bb": {"ccc": null}}}"#,
                r#"{"a": {"bb": {}}}"#,
            ),
            ("[1, 2]", r#"{"a": "b", "c": null}"#, r#"{"a": "b"}"#),
        ] {
            let [object, patch, becomes] =
                [object, patch, becomes].map(|text| serde_json::from_str(text).expect("JSON"));
            let merged = patched(Form::Merge, &object, patch);
            assert_eq!(merged, Ok(becomes));
        }
    }
}
