//! What watches tell.

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::{MERGE, Scene};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A watch that is read line by line.
struct Watch {
    body: Body,
    held: Vec<u8>,
}

impl Watch {
    async fn of(scene: &Scene, path: &str) -> Self {
        let request = Request::get(path).body(Body::empty()).expect("a request");
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
    async fn told(&mut self) -> String {
        let event = self.next().await.expect("an event");
        let name = event["object"]["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        format!("{} {name}", event["type"].as_str().unwrap_or_default())
            .trim_end()
            .to_owned()
    }
}

fn map(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"l": label}}})
}

#[tokio::test]
async fn who_enters_a_selection_is_added_and_who_leaves_it_deleted() {
    let scene = Scene::new();
    scene.create(MAPS, map("old", "a")).await;
    let mut watch = Watch::of(&scene, &format!("{MAPS}?watch=true&labelSelector=l%3Da")).await;
    assert_eq!(watch.told().await, "ADDED old");
    scene.create(MAPS, map("other", "b")).await;
    scene.create(MAPS, map("new", "a")).await;
    assert_eq!(watch.told().await, "ADDED new");
    scene
        .patch(&format!("{MAPS}/new"), MERGE, json!({"data": {"x": "1"}}))
        .await;
    assert_eq!(watch.told().await, "MODIFIED new");
    scene
        .patch(
            &format!("{MAPS}/new"),
            MERGE,
            json!({"metadata": {"labels": {"l": "b"}}}),
        )
        .await;
    assert_eq!(watch.told().await, "DELETED new");
    scene
        .patch(
            &format!("{MAPS}/other"),
            MERGE,
            json!({"metadata": {"labels": {"l": "a"}}}),
        )
        .await;
    assert_eq!(watch.told().await, "ADDED other");
    scene.delete(&format!("{MAPS}/old"), json!({})).await;
    assert_eq!(watch.told().await, "DELETED old");
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_from_which_it_goes_on() {
    let scene = Scene::new();
    scene.create(MAPS, map("one", "a")).await;
    let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan\
                 &labelSelector=l";
    let mut watch = Watch::of(&scene, &format!("{MAPS}?{query}")).await;
    assert_eq!(watch.told().await, "ADDED one");
    let bookmark = watch.next().await.expect("a bookmark");
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    let version = bookmark["object"]["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    scene.create(MAPS, map("two", "a")).await;
    let mut again = Watch::of(
        &scene,
        &format!("{MAPS}?watch=true&resourceVersion={version}"),
    )
    .await;
    for watch in [&mut watch, &mut again] {
        assert_eq!(watch.told().await, "ADDED two");
    }
}

#[tokio::test]
async fn a_version_that_is_not_remembered_is_gone() {
    let scene = Scene::new();
    let made = scene.create(MAPS, map("one", "a")).await;
    let version = made["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    scene.create(MAPS, map("two", "a")).await;
    scene.server.shared.state().store.compact();
    let mut watch = Watch::of(
        &scene,
        &format!("{MAPS}?watch=true&resourceVersion={version}"),
    )
    .await;
    let event = watch.next().await.expect("an event");
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert_eq!(watch.next().await, None);
    let (code, _) = scene
        .get(&format!("{MAPS}?watch=true&resourceVersion=soon"))
        .await;
    assert_eq!(code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_how_far_it_is_and_ends_when_it_is_to() {
    let scene = Scene::new();
    let query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=90&labelSelector=none";
    let mut watch = Watch::of(&scene, &format!("{MAPS}?{query}")).await;
    scene.create(MAPS, map("one", "a")).await;
    for _ in 0..2 {
        let event = watch.next().await.expect("a bookmark");
        let version = scene.server.shared.state().store.version().to_string();
        assert_eq!(
            (
                &event["type"],
                &event["object"]["metadata"]["resourceVersion"]
            ),
            (&json!("BOOKMARK"), &json!(version))
        );
    }
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn nothing_is_left_when_it_stops() {
    let scene = Scene::new();
    let mut watch = Watch::of(&scene, &format!("{MAPS}?watch=true&labelSelector=none")).await;
    let Scene { server, client } = scene;
    drop(client);
    server.stop().await;
    assert!(watch.body.frame().await.is_none_or(|frame| frame.is_err()));
}
