//! What watches send.

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::{MERGE, Scene};
use crate::base::fields::Fields;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A watch that the test reads line by line.
struct Watch {
    body: Body,
    held: Vec<u8>,
}

impl Watch {
    async fn open(scene: &Scene, query: &str) -> Self {
        let request = Request::get(format!("{MAPS}{query}"));
        let request = request.body(Body::empty()).expect("a request");
        let response = scene.client.send(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        Self {
            body: response.into_body(),
            held: Vec::new(),
        }
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event"));
            }
            let frame = self.body.frame().await?.expect("it does not break");
            self.held
                .extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }

    /// Type and name of the next event.
    async fn next_event(&mut self) -> String {
        let event = self.next().await.expect("an event");
        let name = event["object"]["metadata"]["name"].text();
        format!("{} {name}", event["type"].text())
    }
}

fn map(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"l": label}}})
}

#[tokio::test]
async fn who_enters_a_selection_is_added_and_who_leaves_it_deleted() {
    let scene = Scene::new();
    scene.create(MAPS, map("old", "a")).await;
    let mut watch = Watch::open(&scene, "?watch=true&labelSelector=l%3Da").await;
    assert_eq!(watch.next_event().await, "ADDED old");
    scene.create(MAPS, map("other", "b")).await;
    scene.create(MAPS, map("new", "a")).await;
    assert_eq!(watch.next_event().await, "ADDED new");
    for (name, change, told) in [
        ("new", json!({"data": {"x": "1"}}), "MODIFIED new"),
        ("new", map("new", "b"), "DELETED new"),
        ("other", map("other", "a"), "ADDED other"),
    ] {
        scene.patch(&format!("{MAPS}/{name}"), MERGE, change).await;
        assert_eq!(watch.next_event().await, told);
    }
    scene.delete(&format!("{MAPS}/old"), json!({})).await;
    assert_eq!(watch.next_event().await, "DELETED old");
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_from_which_it_goes_on() {
    let scene = Scene::new();
    scene.create(MAPS, map("one", "a")).await;
    let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan\
                 &labelSelector=l";
    let mut watch = Watch::open(&scene, &format!("?{query}")).await;
    assert_eq!(watch.next_event().await, "ADDED one");
    let bookmark = watch.next().await.expect("a bookmark");
    assert_eq!(bookmark["type"], "BOOKMARK");
    let meta = &bookmark["object"]["metadata"];
    assert_eq!(meta["annotations"]["k8s.io/initial-events-end"], "true");
    let version = meta["resourceVersion"].text();
    scene.create(MAPS, map("two", "a")).await;
    let query = format!("?watch=true&resourceVersion={version}");
    let mut again = Watch::open(&scene, &query).await;
    for watch in [&mut watch, &mut again] {
        assert_eq!(watch.next_event().await, "ADDED two");
    }
}

#[tokio::test]
async fn a_version_that_is_not_remembered_is_gone() {
    let scene = Scene::new();
    let made = scene.create(MAPS, map("one", "a")).await;
    let version = made["metadata"]["resourceVersion"].text();
    scene.create(MAPS, map("two", "a")).await;
    scene.server.shared.state().store.compact();
    let query = format!("?watch=true&resourceVersion={version}");
    let mut watch = Watch::open(&scene, &query).await;
    let event = watch.next().await.expect("an event");
    assert_eq!(
        (event["type"].text(), event["object"]["code"].number()),
        ("ERROR", 410)
    );
    assert_eq!(watch.next().await, None);
    let soon = format!("{MAPS}?watch=true&resourceVersion=soon");
    assert_eq!(scene.get(&soon).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_how_far_it_is_and_ends_when_it_is_to() {
    let scene = Scene::new();
    let query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=90&labelSelector=none";
    let mut watch = Watch::open(&scene, &format!("?{query}")).await;
    scene.create(MAPS, map("one", "a")).await;
    for _ in 0..2 {
        let event = watch.next().await.expect("a bookmark");
        let version = scene.server.shared.state().store.version().to_string();
        let told = &event["object"]["metadata"]["resourceVersion"];
        assert_eq!(
            (event["type"].text(), told.text()),
            ("BOOKMARK", version.as_str())
        );
    }
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn nothing_is_left_when_it_stops() {
    let scene = Scene::new();
    let mut watch = Watch::open(&scene, "?watch=true&labelSelector=none").await;
    let Scene { server, client } = scene;
    drop(client);
    server.stop().await;
    assert!(watch.body.frame().await.is_none_or(|frame| frame.is_err()));
}
