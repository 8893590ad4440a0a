//! What others have in the cluster, which no run may touch.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};
use winconform::transport::Api;
use winconform_core::way::Verb;

use crate::asking::send;
use crate::earth::until;
use crate::world::Outcome;

const NAMESPACE: &str = "worlds-of-others";

/// Objects by path.
pub(crate) struct Others {
    objects: Vec<(String, Json)>,
}

/// By path what somebody wants of each: not what controllers note.
pub(crate) type Seen = BTreeMap<String, Json>;

impl Others {
    pub(crate) async fn make(api: &Api) -> Result<Self, String> {
        let core = format!("/api/v1/namespaces/{NAMESPACE}");
        let selector = json!({"matchLabels": {"app": "theirs"}});
        let pod = json!({
            "metadata": {"labels": {"app": "theirs"}},
            "spec": {"nodeSelector": {"kubernetes.io/os": "windows"}, "os": {"name": "windows"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "a", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022",
                    "command": ["ping", "-t", "localhost"]}]},
        });
        let objects = [
            (
                format!("/api/v1/namespaces/{NAMESPACE}"),
                json!({"kind": "Namespace", "apiVersion": "v1"}),
            ),
            (
                format!("{core}/configmaps/theirs"),
                json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "b"}}),
            ),
            (
                format!("{core}/services/win-webserver"),
                json!({"kind": "Service", "apiVersion": "v1",
                    "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 80}]}}),
            ),
            (
                format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/theirs"),
                json!({"kind": "Deployment", "apiVersion": "apps/v1",
                    "spec": {"replicas": 1, "selector": selector, "template": pod}}),
            ),
            (
                "/apis/scheduling.k8s.io/v1/priorityclasses/worlds-theirs".to_owned(),
                json!({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "value": 7}),
            ),
            (
                "/apis/node.k8s.io/v1/runtimeclasses/worlds-theirs".to_owned(),
                json!({"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "handler": "runc"}),
            ),
        ];
        for (path, object) in &objects {
            send(api, Verb::Apply, path, Some(named(path, object.clone()))).await?;
        }
        Ok(Self {
            objects: objects.to_vec(),
        })
    }

    pub(crate) async fn remove(&self, api: &Api) -> Outcome {
        for (path, _) in self.objects.iter().rev() {
            send(api, Verb::Delete, path, None).await?;
        }
        Ok(())
    }

    /// How they are, once their controllers have done with changes of the nodes.
    pub(crate) async fn settled(&self, api: &Api) -> Result<Seen, String> {
        let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        until("one pod of others", async || {
            let found = send(api, Verb::Get, &pods, None).await?;
            let [pod] = found["items"].as_array().map_or(&[][..], Vec::as_slice) else {
                return Ok(false);
            };
            Ok(pod["metadata"]["deletionTimestamp"].is_null())
        })
        .await?;
        self.seen(api).await
    }

    /// How they are, and how the nodes are.
    pub(crate) async fn seen(&self, api: &Api) -> Result<Seen, String> {
        let mut seen = Seen::new();
        for (path, _) in &self.objects {
            let object = send(api, Verb::Get, path, None).await?;
            seen.insert(path.clone(), wanted(&object));
        }
        for list in [
            format!("/api/v1/namespaces/{NAMESPACE}/pods"),
            "/api/v1/nodes".to_owned(),
            "/api/v1/namespaces".to_owned(),
        ] {
            let found = send(api, Verb::Get, &list, None).await?;
            for object in found["items"].as_array().into_iter().flatten() {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                // Of runs beside this one, and what worlds ask their rules with
                if list.ends_with("namespaces")
                    && (name.starts_with("winconform-") || name.starts_with("probe-"))
                {
                    continue;
                }
                seen.insert(format!("{list}/{name}"), wanted(object));
            }
        }
        Ok(seen)
    }

    /// Whatever bears a run's id in its name, whichever kind it is.
    pub(crate) async fn named(&self, kubeconfig: &Path, run: &str) -> Result<Vec<String>, String> {
        let kubectl = async |arguments: &[&str]| {
            let mut command = tokio::process::Command::new("kubectl");
            command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
            let output = command.output().await.map_err(|error| error.to_string())?;
            match output.status.success() {
                true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
                false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            }
        };
        let kinds = kubectl(&["api-resources", "--verbs=list", "-o", "name"]).await?;
        // Events outlive what they tell of
        let kinds = kinds.lines().filter(|kind| !kind.starts_with("events"));
        let kinds: Vec<_> = kinds.collect();
        let all = kubectl(&["get", &kinds.join(","), "-A", "-o", "name"]).await?;
        Ok(all
            .lines()
            .filter(|line| line.contains(run))
            .map(str::to_owned)
            .collect())
    }
}

/// What of an object is somebody's wish, with which object it is.
fn wanted(object: &Json) -> Json {
    let metadata = &object["metadata"];
    let mut spec = object["spec"].clone();
    // Controllers taint nodes that are not Ready, and the scheduler binds
    if object["kind"] == "Node" || !spec["podCIDR"].is_null() {
        spec = spec["unschedulable"].clone();
    }
    if !spec["containers"].is_null() {
        spec = spec["containers"].clone();
    }
    json!({"uid": metadata["uid"], "labels": metadata["labels"], "going": metadata["deletionTimestamp"],
        "spec": spec, "data": object["data"], "value": object["value"], "handler": object["handler"]})
}

fn named(path: &str, mut object: Json) -> Json {
    let name = path.rsplit('/').next().unwrap_or_default();
    object["metadata"] = json!({"name": name});
    if !path.ends_with(NAMESPACE) && path.contains(NAMESPACE) {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    object
}
