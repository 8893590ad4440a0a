//! A pod's life on its node: admitted, given an address, run, ended, forgotten.

use std::sync::Arc;
use std::time::Duration;

use futures::future;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::admit;
use super::book::{Finished, NodeVerdict, State};
use super::container::{Slot, killed, signed};
use super::events;
use super::run::PodRun;
use crate::clock;
use crate::cluster::{Cluster, insist};
use crate::names;
use crate::topology::Os;
use crate::world;

/// Leads a pod until it is deleted, or until `gone` says that the API server has forgotten it.
pub(crate) async fn live(
    cluster: Arc<Cluster>,
    run: Arc<PodRun>,
    mut seen: watch::Receiver<Arc<Pod>>,
    gone: CancellationToken,
) {
    tokio::select! {
        () = gone.cancelled() => {}
        () = lead(&cluster, &run, &mut seen) => {}
    }
    cluster.change(|world| {
        if world
            .pods
            .get(&run.key)
            .is_some_and(|pod| pod.uid == run.uid)
        {
            world.pods.remove(&run.key);
        }
    });
    if let Some(address) = run.address().filter(|_| !run.host_network()) {
        run.node.release_address(address);
    }
    let mut runs = cluster.runs();
    if runs.get(&run.key).is_some_and(|known| known.uid == run.uid) {
        runs.remove(&run.key);
    }
}

async fn lead(cluster: &Arc<Cluster>, run: &Arc<PodRun>, seen: &mut watch::Receiver<Arc<Pod>>) {
    let phase = run
        .pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let over = matches!(phase, Some("Succeeded" | "Failed"));
    if !over {
        match admit::refusal(&run.pod, &run.node) {
            Some(verdict) => {
                events::warning(cluster, run, &verdict.reason, verdict.message.clone());
                run.note(|book| book.verdict = Some(verdict));
            }
            None => {
                run.changed.notify_one();
            }
        }
    }
    let works = !over && run.book().verdict.is_none();
    let reports = async {
        if over {
            future::pending::<()>().await;
        }
        loop {
            run.changed.notified().await;
            report(cluster, run).await;
        }
    };
    let work = async {
        if works {
            tokio::select! {
                () = sandbox_and_containers(cluster, run) => {}
                () = deadline(run) => past_deadline(cluster, run),
            }
        }
        future::pending::<()>().await;
    };
    tokio::select! {
        () = deletion(seen) => {}
        () = reports => {}
        () = work => {}
    }
    let grace = seen.borrow().metadata.deletion_grace_period_seconds;
    terminate(cluster, run, grace).await;
}

async fn deletion(seen: &mut watch::Receiver<Arc<Pod>>) {
    if seen
        .wait_for(|pod| pod.metadata.deletion_timestamp.is_some())
        .await
        .is_err()
    {
        // The watch has let the pod go: `gone` follows
        future::pending::<()>().await;
    }
}

/// `activeDeadlineSeconds` counts on the wall's clock: a harness trusts it to end what it left
/// behind, not earlier.
async fn deadline(run: &PodRun) {
    let limit = run
        .pod
        .spec
        .as_ref()
        .and_then(|spec| spec.active_deadline_seconds);
    match limit.and_then(|limit| u64::try_from(limit).ok()) {
        Some(seconds) => clock::elapse(Duration::from_secs(seconds)).await,
        None => future::pending().await,
    }
}

fn past_deadline(cluster: &Cluster, run: &PodRun) {
    let message = "Pod was active on the node longer than the specified deadline".to_owned();
    events::normal(cluster, run, "DeadlineExceeded", message.clone());
    end_containers(run);
    run.note(|book| {
        book.verdict = Some(NodeVerdict {
            reason: "DeadlineExceeded".to_owned(),
            message,
        });
    });
}

