//! The objects, and what became of them lately.
//!
//! An object is never changed in place: whoever has it, has it as it was, encoded at most once.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::watch;

pub(super) use super::index::owners;
pub(super) use super::object::Object;

use super::index::Index;
use super::kinds::Kind;
use crate::world::Key;

/// How many changes of each kind are remembered, as a real server's watch cache has them by kind: who
/// comes later for one of them has to list again.
const REMEMBERED: usize = 1_000;

/// How many of the changes of each kind are remembered as values too. What was replaced is given back
/// while it is still in the processor's caches, and its memory is what the next change takes.
const FRESH: usize = 4;

/// A change of an object; without what was before it was created, without what is now deleted.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) plural: &'static str,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Object>>,
    /// As it is now, or as it was last: a watch tells that of what is deleted.
    pub(super) object: Arc<Object>,
    pub(super) deleted: bool,
}

/// All objects of a kind. Among many an order is slow to search: that is for lists alone.
#[derive(Debug, Default)]
struct Kept {
    objects: HashMap<Arc<Key>, Arc<Object>>,
    order: BTreeSet<Arc<Key>>,
}

impl Kept {
    /// Has an object at a name; gives the one that was there.
    fn put(&mut self, key: &Key, object: Arc<Object>) -> Option<Arc<Object>> {
        if let Some(kept) = self.objects.get_mut(key) {
            return Some(std::mem::replace(kept, object));
        }
        let key = Arc::new(key.clone());
        self.order.insert(Arc::clone(&key));
        self.objects.insert(key, object)
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let removed = self.objects.remove(key)?;
        self.order.remove(key);
        Some(removed)
    }
}

/// All objects.
#[derive(Debug)]
pub(super) struct Store {
    version: u64,
    objects: BTreeMap<&'static str, Kept>,
    index: Index,
    changes: BTreeMap<&'static str, VecDeque<Change>>,
    /// The last change of each kind that is remembered no more.
    forgotten: BTreeMap<&'static str, u64>,
    told: watch::Sender<u64>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            version: 0,
            objects: BTreeMap::new(),
            index: Index::default(),
            changes: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            told: watch::channel(0).0,
        }
    }
}

impl Store {
    /// The version of the last change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Hears of changes.
    pub(super) fn hear(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    pub(super) fn get(&self, kind: &Kind, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(kind.plural)?.objects.get(key)
    }

    /// What controllers read: the value at a name, or nothing.
    pub(super) fn value(&self, plural: &str, key: &Key) -> Option<&Value> {
        let object = self.objects.get(plural)?.objects.get(key)?;
        Some(object.value())
    }

    /// All of a kind, in the order of their names; of a namespace, unless it is empty.
    pub(super) fn all<'a>(
        &'a self,
        plural: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> + use<'a> {
        let kept = self.objects.get(plural);
        let from = Key::new(namespace, "");
        kept.into_iter()
            .flat_map(move |kept| {
                let keys = kept.order.range::<Key, _>(from.clone()..);
                keys.filter_map(move |key| Some((&**key, kept.objects.get(&**key)?)))
            })
            .take_while(move |(key, _)| namespace.is_empty() || key.namespace == namespace)
    }

