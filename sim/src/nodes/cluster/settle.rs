//! The moment from which a new Windows pod has its names.

use std::sync::Arc;
use std::time::Duration;

use super::Cluster;
use crate::world::Key;

/// DNS in a new Windows pod lags behind its start, 1 s to over a minute (AKS issues 2161 and 2213);
/// on a healthy cluster it is about this.
const LAG: Duration = Duration::from_secs(3);

/// Has a new pod's resolver reach its server after a while, unless it does so already.
pub(crate) fn settle(cluster: &Arc<Cluster>, key: &Key, uid: &str) {
    let all = Arc::clone(cluster);
    let (key, uid) = (key.clone(), uid.to_owned());
    let world = cluster.world();
    let pod = world.pods.get(&key);
    if !pod.is_some_and(|pod| pod.uid == uid && !pod.dns_ready) {
        return;
    }
    let lag = cluster.chance.about(&format!("dns {uid}"), LAG);
    cluster.spawn(async move {
        all.clock.pass(lag).await;
        all.change(|world| {
            if let Some(pod) = world.pods.own_mut(&key, &uid) {
                pod.dns_ready = true;
            }
        });
    });
}
