//! Which products make up a cluster, recognised by rules that are data (`products.yaml`).
//!
//! Pure: signs in, products out. It never chooses between signs of two network plugins or providers, and
//! never takes what could not be read as absent.

mod proxy;
mod recognise;
mod rules;
mod signs;

pub use proxy::{PROXY_CONFIG_MAPS, kube_proxy};
pub use rules::Rules;
pub use signs::{ConfigMapSign, DaemonSetSign, NodeSigns, Signs, texts};