    /// The kinds that have any object in a namespace.
    pub(super) fn kinds_in(&self, namespace: &str) -> Vec<&'static str> {
        let kinds = self.objects.keys().copied();
        kinds
            .filter(|plural| {
                Kind::named(plural).namespaced && self.all(plural, namespace).next().is_some()
            })
            .collect()
    }

    pub(super) fn is_there(&self, uid: &str) -> bool {
        self.index.is_there(uid)
    }

    /// What an owner owns.
    pub(super) fn owned_by(
        &self,
        uid: &str,
    ) -> impl Iterator<Item = (&(&'static str, Key), &Arc<Object>)> {
        self.index.owned_by(uid)
    }

    pub(super) fn unbound_pods(&self) -> impl Iterator<Item = &Key> {
        self.index.unbound_pods()
    }

    pub(super) fn pods_of<'a>(
        &'a self,
        node: &str,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let pods = self.objects.get("pods");
        let keys = self.index.pods_of(node);
        keys.filter_map(move |key| pods?.objects.get(key))
    }

    /// The pods of a namespace that have all of some labels, in the order of their names; none without
    /// any label.
    pub(super) fn pods_with<'a>(
        &'a self,
        namespace: &str,
        labels: &'a Map<String, Value>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let pods = self.objects.get("pods");
        let found = self.index.pods_near(namespace, labels);
        let found = found.filter_map(move |key| pods?.objects.get(key));
        // One label is what they were found by
        found.filter(move |pod| labels.len() == 1 || has_all(pod, labels))
    }

    /// The Services that may select a pod, by its labels; some of them twice.
    pub(super) fn services_near(
        &self,
        key: &Key,
        pod: &Value,
    ) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        let services = self.objects.get("services");
        let near = self.index.services_near(key, pod);
        near.filter_map(move |key| Some((key, services?.objects.get(key)?)))
    }

    /// Puts an object where it is to be; gives it with its new version.
    pub(super) fn put(&mut self, kind: &'static Kind, key: &Key, mut value: Value) -> Change {
        self.version += 1;
        value["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Object::new(value);
        let kept = self.objects.entry(kind.plural).or_default();
        let before = kept.put(key, Arc::clone(&object));
        let was = before.as_ref().map(|before| before.value());
        self.index.put(kind, key, was, &object);
        self.tell(kind, key, before, object, false)
    }

    /// Takes an object away.
    pub(super) fn remove(&mut self, kind: &'static Kind, key: &Key) -> Option<Change> {
        let before = self.objects.get_mut(kind.plural)?.remove(key)?;
        self.version += 1;
        self.index.remove(kind, key, before.value());
        let mut value = before.value().clone();
        value["metadata"]["resourceVersion"] = json!(self.version.to_string());
        Some(self.tell(kind, key, Some(before), Object::new(value), true))
    }

    fn tell(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        before: Option<Arc<Object>>,
        object: Arc<Object>,
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
        let rests = changes.len().checked_sub(FRESH + 1);
        if let Some(old) = rests.and_then(|at| changes.get_mut(at)) {
            let now = old.object.at_rest();
            // Events are many, and nobody but their readers looks at them again
            if kind.plural == "events"
                && let Some(kept) = self.objects.get_mut(kind.plural)
                && let Some(kept) = kept.objects.get_mut(&old.key)
                && Arc::ptr_eq(kept, &old.object)
            {
                *kept = Arc::clone(&now);
            }
            old.object = now;
            old.before = old.before.as_ref().map(|before| before.at_rest());
        }
        self.told.send_replace(self.version);
        change
    }

    /// The changes of a kind after a version; `None` if not all of them are remembered.
    pub(super) fn since(&self, kind: &Kind, version: u64) -> Option<impl Iterator<Item = &Change>> {
        if version < self.oldest(kind) {
            return None;
        }
        let changes = self.changes.get(kind.plural);
        let later = move |changes: &VecDeque<Change>| {
            changes.partition_point(|change| change.version <= version)
        };
        Some(
            changes
                .into_iter()
                .flat_map(move |changes| changes.range(later(changes)..)),
        )
    }

    /// The version after which all changes of a kind are remembered.
    pub(super) fn oldest(&self, kind: &Kind) -> u64 {
        self.forgotten.get(kind.plural).copied().unwrap_or(0)
    }

    /// Forgets what changed until now, as a server does whose storage was compacted.
    #[cfg(test)]
    pub(super) fn compact(&mut self) {
        for (plural, changes) in std::mem::take(&mut self.changes) {
            if let Some(last) = changes.back() {
                self.forgotten.insert(plural, last.version);
            }
        }
    }
}

