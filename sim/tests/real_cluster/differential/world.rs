//! One of the two servers, with simulated nodes.

use std::time::Duration;

use futures::stream::SelectAll;
use futures::{StreamExt, stream};
use http::Request;
use hybrid_sim::{FaultPlan, JoinOptions, Joined, Loopback, Topology, join};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::normal::{addresses, record};
use super::{Action, Shown};
use crate::seen::Record;

/// How long any step may take; a CronJob waits for the full minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// The kinds that are recorded in a namespace: plural, group, version, kind.
const KINDS: [(&str, &str, &str, &str); 16] = [
    ("pods", "", "v1", "Pod"),
    ("services", "", "v1", "Service"),
    ("configmaps", "", "v1", "ConfigMap"),
    ("serviceaccounts", "", "v1", "ServiceAccount"),
    ("secrets", "", "v1", "Secret"),
    ("deployments", "apps", "v1", "Deployment"),
    ("replicasets", "apps", "v1", "ReplicaSet"),
    ("statefulsets", "apps", "v1", "StatefulSet"),
    ("daemonsets", "apps", "v1", "DaemonSet"),
    ("replicationcontrollers", "", "v1", "ReplicationController"),
    ("jobs", "batch", "v1", "Job"),
    ("cronjobs", "batch", "v1", "CronJob"),
    (
        "horizontalpodautoscalers",
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
    ),
    ("resourcequotas", "", "v1", "ResourceQuota"),
    ("endpointslices", "discovery.k8s.io", "v1", "EndpointSlice"),
    (
        "poddisruptionbudgets",
        "policy",
        "v1",
        "PodDisruptionBudget",
    ),
];

pub(crate) struct World {
    client: Client,
    joined: Joined,
}

/// A stream of the changes in a namespace.
pub(crate) struct Changes(SelectAll<stream::BoxStream<'static, ()>>);

impl Changes {
    pub(crate) async fn next(&mut self) {
        self.0.next().await;
    }
}

fn resource(plural: &str) -> ApiResource {
    let kind = KINDS.iter().find(|(known, ..)| *known == plural);
    let (_, group, version, kind) = kind.unwrap_or_else(|| panic!("unknown kind {plural}"));
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

impl World {
    /// Joins nodes; their names are the same in both worlds.
    pub(crate) async fn join(client: Client) -> Self {
        let options = JoinOptions {
            topology: Topology::hybrid(),
            faults: FaultPlan::default(),
            seed: 7,
            speed: 20.0,
            prefix: "differential-".to_owned(),
            loopback: Loopback::default(),
        };
        let joined = join(client.clone(), options).await.expect("the nodes join");
        Self { client, joined }
    }

    fn path(namespace: &str, object: &str) -> String {
        let (plural, name) = object.split_once('/').unwrap_or((object, ""));
        let path = DynamicObject::url_path(&resource(plural), Some(namespace));
        match name {
            "" => path,
            name => format!("{path}/{name}"),
        }
    }

    async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(body)
            .expect("a request");
        let answered = self.client.request::<Value>(request).await;
        answered.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) async fn namespace(&self, name: &str) {
        let namespace = json!({"metadata": {"name": name}});
        self.request("POST", "/api/v1/namespaces", &namespace).await;
        // The controllers create these
        let shown = |of: &str| Shown {
            of: of.to_owned(),
            at: "/metadata/namespace".to_owned(),
            is: name.into(),
        };
        let given = [
            shown("configmaps/kube-root-ca.crt"),
            shown("serviceaccounts/default"),
        ];
        self.until(name, &given).await;
    }

    /// Deletes a namespace and waits until it has gone.
    pub(crate) async fn without(&self, name: &str) {
        let path = format!("/api/v1/namespaces/{name}");
        self.request("DELETE", &path, &Value::Null).await;
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(self.client.clone());
        let gone = kube::runtime::wait::await_condition(
            namespaces,
            name,
            |object: Option<&k8s_openapi::api::core::v1::Namespace>| object.is_none(),
        );
        timeout_at(Instant::now() + PATIENCE, gone)
            .await
            .expect("it goes in time")
            .expect("it is watched");
    }

    pub(crate) async fn send(&self, namespace: &str, action: &Action) {
        match action {
            Action::Create(object) => {
                let kind = object["kind"].as_str().expect("a kind");
                let plural = KINDS.iter().find(|(.., known)| *known == kind);
                let path = Self::path(namespace, plural.expect("a known kind").0);
                self.request("POST", &path, object).await;
            }
            Action::Patch { object, merge } => {
                self.request("PATCH", &Self::path(namespace, object), merge)
                    .await;
            }
            Action::Delete { object } => {
                // By default the pods of a ReplicationController stay
                let options = json!({"propagationPolicy": "Background"});
                let path = Self::path(namespace, object);
                self.request("DELETE", &path, &options).await;
            }
        }
    }

    fn api(&self, namespace: &str, plural: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource(plural))
    }

    /// Waits until the world shows all these values.
    pub(crate) async fn until(&self, namespace: &str, wanted: &[Shown]) {
        let deadline = Instant::now() + PATIENCE;
        let mut changes = self.changes(namespace);
        loop {
            let mut lacking = None;
            for shown in wanted {
                let value = self.shown(namespace, shown).await;
                if value.as_ref() != Some(&shown.is) {
                    lacking = Some(format!("{shown:?} is {value:?}"));
                    break;
                }
            }
            let Some(lacking) = lacking else {
                return;
            };
            let change = timeout_at(deadline, changes.next()).await;
            assert!(change.is_ok(), "{namespace}: {lacking}");
        }
    }

    async fn shown(&self, namespace: &str, shown: &Shown) -> Option<Value> {
        match shown.of.split_once('/') {
            None => {
                let listed = self.list(namespace, &shown.of).await;
                Some(listed.len().into())
            }
            Some((plural, name)) => {
                let object = self.api(namespace, plural).get_opt(name).await;
                let object = object.expect("an answer")?;
                let object = serde_json::to_value(object).expect("JSON");
                Some(object.pointer(&shown.at).cloned().unwrap_or_default())
            }
        }
    }

    async fn list(&self, namespace: &str, plural: &str) -> Vec<Value> {
        let (api, params) = (self.api(namespace, plural), ListParams::default());
        let listed = api.list(&params).await.expect("a list").items;
        listed
            .into_iter()
            .map(|item| serde_json::to_value(item).expect("JSON"))
            .collect()
    }

    /// Records all objects of a namespace.
    pub(crate) async fn record(&self, namespace: &str) -> Record {
        let mut lists = Vec::new();
        for (plural, ..) in KINDS {
            lists.push((plural, self.list(namespace, plural).await));
        }
        let known = lists.iter();
        let known = known
            .flat_map(|(plural, items)| addresses(plural, items))
            .collect();
        let records = lists.iter();
        records
            .flat_map(|(plural, items)| record(plural, items, &known))
            .collect()
    }

    /// Watches a namespace for changes from now on.
    pub(crate) fn changes(&self, namespace: &str) -> Changes {
        let watches = KINDS.iter().map(|(plural, ..)| {
            let api = self.api(namespace, plural);
            watcher(api, watcher::Config::default()).map(drop).boxed()
        });
        Changes(stream::select_all(watches))
    }

    pub(crate) async fn leave(self) {
        self.joined.leave().await.expect("the nodes leave");
    }
}
