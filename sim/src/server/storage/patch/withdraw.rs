//! What an apply removes: the fields that the previous apply had and this one does not have
//! (server-side apply, "field management"). All clients that apply an object count as one.

use serde_json::Value;

use super::{keys_of, place};

/// The fields that stay, whatever is applied.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes from an object what was applied `before` and is not applied `now`.
pub(crate) fn withdraw(object: &mut Value, before: &Value, now: &Value) {
    let (Some(object), Some(before)) = (object.as_object_mut(), before.as_object()) else {
        return;
    };
    for (name, was) in before {
        let is = now.get(name);
        if is.is_none() && !IDENTITY.contains(&name.as_str()) {
            object.remove(name);
            continue;
        }
        let Some(held) = object.get_mut(name) else {
            continue;
        };
        let is = is.unwrap_or(&Value::Null);
        match was {
            Value::Object(_) => withdraw(held, was, is),
            Value::Array(items) => withdraw_items(name, held, items, is),
            _ => {}
        }
    }
}

fn withdraw_items(name: &str, held: &mut Value, before: &[Value], now: &Value) {
    let Some(held) = held.as_array_mut() else {
        return;
    };
    let now = now.as_array().map_or(&[][..], Vec::as_slice);
    for was in before {
        let keys = keys_of(name, was);
        // A list that is one value is replaced as a whole
        let Some(at) = place(held, keys, was) else {
            continue;
        };
        match place(now, keys, was) {
            None => drop(held.remove(at)),
            Some(is) => withdraw(&mut held[at], was, &now[is]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_applied_no_more_goes() {
        let before = json!({"metadata": {"name": "x", "labels": {"a": "1", "c": "3"}},
            "spec": {"containers": [{"name": "one", "image": "i", "env": [{"name": "E"}]},
                {"name": "two"}]}});
        let now = json!({"metadata": {"name": "x", "labels": {"c": "4"}},
            "spec": {"containers": [{"name": "one", "image": "j"}]}});
        let mut object = before.clone();
        object["metadata"]["uid"] = json!("u");
        object["metadata"]["labels"]["b"] = json!("2");
        withdraw(&mut object, &before, &now);
        assert_eq!(
            object,
            json!({"metadata": {"name": "x", "uid": "u", "labels": {"b": "2", "c": "3"}},
                "spec": {"containers": [{"name": "one", "image": "i"}]}})
        );
    }
}
