//! The network as far as the API shows it: plugin, kube-proxy, DNS.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cni {
    /// Its name, such as `flannel`, `calico`, `antrea`, `azure-cni`.
    pub product: String,
    /// How it connects Windows pods, if the API says.
    pub mode: Option<CniMode>,
    /// VXLAN network identifier and UDP port, where configured.
    pub vxlan: Option<Vxlan>,
    /// The signs by which it was recognised: objects with what they held.
    pub signs: Vec<String>,
    /// Which parts of its configuration could not be read, and why: if there are any, a mode or VXLAN that is
    /// `None` is unknown rather than not set.
    #[serde(default)]
    pub unread: Vec<String>,
}

/// The HNS network type Windows pods are connected by (Kubernetes documentation, Windows networking).
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum CniMode {
    L2bridge,
    L2tunnel,
    /// Overlay, over VXLAN or Geneve.
    Overlay,
    Transparent,
}

crate::text::words!(CniMode);

impl CniMode {
    /// As Microsoft writes it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::L2bridge => "L2bridge",
            Self::L2tunnel => "L2tunnel",
            Self::Overlay | Self::Transparent => self.as_str(),
        }
    }
}

/// A VXLAN's identifier and port.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vxlan {
    /// VNI; `None` when left to the default.
    pub vni: Option<u32>,
    /// UDP port; `None` when left to the default.
    pub port: Option<u16>,
}

/// kube-proxy, as its ConfigMap, pods or arguments describe it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KubeProxy {
    /// The mode written in the configuration Linux nodes use, such as `iptables`.
    pub linux_mode: Option<String>,
    /// The mode written for Windows nodes, such as `kernelspace`.
    pub windows_mode: Option<String>,
    /// Whether its configuration asks for direct server return on Windows.
    pub dsr: Option<bool>,
    pub signs: Vec<String>,
    /// What could not be read, and why: if there is anything, a field that is `None` is unknown rather than
    /// not set.
    #[serde(default)]
    pub unread: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClusterDns {
    /// `namespace/name` of its Service.
    pub service: String,
    pub addresses: Vec<String>,
    pub endpoints: Vec<DnsEndpoint>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DnsEndpoint {
    pub address: String,
    /// The node it is on, when the EndpointSlice says.
    pub node: Option<String>,
    pub ready: bool,
}
