//! A pod's life on its node: admission, volumes, sandbox, containers, end and deletion.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future;
use futures::stream::{FuturesUnordered, StreamExt};
use k8s_openapi::api::core::v1::{Container, Pod, PodCondition};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use ordered_watch as watch;
use tokio_util::sync::CancellationToken;

use super::held::holds_sub_paths;
use super::run::{PodRun, seconds};
use super::{evict, sandbox};
use crate::base::clock;
use crate::base::lock::locked;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::pods::admit;
use crate::pods::container::Slot;
use crate::pods::reporting::book::{Book, ContainerBook, NodeVerdict, Role};
use crate::pods::reporting::events;
use crate::pods::reporting::report::Reporter;
use crate::pods::spec::volumes;

/// About how long it takes until a pod is bound, seen by the kubelet and refused. A replica set replaces such
/// a pod at once; without this pause it would create pods without end before any time passes.
const REFUSING: Duration = Duration::from_millis(100);

/// How often a kubelet repeats a refused deletion (`pkg/kubelet/status/status_manager.go`, `syncPeriod`).
const SYNC: Duration = Duration::from_secs(10);

/// How long a pod stays after its containers, where the runtime takes long to remove its sandbox (Azure/AKS#1461).
const SLOW_END: Duration = Duration::from_secs(40);

/// Runs a pod until it is deleted, or until `gone` reports that the API server no longer has it.
pub(crate) async fn live(
    cluster: Arc<Cluster>,
    run: Arc<PodRun>,
    mut seen: watch::Receiver<Arc<Pod>>,
    gone: CancellationToken,
) {
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        () = lead(&cluster, &run, &mut seen) => {}
    }
    sandbox::remove(&cluster, &run);
    run.book().end();
    let mut runs = cluster.runs(&run.node);
    if runs.get(&run.key).is_some_and(|known| known.uid == run.uid) {
        runs.remove(&run.key);
    }
}

async fn lead(cluster: &Arc<Cluster>, run: &Arc<PodRun>, seen: &mut watch::Receiver<Arc<Pod>>) {
    let status = run.pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let over = matches!(phase, Some("Succeeded" | "Failed"));
    run.node.up().await;
    let stand_in = run.node.spec.stand_in.as_ref().filter(|_| !over);
    if let Some(says) = stand_in {
        // It stays pending
        events::warning(cluster, run, "UnsupportedPodSpec", says.clone());
    } else if !over {
        if let Some(verdict) = admit::refusal(cluster, run) {
            cluster.clock.pass(REFUSING).await;
            events::warning(cluster, run, &verdict.reason, verdict.message.clone());
            let message = format!("Pod was rejected: {}", verdict.message);
            run.note(|book| {
                book.refused = true;
                book.verdict = Some(NodeVerdict { message, ..verdict });
            });
        } else {
            run.note(|book| book.started = run.now(cluster));
        }
    }
    let works = !over && stand_in.is_none() && !run.book().refused;
    let mut updates = seen.clone();
    let reporter = Reporter::default();
    let reports = async {
        if over {
            future::pending::<()>().await;
        }
        loop {
            run.changed.notified().await;
            // Boxed, like every large future that is seldom polled, to keep the pod's task small
            Box::pin(reporter.report(cluster, run)).await;
        }
    };
    let work = async {
        if works {
            work(cluster, run, seen.clone()).await;
        }
        deleted(seen).await;
    };
    // In this order: the pod's new object is recorded before anything acts on it
    tokio::select! {
        biased;
        () = follow(run, &reporter, &mut updates) => {}
        () = reports => {}
        () = work => {}
    }
    if works {
        Box::pin(reporter.report(cluster, run)).await;
    }
    if run.suffers(FaultKind::EndsSlow, cluster) {
        cluster.clock.pass(SLOW_END).await;
    }
    if holds_sub_paths(cluster, run) {
        future::pending::<()>().await;
    }
    Box::pin(delete(cluster, run)).await;
}

/// Runs the pod until all its containers have ended.
async fn work(cluster: &Arc<Cluster>, run: &Arc<PodRun>, seen: watch::Receiver<Arc<Pod>>) {
    let decided = Mutex::new(None);
    tokio::select! {
        biased;
        () = orders(cluster, run, &decided) => {}
        () = boots(cluster, run, &seen) => {}
        () = volumes::follow(cluster, run, &seen) => {}
    }
    let deleted = seen.borrow().metadata.deletion_timestamp.is_some();
    // Reported only now: a pod becomes `Failed` when its containers have ended
    let verdict: Option<Verdict> = locked(&decided).take();
    run.note(|book| {
        book.close(deleted);
        book.end();
        book.sandbox = false;
        if let Some((verdict, disruption)) = verdict {
            book.verdict = Some(verdict);
            book.disruption = disruption;
        }
    });
}

type Verdict = (NodeVerdict, Option<PodCondition>);

