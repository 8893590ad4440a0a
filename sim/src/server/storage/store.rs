//! The objects, and their latest changes.
//!
//! The store never changes an object in place: a holder keeps the version that it has.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use ordered_watch as watch;
use serde_json::{Value, json};

use crate::base::fields::Fields;
use crate::server::kinds::Kind;
use crate::world::Key;

/// How many changes of each kind the store remembers, like a real server's watch cache, which is
/// also per kind: a client that needs an older change must list again.
const REMEMBERED: usize = 1_000;

/// An object at one version.
pub(crate) type Object = Arc<Value>;

/// Named lists of objects, each in its order.
type Lists<T> = HashMap<String, BTreeMap<T, Object>>;

/// A change of an object; `before` is `None` for a new object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) plural: &'static str,
    pub(crate) key: Key,
    pub(crate) before: Option<Object>,
    /// The object as it is now, or its last state if it is deleted, which watches send.
    pub(crate) object: Object,
    pub(crate) deleted: bool,
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct Store {
    version: u64,
    objects: BTreeMap<&'static str, BTreeMap<Key, Object>>,
    /// The objects that have owners, by the owner's UID.
    owned: Lists<(&'static str, Key)>,
    /// Pods by node; the empty name has the pods without a node.
    bound: Lists<Key>,
    /// Pods by namespace and each of their labels.
    labelled: Lists<Key>,
    changes: BTreeMap<&'static str, VecDeque<Change>>,
    /// The version of the last forgotten change of each kind.
    forgotten: BTreeMap<&'static str, u64>,
    told: watch::Sender<u64>,
}

impl Store {
    /// The version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Subscribes to changes.
    pub(crate) fn hear(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// Returns an object by its kind and name.
    pub(crate) fn get(&self, plural: &str, key: &Key) -> Option<&Object> {
        self.objects.get(plural)?.get(key)
    }

    /// Returns an object of a kind that is in no namespace.
    pub(crate) fn global(&self, plural: &str, name: &str) -> Option<&Object> {
        self.get(plural, &Key::new("", name))
    }

    /// Returns the objects of a kind, in the order of their names; of all namespaces if `namespace` is empty.
    pub(crate) fn all<'a>(
        &'a self,
        plural: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let kept = self.objects.get(plural).into_iter();
        kept.flat_map(|kept| kept.range(Key::new(namespace, "")..))
            .take_while(move |(key, _)| namespace.is_empty() || key.namespace == namespace)
    }

    /// Returns the kinds that have objects in a namespace.
    pub(crate) fn kinds_in(&self, namespace: &str) -> Vec<&'static str> {
        let is_any = |plural: &&str| self.all(plural, namespace).next().is_some();
        let is_within = |plural: &&str| Kind::named(plural).namespaced && is_any(plural);
        self.objects.keys().copied().filter(is_within).collect()
    }

    /// Whether the owner exists to which an object in a namespace refers.
    pub(crate) fn is_there(&self, namespace: &str, owner: &Value) -> bool {
        Kind::for_object(owner).is_some_and(|kind| {
            let namespace = if kind.namespaced { namespace } else { "" };
            let live = self.get(kind.plural, &Key::new(namespace, owner["name"].text()));
            live.is_some_and(|live| live["metadata"]["uid"] == owner["uid"])
        })
    }

    /// Returns the objects of an owner, in the order of kinds and names.
    pub(crate) fn owned_by(
        &self,
        uid: &str,
    ) -> impl Iterator<Item = (&'static str, &Key, &Object)> {
        let owned = self.owned.get(uid).into_iter().flatten();
        owned.map(|((plural, key), object)| (*plural, key, object))
    }

    /// Returns the pods of a node; for the empty name, the pods without a node.
    pub(crate) fn pods_of<'a>(
        &'a self,
        node: &str,
    ) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        self.bound.get(node).into_iter().flatten()
    }

    /// Returns the pods that have all labels of a selector, ordered by name; none for an empty selector.
    pub(crate) fn selected<'a>(
        &'a self,
        namespace: &str,
        selector: &'a Value,
    ) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let first = selector.fields().next();
        let pods = first.and_then(|pair| self.labelled.get(&label(namespace, pair)));
        let pods = pods.into_iter().flatten();
        pods.filter(|(_, pod)| pod["metadata"]["labels"].includes(selector))
    }

    /// Stores an object, under a new version.
    pub(crate) fn put(&mut self, kind: &'static Kind, key: &Key, mut value: Value) -> Change {
        self.version += 1;
        value["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(value);
        let kept = self.objects.entry(kind.plural).or_default();
        let before = kept.insert(key.clone(), Arc::clone(&object));
        if let Some(before) = &before {
            self.note(kind, key, before, false);
        }
        self.note(kind, key, &object, true);
        self.tell(kind, key, before, object, false)
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, kind: &'static Kind, key: &Key) -> Option<Change> {
        let before = self.objects.get_mut(kind.plural)?.remove(key)?;
        self.version += 1;
        self.note(kind, key, &before, false);
        let mut value = Value::clone(&before);
        value["metadata"]["resourceVersion"] = json!(self.version.to_string());
        Some(self.tell(kind, key, Some(before), Arc::new(value), true))
    }

    /// Adds an object to the lists by owner, node and label, or removes it from them.
    fn note(&mut self, kind: &'static Kind, key: &Key, object: &Object, is: bool) {
        let of = |lists: &mut Lists<Key>, at: &str| enlist(lists, at, key.clone(), object, is);
        for owner in owners(object) {
            let entry = (kind.plural, key.clone());
            enlist(&mut self.owned, owner["uid"].text(), entry, object, is);
        }
        if kind.plural == "pods" {
            of(&mut self.bound, object["spec"]["nodeName"].text());
            for pair in object["metadata"]["labels"].fields() {
                of(&mut self.labelled, &label(&key.namespace, pair));
            }
        }
    }

    fn tell(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        before: Option<Object>,
        object: Object,
        deleted: bool,
    ) -> Change {
        let change = Change {
            version: self.version,
            plural: kind.plural,
            key: key.clone(),
            before,
            object,
            deleted,
        };
        let changes = self.changes.entry(kind.plural).or_default();
        if changes.len() == REMEMBERED
            && let Some(first) = changes.pop_front()
        {
            self.forgotten.insert(kind.plural, first.version);
        }
        changes.push_back(change.clone());
        self.told.send_replace(self.version);
        change
    }

    /// Returns the changes of a kind after a version; `None` if the store does not remember all of them.
    pub(crate) fn since(&self, kind: &Kind, version: u64) -> Option<impl Iterator<Item = &Change>> {
        if version < self.oldest(kind) {
            return None;
        }
        let changes = self.changes.get(kind.plural);
        let is_known = |change: &Change| change.version <= version;
        let from = changes.map_or(0, |changes| changes.partition_point(is_known));
        let changes = changes.into_iter();
        Some(changes.flat_map(move |changes| changes.range(from..)))
    }

    /// The version after which the store remembers all changes of a kind.
    pub(crate) fn oldest(&self, kind: &Kind) -> u64 {
        self.forgotten.get(kind.plural).copied().unwrap_or(0)
    }
}

