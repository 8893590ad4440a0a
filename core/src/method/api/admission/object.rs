//! The objects that carry a pod template, and the paths of a pod's fields in them.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use strum::{IntoStaticStr, VariantArray};

/// A kind of object that is a pod or carries the template of one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Workload {
    Pod,
    /// apps/v1.
    Deployment,
    /// apps/v1.
    ReplicaSet,
    /// apps/v1.
    StatefulSet,
    /// apps/v1.
    DaemonSet,
    /// batch/v1.
    Job,
    /// batch/v1.
    CronJob,
    /// v1.
    ReplicationController,
    /// v1.
    PodTemplate,
}

/// One of a pod's lists of containers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ContainerKind {
    Container,
    Init,
    /// `ephemeralContainers`: only through their subresource, on an existing pod.
    Ephemeral,
}

crate::text::words!(Workload);

impl Workload {
    /// `kind`, as in the API.
    pub fn kind(self) -> &'static str {
        self.api().0
    }

    /// `kind`, `apiVersion` and the plural of paths.
    fn api(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Pod => ("Pod", "v1", "pods"),
            Self::Deployment => ("Deployment", "apps/v1", "deployments"),
            Self::ReplicaSet => ("ReplicaSet", "apps/v1", "replicasets"),
            Self::StatefulSet => ("StatefulSet", "apps/v1", "statefulsets"),
            Self::DaemonSet => ("DaemonSet", "apps/v1", "daemonsets"),
            Self::Job => ("Job", "batch/v1", "jobs"),
            Self::CronJob => ("CronJob", "batch/v1", "cronjobs"),
            Self::ReplicationController => {
                ("ReplicationController", "v1", "replicationcontrollers")
            }
            Self::PodTemplate => ("PodTemplate", "v1", "podtemplates"),
        }
    }

    /// The path of the kind's objects in a namespace.
    pub(super) fn collection(self, namespace: &str) -> String {
        let (_, version, plural) = self.api();
        let root = if version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{version}/namespaces/{namespace}/{plural}")
    }

    /// The path before a pod's own fields, such as `spec.template.`.
    fn prefix(self) -> &'static str {
        match self {
            Self::Pod => "",
            Self::CronJob => "spec.jobTemplate.spec.template.",
            Self::PodTemplate => "template.",
            Self::Deployment
            | Self::ReplicaSet
            | Self::StatefulSet
            | Self::DaemonSet
            | Self::Job
            | Self::ReplicationController => "spec.template.",
        }
    }

    /// The path of a pod's field in an object of this kind; `container.` means the first of a list of
    /// containers.
    pub(super) fn path(self, field: &str, container: ContainerKind) -> String {
        let prefix = self.prefix();
        match field.strip_prefix("container.") {
            Some(field) => format!("{prefix}spec.{}[0].{field}", container.list()),
            None => format!("{prefix}{field}"),
        }
    }

    pub(super) fn around(self, mut pod: Json) -> Json {
        let labels = json!({"winconform/dry-run": "true"});
        let (kind, version, _) = self.api();
        let metadata = json!({"name": "winconform-dry-run"});
        pod["metadata"] = json!({"labels": labels});
        if matches!(self, Self::Job | Self::CronJob) {
            pod["spec"]["restartPolicy"] = json!("Never");
        }
        let template = pod;
        let selector = json!({"matchLabels": labels});
        let spec = match self {
            Self::Pod => template["spec"].clone(),
            Self::PodTemplate => {
                return json!({"apiVersion": version, "kind": kind,
                    "metadata": metadata, "template": template});
            }
            Self::Deployment | Self::ReplicaSet | Self::DaemonSet => {
                json!({"selector": selector, "template": template})
            }
            Self::StatefulSet => {
                json!({"selector": selector, "serviceName": "none", "template": template})
            }
            Self::Job => json!({"template": template}),
            Self::CronJob => json!({"schedule": "0 0 1 1 *", "suspend": true,
                "jobTemplate": {"spec": {"template": template}}}),
            Self::ReplicationController => json!({"selector": labels, "template": template}),
        };
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
    }
}

crate::text::words!(ContainerKind);

impl ContainerKind {
    /// The list, as in the API.
    pub(super) fn list(self) -> &'static str {
        match self {
            Self::Container => "containers",
            Self::Init => "initContainers",
            Self::Ephemeral => "ephemeralContainers",
        }
    }
}

/// The value in the object that came back at a path of `sent`, such as `spec.containers[0].securityContext`:
/// a list's element that has a name is found by it.
pub(super) fn at_path<'j>(kept: &'j Json, sent: &'j Json, path: &str) -> Option<&'j Json> {
    let ends = path
        .split('.')
        .try_fold((kept, sent), |(kept, sent), part| {
            let Some((key, index)) = part.split_once('[') else {
                return Some((kept.get(part)?, sent.get(part).unwrap_or(&Json::Null)));
            };
            let index: usize = index.strip_suffix(']')?.parse().ok()?;
            let (kept, sent) = (kept.get(key)?.as_array()?, sent.get(key)?.get(index)?);
            let kept = match sent["name"].as_str() {
                Some(name) => kept.iter().find(|one| one["name"] == name)?,
                None => kept.get(index)?,
            };
            Some((kept, sent))
        });
    ends.map(|(kept, _)| kept)
}

/// Whether two paths are equal except for the places of containers in their lists.
pub(super) fn same_place(one: &str, other: &str) -> bool {
    unplaced(one) == unplaced(other)
}

/// Whether one of two paths leads to or through the other, whatever the places of containers in their lists.
pub(super) fn related(one: &str, other: &str) -> bool {
    let (one, other) = (unplaced(one) + ".", unplaced(other) + ".");
    one.starts_with(&other) || other.starts_with(&one)
}

/// A path without the places or names of containers in their lists.
fn unplaced(path: &str) -> String {
    let parts = path.split('.').map(|part| match part.split_once('[') {
        Some((list, _)) if ContainerKind::ALL.iter().any(|kind| kind.list() == list) => list,
        _ => part,
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Puts a value at a path and creates the objects on the way; `None` where the path meets something that is
/// no object, or a missing element.
pub(super) fn put(object: &mut Json, path: &str, value: Json) -> Option<()> {
    let mut at = object;
    for part in path.split('.') {
        let (key, index) = match part.split_once('[') {
            None => (part, None),
            Some((key, index)) => (key, Some(index.strip_suffix(']')?.parse::<usize>().ok()?)),
        };
        if at.is_null() {
            *at = json!({});
        }
        at = at.as_object_mut()?.entry(key).or_insert(Json::Null);
        if let Some(index) = index {
            at = at.get_mut(index)?;
        }
    }
    *at = value;
    Some(())
}

/// Merges `patch` into `target` (RFC 7386).
pub(super) fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Json::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Json::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_related_wherever_containers_are() {
        assert!(related("spec.containers[0].image", "spec.containers[1]"));
        assert!(related("spec.containers[a]", "spec.containers[1].image"));
        assert!(!related("spec.volumes[0].name", "spec.volumes[1]"));
        assert!(!related("spec.os", "spec.osName") && !same_place("spec.os", "spec"));
        assert!(same_place(
            "spec.containers[0].image",
            "spec.containers[1].image"
        ));
    }

    #[test]
    fn a_patch_is_merged_as_its_document_says() {
        // RFC 7386, appendix A
        for (target, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!(["a"]), json!({"a": "b"}), json!({"a": "b"})),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ] {
            let mut object = target.clone();
            merge(&mut object, &patch);
            assert_eq!(object, merged, "{target} {patch}");
        }
    }
}