/// Ends the pod if it passes its deadline or is evicted, or its node is to shut down. Never completes.
async fn orders(cluster: &Arc<Cluster>, run: &Arc<PodRun>, decided: &Mutex<Option<Verdict>>) {
    let (verdict, grace) = tokio::select! {
        biased;
        () = deadline(run) => {
            let message = "Pod was active on the node longer than the specified deadline".to_owned();
            events::normal(cluster, run, "DeadlineExceeded", message.clone());
            let reason = "DeadlineExceeded".to_owned();
            ((NodeVerdict { reason, message }, None), run.grace())
        }
        (verdict, condition) = evict::evicted(cluster, run) => {
            ((verdict, Some(condition)), Duration::from_secs(1))
        }
        (verdict, condition) = evict::shut_down(cluster, run) => {
            ((verdict, Some(condition)), run.grace())
        }
    };
    *locked(decided) = Some(verdict);
    run.end(grace);
    future::pending::<()>().await;
}

/// Runs the pod, and again after each boot of its node.
async fn boots(cluster: &Arc<Cluster>, run: &Arc<PodRun>, seen: &watch::Receiver<Arc<Pod>>) {
    loop {
        let boots = run.node.power.borrow().boots;
        tokio::select! {
            biased;
            () = run.ends() => {}
            () = run.node.down() => {}
            () = Box::pin(prepare(cluster, run, boots)) => {}
        }
        if run.ending.borrow().is_some() && run.book().address.is_none() {
            return;
        }
        if run.node.power.borrow().up {
            containers(cluster, run, seen.clone()).await;
        }
        if run.node.power.borrow().up && run.node.power.borrow().boots == boots {
            return;
        }
        run.node.up().await;
        let over = !matches!(run.book().phase(), "Pending" | "Running");
        let had = run.book().sandbox;
        sandbox::remove(cluster, run);
        if over || run.ending.borrow().is_some() {
            return;
        }
        if had {
            let text = "Pod sandbox changed, it will be killed and re-created.".to_owned();
            events::normal(cluster, run, "SandboxChanged", text);
        }
        run.note(|book| {
            for role in [Role::Init, Role::Main] {
                for container in book.containers_of(role) {
                    container.again();
                }
            }
        });
    }
}

async fn prepare(cluster: &Arc<Cluster>, run: &Arc<PodRun>, boots: u32) {
    if run.volumes.get().is_none() {
        let volumes = volumes::mount(cluster, run).await;
        // This cannot fail: nothing else sets it
        let _ = run.volumes.set(volumes);
    }
    sandbox::make(cluster, run, boots).await;
}

/// Runs the init containers in order, sidecars from their turn on, then the main containers; runs
/// ephemeral containers whenever they are added.
async fn containers(cluster: &Arc<Cluster>, run: &Arc<PodRun>, seen: watch::Receiver<Arc<Pod>>) {
    let spec = run.pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_deref());
    let init = init.unwrap_or_default();
    // Boxed: otherwise each future that awaits one would reserve its size for as long as the pod lives
    let lead = |container, index, role| {
        let slot = Slot {
            cluster,
            run,
            spec: container,
            index,
            role,
        };
        let over = match role {
            Role::Main => &run.over[init.len() + index],
            _ => &run.over[index],
        };
        Box::pin(async move {
            let code = slot.lead().await;
            if run.node.power.borrow().up {
                over.cancel();
            }
            code
        })
    };
    let turns: Vec<CancellationToken> = init.iter().map(|_| CancellationToken::new()).collect();
    let done = CancellationToken::new();
    let mains = || {
        let main = spec.map_or(&[][..], |spec| &spec.containers);
        let main = main.iter().enumerate();
        future::join_all(main.map(|(index, c)| lead(c, index, Role::Main)))
    };
    let sequence = async {
        if run.suffers(FaultKind::InitOutOfOrder, cluster) {
            for (container, turn) in init.iter().zip(&turns) {
                if Role::of_init(container) == Role::Sidecar {
                    turn.cancel();
                }
            }
            // Files are written as programs begin: each begins once those behind it have, and none finds what one
            // before it writes
            let many = init.len();
            let init = init.iter().enumerate();
            let init = init.filter(|(_, container)| Role::of_init(container) == Role::Init);
            let init = init.map(|(index, c)| {
                let lead = lead(c, index, Role::Init);
                async move {
                    for later in index + 1..many {
                        until(run, |book| {
                            book.init.get(later).is_none_or(ContainerBook::has_begun)
                        })
                        .await;
                    }
                    lead.await
                }
            });
            future::join(mains(), future::join_all(init)).await;
            return;
        }
        for (index, container) in init.iter().enumerate() {
            let role = Role::of_init(container);
            if role == Role::Sidecar {
                turns[index].cancel();
                started(cluster, run, index).await;
            } else if lead(container, index, role).await != Some(0) {
                return;
            }
        }
        mains().await;
    };
    let main = async {
        sequence.await;
        done.cancel();
        if run.node.power.borrow().up {
            // Sidecars and ephemeral containers end with the main containers
            run.end(run.grace());
        }
    };
    let sidecars = init.iter().enumerate();
    let sidecars = sidecars.map(|(index, container)| {
        let (lead, turn, done) = (&lead, &turns[index], &done);
        async move {
            let begins = tokio::select! {
                biased;
                () = turn.cancelled() => true,
                () = done.cancelled() => false,
            };
            if begins {
                lead(container, index, Role::Sidecar).await;
            }
        }
    });
    let ephemeral = ephemeral(cluster, run, seen, &done);
    // Boxed: too large for the caller's future
    Box::pin(future::join3(main, future::join_all(sidecars), ephemeral)).await;
}

