//! Checks that an object has the types of its kind, so that every client can read what is stored.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::refusal::Refusal;
use crate::server::kinds::Kind;

/// Refuses an object that does not have the types of its kind.
pub(crate) fn check(kind: &Kind, value: &Value) -> Result<(), Refusal> {
    (kind.read)(value).map_err(|error| Refusal::undecodable(kind, &error))
}

/// Returns the fields that the kind does not have, named as a server names them.
pub(crate) fn unknown_fields(kind: &Kind, value: &Value) -> Result<Vec<String>, Refusal> {
    let written = (kind.rewrite)(value).map_err(|error| Refusal::undecodable(kind, &error))?;
    let mut lost = Vec::new();
    losses("", value, &written, &mut lost);
    Ok(lost)
}

pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}

pub(crate) fn rewrite<T: Serialize + DeserializeOwned>(
    value: &Value,
) -> Result<Value, serde_json::Error> {
    serde_json::to_value(T::deserialize(value)?)
}

fn losses(at: &str, value: &Value, written: &Value, into: &mut Vec<String>) {
    match (value, written) {
        (Value::Object(fields), Value::Object(written)) => {
            // Directives of a strategic merge are not fields of the kind
            for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with('$')) {
                let at = match at {
                    "" => name.clone(),
                    at => format!("{at}.{name}"),
                };
                match written.get(name) {
                    Some(written) => losses(&at, value, written, into),
                    None if value.is_null() => {}
                    None => into.push(at),
                }
            }
        }
        (Value::Array(items), Value::Array(written)) => {
            for (number, (item, written)) in items.iter().zip(written).enumerate() {
                losses(&format!("{at}[{number}]"), item, written, into);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::kinds::KINDS;

    #[test]
    fn every_kind_has_a_shape() {
        for kind in KINDS {
            let empty = json!({"apiVersion": kind.api_version(), "kind": kind.name});
            assert_eq!(check(kind, &empty), Ok(()), "{}", kind.plural);
            let wrong = json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": 1});
            assert_eq!(check(kind, &wrong).expect_err(kind.plural).code, 400);
        }
    }
}
