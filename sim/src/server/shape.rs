//! Whether an object has the types of its kind: what is stored can be read by anybody.

use std::fmt::Debug;

use k8s_openapi::api::{
    admissionregistration, apps, autoscaling, batch, coordination, core, discovery, networking,
    node, policy, rbac, scheduling, storage,
};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use serde::Deserialize;
use serde_json::Value;

use super::kinds::Kind;
use super::refusal::Refusal;

/// Refuses what is of another shape.
pub(super) fn check(kind: &Kind, value: &Value) -> Result<(), Refusal> {
    let checked = match kind.plural {
        "configmaps" => read::<core::v1::ConfigMap>(value),
        "events" => read::<core::v1::Event>(value),
        "limitranges" => read::<core::v1::LimitRange>(value),
        "namespaces" => read::<core::v1::Namespace>(value),
        "nodes" => read::<core::v1::Node>(value),
        "persistentvolumes" => read::<core::v1::PersistentVolume>(value),
        "persistentvolumeclaims" => read::<core::v1::PersistentVolumeClaim>(value),
        "pods" => read::<core::v1::Pod>(value),
        "podtemplates" => read::<core::v1::PodTemplate>(value),
        "replicationcontrollers" => read::<core::v1::ReplicationController>(value),
        "resourcequotas" => read::<core::v1::ResourceQuota>(value),
        "secrets" => read::<core::v1::Secret>(value),
        "services" => read::<core::v1::Service>(value),
        "clusterroles" => read::<rbac::v1::ClusterRole>(value),
        "clusterrolebindings" => read::<rbac::v1::ClusterRoleBinding>(value),
        "roles" => read::<rbac::v1::Role>(value),
        "rolebindings" => read::<rbac::v1::RoleBinding>(value),
        "serviceaccounts" => read::<core::v1::ServiceAccount>(value),
        "mutatingadmissionpolicies" => {
            read::<admissionregistration::v1::MutatingAdmissionPolicy>(value)
        }
        "mutatingadmissionpolicybindings" => {
            read::<admissionregistration::v1::MutatingAdmissionPolicyBinding>(value)
        }
        "mutatingwebhookconfigurations" => {
            read::<admissionregistration::v1::MutatingWebhookConfiguration>(value)
        }
        "validatingadmissionpolicies" => {
            read::<admissionregistration::v1::ValidatingAdmissionPolicy>(value)
        }
        "validatingadmissionpolicybindings" => {
            read::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>(value)
        }
        "validatingwebhookconfigurations" => {
            read::<admissionregistration::v1::ValidatingWebhookConfiguration>(value)
        }
        "apiservices" => read::<apiregistration::v1::APIService>(value),
        "daemonsets" => read::<apps::v1::DaemonSet>(value),
        "deployments" => read::<apps::v1::Deployment>(value),
        "replicasets" => read::<apps::v1::ReplicaSet>(value),
        "statefulsets" => read::<apps::v1::StatefulSet>(value),
        "horizontalpodautoscalers" => read::<autoscaling::v2::HorizontalPodAutoscaler>(value),
        "cronjobs" => read::<batch::v1::CronJob>(value),
        "jobs" => read::<batch::v1::Job>(value),
        "leases" => read::<coordination::v1::Lease>(value),
        "endpointslices" => read::<discovery::v1::EndpointSlice>(value),
        "networkpolicies" => read::<networking::v1::NetworkPolicy>(value),
        "runtimeclasses" => read::<node::v1::RuntimeClass>(value),
        "poddisruptionbudgets" => read::<policy::v1::PodDisruptionBudget>(value),
        "priorityclasses" => read::<scheduling::v1::PriorityClass>(value),
        "csidrivers" => read::<storage::v1::CSIDriver>(value),
        "csinodes" => read::<storage::v1::CSINode>(value),
        "storageclasses" => read::<storage::v1::StorageClass>(value),
        other => return Err(Refusal::unserved(format_args!("what is in {other}"))),
    };
    checked.map_err(|error| {
        Refusal::bad(format_args!(
            "{} in version \"{}\" cannot be handled as a {}: {error}",
            kind.name, kind.version, kind.name
        ))
    })
}

fn read<'a, K: Deserialize<'a> + Debug>(value: &'a Value) -> Result<(), serde_json::Error> {
    K::deserialize(value).map(drop)
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
}
