//! Which products make up a cluster, recognised by rules that are data (`products.yaml`).
//!
//! Pure: signs in, products out. Two network plugins or providers at once are never guessed
//! between, and what could not be read is never taken as absent.

mod proxy;
mod recognise;
mod rules;
mod signs;

pub use proxy::{PROXY_CONFIG_MAPS, kube_proxy};
pub use rules::Rules;
pub use signs::{ConfigMapSign, DaemonSetSign, NodeSigns, Signs, texts};
