//! Whether an object has the types of its kind: what is stored can be read by anybody.

use k8s_openapi::api::{
    admissionregistration, apps, autoscaling, batch, coordination, core, discovery, networking,
    node, policy, rbac, scheduling, storage,
};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kinds::Kind;
use super::refusal::Refusal;

/// Which fields may be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Any,
    Known,
}

/// Refuses what is of another shape.
pub(super) fn check(kind: &Kind, value: &Value) -> Result<(), Refusal> {
    unknown(kind, value, Fields::Any).map(drop)
}

/// The fields that the kind does not have, as a server names them.
pub(super) fn unknown_fields(kind: &Kind, value: &Value) -> Result<Vec<String>, Refusal> {
    unknown(kind, value, Fields::Known)
}

fn unknown(kind: &Kind, value: &Value, fields: Fields) -> Result<Vec<String>, Refusal> {
    let checked = match kind.plural {
        "configmaps" => read::<core::v1::ConfigMap>(value, fields),
        "events" => read::<core::v1::Event>(value, fields),
        "limitranges" => read::<core::v1::LimitRange>(value, fields),
        "namespaces" => read::<core::v1::Namespace>(value, fields),
        "nodes" => read::<core::v1::Node>(value, fields),
        "persistentvolumes" => read::<core::v1::PersistentVolume>(value, fields),
        "persistentvolumeclaims" => read::<core::v1::PersistentVolumeClaim>(value, fields),
        "pods" => read::<core::v1::Pod>(value, fields),
        "podtemplates" => read::<core::v1::PodTemplate>(value, fields),
        "replicationcontrollers" => read::<core::v1::ReplicationController>(value, fields),
        "resourcequotas" => read::<core::v1::ResourceQuota>(value, fields),
        "secrets" => read::<core::v1::Secret>(value, fields),
        "services" => read::<core::v1::Service>(value, fields),
        "clusterroles" => read::<rbac::v1::ClusterRole>(value, fields),
        "clusterrolebindings" => read::<rbac::v1::ClusterRoleBinding>(value, fields),
        "roles" => read::<rbac::v1::Role>(value, fields),
        "rolebindings" => read::<rbac::v1::RoleBinding>(value, fields),
        "serviceaccounts" => read::<core::v1::ServiceAccount>(value, fields),
        "mutatingadmissionpolicies" => {
            read::<admissionregistration::v1::MutatingAdmissionPolicy>(value, fields)
        }
        "mutatingadmissionpolicybindings" => {
            read::<admissionregistration::v1::MutatingAdmissionPolicyBinding>(value, fields)
        }
        "mutatingwebhookconfigurations" => {
            read::<admissionregistration::v1::MutatingWebhookConfiguration>(value, fields)
        }
        "validatingadmissionpolicies" => {
            read::<admissionregistration::v1::ValidatingAdmissionPolicy>(value, fields)
        }
        "validatingadmissionpolicybindings" => {
            read::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>(value, fields)
        }
        "validatingwebhookconfigurations" => {
            read::<admissionregistration::v1::ValidatingWebhookConfiguration>(value, fields)
        }
        "apiservices" => read::<apiregistration::v1::APIService>(value, fields),
        "daemonsets" => read::<apps::v1::DaemonSet>(value, fields),
        "deployments" => read::<apps::v1::Deployment>(value, fields),
        "replicasets" => read::<apps::v1::ReplicaSet>(value, fields),
        "statefulsets" => read::<apps::v1::StatefulSet>(value, fields),
        "horizontalpodautoscalers" => {
            read::<autoscaling::v2::HorizontalPodAutoscaler>(value, fields)
        }
        "cronjobs" => read::<batch::v1::CronJob>(value, fields),
        "jobs" => read::<batch::v1::Job>(value, fields),
        "leases" => read::<coordination::v1::Lease>(value, fields),
        "endpointslices" => read::<discovery::v1::EndpointSlice>(value, fields),
        "networkpolicies" => read::<networking::v1::NetworkPolicy>(value, fields),
        "runtimeclasses" => read::<node::v1::RuntimeClass>(value, fields),
        "poddisruptionbudgets" => read::<policy::v1::PodDisruptionBudget>(value, fields),
        "priorityclasses" => read::<scheduling::v1::PriorityClass>(value, fields),
        "csidrivers" => read::<storage::v1::CSIDriver>(value, fields),
        "csinodes" => read::<storage::v1::CSINode>(value, fields),
        "storageclasses" => read::<storage::v1::StorageClass>(value, fields),
        other => return Err(Refusal::unserved(format_args!("what is in {other}"))),
    };
    checked.map_err(|error| Refusal::undecodable(kind, &error))
}

/// What is lost when a value is read and written again, where that matters.
fn read<'a, K: Deserialize<'a> + Serialize>(
    value: &'a Value,
    fields: Fields,
) -> Result<Vec<String>, serde_json::Error> {
    let read = K::deserialize(value)?;
    let mut lost = Vec::new();
    if fields == Fields::Known {
        losses("", value, &serde_json::to_value(read)?, &mut lost);
    }
    Ok(lost)
}

fn losses(at: &str, value: &Value, written: &Value, into: &mut Vec<String>) {
    match (value, written) {
        (Value::Object(fields), Value::Object(written)) => {
            // Directives of a strategic merge are not of the kind
            for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with('$')) {
                let at = match at {
                    "" => name.clone(),
                    at => format!("{at}.{name}"),
                };
                match written.get(name) {
                    Some(written) => losses(&at, value, written, into),
                    None if value.is_null() => {}
                    None => into.push(at),
                }
            }
        }
        (Value::Array(items), Value::Array(written)) => {
            for (number, (item, written)) in items.iter().zip(written).enumerate() {
                losses(&format!("{at}[{number}]"), item, written, into);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::kinds::KINDS;

    #[test]
    fn every_kind_has_a_shape() {
        for kind in KINDS {
            let empty = json!({"apiVersion": kind.api_version(), "kind": kind.name});
            assert_eq!(check(kind, &empty), Ok(()), "{}", kind.plural);
            let wrong = json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": 1});
            assert_eq!(check(kind, &wrong).expect_err(kind.plural).code, 400);
        }
    }

    #[test]
    fn what_a_kind_does_not_have_is_named() {
        let pod = json!({"metadata": {"name": "a", "labels": {"any": "b"}}, "color": "red",
            "spec": {"containers": [{"name": "a", "ports": [], "imagePullPolice": "Never"}],
                "$retainKeys": []}});
        let told = unknown_fields(Kind::named("pods"), &pod);
        let unknown = ["color", "spec.containers[0].imagePullPolice"].map(str::to_owned);
        assert_eq!(told, Ok(unknown.to_vec()));
    }
}
