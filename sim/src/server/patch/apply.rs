//! Server-side apply, as far as whoever applies owns what he applies: what he applied before and
//! applies no more goes, unless somebody else applies it. There are no conflicts: every apply is
//! taken for forced.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{keys_of, place};
use crate::server::refusal::Refusal;

/// What each manager applied last.
pub(in crate::server) type Applied = BTreeMap<String, Value>;

/// What an object becomes when `manager` applies a configuration.
pub(in crate::server) fn apply(
    object: &Value,
    applied: &Applied,
    manager: &str,
    configuration: &Value,
) -> Result<Value, Refusal> {
    let mut object = object.clone();
    if let Some(before) = applied.get(manager) {
        let others: Vec<&Value> = applied
            .iter()
            .filter(|(other, _)| *other != manager)
            .map(|(_, configuration)| configuration)
            .collect();
        withdraw(&mut object, before, configuration, &others);
    }
    set("", &mut object, configuration);
    match object.is_object() {
        true => Ok(object),
        false => Err(Refusal::bad("what is applied is no object")),
    }
}

/// The names that stay whatever is applied.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Takes away what was applied before and is not any more.
fn withdraw(object: &mut Value, before: &Value, now: &Value, others: &[&Value]) {
    let (Some(object), Some(before)) = (object.as_object_mut(), before.as_object()) else {
        return;
    };
    for (name, was) in before {
        let of_others: Vec<&Value> = others.iter().filter_map(|other| other.get(name)).collect();
        match now.get(name) {
            None if of_others.is_empty() && !IDENTITY.contains(&name.as_str()) => {
                object.remove(name);
            }
            is => {
                let Some(held) = object.get_mut(name) else {
                    continue;
                };
                let is = is.unwrap_or(&Value::Null);
                match was {
                    Value::Object(_) => withdraw(held, was, is, &of_others),
                    Value::Array(items) => withdraw_items(name, held, items, is, &of_others),
                    _ => {}
                }
            }
        }
    }
}

fn withdraw_items(name: &str, held: &mut Value, before: &[Value], now: &Value, others: &[&Value]) {
    let Some(held) = held.as_array_mut() else {
        return;
    };
    for was in before {
        let keys = keys_of(name, was);
        if keys.is_empty() {
            return;
        }
        let in_list = |list: &Value| -> Option<Value> {
            let items = list.as_array()?;
            place(items, keys, was).map(|at| items[at].clone())
        };
        let of_others: Vec<Value> = others.iter().filter_map(|other| in_list(other)).collect();
        let Some(at) = place(held, keys, was) else {
            continue;
        };
        match in_list(now) {
            None if of_others.is_empty() => drop(held.remove(at)),
            is => {
                let of_others: Vec<&Value> = of_others.iter().collect();
                withdraw(&mut held[at], was, &is.unwrap_or_default(), &of_others);
            }
        }
    }
}

/// Sets what is applied.
fn set(name: &str, into: &mut Value, configuration: &Value) {
    match configuration {
        Value::Object(fields) => {
            if !into.is_object() {
                *into = json!({});
            }
            for (name, value) in fields {
                set(name, &mut into[name], value);
            }
        }
        Value::Array(items) => {
            let held = into.as_array().and_then(|held| held.first());
            let keys = items
                .first()
                .or(held)
                .map_or(&[][..], |item| keys_of(name, item));
            match into.as_array_mut() {
                Some(held) if !keys.is_empty() => {
                    for item in items {
                        match place(held, keys, item) {
                            Some(at) => set("", &mut held[at], item),
                            None => held.push(item.clone()),
                        }
                    }
                }
                _ => *into = configuration.clone(),
            }
        }
        value => *into = value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_applied_no_more_goes_unless_another_applies_it() {
        let first = json!({"metadata": {"name": "x", "labels": {"a": "1", "b": "2", "c": "3"}},
            "spec": {"containers": [{"name": "one", "image": "i", "env": [{"name": "E", "value": "1"}]},
                {"name": "two"}]}});
        let other = json!({"metadata": {"labels": {"b": "2"}}});
        let second = json!({"metadata": {"name": "x", "labels": {"c": "4"}},
            "spec": {"containers": [{"name": "one", "image": "j"}]}});
        let mut object = json!({"metadata": {"uid": "u"}, "status": {}});
        let mut applied = Applied::new();
        object = apply(&object, &applied, "me", &first).expect("applied");
        applied.insert("me".to_owned(), first);
        object = apply(&object, &applied, "you", &other).expect("applied");
        applied.insert("you".to_owned(), other);
        object = apply(&object, &applied, "me", &second).expect("applied");
        assert_eq!(
            object,
            json!({"metadata": {"name": "x", "uid": "u", "labels": {"b": "2", "c": "4"}},
                "spec": {"containers": [{"name": "one", "image": "j"}]}, "status": {}})
        );
    }
}
