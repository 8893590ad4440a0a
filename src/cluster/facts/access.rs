//! What each fact needs to be allowed to read.

/// One permission that a fact needs; without it the fact is unknown.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Access {
    /// The fact, as its field of `Facts` is spelled in JSON.
    pub fact: &'static str,
    /// The verb, as RBAC spells it.
    pub verb: &'static str,
    pub of: Subject,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Subject {
    Resource {
        /// API group; empty for the core group.
        group: &'static str,
        /// Resource in the plural, without a subresource: no fact needs one.
        resource: &'static str,
        /// The namespace; `None` for all, and for resources that are in none.
        namespace: Option<&'static str>,
        /// The one object; `None` for all.
        name: Option<&'static str>,
    },
    /// A path that is no resource (RBAC's `nonResourceURLs`).
    Path(&'static str),
}

/// Every permission that [`collect`](super::collect) makes use of.
pub const ACCESS: &[Access] = &[
    path("server", "/version"),
    path("platform", "/version"),
    path("gates", "/metrics"),
    object("cluster", "namespaces", None, "kube-system"),
    list("nodes", "", "nodes"),
    list("silent-nodes", "", "nodes"),
    path("provider", "/version"),
    path("provider", "/apis"),
    list("provider", "", "nodes"),
    config_map("provider", "kube-system", "kubeadm-config"),
    path("cni", "/apis"),
    list("cni", "", "nodes"),
    list("cni", "apps", "daemonsets"),
    config_map("cni", "kube-flannel", "kube-flannel-cfg"),
    config_map("cni", "kube-system", "kube-flannel-cfg"),
    config_map("cni", "kube-system", "calico-config"),
    config_map("cni", "calico-system", "calico-windows-config"),
    config_map("cni", "kube-system", "cilium-config"),
    config_map("kube-proxy", "kube-system", "kube-proxy"),
    config_map("kube-proxy", "kube-system", "kube-proxy-windows"),
    config_map("kube-proxy", "kube-system", "kube-proxy-config"),
    list("kube-proxy", "apps", "daemonsets"),
    list("dns", "", "services"),
    list("dns", "discovery.k8s.io", "endpointslices"),
    list("runtime-classes", "node.k8s.io", "runtimeclasses"),
    list("storage-classes", "storage.k8s.io", "storageclasses"),
    list("csi-drivers", "storage.k8s.io", "csidrivers"),
    list("csi-nodes", "storage.k8s.io", "csinodes"),
    admission("webhooks", "mutatingwebhookconfigurations"),
    admission("webhooks", "validatingwebhookconfigurations"),
    admission("webhooks", "mutatingadmissionpolicies"),
    admission("webhooks", "mutatingadmissionpolicybindings"),
    admission("webhooks", "validatingadmissionpolicies"),
    admission("webhooks", "validatingadmissionpolicybindings"),
    path("load-balancer", "/apis"),
    list("load-balancer", "", "services"),
    list("load-balancer", "apps", "daemonsets"),
    Access {
        fact: "metrics-api",
        verb: "get",
        of: Subject::Resource {
            group: "apiregistration.k8s.io",
            resource: "apiservices",
            namespace: None,
            name: Some("v1beta1.metrics.k8s.io"),
        },
    },
    path("gmsa", "/apis/windows.k8s.io/v1"),
    admission("gmsa", "mutatingwebhookconfigurations"),
    admission("gmsa", "validatingwebhookconfigurations"),
    list("workloads", "", "nodes"),
    list("workloads", "", "pods"),
    list("pulls", "", "nodes"),
    list("pulls", "", "events"),
];

const fn path(fact: &'static str, path: &'static str) -> Access {
    Access {
        fact,
        verb: "get",
        of: Subject::Path(path),
    }
}

const fn list(fact: &'static str, group: &'static str, resource: &'static str) -> Access {
    Access {
        fact,
        verb: "list",
        of: Subject::Resource {
            group,
            resource,
            namespace: None,
            name: None,
        },
    }
}

const fn admission(fact: &'static str, resource: &'static str) -> Access {
    list(fact, "admissionregistration.k8s.io", resource)
}

const fn object(
    fact: &'static str,
    resource: &'static str,
    namespace: Option<&'static str>,
    name: &'static str,
) -> Access {
    Access {
        fact,
        verb: "get",
        of: Subject::Resource {
            group: "",
            resource,
            namespace,
            name: Some(name),
        },
    }
}

const fn config_map(fact: &'static str, namespace: &'static str, name: &'static str) -> Access {
    object(fact, "configmaps", Some(namespace), name)
}
