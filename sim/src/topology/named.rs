//! The topologies that are known by name: YAML in the shape of any topology file.

/// A topology with a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedTopology {
    /// The name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// The file of a plain topology: its nodes, and the objects that show their network.
macro_rules! plain {
    ($name:literal) => {
        concat!(
            include_str!(concat!("plain/", $name, ".yaml")),
            include_str!("plain/flannel-routes.yaml")
        )
    };
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
        Self::of("hybrid", plain!("hybrid")),
        Self::of("three-builds", plain!("three-builds")),
        Self::of("windows-only", plain!("windows-only")),
        Self::of("linux-only", plain!("linux-only")),
        Self::of("single-windows", plain!("single-windows")),
        Self::of("fifty", plain!("fifty")),
    ];

    const fn of(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }
}
