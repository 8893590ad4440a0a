//! One watch of the pods of all nodes.
//!
//! A watch never ends: after an error it waits with a growing pause, and a new list replaces the
//! known objects.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use ordered_watch as watch;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::nodes::cluster::Cluster;
use crate::pods::course::life;
use crate::pods::course::run::PodRun;
use crate::world::Key;

/// Starts the watch.
pub(crate) fn begin(cluster: &Arc<Cluster>) {
    let shared = Arc::clone(cluster);
    cluster.spawn(async move {
        let mut pods = Pods {
            cluster: Arc::clone(&shared),
            tasks: HashMap::new(),
        };
        let bound = watcher::Config::default().fields("spec.nodeName!=");
        let api = Api::all(shared.client.clone());
        follow_some(api, bound.streaming_lists(), |change| pods.apply(change)).await;
    });
}

/// A change of an object.
#[derive(Debug)]
pub(crate) enum Change<K> {
    Is(Key, Box<K>),
    Gone(Key),
}

/// Passes every change of one kind of object to `take`, for ever.
pub(crate) async fn follow<K>(api: Api<K>, take: impl FnMut(Change<K>))
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    follow_some(api, watcher::Config::default(), take).await;
}

async fn follow_some<K>(api: Api<K>, config: watcher::Config, mut take: impl FnMut(Change<K>))
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut known = Known::default();
    let mut stream = watcher::watcher(api, config).default_backoff().boxed();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => known.tell(event, &mut take),
            Err(error) => tracing::debug!(%error, "watch is restarted"),
        }
    }
}

/// The names of the known objects, and of the objects that a new list has so far.
#[derive(Default)]
struct Known {
    all: BTreeSet<Key>,
    listed: BTreeSet<Key>,
}

impl Known {
    /// Passes on what an event changes; an object that is not in a new list is gone.
    fn tell<K: Resource>(&mut self, event: Event<K>, mut take: impl FnMut(Change<K>)) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let key = key(&object);
                self.all.insert(key.clone());
                self.listed.insert(key.clone());
                take(Change::Is(key, Box::new(object)));
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let before = std::mem::replace(&mut self.all, listed);
                for key in before.difference(&self.all) {
                    take(Change::Gone(key.clone()));
                }
            }
            Event::Apply(object) => {
                let key = key(&object);
                self.all.insert(key.clone());
                take(Change::Is(key, Box::new(object)));
            }
            Event::Delete(object) => {
                let key = key(&object);
                self.all.remove(&key);
                take(Change::Gone(key));
            }
        }
    }
}

fn key(object: &impl Resource) -> Key {
    let meta = object.meta();
    Key::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

/// The pods of the simulated nodes, each with its task.
struct Pods {
    cluster: Arc<Cluster>,
    tasks: HashMap<Key, Task>,
}

struct Task {
    uid: String,
    pod: watch::Sender<Arc<Pod>>,
    gone: CancellationToken,
}

impl Pods {
    fn apply(&mut self, change: Change<Pod>) {
        match change {
            Change::Is(key, mut pod) => {
                // Nothing here reads `managedFields`, the largest part of a pod
                pod.metadata.managed_fields = None;
                // A clone's lists allocate only what they hold; lists that were parsed have room
                // for four items and more
                self.is(key, Arc::new(Pod::clone(&pod)));
            }
            Change::Gone(key) => self.forget(&key),
        }
    }

    fn is(&mut self, key: Key, pod: Arc<Pod>) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if let Some(task) = self.tasks.get(&key) {
            if task.uid == uid {
                task.pod.send_replace(pod);
                return;
            }
            self.forget(&key);
        }
        let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        let Some(node) = bound.and_then(|name| self.cluster.nodes.get(name)) else {
            return;
        };
        let run = PodRun::new(key.clone(), uid.clone(), Arc::clone(node), Arc::clone(&pod));
        let run = Arc::new(run);
        let mut runs = self.cluster.runs(node);
        runs.insert(key.clone(), Arc::clone(&run));
        drop(runs);
        let (pod, seen) = watch::channel(pod);
        let gone = CancellationToken::new();
        let life = life::live(Arc::clone(&self.cluster), run, seen, gone.clone());
        self.cluster.spawn(life);
        self.tasks.insert(key, Task { uid, pod, gone });
    }

    fn forget(&mut self, key: &Key) {
        if let Some(task) = self.tasks.remove(key) {
            task.gone.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_list_replaces_what_was_known() {
        let pod = |name: &str| {
            let mut pod = Pod::default();
            pod.metadata.name = Some(name.to_owned());
            pod
        };
        let (mut known, mut told) = (Known::default(), Vec::new());
        for event in vec![
            Event::Init,
            Event::InitApply(pod("old")),
            Event::InitApply(pod("both")),
            Event::InitDone,
            Event::Apply(pod("new")),
            Event::Apply(pod("late")),
            Event::Delete(pod("late")),
            Event::Init,
            Event::InitApply(pod("both")),
            Event::InitDone,
        ] {
            known.tell(event, |change| {
                told.push(match change {
                    Change::Is(key, _) => format!("+{}", key.name),
                    Change::Gone(key) => format!("-{}", key.name),
                });
            });
        }
        let expected = [
            "+old", "+both", "+new", "+late", "-late", "+both", "-new", "-old",
        ];
        assert_eq!(told, expected);
    }
}