async fn sandbox_and_containers(cluster: &Arc<Cluster>, run: &Arc<PodRun>) {
    sandbox(cluster, run).await;
    names::settle(cluster, &run.key, &run.uid);
    let spec = run.pod.spec.clone().unwrap_or_default();
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        let slot = Slot {
            cluster,
            run,
            spec: container,
            index,
            init: true,
        };
        if slot.lead().await != 0 {
            return;
        }
    }
    let containers = spec
        .containers
        .iter()
        .enumerate()
        .map(|(index, container)| {
            Slot {
                cluster,
                run,
                spec: container,
                index,
                init: false,
            }
            .lead()
        });
    future::join_all(containers).await;
}

/// Gives the pod its address.
async fn sandbox(cluster: &Cluster, run: &PodRun) {
    cluster
        .clock
        .pass(match run.node.pool.os() {
            Os::Linux => Duration::from_millis(300),
            Os::Windows => Duration::from_secs(2),
        })
        .await;
    let host_network = run.host_network();
    let address = loop {
        let address = if host_network {
            Some(run.node.view.address)
        } else {
            run.node.lease_address()
        };
        if let Some(address) = address {
            break address;
        }
        let text = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network \
                    for sandbox: plugin type=\"host-local\" failed (add): no IP addresses available in range set"
            .to_owned();
        events::warning(cluster, run, "FailedCreatePodSandBox", text);
        cluster.clock.pass(Duration::from_secs(10)).await;
    };
    cluster.change(|world| {
        let told = world::Told::by(&run.pod);
        let pod = world::Pod {
            uid: run.uid.clone(),
            host_network,
            dns_ready: host_network || run.node.pool.os() == Os::Linux,
            ..world::Pod::new(&run.node.name, address, told)
        };
        world.pods.insert(run.key.clone(), pod);
    });
    run.note(|book| book.address = Some(address));
}

/// Tells the API server the state of the moment.
async fn report(cluster: &Cluster, run: &PodRun) {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    let status = run.book().status(run.node.view.address);
    // The UID guards against a new pod of the same name, as in the kubelet's patches
    let patch = Patch::Strategic(json!({"metadata": {"uid": run.uid}, "status": status}));
    let params = PatchParams::default();
    if let Err(error) = insist("pod status", || {
        pods.patch_status(&run.key.name, &params, &patch)
    })
    .await
    {
        tracing::debug!(pod = %run.key, %error, "status is not taken");
    }
}

async fn terminate(cluster: &Cluster, run: &PodRun, grace: Option<i64>) {
    let grace = Duration::from_secs(
        grace
            .and_then(|grace| u64::try_from(grace).ok())
            .unwrap_or(30),
    );
    let names: Vec<String> = running(run);
    for name in &names {
        events::normal(
            cluster,
            run,
            "Killing",
            format!("Stopping container {name}"),
        );
    }
    if !names.is_empty() {
        cluster.clock.pass(Duration::from_secs(1).min(grace)).await;
        end_containers(run);
        report(cluster, run).await;
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: Some(run.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    if let Err(error) = insist("pod deletion", || pods.delete(&run.key.name, &params)).await {
        tracing::debug!(pod = %run.key, %error, "deletion is not taken");
    }
}

fn running(run: &PodRun) -> Vec<String> {
    let book = run.book();
    let containers = book.init.iter().chain(&book.containers);
    containers
        .filter(|container| matches!(container.state, State::Running { .. }))
        .map(|container| container.name.clone())
        .collect()
}

/// Writes down that whatever still runs has ended.
fn end_containers(run: &PodRun) {
    let code = signed(killed(run.node.pool.os()));
    let mut book = run.book();
    let book = &mut *book;
    for container in book.init.iter_mut().chain(&mut book.containers) {
        if let State::Running { since } = container.state {
            container.state = State::Finished(Finished {
                code,
                reason: "Error",
                message: None,
                from: Some(since),
                to: clock::now(),
                id: container.id.clone(),
            });
        }
        container.log.end();
        container.ready = false;
        container.past_startup = false;
        container.place = None;
        container.over = true;
    }
}
