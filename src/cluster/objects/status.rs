//! Reads an object's status from its JSON, without I/O.

use serde_json::Value as Json;
use winconform_core::method::Quantity;
use winconform_core::text::bound;

/// The most bytes kept of a field.
const KEPT: usize = 512;

/// The items of an array; none for any other value.
pub fn items(list: &Json) -> impl Iterator<Item = &Json> + Clone {
    list.as_array().into_iter().flatten()
}

pub fn conditions(object: &Json) -> impl Iterator<Item = &Json> {
    items(&object["status"]["conditions"])
}

pub fn condition<'o>(object: &'o Json, kind: &str) -> Option<&'o Json> {
    conditions(object).find(|condition| condition["type"] == kind)
}

/// Whether an object's condition of this type is True.
pub fn is(object: &Json, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The statuses of a pod's containers, init containers first.
pub fn containers(pod: &Json) -> impl Iterator<Item = &Json> {
    ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|key| items(&pod["status"][key]))
}

/// How much a container requests of a resource; nothing, where it does not say or says no quantity.
pub fn requested(container: &Json, resource: &str) -> Quantity {
    let amount = container["resources"]["requests"][resource].as_str();
    amount.and_then(Quantity::parse).unwrap_or(Quantity::ZERO)
}

/// A field's text; empty for any other value.
pub fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// A field's text to keep, bounded.
pub fn word(value: &Json) -> String {
    let mut text = text(value).to_owned();
    bound(&mut text, KEPT);
    text
}
