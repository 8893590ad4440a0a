//! The path of a field in an object: `spec.hostPID`, `spec.containers[*].securityContext.privileged`,
//! `metadata.annotations["example.com/key"]`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

/// The path of a field, as seen from a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    Key(String),
    Index(usize),
    Each,
}

/// A value and where exactly it was.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Taken {
    at: Vec<Place>,
    value: Value,
}

/// A step to one value; an element of a list goes by its name if it has one, since a server may
/// add elements.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    Key(String),
    Named(String),
    Index(usize),
}

/// Why a path cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` is not the path of a field, such as `spec.containers[*].securityContext`")]
pub struct FieldError {
    path: String,
}

impl FromStr for FieldPath {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let invalid = || FieldError {
            path: text.to_owned(),
        };
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix("[\"") {
                let (key, after) = inside.split_once("\"]").ok_or_else(invalid)?;
                steps.push(Step::Key(key.to_owned()));
                rest = after;
            } else if let Some(inside) = rest.strip_prefix('[') {
                let (index, after) = inside.split_once(']').ok_or_else(invalid)?;
                steps.push(match index {
                    "*" => Step::Each,
                    number => Step::Index(number.parse().map_err(|_| invalid())?),
                });
                rest = after;
            } else {
                let key = if steps.is_empty() {
                    rest
                } else {
                    rest.strip_prefix('.').ok_or_else(invalid)?
                };
                let end = key.find(['.', '[']).unwrap_or(key.len());
                if end == 0 {
                    return Err(invalid());
                }
                steps.push(Step::Key(key[..end].to_owned()));
                rest = &key[end..];
            }
        }
        match steps.as_slice() {
            [Step::Key(_), ..] => Ok(Self(steps)),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if key.contains(['.', '[']) => write!(out, "[\"{key}\"]")?,
                Step::Key(key) if place == 0 => out.write_str(key)?,
                Step::Key(key) => write!(out, ".{key}")?,
                Step::Index(index) => write!(out, "[{index}]")?,
                Step::Each => out.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl FieldPath {
    /// Removes the field wherever the path leads, and says what was there.
    pub(super) fn take(&self, object: &mut Value) -> Vec<Taken> {
        let mut taken = Vec::new();
        take(&self.0, object, &mut Vec::new(), &mut taken);
        taken
    }

    /// Sets the field wherever the path leads, making the objects on the way.
    pub(super) fn set(&self, object: &mut Value, value: &Value) {
        set(&self.0, object, value);
    }
}

impl Taken {
    /// Puts the value back where it was, as far as that place still is.
    pub(super) fn restore(self, object: &mut Value) {
        let mut here = object;
        for place in self.at {
            let next = match place {
                Place::Key(key) => entry(here, key),
                Place::Named(name) => here
                    .as_array_mut()
                    .and_then(|list| list.iter_mut().find(|one| one["name"] == name.as_str())),
                Place::Index(index) => here.get_mut(index),
            };
            let Some(next) = next else { return };
            here = next;
        }
        *here = self.value;
    }
}

fn take(steps: &[Step], value: &mut Value, at: &mut Vec<Place>, taken: &mut Vec<Taken>) {
    match steps {
        [] => {}
        [Step::Key(key)] => {
            if let Some(value) = value.as_object_mut().and_then(|object| object.remove(key)) {
                let at = at
                    .iter()
                    .cloned()
                    .chain([Place::Key(key.clone())])
                    .collect();
                taken.push(Taken { at, value });
            }
        }
        [Step::Key(key), rest @ ..] => {
            if let Some(inner) = value.get_mut(key) {
                at.push(Place::Key(key.clone()));
                take(rest, inner, at, taken);
                at.pop();
            }
        }
        [step, rest @ ..] => {
            for (index, element) in elements(step, value) {
                let name = element.get("name").and_then(Value::as_str);
                at.push(match name {
                    Some(name) => Place::Named(name.to_owned()),
                    None => Place::Index(index),
                });
                // A list's element itself is emptied, not removed: the others keep their places
                match rest {
                    [] => taken.push(Taken {
                        at: at.clone(),
                        value: element.take(),
                    }),
                    _ => take(rest, element, at, taken),
                }
                at.pop();
            }
        }
    }
}

fn set(steps: &[Step], value: &mut Value, to: &Value) {
    match steps {
        [] => *value = to.clone(),
        [Step::Key(key), rest @ ..] => {
            if let Some(inner) = entry(value, key.clone()) {
                set(rest, inner, to);
            }
        }
        [step, rest @ ..] => {
            for (_, element) in elements(step, value) {
                set(rest, element, to);
            }
        }
    }
}

/// The elements of a list that a step names.
fn elements<'a>(
    step: &'a Step,
    value: &'a mut Value,
) -> impl Iterator<Item = (usize, &'a mut Value)> {
    let list = value
        .as_array_mut()
        .map(Vec::as_mut_slice)
        .unwrap_or_default();
    list.iter_mut()
        .enumerate()
        .filter(move |(index, _)| match step {
            Step::Each => true,
            Step::Index(only) => only == index,
            Step::Key(_) => false,
        })
}

/// A key's value in an object; null becomes an object first.
fn entry(value: &mut Value, key: String) -> Option<&mut Value> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value
        .as_object_mut()
        .map(|object| object.entry(key).or_insert(Value::Null))
}
