//! Node liveness: whether nodes gave a sign of life after an assertion failed on them.
//!
//! A dead node stays Ready in the API until its Lease has run out, 40 s by default (KEP-589), and whatever
//! goes through the node fails meanwhile. So a failure counts only once each node that may have caused it
//! has renewed its Lease or its status afterwards, is Ready and was not just booted. Kubelets renew every
//! 10 s by default. Nothing here compares clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex as Sync};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use winconform_core::facts::Facts;
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, ObservationError, Result};
use winconform_core::text::printable;

use super::node_readiness::readiness;
use crate::cluster::objects::kinds::LEASES;
use crate::cluster::objects::status::{condition, word};
use crate::cluster::{Condition, poll};
use crate::transport::{Api, Pace, encode, locked};

/// Where kubelets keep their Leases (`k8s.io/api/core/v1`, `NamespaceNodeLease`).
pub(crate) const NAMESPACE: &str = "kube-node-lease";

/// A kubelet's `nodeLeaseDurationSeconds` where its Lease does not say.
const LASTS: u64 = 40;

/// The shortest and the longest one that is believed, in seconds.
const BELIEVED: (u64, u64) = (10, 300);

/// The signs of life of nodes. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLiveness {
    /// The nodes on which the cluster's names are resolved.
    dns: Arc<BTreeSet<String>>,
    nodes: Arc<Sync<BTreeMap<String, Arc<Mutex<Node>>>>>,
}

#[derive(Debug, Default)]
struct Node {
    /// When it was last asked for, and the answer.
    last: Option<(Instant, Result<Sign>)>,
    /// The last sign of life, and when it was asked for.
    sign: Option<(Instant, Sign)>,
    /// Since when it is known to be gone or not Ready, and the transition time of its condition, if any.
    away: Option<(Instant, String)>,
    /// It has given a sign of life after this.
    alive_after: Option<Instant>,
    /// Its boot ID; empty where that is not known.
    boot: String,
    /// When that ID was first seen, if it had another before.
    booted: Option<Instant>,
}

/// What the API server has about a node.
#[derive(Clone, Debug)]
struct Sign {
    /// When it renewed its Lease, and when its status, by its own clock; `None` without a readable Lease.
    renewed: Option<[Json; 2]>,
    /// How long its Lease is valid.
    lasts: Duration,
    /// Its boot ID; empty where that is not known.
    boot: String,
}

impl NodeLiveness {
    /// Begins with the facts of the start of the run.
    pub(crate) fn new(facts: &Facts) -> Self {
        let nodes = facts.nodes.value().into_iter().flatten();
        let nodes = nodes.map(|node| {
            let boot = node.details.boot_id.clone();
            let known = Node {
                boot,
                ..Node::default()
            };
            (node.name.clone(), Arc::new(Mutex::new(known)))
        });
        let dns = facts.dns.value().and_then(Option::as_ref);
        let endpoints = dns.iter().flat_map(|dns| &dns.endpoints);
        // No client is sent to the others
        let ready = endpoints.filter(|endpoint| endpoint.ready);
        Self {
            dns: Arc::new(ready.filter_map(|endpoint| endpoint.node.clone()).collect()),
            nodes: Arc::new(Sync::new(nodes.collect())),
        }
    }

