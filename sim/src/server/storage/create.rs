//! How objects are created.

use std::sync::Arc;

use serde_json::{Value, json};

use super::state::State;
use super::store::Object;
use crate::base::fields::Fields;
use crate::server::checks::refusal::{Cause, Refusal};
use crate::server::checks::{admit, defaults, services, shape, valid};
use crate::server::controllers::pods::is_going;
use crate::server::kinds::Kind;
use crate::world::Key;

/// The longest name, and the longest prefix of a generated one (apimachinery, `names.go`).
const LONGEST_NAME: usize = 253;
const LONGEST_BASE: usize = 58;
/// The error for a name of the wrong form.
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
    regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

impl State {
    /// Creates an object; `dry` stores nothing.
    pub(crate) fn create(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        mut body: Value,
        dry: bool,
    ) -> Result<Object, Refusal> {
        identify(kind, namespace, &mut body)?;
        shape::check(kind, &body)?;
        let name = self.name(kind, &mut body)?;
        let key = Key::new(namespace, &name);
        if kind.namespaced {
            self.admits(kind, namespace, &name)?;
        }
        let uid = self.uid();
        let meta = &mut body["metadata"];
        meta["uid"] = json!(uid);
        meta["creationTimestamp"] = json!(self.wall.now());
        for foreign in [
            "resourceVersion",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            meta.remove(foreign);
        }
        if kind.has_status() && kind.plural != "nodes" {
            // Other components report it
            body["status"] = json!({});
        }
        if body["spec"].is_object() {
            body["metadata"]["generation"] = json!(1);
        }
        defaults::set(kind, &mut body);
        admit::created(self, kind, &mut body)?;
        valid::check(kind, &body, None)?;
        admit::allowed(self, kind, &body)?;
        if kind.plural == "services" {
            services::complete(self, &key, &mut body)?;
        }
        if self.store.get(kind.plural, &key).is_some() {
            return Err(Refusal::exists(kind, &name));
        }
        if dry {
            return Ok(Arc::new(body));
        }
        Ok(self.put(kind, &key, body))
    }

    /// Returns the object's name, which it generates if there is none.
    fn name(&mut self, kind: &Kind, body: &mut Value) -> Result<String, Refusal> {
        let meta = &mut body["metadata"];
        let invalid = |name: &str, cause: Cause| Err(Refusal::invalid(kind, name, &[cause]));
        let name = meta["name"].text().to_owned();
        if !name.is_empty() {
            return match not_a_name(kind, &name) {
                Some(why) => invalid(&name, Cause::invalid("metadata.name", &json!(name), &why)),
                None => Ok(name),
            };
        }
        let base = meta["generateName"].text().chars();
        let base: String = base.take(LONGEST_BASE).collect();
        if base.is_empty() {
            let why = "name or generateName is required";
            return invalid("", Cause::required("metadata.name", why));
        }
        let name = format!("{base}{}", self.letters(5));
        if let Some(why) = not_a_name(kind, &name) {
            let cause = Cause::invalid("metadata.generateName", &json!(base), &why);
            return invalid("", cause);
        }
        meta["name"] = json!(name);
        Ok(name)
    }

    /// Refuses objects in a namespace that is missing or ends (apiserver, plugin `NamespaceLifecycle`).
    fn admits(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Refusal> {
        let object = self.live(Kind::named("namespaces"), &Key::new("", namespace))?;
        if !is_going(&object) {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        Err(Refusal::forbidden(kind, name, &why))
    }
}

/// Checks that a body has the kind and the namespace that the path names, and sets both.
pub(crate) fn identify(kind: &Kind, namespace: &str, body: &mut Value) -> Result<(), Refusal> {
    bare(body);
    let Some(fields) = body.as_object_mut() else {
        return Err(Refusal::bad("the body of the request is no object"));
    };
    for (field, is) in [
        ("apiVersion", kind.api_version()),
        ("kind", kind.name.to_owned()),
    ] {
        let given = fields.entry(field).or_insert_with(|| json!(is));
        if *given != is {
            return Err(Refusal::bad(format_args!(
                "the {field} in the data ({given}) does not match the expected {field} ({is})"
            )));
        }
    }
    let meta = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(meta) = meta.as_object_mut() else {
        return Err(Refusal::bad("metadata is no object"));
    };
    let given = meta.get("namespace").map_or("", Fields::text);
    if !given.is_empty() && given != namespace {
        return Err(Refusal::bad(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if kind.namespaced {
        meta.insert("namespace".to_owned(), json!(namespace));
    }
    Ok(())
}

/// Removes null fields, which equal missing ones.
pub(crate) fn bare(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(bare);
        }
        Value::Array(items) => items.iter_mut().for_each(bare),
        _ => {}
    }
}

/// Returns what is wrong with a name, if anything is.
fn not_a_name(kind: &Kind, name: &str) -> Option<String> {
    // `IsPathSegmentName`: for roles and bindings, and for events about objects with such names
    if kind.group == "rbac.authorization.k8s.io" || kind.plural == "events" {
        let segment = ["/", "%"].into_iter().find(|part| name.contains(part));
        return match segment {
            _ if matches!(name, "." | "..") => Some(format!("may not be '{name}'")),
            segment => segment.map(|part| format!("may not contain '{part}'")),
        };
    }
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.len() > LONGEST_NAME {
        return Some(format!("must be no more than {LONGEST_NAME} bytes"));
    }
    let is_one = name.chars().all(inner) && name.starts_with(ends) && name.ends_with(ends);
    (!is_one).then(|| SUBDOMAIN.to_owned())
}
