//! Strategic merge patch: like a merge patch, but merges lists by the keys of their items, if these have keys
//! (kubernetes, `apimachinery/pkg/util/strategicpatch`). New items follow the existing ones.

use serde_json::{Value, json};

use super::{keys_of, place};

const DIRECTIVE: &str = "$patch";

fn is_told(item: &Value, directive: &str) -> bool {
    item.get(DIRECTIVE).is_some_and(|value| value == directive)
}

pub(super) fn patch(object: &mut Value, mut with: Value) {
    let replaces = is_told(&with, "replace");
    let Some(fields) = with.as_object_mut() else {
        *object = with;
        return;
    };
    // `$retainKeys` names the fields to keep, of fields that exclude one another
    let kept = fields.remove("$retainKeys");
    // The other directives order lists, and nothing here depends on that order
    fields.retain(|name, _| !name.starts_with('$'));
    if replaces || !object.is_object() {
        *object = json!({});
    }
    if let (Some(Value::Array(kept)), Some(object)) = (kept, object.as_object_mut()) {
        object.retain(|name, _| kept.iter().any(|one| one == name));
    }
    for (name, value) in std::mem::take(fields) {
        match value {
            Value::Null => drop(object.as_object_mut().map(|object| object.remove(&name))),
            Value::Array(items) => list(&name, &mut object[&name], items),
            value => patch(&mut object[&name], value),
        }
    }
}

fn list(name: &str, into: &mut Value, mut items: Vec<Value>) {
    let keyed = items.iter().find(|item| item.get(DIRECTIVE).is_none());
    // A patch without items takes its keys from the items of the object
    let held = into.as_array().and_then(|held| held.first());
    let keyed = keyed.or(items.first()).or(held);
    let keys = keyed.map_or(&[][..], |item| keys_of(name, item));
    if keys.is_empty() || items.iter().any(|item| is_told(item, "replace")) {
        items.retain(|item| !is_told(item, "replace"));
        *into = Value::Array(items);
        return;
    }
    if !into.is_array() {
        *into = json!([]);
    }
    let held = into.as_array_mut().expect("it is one now");
    for item in items {
        let at = place(held, keys_of(name, &item), &item);
        if is_told(&item, "delete") {
            at.map(|at| held.remove(at));
            continue;
        }
        let at = at.unwrap_or_else(|| {
            held.push(json!({}));
            held.len() - 1
        });
        patch(&mut held[at], item);
    }
}
