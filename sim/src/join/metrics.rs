//! Has the API server's aggregator find the simulated metrics-server.
//!
//! The aggregator dials the Service's `externalName` as it is (k8s.io/apiserver 0.37.0,
//! `pkg/util/proxy/proxy.go`, `ResolveCluster`), or with `--enable-aggregator-routing` not at all.
//! An `APIService` that nobody answers for holds up the deletion of every namespace, so that it goes
//! before the listener does, and one that a killed simulator has left goes at the next join.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt};
use serde_json::json;
use thiserror::Error;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::gone;
use crate::cluster::Cluster;
use crate::kubelet;
use crate::loopback::{Listener, connect};
use crate::node::MANAGED;

const API: &str = "v1beta1.metrics.k8s.io";
const NAMESPACE: &str = "kube-system";
const SERVICE: &str = "hybrid-sim-metrics";

/// How long the aggregator may take to find it.
const FINDING: Duration = Duration::from_secs(15);

/// How long a server on this machine may take to accept a connection.
const ACCEPTING: Duration = Duration::from_secs(1);

/// Why no metrics are served.
#[derive(Debug, Error)]
pub(super) enum Unserved {
    #[error("failed to listen on loopback")]
    Listen(#[source] std::io::Error),
    #[error("the API server does not take {API}: {0}")]
    Refused(#[from] kube::Error),
    #[error("the API server's aggregator does not reach {address}: {why}")]
    Unreached { address: String, why: String },
}

/// Serves metrics, unless the cluster has somebody's already; gives whether it does. That it does
/// not work is warned of, and nothing of it stays. Told to stop, it does not wait to be found.
pub(super) async fn serve(
    cluster: &Arc<Cluster>,
    tls: TlsAcceptor,
    halt: &CancellationToken,
) -> bool {
    match try_serve(cluster, tls, halt, FINDING).await {
        Ok(served) => served,
        Err(error) => {
            tracing::warn!(%error, "no metrics are served: kubectl top will not work");
            if let Err(error) = remove(cluster).await {
                tracing::warn!(%error, "{API} may be left behind");
            }
            false
        }
    }
}

pub(super) async fn try_serve(
    cluster: &Arc<Cluster>,
    tls: TlsAcceptor,
    halt: &CancellationToken,
    patience: Duration,
) -> Result<bool, Unserved> {
    let client = &cluster.client;
    let apis: Api<APIService> = Api::all(client.clone());
    if apis.get_opt(API).await?.is_some() {
        tracing::info!("the cluster has metrics already");
        return Ok(false);
    }
    let listener = Listener::bind(Ipv4Addr::LOCALHOST, 0).await;
    let listener = listener.map_err(Unserved::Listen)?;
    let address = listener.local_addr().map_err(Unserved::Listen)?;
    cluster.spawn(kubelet::serve_metrics(Arc::clone(cluster), listener, tls));
    let labels = json!({MANAGED.0: MANAGED.1});
    let service = json!({
        "metadata": {"name": SERVICE, "labels": labels},
        "spec": {"type": "ExternalName", "externalName": address.ip().to_string()},
    });
    let api = json!({
        "metadata": {"name": API, "labels": labels},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            // As metrics-server's own manifest has them
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": true,
            "service": {"namespace": NAMESPACE, "name": SERVICE, "port": address.port()},
        },
    });
    let service: Service = serde_json::from_value(service).map_err(kube::Error::SerdeError)?;
    let api: APIService = serde_json::from_value(api).map_err(kube::Error::SerdeError)?;
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let post = PostParams::default();
    // One without its APIService leads nowhere
    gone(services.delete(SERVICE, &DeleteParams::default()).await)?;
    cluster.traces.left("service", SERVICE);
    services.create(&post, &service).await?;
    cluster.traces.left("apiservice", API);
    apis.create(&post, &api).await?;
    let available = |api: Option<&APIService>| availability(api).0;
    let finding = timeout(patience, await_condition(apis.clone(), API, available));
    let found = halt.run_until_cancelled(finding).await;
    if matches!(found, None | Some(Ok(Ok(_)))) {
        return Ok(true);
    }
    let now = apis.get_opt(API).await?;
    Err(Unserved::Unreached {
        address: address.to_string(),
        why: availability(now.as_ref()).1,
    })
}

/// Whether the aggregator has it for available, and what it says.
fn availability(api: Option<&APIService>) -> (bool, String) {
    let status = api.and_then(|api| api.status.as_ref());
    let mut conditions = status
        .iter()
        .flat_map(|status| &status.conditions)
        .flatten();
    let told = conditions.find(|condition| condition.type_ == "Available");
    told.map_or_else(
        || (false, "it says nothing of it".to_owned()),
        |told| {
            let why = told.message.clone().unwrap_or_default();
            (told.status == "True", why)
        },
    )
}

/// Removes what a simulator has left that was killed.
pub(super) async fn tidy(cluster: &Cluster) -> kube::Result<()> {
    let apis: Api<APIService> = Api::all(cluster.client.clone());
    let Some(found) = apis.get_opt(API).await? else {
        return Ok(());
    };
    let ours = found.labels().get(MANAGED.0).map(String::as_str) == Some(MANAGED.1);
    let service = found.spec.and_then(|spec| spec.service);
    let port = service.and_then(|service| u16::try_from(service.port?).ok());
    if !ours || answers(port.unwrap_or_default()).await {
        return Ok(());
    }
    remove(cluster).await
}

async fn answers(port: u16) -> bool {
    let connecting = connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    matches!(timeout(ACCEPTING, connecting).await, Ok(Ok(_)))
}

/// Removes what [`serve`] has added.
pub(super) async fn remove(cluster: &Cluster) -> kube::Result<()> {
    let client = &cluster.client;
    let apis: Api<APIService> = Api::all(client.clone());
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let now = DeleteParams::default();
    gone(apis.delete(API, &now).await)?;
    cluster.traces.gone("apiservice", API);
    gone(services.delete(SERVICE, &now).await)?;
    cluster.traces.gone("service", SERVICE);
    Ok(())
}
