//! The path of a field in an object: `spec.hostPID`, `spec.containers[*].securityContext.privileged`,
//! `metadata.annotations["example.com/key"]`, `container.lifecycle.stopSignal`.

use std::str::FromStr;

use k8s_openapi::api::core::v1::PodSpec;
use serde_json::{Map, Value, json};

/// The path of a field, as seen from a pod; a path that begins with `container` covers containers of all
/// three kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    Key(String),
    Index(usize),
    Each,
}

/// The first word of a path that covers containers of any kind.
const CONTAINER: &str = "container";

/// The lists of a pod's containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A text is no path.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the path of a field, such as `spec.containers[*].securityContext`")]
pub struct FieldError(String);

impl FromStr for FieldPath {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let invalid = || FieldError(text.to_owned());
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

impl FieldPath {
    /// Removes the field from all places that the path names; returns whether there was one. Also removes
    /// objects that become empty: `os: {}` is not the same as no `os`.
    pub(crate) fn remove_from(&self, object: &mut Value) -> bool {
        let paths = self.expanded().into_iter();
        paths.fold(false, |any, steps| any | remove_at(&steps, object))
    }

    /// Restores the field of an object from `whole`.
    pub(crate) fn restore(&self, object: &mut Value, whole: &Value) {
        for steps in self.expanded() {
            restore(&steps, object, whole);
        }
    }

    /// Sets the field at all places that the path names, and creates the objects on the way; returns whether
    /// there was a place.
    pub(crate) fn set(&self, object: &mut Value, value: &Value) -> bool {
        let paths = self.expanded().into_iter();
        paths.fold(false, |any, steps| any | set(&steps, object, value))
    }

    /// Whether an error at a place that a server names, such as `spec.containers[0].image`, is about this
    /// field: the place is the field, lies below it, or is the object that holds it. An error of the whole
    /// `spec` is, if the message names the field.
    pub(crate) fn concerns(&self, place: &str, message: &str) -> bool {
        let Ok(Self(place)) = place.parse::<Self>() else {
            return false;
        };
        self.expanded().iter().any(|steps| {
            let alike = steps.iter().zip(&place).all(|(step, seen)| match step {
                Step::Each => !matches!(seen, Step::Key(_)),
                step => step == seen,
            });
            let spoken_of = || match steps.last() {
                Some(Step::Key(key)) => message.contains(key.as_str()),
                _ => false,
            };
            alike
                && match place.len() {
                    1 => steps.len() == 1 || spoken_of(),
                    depth => depth + 1 >= steps.len(),
                }
        })
    }

    /// Whether the specs of pods have such a field.
    pub fn is_of_pods(&self) -> bool {
        // One is of the type of the field
        let values = [
            json!({}),
            json!([]),
            json!([""]),
            json!(""),
            json!(1),
            json!(true),
        ];
        let is_kept = |steps: &[Step], value: &Value| {
            // Unknown fields are left out of what is read
            let spec = serde_json::from_value::<PodSpec>(leading(steps, value));
            let spec = spec.ok().and_then(|spec| serde_json::to_value(spec).ok());
            spec.is_some_and(|spec| has(steps, &spec))
        };
        let expanded = self.expanded();
        let mut specs = expanded.iter().filter_map(|steps| match steps.as_slice() {
            [Step::Key(head), rest @ ..] if head == "spec" && !rest.is_empty() => Some(rest),
            _ => None,
        });
        specs.any(|steps| values.iter().any(|value| is_kept(steps, value)))
    }

    /// Whether the path leads into a list of the pod, so that it cannot create a field of the pod itself.
    pub(crate) fn is_inside_a_list(&self) -> bool {
        self.expanded()
            .iter()
            .all(|steps| matches!(steps.get(2), Some(Step::Each | Step::Index(_))))
    }

