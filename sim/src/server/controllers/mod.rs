//! The controllers and the scheduler: each is a function that reconciles one object. After every
//! request they run until no work is left. The autoscaler asks kubelets, and so runs by the clock.

pub(super) mod autoscaler;
mod claims;
mod cronjob;
mod daemonset;
mod deployment;
mod job;
mod namespace;
mod node;
pub(super) mod pods;
mod replicaset;
mod scheduler;
mod slices;
mod statefulset;

pub(super) use scheduler::bind;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use self::pods::is_going;
use super::checks::quota;
use super::kinds::Kind;
use crate::base::chance;
use crate::base::fields::Fields;
use crate::server::storage::state::{LETTERS, State};
use crate::server::storage::store::{Change, Object, Store, owners};
use crate::world::Key;

/// A piece of work: what must be reconciled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Work {
    Namespace(String),
    Node(String),
    /// The pods of a node that is gone.
    Orphans(String),
    /// An object whose owners may be gone.
    Owned(&'static str, Key),
    /// One of [`WORKLOADS`], by its index.
    Workload(usize, Key),
    /// A claim of a volume, before the scheduler places the pods that use it.
    Claim(Key),
    /// A snapshot of a volume.
    Snapshot(Key),
    /// What a quota counts.
    Quota(Key),
    /// The endpoints of a Service.
    Endpoints(Key),
    /// The endpoints of a Service that has [`MANY`], once their changes have been batched.
    ManyEndpoints(Key),
    /// The pods of a replica set that has [`MANY`], once their changes have been batched.
    ManyPods(&'static str, Key),
    Schedule,
}

/// A Service or a replica set with this many pods batches their changes for this long, since each run reads
/// all pods; so it replaces a lost pod a second later. A real replica set controller does not batch, a slice
/// controller only if configured (kube-controller-manager, `--endpointslice-updates-batch-period`).
const MANY: i64 = 8;
const BATCH: Duration = Duration::from_secs(1);

/// Reconciles an existing object.
type Controller = fn(&mut State, &Key, &Value);

/// The kinds for which controllers create pods, in the order in which they are reconciled.
const WORKLOADS: [(&str, Controller); 7] = [
    ("deployments", deployment::look),
    ("replicasets", replicaset::look),
    ("replicationcontrollers", replicaset::look_at_controller),
    ("statefulsets", statefulset::look),
    ("daemonsets", daemonset::look),
    ("cronjobs", cronjob::look),
    ("jobs", job::look),
];

/// The kinds that count their pods until they are gone.
const COUNTED: [&str; 2] = ["replicasets", "replicationcontrollers"];

impl Work {
    /// The work for an object of a namespace when it changes, or when an object that it owns does.
    fn for_object(plural: &str, key: &Key) -> Option<Self> {
        if plural == "services" {
            return Some(Self::Endpoints(key.clone()));
        }
        let at = WORKLOADS.iter().position(|(known, _)| *known == plural)?;
        Some(Self::Workload(at, key.clone()))
    }

    fn workload(plural: &str, key: &Key) -> Self {
        Self::for_object(plural, key).expect("it is one of the workloads")
    }
}

/// How many pieces of work may run in a row before the server gives up: a guard against endless loops.
const TURNS: usize = 100_000;

/// Runs all controllers until no work is left.
pub(super) fn settle(state: &mut State) {
    state.made = 0;
    for _ in 0..TURNS {
        let Some(work) = state.work.pop_first() else {
            return;
        };
        match work {
            Work::Namespace(name) => namespace::look(state, &name),
            Work::Node(name) => node::look(state, &name),
            Work::Orphans(node) => node::orphans(state, &node),
            Work::Owned(plural, key) => collect(state, plural, &key),
            Work::Workload(at, key) => {
                let (plural, look) = WORKLOADS[at];
                let live = state.store.get(plural, &key).cloned();
                if let Some(one) = live.filter(|one| !is_going(one) || COUNTED.contains(&plural)) {
                    look(state, &key, &one);
                }
            }
            Work::Claim(key) => claims::look(state, &key),
            Work::Snapshot(key) => claims::take(state, &key),
            Work::Quota(key) => quota::count(state, &key),
            Work::Endpoints(key) => slices::look(state, &key),
            Work::ManyEndpoints(key) => slices::tell(state, &key),
            Work::ManyPods(plural, key) => replicaset::count_many(state, plural, &key),
            Work::Schedule => scheduler::look(state),
        }
    }
    tracing::warn!(next = ?state.work.first(), "the controllers come to no end");
    state.work.clear();
}

/// Returns the work that follows from a change.
pub(super) fn affected(store: &Store, change: &Change) -> BTreeSet<Work> {
    let mut work = BTreeSet::new();
    let (object, key) = (&*change.object, &change.key);
    let before = change.before.as_deref().unwrap_or(&Value::Null);
    let other = |path: &str| before.pointer(path) != object.pointer(path);
    if change.deleted {
        let owned = store.owned_by(object["metadata"]["uid"].text());
        work.extend(owned.map(|(plural, key, _)| Work::Owned(plural, key.clone())));
    } else if owners(object).any(|owner| !store.is_there(&key.namespace, owner)) {
        work.insert(Work::Owned(change.plural, key.clone()));
    }
    for owner in owners(object) {
        let named = Key::new(&key.namespace, owner["name"].text());
        work.extend(Kind::for_object(owner).and_then(|kind| Work::for_object(kind.plural, &named)));
    }
    work.extend(Work::for_object(change.plural, key));
    match change.plural {
        "namespaces" => drop(work.insert(Work::Namespace(key.name.clone()))),
        "nodes" => {
            work.insert(Work::Node(key.name.clone()));
            if change.deleted {
                work.insert(Work::Orphans(key.name.clone()));
            }
            if other("/spec") || other("/metadata/labels") || other("/status/allocatable") {
                work.insert(Work::Schedule);
                let sets = store.all("daemonsets", "");
                work.extend(sets.map(|(key, _)| Work::workload("daemonsets", key)));
            }
        }
        "leases" if key.namespace == "kube-node-lease" => {
            // Every renewal is recorded; only one that ends a silence queues work
            let node = store.global("nodes", &key.name);
            if node.is_some_and(|node| node::is_silent(node)) || before.is_null() {
                work.insert(Work::Node(key.name.clone()));
            }
        }
        "persistentvolumeclaims" => {
            work.insert(Work::Claim(key.clone()));
            let snapshots = store.all("volumesnapshots", &key.namespace);
            work.extend(snapshots.map(|(key, _)| Work::Snapshot(key.clone())));
        }
        "volumesnapshots" => {
            work.insert(Work::Snapshot(key.clone()));
            let claims = store.all("persistentvolumeclaims", &key.namespace);
            work.extend(claims.map(|(key, _)| Work::Claim(key.clone())));
        }
        "resourcequotas" => drop(work.insert(Work::Quota(key.clone()))),
        "pods" => {
            if before.is_null() {
                let used = claims::used(object).map(|name| Key::new(&key.namespace, name));
                work.extend(used.map(Work::Claim));
            }
            if change.deleted || slices::differ(before, object) {
                let services = store.all("services", &key.namespace);
                // The Services that select the pod as it is, or as it was
                let serving = services.filter(|(_, service)| {
                    slices::selects(service, object) || slices::selects(service, before)
                });
                work.extend(serving.map(|(key, _)| Work::Endpoints(key.clone())));
            }
            let moved = other("/spec/nodeName") || other("/metadata/labels");
            let ends = other("/status/phase") && pods::is_over(object);
            if before.is_null() || change.deleted || moved || ends {
                work.insert(Work::Schedule);
                let quotas = store.all("resourcequotas", &key.namespace);
                work.extend(quotas.map(|(key, _)| Work::Quota(key.clone())));
            }
            if let Some(node) = object["spec"]["nodeName"].as_str()
                && other("/spec/nodeName")
                && (store.global("nodes", node)).is_none_or(|node| node::is_troubled(node))
            {
                work.insert(Work::Node(node.to_owned()));
                work.insert(Work::Orphans(node.to_owned()));
            }
        }
        _ => {}
    }
    let namespace = store.global("namespaces", &key.namespace);
    if namespace.is_some_and(|object| is_going(object)) {
        work.insert(Work::Namespace(key.namespace.clone()));
    }
    work
}

/// Whether a node has reported its conditions.
pub(super) fn is_heard(change: &Change) -> bool {
    let now = &change.object;
    let differ = |before: &Object| before["status"]["conditions"] != now["status"]["conditions"];
    !change.deleted && !node::is_silent(now) && change.before.as_ref().is_some_and(differ)
}

/// The garbage collector: deletes an object that has owners if all of them are gone.
fn collect(state: &mut State, plural: &'static str, key: &Key) {
    let Some(value) = state.store.get(plural, key) else {
        return;
    };
    let is_there = |owner| state.store.is_there(&key.namespace, owner);
    if owners(value).next().is_some() && !owners(value).any(is_there) {
        state.discard(plural, key);
    }
}

/// The owner reference that a controller sets on the objects that it creates.
fn owned_by(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// Returns the objects of one kind that an owner has, in the order of their names.
fn made(store: &Store, plural: &str, owner: &Value) -> Vec<(Key, Object)> {
    let each = store.owned_by(owner["metadata"]["uid"].text());
    each.filter(|(owned, ..)| *owned == plural)
        .map(|(_, key, object)| (key.clone(), Arc::clone(object)))
        .collect()
}

/// Removes counts of zero and nulls from a status, except the fields in `always`.
fn without_zeros(mut status: Value, always: &[&str]) -> Value {
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|name, value| {
            (*value != 0 && !value.is_null()) || always.contains(&name.as_str())
        });
    }
    status
}

/// A hash of a template in ten letters, like those of `pod-template-hash`.
fn hash_of(template: &Value) -> String {
    let mut hash = chance::hash(&template.to_string());
    let count = u64::try_from(LETTERS.len()).unwrap_or(1);
    let mut next = || {
        let at = usize::try_from(hash % count).unwrap_or(0);
        hash /= count;
        char::from(LETTERS[at])
    };
    (0..10).map(|_| next()).collect()
}

/// How many of the objects satisfy `is`.
fn count(objects: &[(Key, Object)], is: impl Fn(&Value) -> bool) -> usize {
    objects.iter().filter(|(_, object)| is(object)).count()
}

fn counted(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
