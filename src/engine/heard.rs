//! Whether nodes were heard of after a look failed on them.
//!
//! A node that dies stays Ready to the API server until its Lease has run out, 40 s by default
//! (KEP-589), and whatever goes over it fails meanwhile. So a failure counts only once each node that
//! it may be of has renewed its Lease or its status after it, is Ready and was not booted: that takes
//! 10 s at most, a kubelet's period. Nothing here compares clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex as Sync, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use winconform_core::facts::Facts;
use winconform_core::text::printable;
use winconform_core::way::{ApiReply, ApiRequest, Trouble, TroubleKind};

use super::nodes_now::readiness;
use crate::cluster::status::{condition, text};
use crate::cluster::{Condition, poll_until};
use crate::transport::Api;

/// Where kubelets keep their Leases (`k8s.io/api/core/v1`, `NamespaceNodeLease`).
pub(super) const LEASES: &str = "kube-node-lease";

/// A kubelet's `nodeLeaseDurationSeconds` where its Lease does not tell, and the longest believed.
const LASTS: (u64, u64) = (40, 300);

/// What was heard of nodes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    boots: Arc<Sync<BTreeMap<String, Boots>>>,
    /// The nodes on which the cluster's names are resolved.
    dns: Arc<BTreeSet<String>>,
    nodes: Arc<Sync<BTreeMap<String, Arc<Mutex<Node>>>>>,
}

/// The ids of one's boots, each empty where it is not told.
#[derive(Debug, Default)]
struct Boots {
    /// When everything began to be looked at; another later means that it was booted.
    first: String,
    last: String,
}

/// What was heard of one.
#[derive(Debug, Default)]
struct Node {
    last: Option<Sign>,
    /// It has given a sign of life after this.
    alive_after: Option<Instant>,
}

/// What the API server had of it.
#[derive(Clone, Debug)]
struct Sign {
    began: Instant,
    /// When it renewed its Lease, and when its status, as it tells; nothing where no Lease is to be seen.
    renewed: Option<[Json; 2]>,
    /// How long its Lease is good for.
    lasts: Duration,
    /// Empty where it is not told.
    boot: String,
}

impl Heard {
    /// Nothing yet but the facts that the run began with.
    pub(super) fn new(facts: &Facts) -> Self {
        let nodes = facts.nodes.value().into_iter().flatten();
        let boots = nodes.map(|node| {
            let (first, last) = (node.details.boot_id.clone(), String::new());
            (node.name.clone(), Boots { first, last })
        });
        let dns = facts.dns.value().and_then(Option::as_ref);
        let endpoints = dns.iter().flat_map(|dns| &dns.endpoints);
        Self {
            boots: Arc::new(Sync::new(boots.collect())),
            dns: Arc::new(endpoints.filter_map(|end| end.node.clone()).collect()),
            nodes: Arc::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_names_resolved_on(node: &str) -> Self {
        Self {
            dns: Arc::new([node.to_owned()].into()),
            ..Self::default()
        }
    }

    /// The nodes on which the cluster's names are resolved, as the run began.
    pub(super) fn resolve_names(&self) -> &BTreeSet<String> {
        &self.dns
    }

    /// Everything is looked at again: boots before that are over.
    pub(super) fn begin_anew(&self) {
        for boots in self
            .boots()
            .values_mut()
            .filter(|boots| !boots.last.is_empty())
        {
            boots.first.clone_from(&boots.last);
        }
    }

    /// Waits for a sign of life after `since` of each; else why what was seen on them tells nothing.
    pub(super) async fn amiss(
        &self,
        api: &Api,
        since: Instant,
        nodes: &BTreeSet<String>,
    ) -> Option<Trouble> {
        let each = nodes.iter().map(|name| self.amiss_one(api, since, name));
        join_all(each).await.into_iter().flatten().next()
    }

    async fn amiss_one(&self, api: &Api, since: Instant, name: &str) -> Option<Trouble> {
        let node = self.node(name);
        let ask = async || {
            let mut node = node.lock().await;
            let sign = match node.hear(api, name).await {
                Ok(sign) => sign,
                Err(trouble) => return Condition::Never(trouble),
            };
            if self.was_booted(name, &sign.boot) {
                return Condition::Never(changed(name, "was booted"));
            }
            // Where nobody can see it, it is as alive as it is Ready
            match sign.renewed.is_none() || node.alive_after >= Some(since) {
                true => Condition::Done(()),
                false => Condition::NotYet(format!("good for {:?}", sign.lasts)),
            }
        };
        match ask().await {
            Condition::Done(()) => return None,
            Condition::Never(trouble) => return Some(trouble),
            Condition::NotYet(_) => {}
        }
        let lasts = node.lock().await.lasts();
        let (first, what) = (api.durations().look_again, "a sign of life of a node");
        match poll_until(first, lasts, what, ask).await {
            Ok(()) => None,
            Err(trouble) if trouble.kind == TroubleKind::FixtureFailed => {
                let how = format!("fell silent: its Lease was not renewed for {lasts:?}");
                Some(changed(name, &how))
            }
            Err(trouble) => Some(trouble),
        }
    }

    /// Takes note of the boot it is of now; whether that is another than at first.
    fn was_booted(&self, name: &str, now: &str) -> bool {
        let mut all = self.boots();
        let boots = all.entry(name.to_owned()).or_default();
        now.clone_into(&mut boots.last);
        !boots.first.is_empty() && !now.is_empty() && boots.first != now
    }

    fn boots(&self) -> MutexGuard<'_, BTreeMap<String, Boots>> {
        self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&self, name: &str) -> Arc<Mutex<Node>> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(nodes.entry(name.to_owned()).or_default())
    }
}

