//! Whether the nodes that an assertion was aimed at are still Ready; asked for only after it failed.
//!
//! The node ports and the kubelet of a dead node do not answer, and no documented rule of the network covers
//! that. Assertions that end together share the answer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value as Json;
use tokio::time::Instant;
use winconform_core::method::{ErrorKind, Host, ObservationError, PoolNode, Request, Result};
use winconform_core::text::printable;

use super::fresh_answer::FreshAnswer;
use crate::cluster::fold;
use crate::cluster::objects::status::{condition, text};
use crate::transport::Api;

/// The last answer. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeReadiness {
    last: Arc<FreshAnswer<Conditions>>,
}

/// By name of the node, what its condition says where it is not Ready.
type Conditions = Result<Arc<BTreeMap<String, Result<(), String>>>>;

impl NodeReadiness {
    /// Why a request to addresses of nodes does not count: one of these is gone or no longer Ready at `since`
    /// or later, or that is unknown.
    pub(crate) async fn amiss(
        &self,
        api: &Api,
        since: Instant,
        request: &Request,
        nodes: &[PoolNode],
    ) -> Option<ObservationError> {
        let aimed_at: Vec<_> = nodes.iter().filter(|node| is_aim(request, node)).collect();
        if aimed_at.is_empty() {
            return None;
        }
        let conditions = match self.last.since(since, |_| false, ask(api)).await {
            Ok(conditions) => conditions,
            Err(error) => return Some(error),
        };
        aimed_at.into_iter().find_map(|node| {
            let how = match conditions.get(&node.name) {
                Some(Ok(())) => return None,
                Some(Err(said)) => format!("is no longer Ready: {said}"),
                None => "is gone".to_owned(),
            };
            let detail = format!("Node {}, which it observes, {how}", printable(&node.name));
            Some(ErrorKind::FixtureChanged.error(detail))
        })
    }
}

fn is_aim(request: &Request, node: &PoolNode) -> bool {
    let has = |address: &IpAddr| node.addresses.contains(address);
    match request {
        Request::Get(gets) => gets
            .iter()
            .any(|get| matches!(&get.host, Host::Address(address) if has(address))),
        Request::Ping(addresses) => addresses.iter().any(has),
        Request::Api(_)
        | Request::Text(_)
        | Request::Exec(..)
        | Request::Facts
        | Request::Play(_) => false,
    }
}

async fn ask(api: &Api) -> Conditions {
    let read = |conditions: &mut BTreeMap<_, _>, node: &Json| {
        let name = node["metadata"]["name"].as_str();
        conditions.extend(name.map(|name| (name.to_owned(), readiness(node))));
    };
    let conditions = fold(api, "/api/v1/nodes", "", read).await;
    conditions.map(Arc::new).map_err(|unread| {
        let detail = format!("whether its nodes are still Ready: {}", unread.reason);
        ErrorKind::ApiUnavailable.error(detail)
    })
}

pub(crate) fn readiness(node: &Json) -> Result<(), String> {
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
    use winconform_core::method::HttpGet;

    const NODE: &str = "/api/v1/nodes/win-a";

    fn put(fake: &Fake, status: &str) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win-a"},
            "status": {"conditions": [{"type": "Ready", "status": status,
                "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting"}]}});
        fake.put(NODE, node);
    }

    fn nodes() -> Vec<PoolNode> {
        vec![PoolNode {
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
        let (now, api, since) = (NodeReadiness::default(), fake.api(), Instant::now());
        assert_eq!(now.amiss(&api, since, &get(8), &nodes()).await, None);
        assert!(fake.log().is_empty());
        assert_eq!(now.amiss(&api, since, &get(7), &nodes()).await, None);
        assert_eq!(now.amiss(&api, since, &get(7), &nodes()).await, None);
        assert_eq!(fake.log().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_fell_silent_or_is_gone_is_named() {
        let fake = Fake::default();
        put(&fake, "Unknown");
        let (now, api) = (NodeReadiness::default(), fake.api());
        let since = Instant::now();
        let error = now.amiss(&api, since, &get(7), &nodes()).await;
        let error = error.expect("it is not Ready");
        assert_eq!(error.kind, ErrorKind::FixtureChanged);
        let said = "Node win-a, which it observes, is no longer Ready: NodeStatusUnknown \
                    (Kubelet stopped posting)";
        assert_eq!(error.detail, said);
        fake.remove(NODE);
        let later = since + api.durations().observe_again;
        let error = now.amiss(&api, later, &get(7), &nodes()).await;
        let detail = error.map(|error| error.detail).unwrap_or_default();
        assert_eq!(detail, "Node win-a, which it observes, is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn many_are_listed_page_by_page_also_where_a_page_expires() {
        let (fake, now, since) = (Fake::default(), NodeReadiness::default(), Instant::now());
        for at in 0..500 {
            let path = format!("/api/v1/nodes/a-{at}");
            fake.put(&path, json!({"metadata": {"name": "a"}}));
        }
        put(&fake, "True");
        fake.expire(1);
        assert_eq!(now.amiss(&fake.api(), since, &get(7), &nodes()).await, None);
        // Such as of a portal
        fake.script("GET /api/v1/nodes", 200, json!({}));
        let portal = NodeReadiness::default();
        let error = portal.amiss(&fake.api(), since, &get(7), &nodes()).await;
        let kind = error.map(|error| error.kind);
        assert_eq!(kind, Some(ErrorKind::ApiUnavailable));
    }
}
