//! The objects, and what became of them lately.
//!
//! An object is never changed in place: whoever has it, has it as it was, encoded at most once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::controllers::{Load, Standing};
use super::kinds::Kind;
use crate::world::Key;

/// How many changes of each kind are remembered, as a real server's watch cache has them by kind: who
/// comes later for one of them has to list again.
const REMEMBERED: usize = 1_000;

/// How many of the changes of each kind are remembered as values too: by then watches have told what came
/// of one request, and need not read it again.
const FRESH: usize = 100;

/// An object as it is at a version: a value, its JSON, or both, each made of the other when somebody
/// first asks. As JSON alone it takes a tenth of the memory.
#[derive(Debug)]
pub(super) struct Object {
    value: OnceLock<Value>,
    encoded: OnceLock<Bytes>,
    standing: OnceLock<Standing>,
    load: OnceLock<Option<Load>>,
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl Object {
    pub(super) fn new(value: Value) -> Arc<Self> {
        Arc::new(Self {
            value: value.into(),
            encoded: OnceLock::new(),
            standing: OnceLock::new(),
            load: OnceLock::new(),
        })
    }

    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let encoded = self.encoded.get().expect("one of both is there");
            serde_json::from_slice(encoded).expect("it was encoded here")
        })
    }

    /// As JSON, shared by all who send it.
    pub(super) fn encoded(&self) -> Bytes {
        let encode = || {
            let text = self.value().to_string().into_boxed_str();
            Bytes::from(text.into_boxed_bytes())
        };
        self.encoded.get_or_init(encode).clone()
    }

    /// How a pod counts for who owns it.
    pub(super) fn standing(&self) -> Standing {
        *self.standing.get_or_init(|| Standing::of(self.value()))
    }

    /// What a pod takes of its node, if it is not over.
    pub(super) fn load(&self) -> Option<&Load> {
        self.load.get_or_init(|| Load::of(self.value())).as_ref()
    }

    /// The same as JSON alone.
    fn at_rest(&self) -> Arc<Self> {
        Arc::new(Self {
            value: OnceLock::new(),
            encoded: self.encoded().into(),
            standing: OnceLock::new(),
            load: OnceLock::new(),
        })
    }
}

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

