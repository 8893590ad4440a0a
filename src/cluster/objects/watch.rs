//! One shared watch over the pods of a run.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api as KubeApi, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use ordered_watch as watch;
use serde_json::Value as Json;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform_core::method::{ErrorKind, ObservationError, Result};
use winconform_core::text::printable;

use super::kinds::PODS;
use super::labels;
use super::wait::{Condition, wait_until};
use crate::transport::{Api, Pace, error_text, pause};

/// Objects by `namespace/name`.
pub type Objects = BTreeMap<String, Json>;

/// The known state of the watched objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// The objects as last observed.
    pub objects: Arc<Objects>,
    /// Those that were deleted, as they were in the end, but for what controllers make under ever new names; a
    /// list shows nothing of what was deleted before.
    pub gone: Arc<Objects>,
    /// Why the server refuses the watch, while it does.
    pub refused: Option<ObservationError>,
}

/// Watches the pods of a run in all namespaces until `cancel`, in a task of `tracker`.
///
/// Begins again after every failure: a lost watch, 410, 5xx, a server that restarts, that accepts a list and
/// stays silent, or that refuses. Meanwhile the receiver shows the last known state; a list replaces it as a
/// whole. A refusal counts only if it comes twice in a row: authorizers behind a network refuse when they are
/// not reached.
pub fn watch_pods(
    api: &Api,
    run: &str,
    tracker: &TaskTracker,
    cancel: CancellationToken,
) -> watch::Receiver<Watched> {
    let (send, receive) = watch::channel(Watched::default());
    let api = api.clone();
    let config = watcher::Config::default()
        .labels(&labels::selector(Some(run)))
        .timeout(u32::try_from(api.durations().watch.as_secs()).unwrap_or(u32::MAX));
    tracker.spawn(async move {
        let watching = keep_watching(&api, config, &send);
        // Ends when no receiver is left, too
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = send.closed() => {}
            () = watching => {}
        }
    });
    receive
}

/// Waits until the watched objects meet `condition`, or the server refuses the watch.
pub async fn wait_for_objects<T>(
    watched: &mut watch::Receiver<Watched>,
    limit: Duration,
    what: &str,
    mut condition: impl FnMut(&Objects) -> Condition<T>,
) -> Result<T> {
    wait_for_watched(watched, limit, what, |watched| condition(&watched.objects)).await
}

/// Like [`wait_for_objects`], with those that were deleted.
pub async fn wait_for_watched<T>(
    watched: &mut watch::Receiver<Watched>,
    limit: Duration,
    what: &str,
    mut condition: impl FnMut(&Watched) -> Condition<T>,
) -> Result<T> {
    let check = |watched: &Watched| match &watched.refused {
        Some(error) => Condition::Never(error.clone()),
        None => condition(watched),
    };
    wait_until(watched, limit, what, check).await
}

async fn keep_watching(api: &Api, config: watcher::Config, send: &watch::Sender<Watched>) {
    let gvk = GroupVersionKind::gvk(PODS.group, PODS.version, PODS.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, PODS.plural);
    let durations = api.durations();
    let listing = durations.api_answer + durations.api_body;
    let mut pace = Pace::new(durations.transport_pause);
    let mut forbidden = 0_u32;
    loop {
        let objects = KubeApi::<DynamicObject>::all_with(api.client().clone(), &resource);
        let mut events = pin!(watcher(objects, config.clone()));
        let mut listed = Some(Objects::new());
        let mut begun = Instant::now();
        loop {
            // A list must end in time, but a watch may stay silent
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
                    tracing::debug!("watching pods: {}", error_text(&error));
                    if let Some(error) = refusal(&error) {
                        // A watch that stayed open for a while was allowed, though no event showed it
                        let at_once = begun.elapsed() <= listing;
                        forbidden = if at_once { forbidden + 1 } else { 1 };
                        if forbidden > 1 {
                            send.send_if_modified(|known| known.refused.replace(error).is_none());
                        }
                    }
                    if begins_anew(&error) {
                        break;
                    }
                    pause(pace.step()).await;
                }
                Ok(Some(Ok(event))) => {
                    match event {
                        Event::Apply(_) | Event::Delete(_) => forbidden = 0,
                        Event::InitDone => begun = Instant::now(),
                        Event::Init | Event::InitApply(_) => {}
                    }
                    // Pauses must grow between lists that lead to no watch
                    if forbidden == 0 {
                        pace = Pace::new(durations.transport_pause);
                    }
                    note(event, &mut listed, send);
                }
            }
        }
        pause(pace.step()).await;
    }
}