    /// Waits for a sign of life after `since` from each node and, with `names`, from those that resolve
    /// names; returns why an observation on them does not count, if it does not.
    pub(crate) async fn amiss(
        &self,
        api: &Api,
        since: Instant,
        nodes: &BTreeSet<String>,
        names: bool,
    ) -> Option<ObservationError> {
        let resolve: Vec<_> = self.dns.iter().filter(|_| names).collect();
        let others = nodes.iter().filter(|name| !resolve.contains(name));
        let wanted: Vec<_> = resolve.iter().copied().chain(others).collect();
        // All are asked for, so that the state of each is known from now on
        let now = join_all(wanted.iter().map(|name| self.ask(api, since, name))).await;
        let (mut silent, mut away) = (FuturesUnordered::new(), Vec::new());
        for (how, name) in now.into_iter().zip(wanted) {
            match how {
                Condition::Done(()) => {}
                // No client has been sent there for long to resolve names
                Condition::Never(error)
                    if !nodes.contains(name) && self.is_away_for_long(api, since, name).await =>
                {
                    away.push(error);
                }
                Condition::Never(error) => return Some(error),
                Condition::NotYet(_) => silent.push(self.silence(api, since, name)),
            }
        }
        if !away.is_empty() && away.len() == resolve.len() {
            return away.pop();
        }
        while let Some(one) = silent.next().await {
            if one.is_some() {
                return one;
            }
        }
        None
    }

    /// Whether a node was known to be gone or not Ready long before.
    async fn is_away_for_long(&self, api: &Api, since: Instant, name: &str) -> bool {
        let node = self.node(name);
        let away = node.lock().await.away.as_ref().map(|(away, _)| *away);
        away.is_some_and(|away| away + api.durations().converge < since)
    }

    /// Whether a node has given a sign of life after `since`, by one more request at most.
    async fn ask(&self, api: &Api, since: Instant, name: &str) -> Condition<()> {
        let now = Instant::now();
        let node = self.node(name);
        let mut node = node.lock().await;
        let sign = match node.sign_of_life(api, name, now).await {
            Ok(sign) => sign,
            Err(error) => return Condition::Never(error),
        };
        // The pods there take their time to come back
        let booted = node.booted(&sign.boot);
        if booted.is_some_and(|seen| since <= seen + api.durations().converge) {
            return Condition::Never(changed(name, "was booted"));
        }
        // Without a readable Lease, a Ready node counts as alive
        match sign.renewed.is_none() || node.alive_after >= Some(since) {
            true => Condition::Done(()),
            false => Condition::NotYet(format!("good for {:?}", sign.lasts)),
        }
    }

    /// Waits for a sign of life after `since`; the error if there is none.
    async fn silence(&self, api: &Api, since: Instant, name: &str) -> Option<ObservationError> {
        let node = self.node(name);
        let known = node.lock().await.sign.as_ref().map(|(_, sign)| sign.lasts);
        let lasts = known.unwrap_or(Duration::from_secs(LASTS));
        let (pause, what) = (api.durations().sign_of_life, "a sign of life of a node");
        let query = async || self.ask(api, since, name).await;
        match poll(Pace::steady(pause), lasts, what, query).await {
            Ok(()) => None,
            Err(error) if error.kind == ErrorKind::FixtureFailed => {
                let how = format!("fell silent: its Lease was not renewed for {lasts:?}");
                Some(changed(name, &how))
            }
            Err(error) => Some(error),
        }
    }

    fn node(&self, name: &str) -> Arc<Mutex<Node>> {
        let mut nodes = locked(&self.nodes);
        Arc::clone(nodes.entry(name.to_owned()).or_default())
    }
}

impl Node {
    /// What the API server has about it; concurrent callers share the answer, even an error.
    async fn sign_of_life(&mut self, api: &Api, name: &str, now: Instant) -> Result<Sign> {
        if let Some((began, answer)) = &self.last
            && *began + api.durations().observe_again > now
        {
            return answer.clone();
        }
        let began = Instant::now();
        let (answer, since) = match ask(api, name).await {
            Ok(sign) => (Ok(sign), String::new()),
            Err((error, since)) => (Err(error), since),
        };
        match &answer {
            Ok(_) => self.away = None,
            Err(error) if error.kind == ErrorKind::FixtureChanged => {
                // With another transition time it was back meanwhile; other words change while it is away
                let known = |before: &str| !before.is_empty() && !since.is_empty();
                let again = |(_, before): &(Instant, String)| known(before) && *before != since;
                if self.away.as_ref().is_none_or(again) {
                    self.away = Some((began, since));
                }
            }
            Err(_) => {}
        }
        if let Ok(sign) = &answer {
            if let Some((began, before)) = &self.sign
                && before.renewed != sign.renewed
            {
                self.alive_after = Some(*began);
            }
            self.sign = Some((began, sign.clone()));
        }
        self.last = Some((began, answer.clone()));
        answer
    }

