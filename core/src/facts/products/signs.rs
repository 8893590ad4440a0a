//! The signs of a cluster by which products may be recognised.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::super::cluster::Os;
use super::rules::Rules;

/// Everything by which products are recognised; what could not be read says why.
#[derive(Clone, Debug)]
pub struct Signs {
    /// `gitVersion` of the API server.
    pub version: Result<String, String>,
    /// The API groups served.
    pub groups: Result<BTreeSet<String>, String>,
    pub daemon_sets: Result<Vec<DaemonSetSign>, String>,
    /// Labels and annotations of nodes that rules name.
    pub nodes: Result<NodeSigns, String>,
    /// ConfigMaps that rules name.
    pub config_maps: Vec<ConfigMapSign>,
}

impl Signs {
    /// The data of a ConfigMap; `None` if it does not exist, or no rule names it.
    pub(super) fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<&BTreeMap<String, String>>, &String> {
        let mut maps = self.config_maps.iter();
        let map = maps.find(|map| map.namespace == namespace && map.name == name);
        map.map_or(Ok(None), |map| map.data.as_ref().map(Option::as_ref))
    }
}

#[derive(Clone, Debug)]
pub struct ConfigMapSign {
    pub namespace: String,
    pub name: String,
    /// Its data; `None` if the ConfigMap does not exist; the error is why it could not be read.
    pub data: Result<Option<BTreeMap<String, String>>, String>,
}

/// Labels and annotations of nodes, each key once.
#[derive(Clone, Debug, Default)]
pub struct NodeSigns {
    /// Labels, each with the value of one node.
    pub labels: BTreeMap<String, String>,
    /// Keys of annotations.
    pub annotations: BTreeSet<String>,
}

impl NodeSigns {
    /// Adds the labels and annotations of a node that a rule names.
    pub fn add(&mut self, rules: &Rules, node: &Json) {
        for (key, value) in texts(&node["metadata"]["labels"]) {
            if rules.names_label(&key) {
                self.labels.entry(key).or_insert(value);
            }
        }
        for key in texts(&node["metadata"]["annotations"]).into_keys() {
            if rules.names_annotation(&key) {
                self.annotations.insert(key);
            }
        }
    }
}

/// The parts of a DaemonSet that may be a sign.
#[derive(Clone, Debug, Default)]
pub struct DaemonSetSign {
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Images of its containers, init containers too.
    pub images: Vec<String>,
    /// Environment variables with a value written, of all containers.
    pub env: Vec<(String, String)>,
    /// Commands and arguments of its containers.
    pub args: Vec<String>,
    /// The operating system its pods are for, if a selector, an affinity or its name says.
    pub os: Option<Os>,
}

impl DaemonSetSign {
    /// Reads a DaemonSet (`apps/v1`).
    pub fn read(object: &Json) -> Self {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let spec = &object["spec"]["template"]["spec"];
        let mut read = Self {
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
            labels: texts(&object["metadata"]["labels"]),
            ..Self::default()
        };
        for container in items(&spec["initContainers"]).chain(items(&spec["containers"])) {
            read.images.push(text(&container["image"]));
            let args = items(&container["command"]).chain(items(&container["args"]));
            read.args.extend(args.map(text));
            let written = items(&container["env"]).filter(|env| env["value"].is_string());
            read.env
                .extend(written.map(|env| (text(&env["name"]), text(&env["value"]))));
        }
        read.os = os_of(spec, &read.name);
        read
    }

    /// `namespace/name`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The operating system that pods of a spec are for: by selector, by affinity, else by the name that
/// DaemonSets for Windows usually have.
fn os_of(spec: &Json, name: &str) -> Option<Os> {
    let affinity = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    let required = items(affinity)
        .flat_map(|term| items(&term["matchExpressions"]))
        .find(|one| one["key"] == "kubernetes.io/os" && one["operator"] == "In")
        .and_then(|one| one["values"][0].as_str());
    let selected = spec["nodeSelector"]["kubernetes.io/os"].as_str();
    match selected.or(required) {
        Some("linux") => Some(Os::Linux),
        Some("windows") => Some(Os::Windows),
        _ if name.ends_with("-win") || name.contains("windows") => Some(Os::Windows),
        _ => None,
    }
}

/// The items of a list; none of anything else.
fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

/// The texts of a mapping, such as labels or a ConfigMap's data.
pub fn texts(map: &Json) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