fn has_all(pod: &Value, labels: &Map<String, Value>) -> bool {
    let own = &pod["metadata"]["labels"];
    let mut all = labels.iter();
    all.all(|(name, value)| own.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_in_order_until_they_are_forgotten() {
        let mut store = Store::default();
        let kind = Kind::named("configmaps");
        let key = Key::new("a", "one");
        store.put(kind, &key, json!({"metadata": {"name": "one"}}));
        let second = store.put(kind, &key, json!({"metadata": {"name": "one"}, "data": {}}));
        assert_eq!(second.object.value()["metadata"]["resourceVersion"], "2");
        assert_eq!(
            second.before.expect("it was there").value()["metadata"]["resourceVersion"],
            "1"
        );
        store.remove(kind, &key).expect("it is there");
        let seen = |version| {
            let since = store.since(kind, version)?;
            Some(
                since
                    .map(|change| (change.version, change.deleted))
                    .collect::<Vec<_>>(),
            )
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
    fn what_rests_is_what_it_was() {
        let mut store = Store::default();
        let kind = Kind::named("events");
        let key = |number: usize| Key::new("a", &number.to_string());
        for number in 0..=FRESH {
            let event =
                json!({"metadata": {"name": number.to_string()}, "count": 1.5, "reason": "\"\n"});
            store.put(kind, &key(number), event);
        }
        let is_value = |object: &Object| !object.is_at_rest();
        let (first, second) = (store.get(kind, &key(0)), store.get(kind, &key(1)));
        let (first, second) = (first.expect("the first"), second.expect("the second"));
        assert!(!is_value(first) && is_value(second));
        let changes = store.since(kind, 0).expect("all are remembered");
        let values = changes.filter(|change| is_value(&change.object));
        assert_eq!(values.count(), FRESH);
        let is = json!({"metadata": {"name": "0", "resourceVersion": "1"}, "count": 1.5, "reason": "\"\n"});
        assert_eq!(*first.value(), is);
        // Others are asked for all the time
        let nodes = Kind::named("nodes");
        for number in 0..=FRESH {
            store.put(nodes, &key(number), json!({"metadata": {}}));
        }
        assert!(store.all("nodes", "").all(|(_, node)| is_value(node)));
    }

    #[test]
    fn pods_are_found_by_all_of_some_labels() {
        let mut store = Store::default();
        let kind = Kind::named("pods");
        let pod = |labels: Value| json!({"metadata": {"labels": labels}});
        for (namespace, name, labels) in [
            ("a", "two", json!({"app": "x", "tier": "back"})),
            ("a", "one", json!({"app": "x", "tier": "back"})),
            ("a", "other", json!({"app": "x", "tier": "front"})),
            ("b", "one", json!({"app": "x", "tier": "back"})),
        ] {
            store.put(kind, &Key::new(namespace, name), pod(labels));
        }
        let found = |store: &Store, labels: Value| {
            let labels = labels.as_object().expect("labels");
            let found = store.pods_with("a", labels);
            found
                .map(|pod| pod.value()["metadata"]["resourceVersion"].to_string())
                .collect::<Vec<_>>()
        };
        let both = json!({"app": "x", "tier": "back"});
        assert_eq!(found(&store, both.clone()), ["\"2\"", "\"1\""]);
        assert_eq!(found(&store, json!({"app": "x"})).len(), 3);
        assert!(found(&store, json!({})).is_empty());
        assert!(found(&store, json!({"app": "x", "tier": "none"})).is_empty());
        store.put(kind, &Key::new("a", "two"), pod(json!({"app": "y"})));
        store.remove(kind, &Key::new("a", "one"));
        assert!(found(&store, both).is_empty());
        assert_eq!(found(&store, json!({"app": "y"})), ["\"5\""]);
        store.remove(kind, &Key::new("a", "two"));
        store.remove(kind, &Key::new("a", "other"));
        store.remove(kind, &Key::new("b", "one"));
        assert!(!store.index.has_labels());
    }

    #[test]
    fn services_are_found_by_what_they_select() {
        let mut store = Store::default();
        let kind = Kind::named("services");
        let service = |selector: Value| json!({"metadata": {}, "spec": {"selector": selector}});
        let key = |name: &str| Key::new("a", name);
        store.put(
            kind,
            &key("one"),
            service(json!({"app": "x", "tier": "back"})),
        );
        store.put(kind, &key("two"), service(json!({"tier": "back"})));
        store.put(kind, &key("none"), service(json!({})));
        store.put(kind, &Key::new("b", "one"), service(json!({"app": "x"})));
        let near = |store: &Store, labels: Value| {
            let pod = json!({"metadata": {"labels": labels}});
            let own = key("pod");
            let near = store.services_near(&own, &pod);
            near.map(|(key, _)| key.name.clone()).collect::<Vec<_>>()
        };
        let pod = || json!({"app": "x", "tier": "back"});
        assert_eq!(near(&store, pod()), ["one", "two"]);
        assert_eq!(near(&store, json!({"tier": "back"})), ["two"]);
        store.put(kind, &key("one"), service(json!({"app": "y"})));
        store.remove(kind, &key("two"));
        assert!(near(&store, pod()).is_empty());
        assert_eq!(near(&store, json!({"app": "y"})), ["one"]);
        store.remove(kind, &key("one"));
        store.remove(kind, &Key::new("b", "one"));
        assert!(!store.index.has_labels());
    }

    #[test]
    fn pods_are_found_by_their_node_and_things_by_their_owner() {
        let mut store = Store::default();
        let kind = Kind::named("pods");
        let key = Key::new("a", "p");
        let owned =
            json!({"metadata": {"uid": "u", "ownerReferences": [{"uid": "o"}]}, "spec": {}});
        store.put(kind, &key, owned.clone());
        assert_eq!(store.unbound_pods().collect::<Vec<_>>(), [&key]);
        let mut owns = store.owned_by("o").map(|(at, _)| at);
        assert!(owns.next() == Some(&("pods", key.clone())) && owns.next().is_none());
        drop(owns);
        let mut bound = owned;
        bound["spec"]["nodeName"] = json!("n");
        store.put(kind, &key, bound);
        assert_eq!(
            (store.unbound_pods().count(), store.pods_of("n").count()),
            (0, 1)
        );
        store.remove(kind, &key);
        assert_eq!(
            (store.pods_of("n").count(), store.owned_by("o").count()),
            (0, 0)
        );
    }
}
