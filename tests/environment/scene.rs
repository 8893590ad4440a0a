//! A hybrid cluster of API objects alone, as one row wants it: nodes without kubelets, pods that
//! run nowhere, and the configuration that tells of the network.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value as Json, json};
use winconform::cluster::{Cluster, Condition, poll_until};
use winconform_core::way::{ApiReply, ApiRequest, Trouble, Verb};

/// What stands in the way of a row, in words.
pub(crate) type Hindered<T> = Result<T, String>;

/// The Windows image that pods wait for.
pub(crate) const SERVERCORE: &str = "mcr.microsoft.com/windows/servercore:ltsc2022";

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
const SETS: &str = "/apis/apps/v1/namespaces/kube-system/daemonsets";
const SERVICES: &str = "/api/v1/namespaces/kube-system/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// The objects that should be, by path.
#[derive(Clone)]
pub(crate) struct Scene {
    objects: BTreeMap<String, Json>,
}

impl Scene {
    /// A healthy cluster.
    pub(crate) fn healthy() -> Self {
        let mut scene = Self {
            objects: BTreeMap::new(),
        };
        scene.add(NODES, linux("env-cp-0"));
        scene.node("env-cp-0")["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] =
            json!("");
        scene.add(NODES, linux("env-lin-0"));
        scene.windows("env-w22-0", "10.0.20348");
        scene.windows("env-w22-1", "10.0.20348");
        scene.windows("env-w25-0", "10.0.26100");
        for (index, node) in ["env-w22-0", "env-w25-0"].into_iter().enumerate() {
            scene.add(PODS, pod(&format!("env-pod-{index}"), node));
        }
        scene.add(MAPS, json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-flannel-cfg"},
            "data": {"net-conf.json": r#"{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": 4096, "Port": 4789}}"#},
        }));
        scene.add(SETS, json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kube-flannel-ds"},
            "spec": {"selector": {"matchLabels": {"app": "flannel"}}, "template": {
                "metadata": {"labels": {"app": "flannel"}},
                // On no node: nothing runs here
                "spec": {"nodeSelector": {"environment-test": "nowhere"}, "containers": [
                    {"name": "kube-flannel", "image": "ghcr.io/flannel-io/flannel:v0.27.4"}]}}},
        }));
        scene.add(MAPS, json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-proxy"},
            "data": {"config.conf": "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n"},
        }));
        scene.add(
            SERVICES,
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "kube-dns", "labels": {"k8s-app": "kube-dns"}},
                "spec": {"ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]},
            }),
        );
        let endpoint = |address: &str, node: &str| {
            json!({
            "addresses": [address], "nodeName": node, "conditions": {"ready": true}})
        };
        scene.add(SLICES, json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "kube-dns-env", "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4", "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}],
            "endpoints": [endpoint("10.244.0.2", "env-cp-0"), endpoint("10.244.1.2", "env-lin-0")],
        }));
        scene
    }

    /// Adds a Windows node of a build.
    pub(crate) fn windows(&mut self, name: &str, build: &str) {
        let mut node = linux(name);
        node["metadata"]["labels"] = json!({
            "kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/windows-build": build,
        });
        node["spec"]["taints"] = json!([{"key": "os", "value": "windows", "effect": "NoSchedule"}]);
        let info = &mut node["status"]["nodeInfo"];
        info["operatingSystem"] = json!("windows");
        info["kernelVersion"] = json!(format!("{build}.2700"));
        info["osImage"] = json!("Windows Server Datacenter");
        node["status"]["images"] = json!([
            {"names": [SERVERCORE], "sizeBytes": 5_000_000_000_u64},
            {"names": ["registry.k8s.io/pause:3.10.2"], "sizeBytes": 300_000},
        ]);
        self.add(NODES, node);
    }

    /// Adds a pod.
    pub(crate) fn pod(&mut self, pod: Json) {
        self.add(PODS, pod);
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: Json) {
        self.add(EVENTS, event);
    }

    pub(crate) fn node(&mut self, name: &str) -> &mut Json {
        self.at(NODES, name)
    }

    pub(crate) fn config(&mut self, name: &str) -> &mut Json {
        self.at(MAPS, name)
    }

    pub(crate) fn dns(&mut self) -> &mut Json {
        &mut self.at(SLICES, "kube-dns-env")["endpoints"]
    }

    /// Takes away what has this name, wherever it is.
    pub(crate) fn without(&mut self, name: &str) {
        self.objects
            .retain(|_, object| object["metadata"]["name"] != name);
    }

    /// Takes away all pods.
    pub(crate) fn without_pods(&mut self) {
        self.objects.retain(|_, object| object["kind"] != "Pod");
    }

    fn at(&mut self, collection: &str, name: &str) -> &mut Json {
        let object = self.objects.get_mut(&format!("{collection}/{name}"));
        object.expect("part of the healthy cluster")
    }

    fn add(&mut self, collection: &str, object: Json) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        self.objects.insert(format!("{collection}/{name}"), object);
    }
}

