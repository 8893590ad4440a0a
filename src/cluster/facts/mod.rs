//! Collects the facts of a cluster, each with its source or with the reason why it is unknown.
//!
//! All requests run at once. Lists are folded a page at a time, so that memory does not grow with the pods of
//! a cluster. Out of scope: what a fact means for a check.

mod access;
mod admission;
mod network;
mod nodes;
mod objects;
mod read;
mod server;
mod workloads;

use std::collections::BTreeSet;

use winconform_core::config::Nodes;
use winconform_core::facts::products::{Rules, Signs, kube_proxy};
use winconform_core::facts::{Facts, GmsaFact, Known, LoadBalancerFact, Os};

use crate::transport::Api;
use read::{Unread, known};

pub use access::READ;
pub(crate) use read::fold;

/// Collects all facts at once.
pub async fn collect(api: &Api) -> Facts {
    collect_with(api, &Nodes::default()).await
}

/// The same, with the labels of nodes by which the configuration excludes some.
pub(crate) async fn collect_with(api: &Api, named: &Nodes) -> Facts {
    // The nodes, and the facts that depend on which nodes run Windows
    let running = async {
        let nodes = nodes::nodes(api, named).await;
        let windows: Result<BTreeSet<_>, _> = nodes.as_ref().map(|nodes| {
            let windows = nodes.told.values().filter(|node| node.os == Os::Windows);
            windows.map(|node| node.name.clone()).collect()
        });
        let (workloads, pulls) = match &windows {
            Err(unread) => (Err((*unread).clone()), Err((*unread).clone())),
            Ok(windows) => tokio::join!(
                workloads::workloads(api, windows),
                workloads::pulls(api, windows)
            ),
        };
        (nodes, workloads, pulls)
    };
    let services_and_dns = async {
        let services = network::services(api).await;
        let dns = network::dns(api, &services).await;
        (services, dns)
    };
    // The answers that several facts share
    let parts = async {
        tokio::join!(
            server::groups(api),
            network::daemon_sets(api),
            network::config_maps(api),
            services_and_dns,
        )
    };
    // Boxed: together they are too large for a stack
    let (server, (nodes, workloads, pulls), mut facts, parts) = tokio::join!(
        read::get(api, server::VERSION),
        Box::pin(running),
        Box::pin(apart(api)),
        Box::pin(parts),
    );
    let (groups, daemon_sets, config_maps, (services, dns)) = parts;
    let at = |place| server::text_at(&server, server::VERSION, place);
    facts.server = known(at("/gitVersion"), server::VERSION);
    facts.platform = known(at("/platform"), server::VERSION);
    let of_nodes = nodes.as_ref().map(|nodes| nodes.signs.clone());
    let signs = Signs {
        version: at("/gitVersion").map_err(|unread| unread.reason),
        groups: groups.map_err(|unread| unread.reason),
        daemon_sets: daemon_sets.map_err(|unread| unread.reason),
        nodes: of_nodes.map_err(|unread| unread.reason.clone()),
        config_maps,
    };
    recognise(&mut facts, &signs, &services);
    facts.dns = match dns {
        Ok((dns, source)) => known(Ok(dns), &source),
        Err(unread) => known(Err(unread), network::SERVICES),
    };
    let silent = nodes.as_ref().map(|nodes| nodes.silent.iter());
    let silent = silent.map(|names| names.cloned().collect());
    facts.silent_nodes = known(silent.map_err(Clone::clone), nodes::NODES);
    let virtual_nodes = nodes.as_ref().map(|nodes| nodes.virtual_facts.clone());
    facts.virtual_nodes = known(virtual_nodes.map_err(Clone::clone), nodes::NODES);
    let nodes = nodes.map(|nodes| nodes.told.into_values().collect());
    facts.nodes = known(nodes, nodes::NODES);
    facts.workloads = known(workloads, workloads::PODS);
    facts.pulls = known(pulls, workloads::EVENTS);
    facts
}

