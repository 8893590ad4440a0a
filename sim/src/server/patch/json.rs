//! JSON patch, RFC 6902.

use serde_json::Value;

use crate::server::refusal::Refusal;

pub(super) fn patch(object: &mut Value, operations: &Value) -> Result<(), Refusal> {
    let operations = operations.as_array();
    let operations = operations.ok_or_else(|| Refusal::bad("a JSON patch is a list"))?;
    operations
        .iter()
        .try_for_each(|operation| one(object, operation))
}

fn one(object: &mut Value, operation: &Value) -> Result<(), Refusal> {
    let text = |name: &str| operation[name].as_str().unwrap_or_default();
    let path = text("path");
    let value = || operation["value"].clone();
    let missing =
        |path: &str| Refusal::bad(format_args!("the patch names {path}, which is not there"));
    match text("op") {
        "add" => add(object, path, value()),
        "remove" => remove(object, path).map(drop),
        "replace" => {
            let at = object.pointer_mut(path).ok_or_else(|| missing(path))?;
            *at = value();
            Ok(())
        }
        "move" => {
            let moved = remove(object, text("from"))?;
            add(object, path, moved)
        }
        "copy" => {
            let from = text("from");
            let copied = object.pointer(from).cloned().ok_or_else(|| missing(from))?;
            add(object, path, copied)
        }
        "test" if object.pointer(path) == Some(&operation["value"]) => Ok(()),
        "test" => Err(Refusal::bad(format_args!("testing value {path} failed"))),
        other => Err(Refusal::bad(format_args!(
            "unknown operation {other:?} of a JSON patch"
        ))),
    }
}

/// What holds a path's last part, and that part.
fn holder<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (before, last) = path.rsplit_once('/')?;
    let last = last.replace("~1", "/").replace("~0", "~");
    Some((object.pointer_mut(before)?, last))
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), Refusal> {
    let refused = || Refusal::bad(format_args!("the patch cannot add {path}"));
    if path.is_empty() {
        *object = value;
        return Ok(());
    }
    match holder(object, path).ok_or_else(refused)? {
        (Value::Object(fields), name) => drop(fields.insert(name, value)),
        (Value::Array(items), name) => {
            let at = if name == "-" {
                Some(items.len())
            } else {
                name.parse().ok()
            };
            let at = at.filter(|at| *at <= items.len()).ok_or_else(refused)?;
            items.insert(at, value);
        }
        _ => return Err(refused()),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, Refusal> {
    let removed = match holder(object, path) {
        Some((Value::Object(fields), name)) => fields.remove(&name),
        Some((Value::Array(items), name)) => {
            let at = name.parse().ok().filter(|at: &usize| *at < items.len());
            at.map(|at| items.remove(at))
        }
        _ => None,
    };
    removed.ok_or_else(|| Refusal::bad(format_args!("the patch cannot remove {path}")))
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
        patch(&mut object, &operations).expect("they fit");
        assert_eq!(object, json!({"a": [4, 3], "e": "d", "f": [4, 3]}));
        for wrong in [
            json!({}),
            json!([{"op": "test", "path": "/e", "value": "x"}]),
            json!([{"op": "remove", "path": "/a/7"}]),
            json!([{"op": "add", "path": "/none/x", "value": 1}]),
            json!([{"op": "replace", "path": "/none", "value": 1}]),
            json!([{"op": "sing", "path": "/a"}]),
        ] {
            assert_eq!(
                patch(&mut object, &wrong)
                    .expect_err("it does not fit")
                    .code,
                400
            );
        }
    }
}
