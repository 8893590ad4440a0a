//! Watches: the changes of objects, one line of JSON each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use ordered_watch as watch;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::selector::Selection;
use super::store::{Change, Object};
use crate::base::clock;
use crate::server::ask::Ask;
use crate::server::checks::refusal::Refusal;
use crate::server::serve::{Answer, Shared, answered};

/// How long a watch lasts that names no timeout: the least of a real server, which draws from half
/// an hour to an hour.
const LASTS: Duration = Duration::from_mins(30);

/// After how long without an event a client gets a bookmark (apiserver, `bookmarkFrequency`).
const BOOKMARKS: Duration = Duration::from_mins(1);

struct Watch {
    shared: Arc<Shared>,
    ask: Ask,
    selection: Selection,
    /// The version up to which changes were sent.
    at: u64,
    queue: VecDeque<Bytes>,
    heard: watch::Receiver<u64>,
    ends: Instant,
    over: bool,
}

/// Begins a watch.
pub(crate) fn answer(shared: &Arc<Shared>, ask: Ask) -> Result<Answer, Refusal> {
    let query = &ask.query;
    let selection = Selection::from_query(ask.kind, query)?;
    let first = |name: &str| query.first(name).unwrap_or_default();
    let seconds = first("timeoutSeconds").parse().ok();
    let version = first("resourceVersion").to_owned();
    let initial = query.is_set("sendInitialEvents");
    let state = shared.state();
    let mut watch = Watch {
        shared: Arc::clone(shared),
        selection,
        at: state.store.version(),
        queue: VecDeque::new(),
        heard: state.store.hear(),
        ends: clock::after(seconds.map_or(LASTS, Duration::from_secs)),
        over: false,
        ask,
    };
    match version.parse() {
        Ok(from) if from > 0 && !initial => watch.at = from,
        Err(_) if !version.is_empty() => {
            let why = format!("resourceVersion: Invalid value: {version:?}");
            return Err(Refusal::bad(why));
        }
        _ => {
            for object in watch.selection.all(&state.store, &watch.ask) {
                watch.tell("ADDED", &object);
            }
            if initial {
                watch.bookmark(true);
            }
        }
    }
    drop(state);
    let stop = shared.stop.clone();
    let lines = stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(line)), watch))
    });
    let body = StreamBody::new(lines.take_until(stop.cancelled_owned())).boxed_unsync();
    Ok(answered(StatusCode::OK, "application/json", body))
}

impl Watch {
    async fn next(&mut self) -> Option<Bytes> {
        let bookmarks = self.ask.query.is_set("allowWatchBookmarks");
        let mut quiet = clock::after(BOOKMARKS);
        loop {
            if let Some(line) = self.queue.pop_front() {
                return Some(line);
            }
            if self.over {
                return None;
            }
            self.heard.mark_unchanged();
            self.catch_up();
            if !self.queue.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                () = clock::until(self.ends) => {
                    if bookmarks {
                        self.bookmark(false);
                    }
                    self.over = true;
                }
                changed = self.heard.changed() => changed.ok()?,
                () = clock::until(quiet), if bookmarks => {
                    quiet = clock::after(BOOKMARKS);
                    self.bookmark(false);
                }
            }
        }
    }

    /// Queues the changes since the last call.
    fn catch_up(&mut self) {
        let shared = Arc::clone(&self.shared);
        let state = shared.state();
        let kind = self.ask.kind;
        let Some(changes) = state.store.since(kind, self.at) else {
            let (at, oldest) = (self.at, state.store.oldest(kind));
            let why = format!("too old resource version: {at} ({oldest})");
            self.tell("ERROR", &Refusal::new(410, why).status());
            self.over = true;
            return;
        };
        for change in changes {
            self.push(change);
        }
        self.at = self.at.max(state.store.version());
    }

    fn push(&mut self, change: &Change) {
        let namespace = &self.ask.namespace;
        if !namespace.is_empty() && change.key.namespace != *namespace {
            return;
        }
        let takes = |object: &Object| self.selection.takes(object);
        let before = change.before.as_ref().is_some_and(takes);
        let now = !change.deleted && takes(&change.object);
        match (before, now) {
            (false, true) => self.tell("ADDED", &change.object),
            (true, true) => self.tell("MODIFIED", &change.object),
            (true, false) => self.tell("DELETED", &change.object),
            (false, false) => {}
        }
    }

    fn tell(&mut self, kind: &str, object: &Value) {
        let line = format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        self.queue.push_back(line.into());
    }

    fn bookmark(&mut self, initial: bool) {
        let kind = self.ask.kind;
        let mut metadata =
            json!({"resourceVersion": self.at.to_string(), "creationTimestamp": null});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object =
            json!({"kind": kind.name, "apiVersion": kind.api_version(), "metadata": metadata});
        self.tell("BOOKMARK", &object);
    }
}