/// What stands on the server because of us.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    stands: BTreeMap<String, Json>,
}

impl Stage {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let stands = BTreeMap::new();
        Self { cluster, stands }
    }

    /// Makes the server hold this scene, with the nodes' status as fresh as a kubelet's.
    pub(crate) async fn set(&mut self, scene: &Scene) -> Hindered<()> {
        let gone: Vec<_> = self
            .stands
            .iter()
            .filter(|(path, old)| {
                scene
                    .objects
                    .get(*path)
                    .is_none_or(|new| must_be_made_anew(old, new))
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            self.remove(&path).await?;
        }
        // Nodes before pods: a pod on no node is removed by the server
        let (nodes, others): (Vec<_>, Vec<_>) = scene
            .objects
            .iter()
            .partition(|(path, _)| path.starts_with(NODES));
        for (path, object) in nodes.into_iter().chain(others) {
            if !self.stands.contains_key(path) {
                self.create(path, object).await?;
            }
            if path.starts_with(NODES) {
                self.refresh(path, object).await?;
            }
        }
        self.settled(scene).await
    }

    /// Removes everything.
    pub(crate) async fn clear(&mut self) -> Hindered<()> {
        // Pods before nodes, as they were made the other way about
        for path in self.stands.keys().rev().cloned().collect::<Vec<_>>() {
            self.remove(&path).await?;
        }
        Ok(())
    }

    async fn create(&mut self, path: &str, object: &Json) -> Hindered<()> {
        let (collection, _) = path.rsplit_once('/').expect("a collection and a name");
        // An earlier, interrupted run may have left one
        self.remove(path).await?;
        self.send(Verb::Create, collection, Some(object.clone()))
            .await?;
        self.stands.insert(path.to_owned(), object.clone());
        if object["kind"] == "Pod" {
            let status = format!("{path}/status");
            self.send(Verb::Replace, &status, Some(object.clone()))
                .await?;
        }
        Ok(())
    }

    /// Writes labels, taints and status of a node again.
    async fn refresh(&mut self, path: &str, node: &Json) -> Hindered<()> {
        let stands = self.send(Verb::Get, path, None).await?;
        let created: Timestamp = stands["metadata"]["creationTimestamp"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or("a node without the time of its creation")?;
        let mut node = node.clone();
        let since = created + SignedDuration::from_secs(90);
        let conditions = node["status"]["conditions"].as_array_mut();
        for condition in conditions.into_iter().flatten() {
            condition["lastHeartbeatTime"] = json!(seconds(Timestamp::now()));
            condition["lastTransitionTime"] = json!(seconds(since));
        }
        self.send(Verb::Replace, &format!("{path}/status"), Some(node.clone()))
            .await?;
        self.send(Verb::Replace, path, Some(node.clone())).await?;
        self.stands.insert(path.to_owned(), node);
        Ok(())
    }

    /// Waits until the server's controllers no longer call a new node not ready.
    async fn settled(&self, scene: &Scene) -> Hindered<()> {
        let ask = async || match self.send(Verb::Get, NODES, None).await {
            Err(why) => Condition::NotYet(why),
            Ok(nodes) => {
                let differs = |node: &&Json| {
                    let name = node["metadata"]["name"].as_str().unwrap_or_default();
                    let wanted = scene.objects.get(&format!("{NODES}/{name}"));
                    let ready = &node["status"]["conditions"][0];
                    ready["status"] == "True"
                        && wanted.is_some_and(|wanted| {
                            !alike(&wanted["spec"]["taints"], &node["spec"]["taints"])
                        })
                };
                match nodes["items"]
                    .as_array()
                    .and_then(|nodes| nodes.iter().find(differs))
                {
                    None => Condition::Done(()),
                    Some(node) => Condition::NotYet(node["spec"]["taints"].to_string()),
                }
            }
        };
        let (pause, limit) = (Duration::from_millis(50), Duration::from_mins(1));
        poll_until(pause, limit, "taints as they should be", ask)
            .await
            .map_err(|trouble| trouble.to_string())
    }

    async fn remove(&mut self, path: &str) -> Hindered<()> {
        let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let reply = self.reply(Verb::Delete, path, Some(now)).await;
        match reply.map_err(|trouble| trouble.to_string())? {
            ApiReply {
                status: 200 | 202 | 404,
                ..
            } => {
                self.stands.remove(path);
                Ok(())
            }
            reply => Err(format!("{path}: {reply:?}")),
        }
    }

    async fn send(&self, verb: Verb, path: &str, body: Option<Json>) -> Hindered<Json> {
        match self.reply(verb, path, body).await {
            Ok(ApiReply {
                status: 200 | 201,
                body,
            }) => Ok(body),
            Ok(reply) => Err(format!("{verb:?} {path}: {reply:?}")),
            Err(trouble) => Err(format!("{verb:?} {path}: {trouble}")),
        }
    }

    async fn reply(&self, verb: Verb, path: &str, body: Option<Json>) -> Result<ApiReply, Trouble> {
        let path = path.to_owned();
        self.cluster
            .api
            .send(&ApiRequest { verb, path, body })
            .await
    }
}

/// Nodes take changes, but not of their CIDRs; of all else a new one is made.
fn must_be_made_anew(old: &Json, new: &Json) -> bool {
    match old["kind"] == "Node" {
        true => old["spec"]["podCIDRs"] != new["spec"]["podCIDRs"],
        false => old != new,
    }
}

fn alike(a: &Json, b: &Json) -> bool {
    let none = |taints: &Json| taints.as_array().is_none_or(Vec::is_empty);
    a == b || none(a) && none(b)
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn linux(name: &str) -> Json {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "spec": {"podCIDR": "10.244.9.0/24", "podCIDRs": ["10.244.9.0/24"]},
        "status": {
            "capacity": {"cpu": "4", "memory": "16777216Ki", "pods": "110"},
            "allocatable": {"cpu": "3500m", "memory": "13Gi", "pods": "110"},
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady"},
                {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
            ],
            "nodeInfo": {
                "operatingSystem": "linux", "architecture": "amd64", "kernelVersion": "6.1.0-18-amd64",
                "osImage": "Debian GNU/Linux 12", "containerRuntimeVersion": "containerd://1.7.20",
                "kubeletVersion": "v1.36.0", "machineID": "", "systemUUID": "", "bootID": "",
                "kubeProxyVersion": "",
            },
        },
    })
}

/// A pod that lacks nothing.
pub(crate) fn pod(name: &str, node: &str) -> Json {
    let amount = json!({"cpu": "100m", "memory": "200Mi"});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "nodeName": node, "os": {"name": "windows"},
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": SERVERCORE,
                "resources": {"requests": amount, "limits": amount}}],
        },
        "status": {"phase": "Running", "podIP": "10.244.9.7", "podIPs": [{"ip": "10.244.9.7"}]},
    })
}
