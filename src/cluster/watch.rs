//! One shared watch over the pods of a run.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use kube::api::{Api as KubeApi, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value as Json;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::kinds::PODS;
use super::labels;
use crate::transport::{Api, Pace, pause, words};

/// Objects by `namespace/name`.
pub type Objects = BTreeMap<String, Json>;

/// After so many seconds the server ends a watch and it is begun anew; one that says nothing for
/// longer is taken for dead.
const WATCH_SECONDS: u32 = 60;

/// Watches the pods of a run in all namespaces until `cancel`; the task is `tracker`'s.
///
/// Whatever breaks is begun again: a lost watch, 410, 5xx, a server that restarts, or one that
/// accepts a list and says nothing. What the receiver shows meanwhile is the last known state;
/// a list replaces it as a whole.
pub fn watch_pods(
    api: &Api,
    run: &str,
    tracker: &TaskTracker,
    cancel: CancellationToken,
) -> watch::Receiver<Arc<Objects>> {
    let (send, receive) = watch::channel(Arc::new(Objects::new()));
    let api = api.clone();
    let config = watcher::Config::default()
        .labels(&labels::selector(Some(run)))
        .timeout(WATCH_SECONDS);
    tracker.spawn(async move {
        let watching = keep_watching(&api, config, &send);
        // Ends when nobody looks any more, too
        tokio::select! {
            () = watching => {}
            () = cancel.cancelled() => {}
            () = send.closed() => {}
        }
    });
    receive
}

async fn keep_watching(
    api: &Api,
    config: watcher::Config,
    send: &watch::Sender<Arc<Objects>>,
) {
    let gvk = GroupVersionKind::gvk(PODS.group, PODS.version, PODS.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, PODS.plural);
    let durations = api.durations();
    let listing = durations.api_answer + durations.api_body;
    let mut pace = Pace::new(durations.transport_pause);
    loop {
        let objects = KubeApi::<DynamicObject>::all_with(api.client().clone(), &resource);
        let mut events = pin!(watcher(objects, config.clone()));
        let mut listed = Some(Objects::new());
        loop {
            // A list must come to its end; a watch may well say nothing
            let event = match &listed {
                Some(_) => timeout(listing, events.next()).await,
                None => Ok(events.next().await),
            };
            match event {
                Err(_) => {
                    tracing::debug!("the list of pods did not end within {listing:?}");
                    break;
                }
                // The stream of a watcher has no end
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    tracing::debug!("watching pods: {}", words(&error));
                    if begins_anew(&error) {
                        break;
                    }
                    pause(pace.step()).await;
                }
                Ok(Some(Ok(event))) => {
                    pace = Pace::new(durations.transport_pause);
                    take(event, &mut listed, send);
                }
            }
        }
        pause(pace.step()).await;
    }
}

/// Whether the watcher would go on asking for what the server no longer has (410 as an answer,
/// not as an event), or has nothing to go on from.
fn begins_anew(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 410,
        watcher::Error::WatchError(status) => status.code == 410,
        watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion => true,
        watcher::Error::WatchStartFailed(_) | watcher::Error::WatchFailed(_) => false,
    }
}

fn take(
    event: Event<DynamicObject>,
    listed: &mut Option<Objects>,
    send: &watch::Sender<Arc<Objects>>,
) {
    match event {
        Event::Init => *listed = Some(Objects::new()),
        Event::InitApply(object) => {
            if let (Some(listed), Some((key, json))) = (listed.as_mut(), keyed(object)) {
                listed.insert(key, json);
            }
        }
        Event::InitDone => {
            let all = Arc::new(listed.take().unwrap_or_default());
            send.send_if_modified(|known| {
                let news = *known != all;
                *known = all;
                news
            });
        }
        Event::Apply(object) => {
            if let Some((key, json)) = keyed(object) {
                send.send_modify(|known| {
                    Arc::make_mut(known).insert(key, json);
                });
            }
        }
        Event::Delete(object) => {
            if let Some((key, _)) = keyed(object) {
                send.send_modify(|known| {
                    Arc::make_mut(known).remove(&key);
                });
            }
        }
    }
}

fn keyed(mut object: DynamicObject) -> Option<(String, Json)> {
    object.metadata.managed_fields = None;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let key = format!("{namespace}/{}", object.metadata.name.as_deref()?);
    Some((key, serde_json::to_value(object).ok()?))
}