/// Waits until a sidecar has started, or never will.
async fn started(cluster: &Cluster, run: &PodRun, index: usize) {
    let awaited = run.suffers(FaultKind::SidecarsAwaited, cluster);
    until(run, |book| {
        let sidecar = book.init.get(index);
        sidecar.is_none_or(|it| it.past_startup && !awaited)
    })
    .await;
}

/// Waits until something is so, or the pod ends.
async fn until(run: &PodRun, is_so: impl Fn(&Book) -> bool) {
    let mut states = run.states.subscribe();
    loop {
        states.mark_unchanged();
        if is_so(&run.book()) {
            return;
        }
        tokio::select! {
            biased;
            () = run.ends() => return,
            () = run.node.down() => return,
            changed = states.changed() => if changed.is_err() { return },
        }
    }
}

/// Runs the ephemeral containers that the pod has, and each one that is added later.
async fn ephemeral(
    cluster: &Arc<Cluster>,
    run: &Arc<PodRun>,
    mut seen: watch::Receiver<Arc<Pod>>,
    done: &CancellationToken,
) {
    let lead = |(index, container): (usize, Arc<Container>)| {
        Box::pin(async move {
            let slot = Slot {
                cluster,
                run,
                spec: &container,
                index,
                role: Role::Ephemeral,
            };
            slot.lead().await;
        })
    };
    let mut running = FuturesUnordered::new();
    loop {
        let pod = Arc::clone(&seen.borrow_and_update());
        let new = run.book().see(&pod);
        running.extend(new.into_iter().map(lead));
        tokio::select! {
            biased;
            () = done.cancelled() => break,
            changed = seen.changed() => if changed.is_err() { break },
            Some(()) = running.next() => {}
        }
    }
    while running.next().await.is_some() {}
}

/// Follows the pod's object: ends the pod when it is deleted, and wakes the reporter when it changes.
async fn follow(run: &PodRun, reporter: &Reporter, seen: &mut watch::Receiver<Arc<Pod>>) {
    let mut generation = run.pod.metadata.generation;
    loop {
        let pod = Arc::clone(&seen.borrow_and_update());
        if pod.metadata.deletion_timestamp.is_some() {
            let grace = pod.metadata.deletion_grace_period_seconds;
            run.end(grace.map_or_else(|| run.grace(), seconds));
        }
        let gates = pod.spec.as_ref().is_some_and(|spec| {
            let gates = spec.readiness_gates.as_ref();
            gates.is_some_and(|gates| !gates.is_empty())
        });
        let wake = gates || pod.metadata.generation != generation || reporter.is_contradicted(&pod);
        generation = pod.metadata.generation;
        run.book().pod = pod;
        if wake {
            run.told_of_change();
        }
        if seen.changed().await.is_err() {
            // The watch has dropped the pod: `gone` ends this task
            future::pending::<()>().await;
        }
    }
}

async fn deleted(seen: &mut watch::Receiver<Arc<Pod>>) {
    let gone = seen.wait_for(|pod| pod.metadata.deletion_timestamp.is_some());
    if gone.await.is_err() {
        future::pending::<()>().await;
    }
}

/// `activeDeadlineSeconds` counts real time, whatever the simulation's speed: a harness relies on
/// it to end what it left behind, and not earlier.
async fn deadline(run: &PodRun) {
    let spec = run.pod.spec.as_ref();
    match spec.and_then(|spec| spec.active_deadline_seconds) {
        Some(limit) => clock::elapse(seconds(limit)).await,
        None => future::pending().await,
    }
}

/// Deletes the pod's object; while the API server has it and refuses, once more after each [`SYNC`].
async fn delete(cluster: &Cluster, run: &PodRun) {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &run.key.namespace);
    let uid = Preconditions {
        uid: Some(run.uid.clone()),
        resource_version: None,
    };
    let params = DeleteParams::default().grace_period(0).preconditions(uid);
    let name = &run.key.name;
    loop {
        cluster.heard(&run.node).await;
        let deleted = cluster.insist("pod deletion", || pods.delete(name, &params));
        match deleted.await {
            Ok(_) => return,
            // The pod is gone, or another has its name
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => return,
            Err(error) => tracing::debug!(pod = %run.key, %error, "deletion is not taken"),
        }
        cluster.clock.pass(SYNC).await;
    }
}
