//! Strategic merge patch: as a merge patch, but lists whose items have keys are merged by these
//! (kubernetes, `apimachinery/pkg/util/strategicpatch`).

use serde_json::{Map, Value, json};

use super::{keys_of, place};
use crate::server::refusal::Refusal;

const DIRECTIVE: &str = "$patch";
const DELETED: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

pub(super) fn patch(object: &mut Value, with: Value) -> Result<(), Refusal> {
    let Value::Object(mut fields) = with else {
        *object = with;
        return Ok(());
    };
    match fields.remove(DIRECTIVE).as_ref().and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *object = Value::Object(fields);
            return Ok(());
        }
        Some("delete") => {
            *object = json!({});
            return Ok(());
        }
        Some(other) => {
            return Err(Refusal::bad(format_args!(
                "unknown patch directive {other:?}"
            )));
        }
    }
    // It names the fields that are kept, of those that exclude one another
    let kept = fields.remove("$retainKeys");
    if !object.is_object() {
        *object = json!({});
    }
    if let (Some(Value::Array(kept)), Some(object)) = (kept, object.as_object_mut()) {
        object.retain(|name, _| kept.iter().any(|one| one == name));
    }
    for (name, value) in fields {
        if let Some(list) = name.strip_prefix(DELETED) {
            if let Some(items) = object[list].as_array_mut() {
                let gone = value.as_array().cloned().unwrap_or_default();
                items.retain(|item| !gone.contains(item));
            }
        } else if name.starts_with(ORDER) {
            // Nobody here depends on it: what is new stands behind what there was
        } else if value.is_null() {
            object.as_object_mut().map(|object| object.remove(&name));
        } else if let Value::Array(items) = value {
            list(&name, &mut object[&name], items)?;
        } else {
            patch(&mut object[&name], value)?;
        }
    }
    Ok(())
}

fn list(name: &str, into: &mut Value, items: Vec<Value>) -> Result<(), Refusal> {
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str) == Some("replace");
    let keyed = items.iter().find(|item| item.get(DIRECTIVE).is_none());
    let keys = keyed
        .or(items.first())
        .map_or(&[][..], |item| keys_of(name, item));
    let deletes = items.iter().any(|item| item[DIRECTIVE] == "delete");
    let is_set = name == "finalizers";
    if items.iter().any(directive) || (keys.is_empty() && !is_set && !deletes) {
        let kept = items.into_iter().filter(|item| !directive(item));
        *into = Value::Array(kept.collect());
        return Ok(());
    }
    if !into.is_array() {
        *into = json!([]);
    }
    let held = into.as_array_mut().expect("it is one now");
    if is_set {
        for item in items {
            if !held.contains(&item) {
                held.push(item);
            }
        }
        return Ok(());
    }
    let mut order = Vec::new();
    for item in items {
        let keys = keys_of(name, &item);
        let at = place(held, keys, &item).filter(|_| !keys.is_empty());
        if item[DIRECTIVE] == "delete" {
            at.map(|at| held.remove(at));
            continue;
        }
        order.push(item.clone());
        match at {
            Some(at) => patch(&mut held[at], item)?,
            None => {
                let mut made = Value::Object(Map::new());
                patch(&mut made, item)?;
                held.push(made);
            }
        }
    }
    arrange(name, held, &order);
    Ok(())
}

/// What the patch names stands in its order; the rest stays before what it stood before
/// (`normalizeElementOrder`).
fn arrange(name: &str, held: &mut Vec<Value>, order: &[Value]) {
    let at = |item: &Value| {
        let keys = keys_of(name, item);
        order
            .iter()
            .position(|named| keys.iter().all(|key| named.get(*key) == item.get(*key)))
    };
    let places: Vec<Option<usize>> = held.iter().map(at).collect();
    let mut named: Vec<(usize, usize)> = Vec::new();
    let mut rest = Vec::new();
    for (stood, place) in places.iter().enumerate() {
        match place {
            Some(place) => named.push((*place, stood)),
            None => rest.push(stood),
        }
    }
    named.sort_unstable();
    let mut rest = rest.into_iter().peekable();
    let mut arranged = Vec::new();
    for (_, stood) in named {
        while let Some(before) = rest.next_if(|other| *other < stood) {
            arranged.push(before);
        }
        arranged.push(stood);
    }
    arranged.extend(rest);
    *held = arranged
        .into_iter()
        .map(|stood| held[stood].take())
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(object: Value, with: Value) -> Value {
        let mut object = object;
        patch(&mut object, with).expect("a patch");
        object
    }

    #[test]
    fn lists_with_keys_are_merged_and_others_replaced() {
        let pod = json!({
            "conditions": [{"type": "Ready", "status": "False", "reason": "x"}, {"type": "Other"}],
            "args": ["a", "b"], "finalizers": ["one"],
        });
        let with = json!({
            "$setElementOrder/conditions": [{"type": "Ready"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": null}, {"type": "New"}],
            "args": ["c"], "finalizers": ["two"],
        });
        assert_eq!(
            patched(pod, with),
            json!({
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other"}, {"type": "New"}],
                "args": ["c"], "finalizers": ["one", "two"],
            })
        );
    }

    #[test]
    fn what_is_named_stands_in_the_order_of_the_patch() {
        let conditions = |types: &[&str]| {
            let all: Vec<Value> = types.iter().map(|one| json!({"type": one})).collect();
            json!({"conditions": all})
        };
        for (before, with, after) in [
            (
                &["Placed"][..],
                &["Ready", "Placed"][..],
                &["Ready", "Placed"][..],
            ),
            (&["A", "B", "C"], &["C", "A"], &["B", "C", "A"]),
            (&["A", "B"], &["A"], &["A", "B"]),
        ] {
            assert_eq!(
                patched(conditions(before), conditions(with)),
                conditions(after)
            );
        }
    }

    #[test]
    fn directives() {
        let object = json!({"podIPs": [{"ip": "1"}], "taints": [{"key": "a"}, {"key": "b"}],
            "strategy": {"type": "x", "rollingUpdate": {}}});
        let with = json!({
            "podIPs": [{"ip": "2"}, {"$patch": "replace"}],
            "taints": [{"$patch": "delete", "key": "a"}],
            "strategy": {"$retainKeys": ["type"], "type": "y"},
        });
        assert_eq!(
            patched(object, with),
            json!({"podIPs": [{"ip": "2"}], "taints": [{"key": "b"}], "strategy": {"type": "y"}})
        );
        assert!(patch(&mut json!({}), json!({"$patch": "sing"})).is_err());
    }
}
