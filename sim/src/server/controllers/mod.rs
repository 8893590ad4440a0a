//! The controllers and the scheduler: each a function that looks at one thing and does what is next
//! for it. After every request they run until nothing is left to look at.

mod daemonset;
mod deployment;
mod job;
mod namespace;
mod node;
mod pods;
mod replicaset;
mod scheduler;
mod slices;
mod statefulset;

pub(super) use scheduler::bind;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::kinds::Kind;
use super::state::State;
use super::store::{Change, Object, Store, owners};
use crate::world::Key;

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Work {
    Namespace(String),
    Node(String),
    /// The pods of a node that is gone.
    Orphans(String),
    /// Something whose owners may be gone.
    Owned(&'static str, Key),
    Deployment(Key),
    ReplicaSet(Key),
    StatefulSet(Key),
    DaemonSet(Key),
    Job(Key),
    /// The endpoints of a Service.
    Endpoints(Key),
    /// The same of one that has many, a while after the first of some changes.
    ManyEndpoints(Key),
    Schedule,
}

/// How often something may be looked at in a row before the server gives up: a bound for mistakes.
const TURNS: usize = 100_000;

/// Runs all controllers until nothing is left for them.
pub(super) fn settle(state: &mut State) {
    for _ in 0..TURNS {
        let Some(work) = state.work.pop_first() else {
            return;
        };
        match work {
            Work::Namespace(name) => namespace::look(state, &name),
            Work::Node(name) => node::look(state, &name),
            Work::Orphans(node) => node::orphans(state, &node),
            Work::Owned(plural, key) => collect(state, plural, &key),
            Work::Deployment(key) => deployment::look(state, &key),
            Work::ReplicaSet(key) => replicaset::look(state, &key),
            Work::StatefulSet(key) => statefulset::look(state, &key),
            Work::DaemonSet(key) => daemonset::look(state, &key),
            Work::Job(key) => job::look(state, &key),
            Work::Endpoints(key) => slices::look(state, &key),
            Work::ManyEndpoints(key) => slices::tell(state, &key),
            Work::Schedule => scheduler::look(state),
        }
    }
    tracing::warn!(next = ?state.work.first(), "the controllers come to no end");
    state.work.clear();
}

/// Who has to look at something because of a change.
pub(super) fn affected(store: &Store, change: &Change) -> BTreeSet<Work> {
    let mut work = BTreeSet::new();
    let (object, key) = (&*change.object, &change.key);
    let before = change.before.as_deref().unwrap_or(&Value::Null);
    let other = |path: &str| before.pointer(path) != object.pointer(path);
    if change.deleted {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let owned = store.owned_by(uid);
        work.extend(owned.map(|(plural, key, _)| Work::Owned(plural, key.clone())));
    } else if owners(object).any(|owner| !store.is_there(&key.namespace, owner)) {
        work.insert(Work::Owned(change.plural, key.clone()));
    }
    for owner in owners(object) {
        let named = Key::new(&key.namespace, owner["name"].as_str().unwrap_or_default());
        match owner["kind"].as_str().unwrap_or_default() {
            "Deployment" => work.insert(Work::Deployment(named)),
            "ReplicaSet" => work.insert(Work::ReplicaSet(named)),
            "StatefulSet" => work.insert(Work::StatefulSet(named)),
            "DaemonSet" => work.insert(Work::DaemonSet(named)),
            "Job" => work.insert(Work::Job(named)),
            "Service" => work.insert(Work::Endpoints(named)),
            _ => continue,
        };
    }
    match change.plural {
        "namespaces" => drop(work.insert(Work::Namespace(key.name.clone()))),
        "nodes" => {
            work.insert(Work::Node(key.name.clone()));
            if change.deleted {
                work.insert(Work::Orphans(key.name.clone()));
            }
            if other("/spec") || other("/metadata/labels") || other("/status/allocatable") {
                work.insert(Work::Schedule);
                work.extend(all(store, "daemonsets", "").map(Work::DaemonSet));
            }
        }
        "leases" if key.namespace == "kube-node-lease" => {
            // Every renewal is noted; only one that ends a silence is looked at
            let ready = store.get("nodes", &Key::new("", &key.name));
            if ready.is_some_and(|node| node::is_silent(node)) || before.is_null() {
                work.insert(Work::Node(key.name.clone()));
            }
        }
        "deployments" => drop(work.insert(Work::Deployment(key.clone()))),
        "replicasets" => drop(work.insert(Work::ReplicaSet(key.clone()))),
        "statefulsets" => drop(work.insert(Work::StatefulSet(key.clone()))),
        "daemonsets" => drop(work.insert(Work::DaemonSet(key.clone()))),
        "jobs" => drop(work.insert(Work::Job(key.clone()))),
        "services" => drop(work.insert(Work::Endpoints(key.clone()))),
        "pods" => {
            if change.deleted || slices::differ(before, object) {
                work.extend(serving(store, key, [object, before]));
            }
            let moved = other("/spec/nodeName") || other("/metadata/labels");
            let is_new = before.is_null();
            if is_new
                || change.deleted
                || moved
                || (other("/status/phase") && pods::is_over(object))
            {
                work.insert(Work::Schedule);
            }
            if let Some(node) = object["spec"]["nodeName"].as_str()
                && other("/spec/nodeName")
                && store
                    .get("nodes", &Key::new("", node))
                    .is_none_or(|node| node::is_troubled(node))
            {
                work.insert(Work::Node(node.to_owned()));
                work.insert(Work::Orphans(node.to_owned()));
            }
        }
        _ => {}
    }
    let namespace = store.get("namespaces", &Key::new("", &key.namespace));
    if namespace.is_some_and(|own| own["metadata"]["deletionTimestamp"].is_string()) {
        work.insert(Work::Namespace(key.namespace.clone()));
    }
    work
}

/// Whether a node has told something of itself.
pub(super) fn is_heard(change: &Change) -> bool {
    let now = &change.object;
    let differ = |before: &Object| before["status"]["conditions"] != now["status"]["conditions"];
    !change.deleted && !node::is_silent(now) && change.before.as_ref().is_some_and(differ)
}

fn all<'a>(
    store: &'a Store,
    plural: &str,
    namespace: &'a str,
) -> impl Iterator<Item = Key> + use<'a> {
    store.all(plural, namespace).map(|(key, _)| key.clone())
}