/// What somebody owns.
type Owned = BTreeMap<(&'static str, Key), Arc<Object>>;

/// All objects.
#[derive(Debug)]
pub(super) struct Store {
    version: u64,
    objects: BTreeMap<&'static str, BTreeMap<Key, Arc<Object>>>,
    /// Where an object of a UID is.
    uids: BTreeMap<String, (&'static str, Key)>,
    /// What is owned, by the owner's UID.
    owned: BTreeMap<String, Owned>,
    /// Pods that no node has.
    unbound: BTreeSet<Key>,
    /// Pods by node.
    bound: BTreeMap<String, BTreeSet<Key>>,
    /// Pods by namespace and by each of their labels.
    labelled: BTreeMap<(String, String, String), BTreeSet<Key>>,
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
            uids: BTreeMap::new(),
            owned: BTreeMap::new(),
            unbound: BTreeSet::new(),
            bound: BTreeMap::new(),
            labelled: BTreeMap::new(),
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
        self.objects.get(kind.plural)?.get(key)
    }

    /// What controllers read: the value at a name, or nothing.
    pub(super) fn value(&self, plural: &str, key: &Key) -> Option<&Value> {
        self.objects
            .get(plural)?
            .get(key)
            .map(|object| object.value())
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
            .flat_map(move |objects| objects.range(from.clone()..))
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
        self.uids.contains_key(uid)
    }

    /// Where an object of a UID is.
    pub(super) fn place_of(&self, uid: &str) -> Option<(&'static str, Key)> {
        self.uids.get(uid).cloned()
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

    pub(super) fn pods_of<'a>(
        &'a self,
        node: &str,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let keys = self.bound.get(node).into_iter().flatten();
        let pods = self.objects.get("pods");
        keys.filter_map(move |key| pods?.get(key))
    }

    /// The pods of a namespace that have all of some labels, in the order of their names; none without
    /// any label.
    pub(super) fn pods_with<'a>(
        &'a self,
        namespace: &str,
        labels: &'a Map<String, Value>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let each = labels.iter().map(|(name, value)| {
            let at = label(namespace, name, value);
            at.and_then(|at| self.labelled.get(&at))
        });
        let least = each.min_by_key(|keys| keys.map_or(0, BTreeSet::len));
        let pods = self.objects.get("pods");
        let found = least.flatten().into_iter().flatten();
        let found = found.filter_map(move |key| pods?.get(key));
        found.filter(move |pod| {
            let own = &pod.value()["metadata"]["labels"];
            labels
                .iter()
                .all(|(name, value)| own.get(name) == Some(value))
        })
    }

    /// Puts an object where it is to be; gives it with its new version.
    pub(super) fn put(&mut self, kind: &'static Kind, key: &Key, mut value: Value) -> Change {
        self.version += 1;
        value["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Object::new(value);
        let kept = self.objects.entry(kind.plural).or_default();
        let before = kept.insert(key.clone(), Arc::clone(&object));
        if let Some(before) = &before {
            self.forget(kind, key, before.value());
        }
        self.index(kind, key, &object);
        self.tell(kind, key, before, object, false)
    }

    /// Takes an object away.
    pub(super) fn remove(&mut self, kind: &'static Kind, key: &Key) -> Option<Change> {
        let before = self.objects.get_mut(kind.plural)?.remove(key)?;
        self.version += 1;
        self.forget(kind, key, before.value());
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
                && let Some(kept) = kept.get_mut(&old.key)
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

    fn index(&mut self, kind: &'static Kind, key: &Key, object: &Arc<Object>) {
        let (at, value) = ((kind.plural, key.clone()), object.value());
        if let Some(uid) = value["metadata"]["uid"].as_str() {
            self.uids.insert(uid.to_owned(), at.clone());
        }
        for owner in owners(value) {
            self.owned
                .entry(owner.to_owned())
                .or_default()
                .insert(at.clone(), Arc::clone(object));
        }
        if kind.plural == "pods" {
            for at in labels(key, value) {
                self.labelled.entry(at).or_default().insert(key.clone());
            }
            match value["spec"]["nodeName"].as_str() {
                None | Some("") => drop(self.unbound.insert(key.clone())),
                Some(node) => {
                    self.bound
                        .entry(node.to_owned())
                        .or_default()
                        .insert(key.clone());
                }
            }
        }
    }

    fn forget(&mut self, kind: &'static Kind, key: &Key, value: &Value) {
        if let Some(uid) = value["metadata"]["uid"].as_str() {
            self.uids.remove(uid);
        }
        let at = (kind.plural, key.clone());
        for owner in owners(value) {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(&at);
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
        if kind.plural == "pods" {
            for at in labels(key, value) {
                if let Some(labelled) = self.labelled.get_mut(&at) {
                    labelled.remove(key);
                    if labelled.is_empty() {
                        self.labelled.remove(&at);
                    }
                }
            }
            self.unbound.remove(key);
            if let Some(bound) = value["spec"]["nodeName"]
                .as_str()
                .and_then(|node| self.bound.get_mut(node))
            {
                bound.remove(key);
            }
        }
    }
}

/// Where a pod is found by a label.
fn label(namespace: &str, name: &str, value: &Value) -> Option<(String, String, String)> {
    let value = value.as_str()?;
    Some((namespace.to_owned(), name.to_owned(), value.to_owned()))
}

fn labels(key: &Key, pod: &Value) -> impl Iterator<Item = (String, String, String)> {
    let labels = pod["metadata"]["labels"].as_object();
    let all = labels.into_iter().flatten();
    all.filter_map(|(name, value)| label(&key.namespace, name, value))
}

/// The UIDs of an object's owners.
pub(super) fn owners(value: &Value) -> impl Iterator<Item = &str> {
    let references = value["metadata"]["ownerReferences"].as_array();
    references
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
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
    fn what_rests_is_what_it_was() {
        let mut store = Store::default();
        let kind = Kind::named("events");
        let key = |number: usize| Key::new("a", &number.to_string());
        for number in 0..=FRESH {
            let event =
                json!({"metadata": {"name": number.to_string()}, "count": 1.5, "reason": "\"\n"});
            store.put(kind, &key(number), event);
        }
        let is_value = |object: &Object| object.value.get().is_some();
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
        assert!(store.labelled.is_empty());
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