/// The error, if the server refuses the list or the watch.
fn refusal(error: &watcher::Error) -> Option<ObservationError> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status)
            if status.code == 403 =>
        {
            let said = printable(&status.message);
            let detail = format!("watch the run's pods: {said}");
            Some(ErrorKind::Forbidden.error(detail))
        }
        _ => None,
    }
}

/// Whether to begin with a new watcher: this one would repeat a request that the server answers with 410 (as
/// an answer, not as an event) or 403, or it has no version to go on from. A list shows whether it is allowed
/// again, which an open watch does not.
fn begins_anew(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => matches!(status.code, 403 | 410),
        watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion => true,
        watcher::Error::WatchStartFailed(_) | watcher::Error::WatchFailed(_) => false,
    }
}

fn note(event: Event<DynamicObject>, listed: &mut Option<Objects>, send: &watch::Sender<Watched>) {
    match event {
        Event::Init => *listed = Some(Objects::new()),
        Event::InitApply(object) => {
            if let (Some(listed), Some((key, json))) = (listed.as_mut(), keyed(object)) {
                listed.insert(key, json);
            }
        }
        Event::InitDone => {
            let objects = Arc::new(listed.take().unwrap_or_default());
            send.send_if_modified(|known| {
                let news = known.objects != objects || known.refused.is_some();
                known.objects = objects;
                known.refused = None;
                news
            });
        }
        Event::Apply(object) => {
            if let Some((key, json)) = keyed(object) {
                change(send, |known| {
                    Arc::make_mut(&mut known.objects).insert(key, json);
                });
            }
        }
        Event::Delete(object) => {
            if let Some((key, json)) = keyed(object) {
                change(send, |known| {
                    Arc::make_mut(&mut known.objects).remove(&key);
                    if json["metadata"]["ownerReferences"].is_null() {
                        Arc::make_mut(&mut known.gone).insert(key, json);
                    }
                });
            }
        }
    }
}

fn change(send: &watch::Sender<Watched>, edit: impl FnOnce(&mut Watched)) {
    send.send_modify(|known| {
        known.refused = None;
        edit(known);
    });
}