/// The Services that select a pod as it is or as it was.
fn serving<'a>(
    store: &'a Store,
    key: &'a Key,
    pods: [&'a Value; 2],
) -> impl Iterator<Item = Work> + use<'a> {
    let each = pods.into_iter().flat_map(move |pod| {
        let all = store.all("services", &key.namespace);
        all.filter(move |(_, service)| slices::selects(service, pod))
    });
    each.map(|(key, _)| Work::Endpoints(key.clone()))
}

/// The garbage collector: what had owners and has none any more goes.
fn collect(state: &mut State, plural: &'static str, key: &Key) {
    let Some(value) = state.store.get(plural, key) else {
        return;
    };
    let mut all = owners(value).peekable();
    let alone =
        all.peek().is_some() && all.all(|owner| !state.store.is_there(&key.namespace, owner));
    drop(all);
    if alone {
        state.discard(plural, key);
    }
}

/// The reference by which a controller owns what it makes.
fn owned_by(kind: &Kind, owner: &Value) -> Value {
    serde_json::json!([{
        "apiVersion": kind.api_version(), "kind": kind.name, "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// What a controller has made of a kind, in the order of their names.
fn made(store: &Store, plural: &str, owner: &Value) -> Vec<(Key, Object)> {
    let uid = owner["metadata"]["uid"].as_str().unwrap_or_default();
    let all = store.owned_by(uid);
    all.filter(|(owned, ..)| *owned == plural)
        .map(|(_, key, object)| (key.clone(), Arc::clone(object)))
        .collect()
}

/// Ten letters that differ where templates do, as `pod-template-hash` has them.
fn hash_of(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = template.to_string();
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let count = u64::try_from(LETTERS.len()).unwrap_or(1);
    let mut next = || {
        let at = usize::try_from(hash % count).unwrap_or(0);
        hash /= count;
        char::from(LETTERS[at])
    };
    (0..10).map(|_| next()).collect()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}
