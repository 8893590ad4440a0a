//! Whether the nodes that a look was aimed at are still Ready, asked only of looks that failed.
//!
//! A node that dies takes its node ports and its kubelet with it, and no rule of the network
//! speaks of that. Only those nodes are asked for, and looks that end together share the answers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use winconform_core::text::printable;
use winconform_core::way::{ApiRequest, Host, Request, StandingNode, Trouble, TroubleKind};

use crate::cluster::status::{condition, text};
use crate::transport::{Api, encode};

/// What was last asked, by name of the node. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct NodesNow {
    last: Arc<Mutex<BTreeMap<String, (Instant, Told)>>>,
}

/// How a node is where it is not Ready.
type Told = Result<Result<(), String>, Trouble>;

impl NodesNow {
    /// Why a request to addresses of nodes tells nothing: one of them is gone or is no longer
    /// Ready at `since` or later, or nobody could tell.
    pub(super) async fn amiss(
        &self,
        api: &Api,
        since: Instant,
        request: &Request,
        nodes: &[StandingNode],
    ) -> Option<Trouble> {
        let aimed_at: Vec<_> = nodes.iter().filter(|node| is_aim(request, node)).collect();
        if aimed_at.is_empty() {
            return None;
        }
        let mut last = self.last.lock().await;
        let is_old = |name: &str| last.get(name).is_none_or(|(began, _)| *began < since);
        let old = aimed_at.iter().filter(|node| is_old(&node.name));
        let asked: Vec<_> = old.map(|node| ask(api, &node.name)).collect();
        last.extend(join_all(asked).await);
        aimed_at
            .into_iter()
            .find_map(|node| match last.get(&node.name) {
                Some((_, Ok(Ok(())))) | None => None,
                Some((_, Ok(Err(how)))) => {
                    let detail =
                        format!("Node {}, at which it looks, {how}", printable(&node.name));
                    Some(Trouble::new(TroubleKind::FixtureChanged, detail))
                }
                Some((_, Err(trouble))) => Some(trouble.clone()),
            })
    }
}

fn is_aim(request: &Request, node: &StandingNode) -> bool {
    let own = |address: &IpAddr| node.addresses.contains(address);
    match request {
        Request::Get(gets) => gets
            .iter()
            .any(|get| matches!(&get.host, Host::Address(address) if own(address))),
        Request::Ping(addresses) => addresses.iter().any(own),
        Request::Api(_) | Request::Facts => false,
    }
}

/// A node by its name, when it was asked for, and how it is.
async fn ask(api: &Api, name: &str) -> (String, (Instant, Told)) {
    let (began, path) = (Instant::now(), format!("/api/v1/nodes/{}", encode(name)));
    let told = api.send(&ApiRequest::get(path)).await;
    let told = told.and_then(|reply| match reply.status {
        200 => Ok(readiness(&reply.body).map_err(|said| format!("is no longer Ready: {said}"))),
        404 => Ok(Err("is gone".to_owned())),
        _ => {
            let (name, said) = (printable(name), reply.message());
            let detail = format!("whether node {name} is still Ready: {said}");
            let kind = reply.refusal(TroubleKind::ApiUnavailable);
            Err(Trouble::new(kind, detail))
        }
    });
    (name.to_owned(), (began, told))
}

pub(super) fn readiness(node: &Json) -> Result<(), String> {
    match condition(node, "Ready") {
        Some(ready) if ready["status"] == "True" => Ok(()),
        Some(ready) => {
            let of = |key: &str| printable(text(&ready[key]));
            Err(format!("{} ({})", of("reason"), of("message")))
        }
        None => Err("it has no such condition".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use serde_json::json;
    use winconform_core::facts::PoolName;
    use winconform_core::way::HttpGet;

    const NODE: &str = "/api/v1/nodes/win-a";

    fn put(fake: &Fake, status: &str) {
        fake.put(
            NODE,
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win-a"},
            "status": {"conditions": [{"type": "Ready", "status": status,
                "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting"}]}}),
        );
    }

    fn nodes() -> Vec<StandingNode> {
        vec![StandingNode {
            name: "win-a".to_owned(),
            pool: PoolName::linux(),
            kubelet: None,
            addresses: vec![IpAddr::from([10, 0, 0, 7])],
        }]
    }

    fn get(last: u8) -> Request {
        Request::Get(vec![HttpGet {
            host: Host::Address(IpAddr::from([10, 0, 0, last])),
            port: 30080,
            path: "/".to_owned(),
        }])
    }

    #[tokio::test(start_paused = true)]
    async fn only_nodes_aimed_at_count_and_are_asked_for_once() {
        let fake = Fake::default();
        put(&fake, "True");
        let (now, api, since) = (NodesNow::default(), fake.api(), Instant::now());
        assert_eq!(now.amiss(&api, since, &get(8), &nodes()).await, None);
        assert!(fake.log().is_empty());
        assert_eq!(now.amiss(&api, since, &get(7), &nodes()).await, None);
        assert_eq!(now.amiss(&api, since, &get(7), &nodes()).await, None);
        assert_eq!(fake.log(), ["GET /api/v1/nodes/win-a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_fell_silent_or_is_gone_is_named() {
        let fake = Fake::default();
        put(&fake, "Unknown");
        let (now, api) = (NodesNow::default(), fake.api());
        let since = Instant::now();
        let trouble = now.amiss(&api, since, &get(7), &nodes()).await;
        let trouble = trouble.expect("it is not Ready");
        assert_eq!(trouble.kind, TroubleKind::FixtureChanged);
        assert_eq!(
            trouble.detail,
            "Node win-a, at which it looks, is no longer Ready: NodeStatusUnknown \
             (Kubelet stopped posting)"
        );
        fake.remove(NODE);
        let later = since + api.durations().look_again;
        let trouble = now.amiss(&api, later, &get(7), &nodes()).await;
        assert_eq!(
            trouble.map(|trouble| trouble.detail).as_deref(),
            Some("Node win-a, at which it looks, is gone")
        );
    }
}