    /// The paths that this one covers.
    fn expanded(&self) -> Vec<Vec<Step>> {
        match self.0.as_slice() {
            [Step::Key(head), rest @ ..] if head == CONTAINER => CONTAINERS
                .iter()
                .map(|list| {
                    let key = |name: &str| Step::Key(name.to_owned());
                    [key("spec"), key(list), Step::Each]
                        .into_iter()
                        .chain(rest.iter().cloned())
                        .collect()
                })
                .collect(),
            steps => vec![steps.to_vec()],
        }
    }
}

/// An object in which the path leads to the value; a list has one element.
fn leading(steps: &[Step], value: &Value) -> Value {
    match steps {
        [] => value.clone(),
        [Step::Key(key), rest @ ..] => json!({key: leading(rest, value)}),
        [_, rest @ ..] => json!([leading(rest, value)]),
    }
}

/// Whether the path leads to a value in an object whose lists have one element.
fn has(steps: &[Step], value: &Value) -> bool {
    match steps {
        [] => !value.is_null(),
        [Step::Key(key), rest @ ..] => has(rest, &value[key.as_str()]),
        [_, rest @ ..] => has(rest, &value[0]),
    }
}

fn remove_at(steps: &[Step], value: &mut Value) -> bool {
    match steps {
        [] => false,
        [Step::Key(key)] => {
            let object = value.as_object_mut();
            object.is_some_and(|object| object.remove(key).is_some())
        }
        [Step::Key(key), rest @ ..] => {
            let Some(inner) = value.get_mut(key) else {
                return false;
            };
            let taken = remove_at(rest, inner);
            if taken
                && inner.as_object().is_some_and(Map::is_empty)
                && let Some(object) = value.as_object_mut()
            {
                object.remove(key);
            }
            taken
        }
        // An element of a list is emptied, not removed, so that the others keep their places
        [step] => each(step, value, |element| !element.take().is_null()),
        [step, rest @ ..] => each(step, value, |element| remove_at(rest, element)),
    }
}

/// Restores a value; finds an element of a list by its name if it has one, since a server may add elements.
fn restore(steps: &[Step], into: &mut Value, from: &Value) {
    match steps {
        [] => *into = from.clone(),
        [Step::Key(key), rest @ ..] => {
            let mut inner = into.get(key).cloned().unwrap_or_default();
            restore(rest, &mut inner, &from[key.as_str()]);
            if !inner.is_null()
                && let Some(there) = entry(into, key.clone())
            {
                *there = inner;
            }
        }
        [step, rest @ ..] => {
            let items = from.as_array().map(Vec::as_slice).unwrap_or_default();
            let list = into.as_array_mut().map(Vec::as_mut_slice);
            let list = list.unwrap_or_default();
            for (index, one) in items.iter().enumerate() {
                let same = |there: &&mut Value| there["name"] == one["name"];
                let there = match one["name"].is_string() {
                    true => list.iter_mut().find(same),
                    false => list.get_mut(index),
                };
                if let Some(there) = there.filter(|_| step.names(index)) {
                    restore(rest, there, one);
                }
            }
        }
    }
}

fn set(steps: &[Step], value: &mut Value, to: &Value) -> bool {
    match steps {
        [] => {
            *value = to.clone();
            true
        }
        // A missing list has no elements in which to set a field
        [Step::Key(key), Step::Each | Step::Index(_), ..] if value[key.as_str()].is_null() => false,
        [Step::Key(key), rest @ ..] => {
            entry(value, key.clone()).is_some_and(|inner| set(rest, inner, to))
        }
        [step, rest @ ..] => each(step, value, |element| set(rest, element, to)),
    }
}

/// Runs `work` on each element of a list that a step names; returns whether it succeeded for any.
fn each(step: &Step, value: &mut Value, mut work: impl FnMut(&mut Value) -> bool) -> bool {
    let list = value.as_array_mut().map(Vec::as_mut_slice);
    let mut any = false;
    for (index, element) in list.unwrap_or_default().iter_mut().enumerate() {
        any |= step.names(index) && work(element);
    }
    any
}

impl Step {
    /// Whether the step names an element of a list.
    fn names(&self, index: usize) -> bool {
        match self {
            Self::Each => true,
            Self::Index(only) => *only == index,
            Self::Key(_) => false,
        }
    }
}

/// The value of a key in an object; turns null into an object first.
fn entry(value: &mut Value, key: String) -> Option<&mut Value> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value
        .as_object_mut()
        .map(|object| object.entry(key).or_insert(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_pods_is_known_from_a_typing_error() {
        for (path, is_known) in [
            ("spec.affinity", true),
            ("spec.nodeSelector", true),
            ("spec.hostPID", true),
            ("spec.overhead", true),
            ("spec.tolerations[0].key", true),
            ("spec.priority", true),
            ("spec.containers[*].args", true),
            ("spec.containers[*].resources.limits.cpu", true),
            ("spec.containers[*].livenessProbe.httpGet.port", true),
            ("container.lifecycle.stopSignal", true),
            ("spec.afinity", false),
            ("spec.containers.args", false),
            ("spec.containers[*].arg", false),
            ("spec.hostPID.value", false),
            ("spec", false),
            ("metadata.labels", false),
        ] {
            let field: FieldPath = path.parse().expect("a path");
            assert_eq!(field.is_of_pods(), is_known, "{path}");
        }
    }
}
