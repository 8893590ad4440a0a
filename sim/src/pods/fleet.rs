//! The pods of all nodes in one watch. Of a pod on a foreign node no more is read than its name
//! and its node; one of ours is read whole, once, and shared.
//!
//! The watch begins with what there is (`sendInitialEvents`, which every API server has that takes
//! simulated nodes). It never ends: errors are waited out with a growing pause.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::WatchParams;
use kube::client::Body;
use kube::core::Request;
use serde::Deserialize;

use crate::clock;
use crate::world::Key;

/// What marks the end of what there was at the start (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// A Gone resource version: the watch begins anew.
const GONE: u16 = 410;

const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// A change of a pod of ours.
pub(super) enum Seen {
    Is(Key, Box<Pod>),
    /// The pod of this UID has gone.
    Gone(Key, String),
    /// Whatever is not among these has gone.
    OnlyThese(HashSet<Key>),
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    object: Head,
}

/// What is read of every pod, and of what is told in the place of one.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMeta,
    #[serde(default)]
    spec: HeadSpec,
    /// Of a Status.
    #[serde(default)]
    code: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadSpec {
    node_name: String,
}

#[derive(Deserialize)]
struct Whole {
    object: Pod,
}

#[derive(Deserialize)]
struct Bookmark {
    object: BookmarkObject,
}

#[derive(Deserialize)]
struct BookmarkObject {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
struct BookmarkMeta {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Tells every change of the pods on nodes that are `ours`, for ever.
pub(super) async fn follow(
    client: &Client,
    ours: impl Fn(&str) -> bool,
    mut take: impl FnMut(Seen),
) {
    let mut watch = Watch::default();
    let mut pause = PAUSES.0;
    loop {
        match watch.run(client, &ours, &mut take).await {
            // The server ends watches after some minutes
            Ok(()) => pause = PAUSES.0,
            Err(error) => {
                tracing::debug!(%error, "watch of pods is taken up again");
                clock::elapse(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }
}

/// How far the watch has come.
#[derive(Default)]
struct Watch {
    /// Nothing before the first whole list.
    version: Option<String>,
    listed: HashSet<Key>,
}

impl Watch {
    async fn run(
        &mut self,
        client: &Client,
        ours: &impl Fn(&str) -> bool,
        take: &mut impl FnMut(Seen),
    ) -> kube::Result<()> {
        let bound = WatchParams::default().fields("spec.nodeName!=");
        let params = match self.version {
            None => {
                self.listed.clear();
                bound.initial_events()
            }
            Some(_) => bound,
        };
        let version = self.version.clone().unwrap_or_default();
        let request = Request::new("/api/v1/pods")
            .watch(&params, &version)
            .map_err(kube::Error::BuildRequest)?;
        let response = client.send(request.map(Body::from)).await?;
        if response.status().as_u16() == GONE {
            self.version = None;
        }
        if !response.status().is_success() {
            let refused = std::io::Error::other(format!("status {}", response.status()));
            return Err(kube::Error::ReadEvents(refused));
        }
        let mut body = response.into_body();
        let mut held = BytesMut::new();
        let mut looked = 0;
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                held.extend_from_slice(&data);
            }
            while let Some(end) = held[looked..].iter().position(|byte| *byte == b'\n') {
                let line = held.split_to(looked + end);
                held.advance(1);
                looked = 0;
                self.line(&line, ours, take)
                    .map_err(kube::Error::SerdeError)?;
            }
            looked = held.len();
        }
        Ok(())
    }

    fn line(
        &mut self,
        line: &[u8],
        ours: &impl Fn(&str) -> bool,
        take: &mut impl FnMut(Seen),
    ) -> serde_json::Result<()> {
        let Told { kind, object } = serde_json::from_slice(line)?;
        let Head {
            metadata,
            spec,
            code,
        } = object;
        let key = Key::new(&metadata.namespace, &metadata.name);
        match &*kind {
            "ADDED" | "MODIFIED" if ours(&spec.node_name) => {
                let mut pod = serde_json::from_slice::<Whole>(line)?.object;
                // Nobody here asks who has set what, and it is the largest part
                pod.metadata.managed_fields = None;
                if self.version.is_none() {
                    self.listed.insert(key.clone());
                }
                // A copy's lists have room for what is in them; those that were read have it for four and more
                take(Seen::Is(key, Box::new(pod.clone())));
            }
            "DELETED" if ours(&spec.node_name) => take(Seen::Gone(key, metadata.uid)),
            "BOOKMARK" if self.version.is_none() => {
                let bookmark = serde_json::from_slice::<Bookmark>(line)?;
                let annotations = bookmark.object.metadata.annotations;
                if annotations
                    .get(INITIAL_EVENTS_END)
                    .is_none_or(|ends| ends != "true")
                {
                    return Ok(());
                }
                take(Seen::OnlyThese(std::mem::take(&mut self.listed)));
                self.version = Some(String::new());
            }
            "ERROR" => {
                if code == Some(GONE) {
                    self.version = None;
                }
                let status = String::from_utf8_lossy(line);
                return Err(serde::de::Error::custom(status));
            }
            _ => {}
        }
        if let Some(version) = &mut self.version
            && !metadata.resource_version.is_empty()
        {
            *version = metadata.resource_version;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: &str, version: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": version,
                "managedFields": [{"manager": "x"}]},
            "spec": {"containers": [], "nodeName": node},
        })
    }