    /// Takes note of its boot ID; returns when that was first seen, if it had another before.
    fn booted(&mut self, id: &str) -> Option<Instant> {
        if !id.is_empty() && self.boot != id {
            self.booted = (!self.boot.is_empty()).then(Instant::now);
            id.clone_into(&mut self.boot);
        }
        self.booted
    }
}

/// A node's sign of life, or why there is none, with the transition time of its condition, if any.
async fn ask(api: &Api, name: &str) -> Result<Sign, (ObservationError, String)> {
    let unknown = |error| (error, String::new());
    let lease = read_answer(api, name, LEASES.object_path(Some(NAMESPACE), name)).await;
    let lease = lease.map_err(unknown)?;
    // Read after its Lease: a node that boots reports this before it renews the Lease
    let node = read_answer(api, name, format!("/api/v1/nodes/{}", encode(name))).await;
    let node = node.map_err(unknown)?;
    if node.status == 404 {
        return Err(unknown(changed(name, "is gone")));
    }
    if node.status == 200 {
        readiness(&node.body).map_err(|said| {
            let ready = condition(&node.body, "Ready");
            let since = ready.map(|ready| word(&ready["lastTransitionTime"]));
            let since = since.unwrap_or_default();
            let from = match since.as_str() {
                "" => String::new(),
                since => format!(" since {}", printable(since)),
            };
            let how = format!("is no longer Ready{from}: {said}");
            (changed(name, &how), since)
        })?;
    }
    let spec = &lease.body["spec"];
    let ready = condition(&node.body, "Ready").map(|ready| &ready["lastHeartbeatTime"]);
    let renewed = [
        spec["renewTime"].clone(),
        ready.cloned().unwrap_or_default(),
    ];
    let lasts = spec["leaseDurationSeconds"].as_u64().unwrap_or(LASTS);
    Ok(Sign {
        renewed: (lease.status == 200).then_some(renewed),
        lasts: Duration::from_secs(lasts.clamp(BELIEVED.0, BELIEVED.1)),
        boot: word(&node.body["status"]["nodeInfo"]["bootID"]),
    })
}

/// An answer about a node: its object, or that it does not exist or is forbidden.
async fn read_answer(api: &Api, name: &str, path: String) -> Result<ApiReply> {
    let reply = api.send(&ApiRequest::get(path)).await?;
    match reply.status {
        200 | 403 | 404 => Ok(reply),
        status => {
            let (name, said) = (printable(name), reply.message());
            let detail = format!("whether node {name} is alive: status {status}: {said}");
            Err(ErrorKind::ApiUnavailable.error(detail))
        }
    }
}