/// The facts that share no answer with other facts.
async fn apart(api: &Api) -> Facts {
    let identity = async {
        let read = read::get(api, server::IDENTITY).await;
        server::text_at(&read, server::IDENTITY, "/metadata/uid")
    };
    let (
        gates,
        cluster,
        runtime,
        storage,
        snapshots,
        drivers,
        csi_nodes,
        metrics,
        gmsa,
        hooks,
        policies,
    ) = tokio::join!(
        server::gates(api),
        identity,
        objects::runtime_classes(api),
        objects::storage_classes(api),
        objects::snapshot_classes(api),
        objects::csi_drivers(api),
        objects::csi_nodes(api),
        server::metrics_api(api),
        server::gmsa_served(api),
        admission::webhooks(api),
        admission::policies(api),
    );
    let both = |left: &str, right: &str| format!("{left}, {right}");
    let hooks_at = both(
        &admission::path(admission::MUTATING_WEBHOOKS),
        &admission::path(admission::VALIDATING_WEBHOOKS),
    );
    let policies_at = both(
        &admission::path(admission::MUTATING_POLICIES),
        &admission::path(admission::VALIDATING_POLICIES),
    );
    let gmsa = match (&hooks, gmsa) {
        (Ok(hooks), Ok(crd)) => Ok(GmsaFact {
            crd,
            webhooks: hooks.gmsa.clone(),
            everywhere: hooks.gmsa_everywhere,
        }),
        (Err(unread), _) => Err(unread.clone()),
        (_, Err(unread)) => Err(unread),
    };
    let webhooks = hooks.and_then(|mut hooks| {
        hooks.seeing.extend(policies?);
        Ok(hooks.seeing)
    });
    Facts {
        gates: known(gates, server::METRICS),
        cluster: known(cluster, server::IDENTITY),
        runtime_classes: known(runtime, objects::RUNTIME_CLASSES),
        storage_classes: known(storage, objects::STORAGE_CLASSES),
        snapshot_classes: known(snapshots, objects::SNAPSHOT_CLASSES),
        csi_drivers: known(drivers, objects::CSI_DRIVERS),
        csi_nodes: known(csi_nodes, objects::CSI_NODES),
        webhooks: known(webhooks, &both(&hooks_at, &policies_at)),
        metrics_api: known(metrics, server::METRICS_API),
        gmsa: known(gmsa, &both(server::GMSA, &hooks_at)),
        ..Facts::default()
    }
}

fn recognise(facts: &mut Facts, signs: &Signs, services: &Result<network::Services, Unread>) {
    let rules = Rules::built_in();
    let config_maps = "ConfigMaps of kube-system and of the plugins' namespaces";
    facts.cni = fact(
        rules.cni(signs),
        format!("{}, {}, {config_maps}", network::DAEMON_SETS, nodes::NODES),
    );
    facts.provider = fact(
        rules.provider(signs),
        format!(
            "{}, {}, {}, {}",
            server::VERSION,
            server::GROUPS,
            nodes::NODES,
            network::config_map("kube-system", "kubeadm-config")
        ),
    );
    facts.kube_proxy = fact(
        kube_proxy(signs),
        format!("{}, ConfigMaps of kube-system", network::DAEMON_SETS),
    );
    let (products, unread) = rules.load_balancers(signs);
    let balancer = services.as_ref().map(|services| LoadBalancerFact {
        with_address: services.with_address,
        pending: services.pending,
        products,
        unread,
    });
    let source = format!(
        "{}, {}, {}",
        network::SERVICES,
        network::DAEMON_SETS,
        server::GROUPS
    );
    facts.load_balancer = known(balancer.map_err(Clone::clone), &source);
}

fn fact<T>(read: Result<T, String>, source: String) -> Known<T> {
    match read {
        Ok(value) => Known::Fact { value, source },
        Err(reason) => Known::Unknown { reason },
    }
}

#[cfg(test)]
mod tests;