impl Node {
    /// What the API server has of it now; those who ask together share the answer.
    async fn hear(&mut self, api: &Api, name: &str) -> Result<Sign, Trouble> {
        let began = Instant::now();
        if let Some(sign) = &self.last
            && sign.began + api.durations().look_again > began
        {
            return Ok(sign.clone());
        }
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases/{name}");
        let lease = told(api, name, &lease).await?;
        // After its Lease: who boots tells of it before
        let node = told(api, name, &format!("/api/v1/nodes/{name}")).await?;
        if node.status == 404 {
            return Err(changed(name, "is gone"));
        }
        if node.status == 200 {
            readiness(&node.body)
                .map_err(|said| changed(name, &format!("is no longer Ready: {said}")))?;
        }
        let spec = &lease.body["spec"];
        let ready = condition(&node.body, "Ready").map(|ready| &ready["lastHeartbeatTime"]);
        let renewed = [
            spec["renewTime"].clone(),
            ready.cloned().unwrap_or_default(),
        ];
        let lasts = spec["leaseDurationSeconds"].as_u64().unwrap_or(LASTS.0);
        let sign = Sign {
            began,
            renewed: (lease.status == 200).then_some(renewed),
            lasts: Duration::from_secs(lasts.min(LASTS.1)),
            boot: text(&node.body["status"]["nodeInfo"]["bootID"]).to_owned(),
        };
        if let Some(before) = &self.last
            && before.renewed != sign.renewed
        {
            self.alive_after = Some(before.began);
        }
        Ok(self.last.insert(sign).clone())
    }

    fn lasts(&self) -> Duration {
        let told = self.last.as_ref().map(|sign| sign.lasts);
        told.unwrap_or(Duration::from_secs(LASTS.0))
    }
}

/// An answer about a node: that there is none, that it is not for us, or what there is.
async fn told(api: &Api, name: &str, path: &str) -> Result<ApiReply, Trouble> {
    let reply = api.send(&ApiRequest::get(path)).await?;
    match reply.status {
        200 | 403 | 404 => Ok(reply),
        status => {
            let name = printable(name);
            let detail = format!(
                "whether node {name} is alive: status {status}: {}",
                reply.message()
            );
            Err(Trouble::new(TroubleKind::ApiUnavailable, detail))
        }
    }
}

