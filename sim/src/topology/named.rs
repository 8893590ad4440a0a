//! The topologies that are known by name: YAML in the shape of any topology file.

/// A topology with a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedTopology {
    /// The name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

impl NamedTopology {
    /// All of them; the first is a demo's default.
    pub const ALL: &[Self] = &[
        Self::of("kubeadm-flannel", include_str!("kubeadm-flannel.yaml")),
        Self::of("kubeadm-calico", include_str!("kubeadm-calico.yaml")),
        Self::of("aks", include_str!("aks.yaml")),
        Self::of("capz", include_str!("capz.yaml")),
        Self::of("eks", include_str!("eks.yaml")),
        Self::of("gke", include_str!("gke.yaml")),
        Self::of("openshift", include_str!("openshift.yaml")),
        Self::of("rke2", include_str!("rke2.yaml")),
        Self::of(
            "hybrid",
            concat!(
                include_str!("plain/hybrid.yaml"),
                include_str!("plain/flannel-routes.yaml")
            ),
        ),
        Self::of(
            "three-builds",
            concat!(
                include_str!("plain/three-builds.yaml"),
                include_str!("plain/flannel-routes.yaml")
            ),
        ),
        Self::of(
            "windows-only",
            concat!(
                include_str!("plain/windows-only.yaml"),
                include_str!("plain/flannel-routes.yaml")
            ),
        ),
        Self::of(
            "linux-only",
            concat!(
                include_str!("plain/linux-only.yaml"),
                include_str!("plain/flannel-routes.yaml")
            ),
        ),
        Self::of(
            "single-windows",
            concat!(
                include_str!("plain/single-windows.yaml"),
                include_str!("plain/flannel-routes.yaml")
            ),
        ),
        Self::of(
            "fifty",
            concat!(
                include_str!("plain/fifty.yaml"),
                include_str!("plain/flannel-routes.yaml")
            ),
        ),
    ];

    const fn of(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }
}
