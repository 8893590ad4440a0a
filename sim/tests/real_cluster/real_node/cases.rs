//! The pods to compare.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EphemeralContainer, Pod};
use serde::Deserialize;
use serde_json::Value;

/// Expected values in a pod's status, by JSON pointer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Settled(BTreeMap<String, Value>);

impl Settled {
    pub(crate) fn is(&self, pod: &Pod) -> bool {
        let status = serde_json::to_value(&pod.status).expect("JSON");
        self.0
            .iter()
            .all(|(at, value)| status.pointer(at) == Some(value))
    }
}

/// What the test does with a settled pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Then {
    /// It deletes the pod with this grace period, in seconds.
    Delete { delete: u32 },
    /// It adds an ephemeral container, and waits until the pod settles again.
    Debug {
        ephemeral: Box<EphemeralContainer>,
        settled: Settled,
    },
}

/// A pod to compare; `cases.yaml` explains the fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) pod: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) bound: bool,
    pub(crate) settled: Settled,
    #[serde(default)]
    pub(crate) events: Vec<String>,
    #[serde(default)]
    pub(crate) exec: Vec<Vec<String>>,
    pub(crate) then: Option<Then>,
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        serde_saphyr::from_str(include_str!("cases.yaml")).expect("cases.yaml is as documented")
    }

    /// The names of all containers that may have a log.
    pub(crate) fn containers(&self) -> Vec<String> {
        let mut names: Vec<String> = ["initContainers", "containers"]
            .into_iter()
            .filter_map(|list| self.pod.get(list)?.as_array())
            .flatten()
            .filter_map(|container| Some(container["name"].as_str()?.to_owned()))
            .collect();
        if let Some(Then::Debug { ephemeral, .. }) = &self.then {
            names.push(ephemeral.name.clone());
        }
        names
    }
}