/// The references to an object's owners.
pub(crate) fn owners(value: &Value) -> impl Iterator<Item = &Value> {
    value["metadata"]["ownerReferences"].items()
}

fn label(namespace: &str, (name, value): (&String, &Value)) -> String {
    format!("{namespace}/{name}={}", value.text())
}

/// Adds an object to a named list, or removes it.
fn enlist<T: Ord>(lists: &mut Lists<T>, list: &str, key: T, object: &Object, is: bool) {
    let objects = lists.entry(list.to_owned()).or_default();
    if is {
        objects.insert(key, Arc::clone(object));
        return;
    }
    objects.remove(&key);
    if objects.is_empty() {
        lists.remove(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Store {
        /// Forgets what changed until now, as a server does whose storage was compacted.
        pub(crate) fn compact(&mut self) {
            for (plural, changes) in std::mem::take(&mut self.changes) {
                if let Some(last) = changes.back() {
                    self.forgotten.insert(plural, last.version);
                }
            }
        }
    }

    #[test]
    fn changes_are_told_in_order_until_they_are_forgotten() {
        let mut store = Store::default();
        let kind = Kind::named("configmaps");
        let key = Key::new("a", "one");
        store.put(kind, &key, json!({"metadata": {"name": "one"}}));
        let second = store.put(kind, &key, json!({"metadata": {"name": "one"}, "data": {}}));
        let version = |object: &Value| object["metadata"]["resourceVersion"].text().to_owned();
        assert_eq!(version(&second.object), "2");
        assert_eq!(version(&second.before.expect("it was there")), "1");
        store.remove(kind, &key).expect("it is there");
        let seen = |version| {
            let since = store.since(kind, version)?;
            let told = since.map(|change| (change.version, change.deleted));
            Some(told.collect::<Vec<_>>())
        };
        assert_eq!(seen(1), Some(vec![(2, false), (3, true)]));
        assert_eq!(seen(3), Some(vec![]));
        store.compact();
        assert!(store.since(kind, 2).is_none() && store.since(kind, 3).is_some());
        // Another kind has had no changes that could be forgotten
        assert!(store.since(Kind::named("secrets"), 0).is_some());
    }

    #[test]
    fn objects_are_in_the_order_of_their_names() {
        let mut store = Store::default();
        let kind = Kind::named("configmaps");
        for (namespace, name) in [("b", "one"), ("a", "two"), ("a", "one"), ("a", "two")] {
            store.put(kind, &Key::new(namespace, name), json!({"metadata": {}}));
        }
        let listed = |store: &Store, namespace| {
            let all = store.all("configmaps", namespace);
            all.map(|(key, object)| format!("{key} {}", object["metadata"]["resourceVersion"]))
                .collect::<Vec<_>>()
        };
        let all = ["a/one \"3\"", "a/two \"4\"", "b/one \"1\""];
        assert_eq!(listed(&store, ""), all);
        assert_eq!(listed(&store, "a"), all[..2]);
        store.remove(kind, &Key::new("a", "one"));
        assert_eq!(listed(&store, ""), all[1..]);
        assert!(store.remove(kind, &Key::new("a", "one")).is_none());
    }

    #[test]
    fn pods_are_found_by_their_node_and_things_by_their_owner() {
        let mut store = Store::default();
        let kind = Kind::named("pods");
        let key = Key::new("a", "p");
        let mut owned = json!({"metadata": {"uid": "u", "ownerReferences": [{"uid": "o"}],
            "labels": {"app": "x", "tier": "y"}}, "spec": {}});
        let found = |store: &Store, node: &str| -> (Vec<Key>, Vec<Key>) {
            let pods = store.pods_of(node).map(|(key, _)| key.clone()).collect();
            let all = store.owned_by("o").filter(|(plural, ..)| *plural == "pods");
            (pods, all.map(|(_, key, _)| key.clone()).collect())
        };
        let (none, own) = (vec![], vec![key.clone()]);
        store.put(kind, &key, owned.clone());
        assert_eq!(found(&store, ""), (own.clone(), own.clone()));
        let selected = |store: &Store, selector| store.selected("a", &selector).count();
        assert_eq!(selected(&store, json!({"app": "x", "tier": "y"})), 1);
        assert_eq!(selected(&store, json!({"app": "x", "tier": "z"})), 0);
        owned["metadata"]["labels"] = json!({"app": "z"});
        owned["spec"]["nodeName"] = json!("n");
        store.put(kind, &key, owned);
        assert_eq!(selected(&store, json!({"app": "x"})), 0);
        assert_eq!(selected(&store, json!({"app": "z"})), 1);
        assert_eq!(found(&store, ""), (none.clone(), own.clone()));
        assert_eq!(found(&store, "n"), (own.clone(), own));
        store.remove(kind, &key);
        assert_eq!(found(&store, "n"), (none.clone(), none));
    }
}