fn changed(name: &str, how: &str) -> ObservationError {
    let detail = format!("Node {}, on which it failed, {how}", printable(name));
    ErrorKind::FixtureChanged.error(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use crate::transport::pause;
    use serde_json::json;
    use winconform_core::facts::{ClusterDns, DnsEndpoint, Known};

    const NODE: &str = "/api/v1/nodes/win-a";
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/win-a";

    /// A node without a Lease.
    const NODE_B: &str = "/api/v1/nodes/win-b";

    fn ready(name: &str) -> Json {
        json!({"metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    }

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
    fn alive() -> (Fake, NodeLiveness) {
        let fake = Fake::default();
        put(&fake, "True", "1");
        renew(&fake, 0);
        let live = NodeLiveness::default();
        let node = live.node("win-a");
        let mut node = node.try_lock().expect("nobody else asks");
        assert_eq!(node.booted("1"), None);
        drop(node);
        (fake, live)
    }

    fn own(name: &str) -> BTreeSet<String> {
        BTreeSet::from([name.to_owned()])
    }

    /// What is amiss with it, and after how many seconds that was reported.
    async fn amiss(fake: &Fake, live: &NodeLiveness) -> (Option<String>, u64) {
        let (api, since) = (fake.api(), Instant::now());
        let error = live.amiss(&api, since, &own("win-a"), false).await;
        let detail = error.map(|error| {
            assert_eq!(error.kind, ErrorKind::FixtureChanged);
            let which = "Node win-a, on which it failed, ";
            error.detail.trim_start_matches(which).to_owned()
        });
        (detail, since.elapsed().as_secs())
    }

    /// The same, where it renews its Lease after so many seconds.
    async fn amiss_though_renewed(
        fake: &Fake,
        live: &NodeLiveness,
        after: u32,
    ) -> (Option<String>, u64) {
        let renewed = async {
            pause(Duration::from_secs(after.into())).await;
            renew(fake, after);
        };
        tokio::join!(amiss(fake, live), renewed).0
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_renews_its_lease_is_alive_and_one_that_does_not_is_silent() {
        let (fake, live) = alive();
        assert_eq!(amiss_though_renewed(&fake, &live, 5).await, (None, 6));
        // That it was alive before says nothing
        let told = "fell silent: its Lease was not renewed for 40s";
        let (detail, after) = amiss(&fake, &live).await;
        assert_eq!((detail.as_deref(), after), (Some(told), 40));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_booted_unready_or_gone_is_told_at_once() {
        let (fake, live) = alive();
        put(&fake, "True", "2");
        let booted = Some("was booted".to_owned());
        assert_eq!(amiss(&fake, &live).await, (booted.clone(), 0));
        pause(fake.api().durations().converge).await;
        assert_eq!(amiss(&fake, &live).await, (booted, 0));
        // A failure then counts
        pause(Duration::from_secs(1)).await;
        assert_eq!(amiss_though_renewed(&fake, &live, 1).await.0, None);
        pause(Duration::from_secs(1)).await;
        put(&fake, "Unknown", "2");
        let unready = "is no longer Ready: NodeStatusUnknown (silent)".to_owned();
        assert_eq!(amiss(&fake, &live).await, (Some(unready), 0));
        pause(Duration::from_secs(1)).await;
        fake.remove(NODE);
        assert_eq!(amiss(&fake, &live).await, (Some("is gone".to_owned()), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_lease_or_the_right_to_see_it_one_is_as_alive_as_it_is_ready() {
        let (fake, live) = alive();
        fake.remove(LEASE);
        assert_eq!(amiss(&fake, &live).await, (None, 0));
        let (fake, live) = alive();
        fake.script("GET", 403, json!({"message": "no"}));
        assert_eq!(amiss(&fake, &live).await, (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_says_nonsense_is_waited_for_as_long_as_makes_sense() {
        for (told, lasts) in [(json!(0), 10), (json!(u64::MAX), 300), (json!("x"), 40)] {
            let (fake, live) = alive();
            fake.put(LEASE, json!({"spec": {"leaseDurationSeconds": told}}));
            assert_eq!(amiss(&fake, &live).await.1, lasts);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_together_share_the_answers() {
        let (fake, live) = alive();
        let (one, two) = tokio::join!(amiss(&fake, &live), amiss(&fake, &live));
        assert_eq!(one, two);
        // At once and every 2 s for 40, of the Lease and of the node
        assert_eq!(fake.log().len(), 2 * 21);
        // They share an error as well
        let (fake, live) = alive();
        fake.script("GET", 500, json!({"message": "no"}));
        let (api, since, nodes) = (fake.api(), Instant::now(), own("win-a"));
        let amiss = || live.amiss(&api, since, &nodes, false);
        let (one, two) = tokio::join!(amiss(), amiss());
        assert_eq!(one, two);
        assert_eq!(one.map(|one| one.kind), Some(ErrorKind::ApiUnavailable));
        let alone = fake.log().len();
        let (fake, live) = alive();
        fake.script("GET", 500, json!({"message": "no"}));
        live.amiss(&fake.api(), Instant::now(), &nodes, false).await;
        assert_eq!(fake.log().len(), alone);
    }

    #[tokio::test(start_paused = true)]
    async fn who_resolves_names_counts_where_there_are_names_and_while_it_is_there() {
        let endpoint = |node: &str, ready| DnsEndpoint {
            address: "10.0.0.1".to_owned(),
            node: Some(node.to_owned()),
            ready,
        };
        let among = |others: usize| {
            let others = (0..others).map(|_| endpoint("win-b", true));
            let own = [endpoint("win-a", true), endpoint("dead", false)];
            let dns = ClusterDns {
                service: "kube-system/kube-dns".to_owned(),
                addresses: Vec::new(),
                endpoints: own.into_iter().chain(others).collect(),
            };
            let dns = Known::Fact {
                value: Some(dns),
                source: String::new(),
            };
            NodeLiveness::new(&Facts {
                dns,
                ..Facts::default()
            })
        };
        let (fake, _) = alive();
        let (api, none) = (fake.api(), BTreeSet::new());
        let amiss = async |live: &NodeLiveness, names| {
            let told = live.amiss(&api, Instant::now(), &none, names).await;
            told.map(|error| error.detail)
        };
        let live = among(0);
        assert_eq!(amiss(&live, false).await, None);
        let told = "Node win-a, on which it failed, fell silent: its Lease was not renewed for 40s";
        assert_eq!(amiss(&live, true).await.as_deref(), Some(told));
        // The only one is needed; of two, the one that has been away for long is not
        put(&fake, "Unknown", "1");
        let away = "Node win-a, on which it failed, is no longer Ready: NodeStatusUnknown (silent)";
        for others in [1, 0] {
            fake.put(NODE_B, ready("win-b"));
            let live = among(others);
            assert_eq!(amiss(&live, true).await.as_deref(), Some(away));
            pause(api.durations().converge + Duration::from_secs(1)).await;
            let told = amiss(&live, true).await;
            assert_eq!(told.is_none(), others > 0, "{told:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn how_long_one_is_away_counts_from_its_going_whatever_is_said_of_it() {
        let fake = Fake::default();
        let api = fake.api();
        let put = |since: Option<&str>, message: &str| {
            let mut ready = json!({"type": "Ready", "status": "False", "message": message});
            if let Some(since) = since {
                ready["lastTransitionTime"] = json!(since);
            }
            let conditions = json!([ready]);
            let node = json!({"metadata": {"name": "win-a"}, "status": {"conditions": conditions}});
            fake.put(NODE, node);
        };
        let long = api.durations().converge + Duration::from_secs(1);
        let (first, second) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-01T00:09:00Z"));
        for (before, after, is_long) in [
            (first, first, true),
            // Without a transition time
            (None, None, true),
            (first, None, true),
            // It was back meanwhile
            (first, second, false),
        ] {
            let live = NodeLiveness::default();
            let node = live.node("win-a");
            let away = async |since, message| {
                put(since, message);
                let now = Instant::now();
                let told = node.lock().await.sign_of_life(&api, "win-a", now).await;
                assert!(told.is_err(), "{told:?}");
                live.is_away_for_long(&api, now, "win-a").await
            };
            assert!(!away(before, "the runtime was last seen 3m2s ago").await);
            pause(long).await;
            let told = away(after, "the runtime was last seen 4m3s ago").await;
            assert_eq!(told, is_long, "{before:?} {after:?}");
        }
    }
}
