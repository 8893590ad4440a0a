//! How objects change.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::identify;
use super::patch::{self, Form};
use super::state::State;
use super::store::Object;
use crate::base::fields::Fields;
use crate::server::checks::refusal::Refusal;
use crate::server::checks::{defaults, services, shape, valid};
use crate::server::kinds::Kind;
use crate::world::Key;

/// The metadata fields that no client sets.
const KEPT: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
];

/// The part of an object that a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

impl State {
    /// Returns an object, or a refusal if it does not exist.
    pub(crate) fn live(&self, kind: &Kind, key: &Key) -> Result<Object, Refusal> {
        let object = self.store.get(kind.plural, key).cloned();
        object.ok_or_else(|| Refusal::not_found(kind, &key.name))
    }

    /// Replaces a part of an object.
    pub(crate) fn replace(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        part: Part,
        mut body: Value,
        dry: bool,
    ) -> Result<Object, Refusal> {
        identify(kind, &key.namespace, &mut body)?;
        is_named(key, &body)?;
        let live = self.live(kind, key)?;
        shape::check(kind, &body)?;
        let (old, meta) = (&*live, &body["metadata"]);
        let (version, uid) = (meta["resourceVersion"].text(), meta["uid"].text());
        if !version.is_empty() && old["metadata"]["resourceVersion"] != version {
            let why = "the object has been modified; please apply your changes to the latest version \
                       and try again";
            return Err(Refusal::conflict(kind, &key.name, why));
        }
        let name = &key.name;
        let is = old["metadata"]["uid"].text();
        if !uid.is_empty() && uid != is {
            return Err(Refusal::precondition(kind, name, "UID", (uid, is), None));
        }
        for field in KEPT {
            copy_field(&mut body["metadata"], &old["metadata"], field);
        }
        body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        match part {
            Part::Status => {
                for (field, _) in old.fields() {
                    if field != "status" && field != "metadata" {
                        copy_field(&mut body, old, field);
                    }
                }
                if kind.plural == "nodes" && heartbeat(&body) != heartbeat(old) {
                    body["metadata"]["managedFields"] = json!([{
                        "manager": "kubelet", "operation": "Update", "subresource": "status",
                        "time": self.wall.now(), "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {
                            "f:conditions": {"k:{\"type\":\"Ready\"}": {"f:lastHeartbeatTime": {}}}}},
                    }]);
                }
            }
            Part::Main => {
                if kind.has_status() {
                    copy_field(&mut body, old, "status");
                }
                defaults::set(kind, &mut body);
                if kind.plural == "services" {
                    services::keep(&mut body, old);
                }
                valid::check(kind, &body, Some(old))?;
                if kind.plural == "services" {
                    services::complete(self, key, &mut body)?;
                }
            }
        }
        if kind.has_status() && body.get("spec") != old.get("spec") {
            let generation = old["metadata"]["generation"].number();
            body["metadata"]["generation"] = json!(generation.saturating_add(1));
        }
        if body == *old {
            return Ok(live);
        }
        if dry {
            return Ok(Arc::new(body));
        }
        let put = self.put(kind, key, body);
        Ok(self.finalized(kind, key).unwrap_or(put))
    }

    /// Patches a part of an object, which an apply may create. Returns the object, and whether it is new.
    pub(crate) fn patch(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        part: Part,
        (form, mut body): (Form, Value),
        dry: bool,
    ) -> Result<(Object, bool), Refusal> {
        if form != Form::Apply {
            let body = patch::patched(form, &*self.live(kind, key)?, body)?;
            return Ok((self.replace(kind, key, part, body, dry)?, false));
        }
        identify(kind, &key.namespace, &mut body)?;
        is_named(key, &body)?;
        body["metadata"]["name"] = json!(key.name);
        let configuration = body.clone();
        let (object, is_new) = match self.store.get(kind.plural, key) {
            None => (self.create(kind, &key.namespace, body, dry)?, true),
            Some(live) => {
                let mut object = Value::clone(live);
                if let Some(before) = self.applied.get(object["metadata"]["uid"].text()) {
                    patch::withdraw(&mut object, before, &body);
                }
                let body = patch::patched(form, &object, body)?;
                (self.replace(kind, key, part, body, dry)?, false)
            }
        };
        if !dry {
            let uid = object["metadata"]["uid"].text().to_owned();
            self.applied.insert(uid, configuration);
        }
        Ok((object, is_new))
    }

    /// Sets the status that a controller has computed, if it differs.
    pub(crate) fn set_status(&mut self, plural: &str, key: &Key, status: Value) {
        let before = self.store.get(plural, key);
        if before.is_some_and(|before| before["status"] != status) {
            self.edit(plural, key, |value| value["status"] = status);
        }
    }

    /// Changes an object as a controller does, if the edit has an effect.
    pub(crate) fn edit(&mut self, plural: &str, key: &Key, edit: impl FnOnce(&mut Value)) {
        let kind = Kind::named(plural);
        let Ok(live) = self.live(kind, key) else {
            return;
        };
        let mut value = Value::clone(&live);
        edit(&mut value);
        if value == *live {
            return;
        }
        if kind.has_status() && value.get("spec") != live.get("spec") && kind.plural != "nodes" {
            let generation = value["metadata"]["generation"].number();
            value["metadata"]["generation"] = json!(generation.saturating_add(1));
        }
        self.put(kind, key, value);
        self.finalized(kind, key);
    }
}

/// When a node's kubelet last said that it is Ready, by its clock.
fn heartbeat(node: &Value) -> Option<&Value> {
    let mut conditions = node["status"]["conditions"].items();
    let ready = conditions.find(|condition| condition["type"] == "Ready")?;
    ready.get("lastHeartbeatTime")
}

/// Refuses a body whose name differs from that of the path.
fn is_named(key: &Key, body: &Value) -> Result<(), Refusal> {
    match body["metadata"]["name"].as_str() {
        Some(named) if named != key.name => Err(Refusal::bad(format_args!(
            "the name of the object ({named}) does not match the name on the URL ({})",
            key.name
        ))),
        _ => Ok(()),
    }
}

/// Copies a field, or removes it if `from` does not have it.
fn copy_field(into: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => into[field] = value.clone(),
        None => drop(into.remove(field)),
    }
}
