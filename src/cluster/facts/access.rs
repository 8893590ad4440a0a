//! The paths that an account must be allowed to read for each fact.

use super::{network, nodes, objects, server, workloads};

/// For each fact, by its JSON name in `Facts`, the paths that [`collect`](super::collect) reads for it; a
/// fact is unknown without one of them. A list here covers all namespaces, even where only one is read.
pub const READ: &[(&str, &[&str])] = &[
    ("server", &[server::VERSION]),
    ("platform", &[server::VERSION]),
    ("gates", &[server::METRICS]),
    ("cluster", &[server::IDENTITY]),
    ("nodes", &[nodes::NODES]),
    ("silent-nodes", &[nodes::NODES]),
    ("virtual-nodes", &[nodes::NODES]),
    (
        "provider",
        &[
            server::VERSION,
            server::GROUPS,
            nodes::NODES,
            "/api/v1/namespaces/kube-system/configmaps/kubeadm-config",
        ],
    ),
    (
        "cni",
        &[
            server::GROUPS,
            nodes::NODES,
            network::DAEMON_SETS,
            "/api/v1/namespaces/kube-flannel/configmaps/kube-flannel-cfg",
            "/api/v1/namespaces/kube-system/configmaps/kube-flannel-cfg",
            "/api/v1/namespaces/kube-system/configmaps/calico-config",
            "/api/v1/namespaces/calico-system/configmaps/calico-windows-config",
            "/api/v1/namespaces/kube-system/configmaps/cilium-config",
        ],
    ),
    (
        "kube-proxy",
        &[
            "/api/v1/namespaces/kube-system/configmaps/kube-proxy",
            "/api/v1/namespaces/kube-system/configmaps/kube-proxy-windows",
            "/api/v1/namespaces/kube-system/configmaps/kube-proxy-config",
            network::DAEMON_SETS,
        ],
    ),
    (
        "dns",
        &[
            network::SERVICES,
            "/apis/discovery.k8s.io/v1/endpointslices",
        ],
    ),
    ("runtime-classes", &[objects::RUNTIME_CLASSES]),
    ("storage-classes", &[objects::STORAGE_CLASSES]),
    ("snapshot-classes", &[objects::SNAPSHOT_CLASSES]),
    ("csi-drivers", &[objects::CSI_DRIVERS]),
    ("csi-nodes", &[objects::CSI_NODES]),
    (
        "webhooks",
        &[
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        ],
    ),
    (
        "load-balancer",
        &[server::GROUPS, network::SERVICES, network::DAEMON_SETS],
    ),
    ("metrics-api", &[server::METRICS_API]),
    (
        "gmsa",
        &[
            server::GMSA,
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        ],
    ),
    ("workloads", &[nodes::NODES, workloads::PODS]),
    ("pulls", &[nodes::NODES, workloads::EVENTS]),
];