    fn told(watch: &mut Watch, lines: &[(&str, Value)]) -> Vec<String> {
        let mut changes = Vec::new();
        for (kind, object) in lines {
            let line = json!({"type": kind, "object": object}).to_string();
            let told = watch.line(line.as_bytes(), &|node| node == "ours", &mut |change| {
                changes.push(match change {
                    Seen::Is(key, pod) => {
                        assert_eq!(pod.metadata.managed_fields, None);
                        format!("is {key}")
                    }
                    Seen::Gone(key, uid) => format!("gone {key} {uid}"),
                    Seen::OnlyThese(keys) => format!("only {}", keys.len()),
                });
            });
            if let Err(error) = told {
                changes.push(format!("failed: {error}"));
            }
        }
        changes
    }

    #[test]
    fn foreign_pods_are_passed_over() {
        let end = json!({"metadata": {"resourceVersion": "5", "annotations": {INITIAL_EVENTS_END: "true"}}});
        let mut watch = Watch::default();
        let changes = told(
            &mut watch,
            &[
                ("ADDED", pod("one", "ours", "3")),
                ("ADDED", pod("two", "theirs", "4")),
                ("BOOKMARK", json!({"metadata": {"resourceVersion": "4"}})),
                ("BOOKMARK", end),
                ("MODIFIED", pod("one", "ours", "6")),
                ("DELETED", pod("two", "theirs", "7")),
                ("DELETED", pod("one", "ours", "8")),
                ("BOOKMARK", json!({"metadata": {"resourceVersion": "9"}})),
            ],
        );
        assert_eq!(
            changes,
            ["is a/one", "only 1", "is a/one", "gone a/one one"]
        );
        assert_eq!(watch.version.as_deref(), Some("9"));
    }

    #[test]
    fn a_version_that_is_gone_begins_anew() {
        let mut watch = Watch {
            version: Some("5".to_owned()),
            listed: HashSet::new(),
        };
        let other = json!({"kind": "Status", "code": 500, "message": "no"});
        let changes = told(&mut watch, &[("ERROR", other)]);
        assert!(changes[0].starts_with("failed:"), "{changes:?}");
        assert_eq!(watch.version.as_deref(), Some("5"));
        told(
            &mut watch,
            &[("ERROR", json!({"kind": "Status", "code": 410}))],
        );
        assert_eq!(watch.version, None);
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for line in ["", "{", "[]", r#"{"type": "ADDED"}"#, "\u{fffd}"] {
            let mut watch = Watch::default();
            let read = watch.line(line.as_bytes(), &|_| true, &mut |_| {});
            assert!(read.is_err(), "{line}");
        }
    }
}
