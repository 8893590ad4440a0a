//! Where objects are found by what they say of themselves.
//!
//! Most changes of an object leave all of it as it was: then nothing is looked up but what it is owned
//! by.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::kinds::Kind;
use super::object::Object;
use crate::world::Key;

/// What somebody owns.
type Owned = BTreeMap<(&'static str, Key), Arc<Object>>;

/// A namespace, and a label with its value there.
type Label = (String, String, String);

/// By UID, owner, node and label.
#[derive(Debug, Default)]
pub(super) struct Index {
    uids: HashSet<String>,
    /// What is owned, by the owner's UID.
    owned: HashMap<String, Owned>,
    /// Pods that no node has.
    unbound: BTreeSet<Key>,
    /// Pods by node.
    bound: HashMap<String, BTreeSet<Key>>,
    /// Pods by each of their labels.
    labelled: HashMap<Label, BTreeSet<Key>>,
    /// Services by the first label that they select.
    selecting: HashMap<Label, BTreeSet<Key>>,
}

impl Index {
    /// Whether there is an object of a UID.
    pub(super) fn is_there(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// What an owner owns.
    pub(super) fn owned_by(
        &self,
        uid: &str,
    ) -> impl Iterator<Item = (&(&'static str, Key), &Arc<Object>)> {
        self.owned.get(uid).into_iter().flatten()
    }

    pub(super) fn unbound_pods(&self) -> impl Iterator<Item = &Key> {
        self.unbound.iter()
    }

    pub(super) fn pods_of<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.bound.get(node).into_iter().flatten()
    }

    /// The pods of a namespace that have that of some labels which the fewest have; none without any
    /// label.
    pub(super) fn pods_near<'a>(
        &'a self,
        namespace: &str,
        labels: &Map<String, Value>,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        let each = labels.iter().map(|(name, value)| {
            let at = label(namespace, name, value);
            at.and_then(|at| self.labelled.get(&at))
        });
        let least = each.min_by_key(|keys| keys.map_or(0, BTreeSet::len));
        least.flatten().into_iter().flatten()
    }

    /// The Services that may select a pod: others do not.
    pub(super) fn services_near(&self, key: &Key, pod: &Value) -> impl Iterator<Item = &Key> {
        let all = labels(key, pod).filter_map(|at| self.selecting.get(&at));
        all.flatten()
    }

    /// Takes note of an object as it is now, and of what it was before.
    pub(super) fn put(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        before: Option<&Value>,
        object: &Arc<Object>,
    ) {
        let now = object.value();
        match before {
            Some(before) if is_alike(kind, before, now) => {
                for owner in owners(now) {
                    self.own(owner, kind, key, object);
                }
            }
            _ => {
                if let Some(before) = before {
                    self.remove(kind, key, before);
                }
                self.add(kind, key, object);
            }
        }
    }

    fn own(&mut self, owner: &str, kind: &'static Kind, key: &Key, object: &Arc<Object>) {
        let all = match self.owned.get_mut(owner) {
            Some(all) => all,
            None => self.owned.entry(owner.to_owned()).or_default(),
        };
        all.insert((kind.plural, key.clone()), Arc::clone(object));
    }

    fn add(&mut self, kind: &'static Kind, key: &Key, object: &Arc<Object>) {
        let value = object.value();
        if let Some(uid) = value["metadata"]["uid"].as_str() {
            self.uids.insert(uid.to_owned());
        }
        for owner in owners(value) {
            self.own(owner, kind, key, object);
        }
        match kind.plural {
            "pods" => {
                for at in labels(key, value) {
                    self.labelled.entry(at).or_default().insert(key.clone());
                }
                match value["spec"]["nodeName"].as_str() {
                    None | Some("") => drop(self.unbound.insert(key.clone())),
                    Some(node) => {
                        let bound = self.bound.entry(node.to_owned()).or_default();
                        bound.insert(key.clone());
                    }
                }
            }
            "services" => {
                if let Some(at) = selected(key, value) {
                    self.selecting.entry(at).or_default().insert(key.clone());
                }
            }
            _ => {}
        }
    }

    /// Forgets an object as it was.
    pub(super) fn remove(&mut self, kind: &'static Kind, key: &Key, value: &Value) {
        if let Some(uid) = value["metadata"]["uid"].as_str() {
            self.uids.remove(uid);
        }
        let at = (kind.plural, key.clone());
        for owner in owners(value) {
            if let Some(all) = self.owned.get_mut(owner) {
                all.remove(&at);
                if all.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
        match kind.plural {
            "pods" => {
                for at in labels(key, value) {
                    take(&mut self.labelled, &at, key);
                }
                self.unbound.remove(key);
                let node = value["spec"]["nodeName"].as_str();
                if let Some(bound) = node.and_then(|node| self.bound.get_mut(node)) {
                    bound.remove(key);
                }
            }
            "services" => {
                if let Some(at) = selected(key, value) {
                    take(&mut self.selecting, &at, key);
                }
            }
            _ => {}
        }
    }

    #[cfg(test)]
    pub(super) fn has_labels(&self) -> bool {
        !self.labelled.is_empty() || !self.selecting.is_empty()
    }
}

/// Whether an object is found as it was before.
fn is_alike(kind: &Kind, before: &Value, now: &Value) -> bool {
    let (was, is) = (&before["metadata"], &now["metadata"]);
    was["uid"] == is["uid"]
        && was["ownerReferences"] == is["ownerReferences"]
        && match kind.plural {
            "pods" => {
                was["labels"] == is["labels"]
                    && before["spec"]["nodeName"] == now["spec"]["nodeName"]
            }
            "services" => before["spec"]["selector"] == now["spec"]["selector"],
            _ => true,
        }
}

fn take(from: &mut HashMap<Label, BTreeSet<Key>>, at: &Label, key: &Key) {
    if let Some(keys) = from.get_mut(at) {
        keys.remove(key);
        if keys.is_empty() {
            from.remove(at);
        }
    }
}

/// Where something is found by a label.
fn label(namespace: &str, name: &str, value: &Value) -> Option<Label> {
    let value = value.as_str()?;
    Some((namespace.to_owned(), name.to_owned(), value.to_owned()))
}

fn labels(key: &Key, pod: &Value) -> impl Iterator<Item = Label> {
    let labels = pod["metadata"]["labels"].as_object();
    let all = labels.into_iter().flatten();
    all.filter_map(|(name, value)| label(&key.namespace, name, value))
}

/// The first label that a Service selects.
fn selected(key: &Key, service: &Value) -> Option<Label> {
    let selector = service["spec"]["selector"].as_object()?;
    let (name, value) = selector.iter().next()?;
    label(&key.namespace, name, value)
}

/// The UIDs of an object's owners.
pub(super) fn owners(value: &Value) -> impl Iterator<Item = &str> {
    let references = value["metadata"]["ownerReferences"].as_array();
    references
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
}
