//! The paths that an account must be allowed to read for each fact.

/// For each fact, by its JSON name in `Facts`, the paths that [`collect`](super::collect) reads for it; a
/// fact is unknown without one of them. A list here covers all namespaces, even where only one is read.
pub const READ: &[(&str, &[&str])] = &[
    ("server", &["/version"]),
    ("platform", &["/version"]),
    ("gates", &["/metrics"]),
    ("cluster", &["/api/v1/namespaces/kube-system"]),
    ("nodes", &["/api/v1/nodes"]),
    ("silent-nodes", &["/api/v1/nodes"]),
    ("virtual-nodes", &["/api/v1/nodes"]),
    (
        "provider",
        &[
            "/version",
            "/apis",
            "/api/v1/nodes",
            "/api/v1/namespaces/kube-system/configmaps/kubeadm-config",
        ],
    ),
    (
        "cni",
        &[
            "/apis",
            "/api/v1/nodes",
            "/apis/apps/v1/daemonsets",
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
            "/apis/apps/v1/daemonsets",
        ],
    ),
    (
        "dns",
        &[
            "/api/v1/services",
            "/apis/discovery.k8s.io/v1/endpointslices",
        ],
    ),
    ("runtime-classes", &["/apis/node.k8s.io/v1/runtimeclasses"]),
    (
        "storage-classes",
        &["/apis/storage.k8s.io/v1/storageclasses"],
    ),
    (
        "snapshot-classes",
        &["/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses"],
    ),
    ("csi-drivers", &["/apis/storage.k8s.io/v1/csidrivers"]),
    ("csi-nodes", &["/apis/storage.k8s.io/v1/csinodes"]),
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
        &["/apis", "/api/v1/services", "/apis/apps/v1/daemonsets"],
    ),
    (
        "metrics-api",
        &["/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"],
    ),
    (
        "gmsa",
        &[
            "/apis/windows.k8s.io/v1",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        ],
    ),
    ("workloads", &["/api/v1/nodes", "/api/v1/pods"]),
    ("pulls", &["/api/v1/nodes", "/api/v1/events"]),
];