fn keyed(mut object: DynamicObject) -> Option<(String, Json)> {
    object.metadata.managed_fields = None;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let key = format!("{namespace}/{}", object.metadata.name.as_deref()?);
    Some((key, serde_json::to_value(object).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Env;
    use std::convert::Infallible;
    use std::sync::Mutex;

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use kube::client::Body;
    use serde_json::json;
    use winconform_core::config::{Durations, Limits};

    /// What the fake server does with one request.
    enum Answer {
        Whole(u16, String),
        /// A list whose body breaks off after its beginning.
        Begun,
        /// A watch that stays open after these events.
        Watch(Vec<Json>),
    }

    fn pod(name: &str, version: u32) -> Json {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a",
            "resourceVersion": version.to_string(), "managedFields": []}})
    }

    fn list(version: u32, pods: &[Json]) -> Answer {
        let metadata = json!({"resourceVersion": version.to_string()});
        let list =
            json!({"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": pods});
        Answer::Whole(200, list.to_string())
    }

    fn status(code: u16) -> Json {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "x",
            "reason": "Expired", "code": code})
    }

    fn api(answers: Vec<Answer>, log: Arc<Mutex<Vec<String>>>) -> Api {
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let service = tower::service_fn(move |request: Request<Body>| {
            log.lock()
                .expect("not poisoned")
                .push(request.uri().to_string());
            let answer = answers.lock().expect("not poisoned").next();
            async move {
                let (status, text, ends) = match answer {
                    Some(Answer::Whole(status, text)) => (status, text, true),
                    Some(Answer::Begun) => (200, "{".to_owned(), false),
                    Some(Answer::Watch(events)) => {
                        let lines: Vec<_> = events.iter().map(ToString::to_string).collect();
                        (200, lines.join("\n") + "\n", false)
                    }
                    None => std::future::pending().await,
                };
                let begin =
                    futures::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(text)))]);
                let body = if ends {
                    begin.boxed()
                } else {
                    begin.chain(futures::stream::pending()).boxed()
                };
                let response = Response::builder().status(status);
                Ok::<_, Infallible>(response.body(StreamBody::new(body)).expect("a response"))
            }
        });
        let client = kube::Client::new(service, "default");
        let (durations, limits) = (Durations::default(), Limits::default());
        Api::new(Env::system(), client, durations, limits)
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_breaks_is_begun_again() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let event = |kind: &str, object: Json| json!({"type": kind, "object": object});
        let answers = vec![
            Answer::Begun,
            Answer::Whole(502, "<html>".to_owned()),
            Answer::Whole(500, status(500).to_string()),
            list(5, &[pod("one", 4)]),
            Answer::Whole(410, status(410).to_string()),
            list(7, &[pod("two", 6)]),
            Answer::Watch(vec![
                event("ADDED", pod("three", 8)),
                event("ERROR", status(410)),
            ]),
            list(9, &[pod("two", 6), pod("three", 8)]),
            Answer::Watch(vec![
                event("DELETED", pod("two", 10)),
                event("ADDED", pod("four", 11)),
            ]),
        ];
        let api = api(answers, Arc::clone(&log));
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let mut pods = watch_pods(&api, "r1", &tracker, cancel.clone());
        // The receiver may miss the states in between
        for expected in [vec!["a/one"], vec!["a/four", "a/three"]] {
            let there = pods.wait_for(|pods| pods.objects.keys().eq(&expected));
            let found = timeout(Duration::from_mins(10), there).await;
            let found = found.unwrap_or_else(|_| panic!("no {expected:?} after {log:?}"));
            let found = found.expect("watching").clone();
            assert!(found.objects[expected[0]]["metadata"]["managedFields"].is_null());
        }
        let gone = Arc::clone(&pods.borrow().gone);
        assert_eq!(gone["a/two"]["metadata"]["resourceVersion"], "10");
        let log = log.lock().expect("not poisoned").clone();
        assert!(log[0].contains("labelSelector=app.kubernetes.io%2Fmanaged-by%3Dwinconform%2C"));
        assert!(log[8].contains("resourceVersion=9"), "{}", log[8]);
        cancel.cancel();
        tracker.close();
        tracker.wait().await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_refusal_ends_no_wait() {
        let event = json!({"type": "ADDED", "object": pod("three", 8)});
        let again = json!({"type": "ADDED", "object": pod("four", 10)});
        let expired = json!({"type": "ERROR", "object": status(410)});
        let answers = vec![
            // One refusal of a list, and one of a watch later
            forbidden(),
            list(5, &[pod("one", 4)]),
            Answer::Watch(vec![event, expired]),
            list(9, &[pod("two", 4)]),
            forbidden(),
            list(9, &[pod("two", 4)]),
            Answer::Watch(vec![again]),
        ];
        let api = api(answers, Arc::default());
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let mut pods = watch_pods(&api, "r1", &tracker, cancel.clone());
        let either = |pods: &Watched| pods.refused.is_some() || pods.objects.contains_key("a/four");
        let seen = pods.wait_for(either).await.expect("watching").clone();
        assert_eq!(seen.refused, None);
        cancel.cancel();
        tracker.close();
        tracker.wait().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_allowed_again_says_so() {
        let answers = vec![
            list(5, &[pod("one", 4)]),
            forbidden(),
            list(5, &[pod("one", 4)]),
            forbidden(),
            // The same objects as before, and a silent watch
            list(5, &[pod("one", 4)]),
            Answer::Watch(Vec::new()),
        ];
        let api = api(answers, Arc::default());
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let mut pods = watch_pods(&api, "r1", &tracker, cancel.clone());
        for refused in [true, false] {
            let told = pods.wait_for(|pods| pods.refused.is_some() == refused);
            let told = timeout(Duration::from_mins(10), told).await;
            told.expect("it is told").expect("watching");
        }
        cancel.cancel();
        tracker.close();
        tracker.wait().await;
    }

    fn forbidden() -> Answer {
        let mut status = status(403);
        status["message"] = json!("u cannot watch pods");
        Answer::Whole(403, status.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_allowed_is_told_until_it_is() {
        let event = json!({"type": "ADDED", "object": pod("two", 8)});
        let answers = vec![
            list(5, &[pod("one", 4)]),
            forbidden(),
            forbidden(),
            list(5, &[pod("one", 4)]),
            Answer::Watch(vec![event]),
        ];
        let api = api(answers, Arc::default());
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let mut pods = watch_pods(&api, "r1", &tracker, cancel.clone());
        let refused = pods.wait_for(|pods| pods.refused.is_some()).await;
        let error = refused.expect("watching").refused.clone();
        let error = error.expect("it is refused");
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(error.detail.contains("cannot watch pods"), "{error}");
        let allowed = pods
            .wait_for(|pods| pods.objects.contains_key("a/two"))
            .await;
        assert_eq!(allowed.expect("watching").refused, None);
        cancel.cancel();
        tracker.close();
        tracker.wait().await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_when_nobody_looks() {
        let api = api(vec![list(5, &[])], Arc::default());
        let tracker = TaskTracker::new();
        drop(watch_pods(&api, "r1", &tracker, CancellationToken::new()));
        tracker.close();
        tracker.wait().await;
    }
}