fn changed(name: &str, how: &str) -> Trouble {
    let detail = format!("Node {}, on which it failed, {how}", printable(name));
    Trouble::new(TroubleKind::FixtureChanged, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use crate::transport::pause;
    use serde_json::json;

    const NODE: &str = "/api/v1/nodes/win-a";
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/win-a";

    fn put(fake: &Fake, ready: &str, boot: &str) {
        fake.put(
            NODE,
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win-a"},
            "status": {"nodeInfo": {"bootID": boot}, "conditions": [{"type": "Ready",
                "status": ready, "reason": "NodeStatusUnknown", "message": "silent"}]}}),
        );
    }

    fn renew(fake: &Fake, second: u32) {
        let time = format!("2026-01-01T00:00:{second:02}.000000Z");
        let spec = json!({"renewTime": time, "leaseDurationSeconds": 40});
        fake.put(LEASE, json!({"kind": "Lease", "spec": spec}));
    }

    /// A node of the first boot, which renewed its Lease a while ago.
    fn alive() -> (Fake, Heard) {
        let fake = Fake::default();
        put(&fake, "True", "1");
        renew(&fake, 0);
        let heard = Heard::default();
        assert!(!heard.was_booted("win-a", "1"));
        heard.begin_anew();
        (fake, heard)
    }

    /// What is amiss, and after how many seconds that was told.
    async fn amiss(fake: &Fake, heard: &Heard) -> (Option<String>, u64) {
        let (api, began) = (fake.api(), Instant::now());
        let nodes = BTreeSet::from(["win-a".to_owned()]);
        let trouble = heard.amiss(&api, began, &nodes).await;
        let detail = trouble.map(|trouble| {
            assert_eq!(trouble.kind, TroubleKind::FixtureChanged);
            let which = "Node win-a, on which it failed, ";
            trouble.detail.trim_start_matches(which).to_owned()
        });
        (detail, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_renews_its_lease_is_alive_and_one_that_does_not_is_silent() {
        let (fake, heard) = alive();
        let renewed = async {
            pause(Duration::from_secs(5)).await;
            renew(&fake, 5);
        };
        let ((told, after), ()) = tokio::join!(amiss(&fake, &heard), renewed);
        assert_eq!((told, after), (None, 7));
        // That it was alive before says nothing
        let told = "fell silent: its Lease was not renewed for 40s";
        let (detail, after) = amiss(&fake, &heard).await;
        assert_eq!((detail.as_deref(), after), (Some(told), 40));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_booted_unready_or_gone_is_told_at_once() {
        let (fake, heard) = alive();
        put(&fake, "True", "2");
        let booted = Some("was booted".to_owned());
        assert_eq!(amiss(&fake, &heard).await, (booted, 0));
        // In the next repetition that is long ago
        heard.begin_anew();
        pause(Duration::from_secs(1)).await;
        let renewed = async {
            pause(Duration::from_secs(1)).await;
            renew(&fake, 9);
        };
        let ((told, _), ()) = tokio::join!(amiss(&fake, &heard), renewed);
        assert_eq!(told, None);
        pause(Duration::from_secs(1)).await;
        put(&fake, "Unknown", "2");
        let unready = "is no longer Ready: NodeStatusUnknown (silent)".to_owned();
        assert_eq!(amiss(&fake, &heard).await, (Some(unready), 0));
        fake.remove(NODE);
        assert_eq!(amiss(&fake, &heard).await, (Some("is gone".to_owned()), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_lease_or_the_right_to_see_it_one_is_as_alive_as_it_is_ready() {
        let (fake, heard) = alive();
        fake.remove(LEASE);
        assert_eq!(amiss(&fake, &heard).await, (None, 0));
        let (fake, heard) = alive();
        fake.script("GET", 403, json!({"message": "no"}));
        assert_eq!(amiss(&fake, &heard).await, (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_together_share_the_answers() {
        let (fake, heard) = alive();
        let (one, two) = tokio::join!(amiss(&fake, &heard), amiss(&fake, &heard));
        assert_eq!(one, two);
        // At 0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5 and 40 s, of the Lease and of the node
        assert_eq!(fake.log().len(), 16);
    }
}
