//! Probes of what a container serves (kubernetes 1.37.0, `pkg/kubelet/prober/{worker,prober}.go`
//! and `pkg/probe`). `reach.rs` simulates the path from the kubelet to the probed address.
//!
//! A probe that cannot be evaluated sends an event, and its result is discarded.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;
use tokio::time::timeout;

use super::hook::Execed;
use super::run;
use super::stop::Stop;
use crate::fault::FaultKind;
use crate::pods::container::Slot;
use crate::pods::reach;
use crate::pods::reporting::book::Role;
use crate::program::kubernetes::kubelet::Lost;

/// Keeps the container's readiness current; returns when the container must be restarted.
pub(crate) async fn watch(slot: Slot<'_>) -> Stop {
    if !matches!(slot.role, Role::Main | Role::Sidecar) {
        return std::future::pending().await;
    }
    let ignored = slot
        .run
        .suffers(FaultKind::StartupProbeIgnored, slot.cluster);
    if !ignored && let Some(stop) = start(slot).await {
        return stop;
    }
    tokio::select! {
        biased;
        Some(stop) = start(slot), if ignored => stop,
        stop = watch_others(slot) => stop,
    }
}

/// Runs the startup probe until the container has started; returns why it must be restarted, if it must.
async fn start(slot: Slot<'_>) -> Option<Stop> {
    if let Some(probe) = &slot.spec.startup_probe {
        if !Looks::begin(slot, probe, "Startup").await.next().await {
            return Some(failed(slot, "startup", probe));
        }
        slot.note(|container| {
            container.past_startup = true;
            container.ready = slot.spec.readiness_probe.is_none();
        });
    }
    None
}

/// Runs the readiness and the liveness probe.
async fn watch_others(slot: Slot<'_>) -> Stop {
    let readiness = async {
        if let Some(probe) = &slot.spec.readiness_probe {
            let mut looks = Looks::begin(slot, probe, "Readiness").await;
            loop {
                let healthy = looks.next().await;
                slot.note(|container| container.ready = healthy);
            }
        }
        std::future::pending::<Stop>().await
    };
    let liveness = async {
        let Some(probe) = &slot.spec.liveness_probe else {
            return std::future::pending().await;
        };
        let mut looks = Looks::begin(slot, probe, "Liveness").await;
        while looks.next().await {}
        failed(slot, "liveness", probe)
    };
    tokio::select! {
        biased;
        stop = readiness => stop,
        stop = liveness => stop,
    }
}

fn failed(slot: Slot<'_>, kind: &str, probe: &Probe) -> Stop {
    let grace = probe.termination_grace_period_seconds;
    let name = &slot.spec.name;
    // To the restart policy it is a failure
    let restarts = slot.run.book().restarts(slot.spec, slot.role, 1);
    // kuberuntime_container.go, `computeInitContainerActions`; kuberuntime_manager.go, `computePodActions`
    let message = match slot.role {
        Role::Sidecar => format!("Init container {name} failed {kind} probe"),
        _ if restarts => format!("Container {name} failed {kind} probe, will be restarted"),
        // Then the kubelet ends the pod
        _ if is_last(slot) => format!("Stopping container {name}"),
        _ => format!("Container {name} failed {kind} probe"),
    };
    Stop {
        message,
        grace: Some(grace.map_or_else(|| slot.run.grace(), run::seconds)),
    }
}

/// Whether all other containers have ended, but for those of `initContainers`.
fn is_last(slot: Slot<'_>) -> bool {
    let spec = slot.run.pod.spec.as_ref();
    let mains = spec.map_or(0, |spec| spec.containers.len());
    let mains = slot.run.over.iter().rev().take(mains);
    mains.filter(|over| !over.is_cancelled()).count() == 1
}

/// The results of one probe, which runs once every period.
struct Looks<'a> {
    slot: Slot<'a>,
    probe: &'a Probe,
    kind: &'static str,
    last: Option<bool>,
    in_a_row: i32,
    begun: bool,
}

impl<'a> Looks<'a> {
    async fn begin(slot: Slot<'a>, probe: &'a Probe, kind: &'static str) -> Self {
        let delay = seconds(probe.initial_delay_seconds, 0);
        slot.cluster.clock.pass(delay).await;
        Self {
            slot,
            probe,
            kind,
            last: None,
            in_a_row: 0,
            begun: false,
        }
    }

    /// Runs the probe until a threshold is reached. Returns whether the container is healthy.
    async fn next(&mut self) -> bool {
        let (slot, kind) = (self.slot, self.kind);
        loop {
            if self.begun {
                let period = seconds(self.probe.period_seconds, 10);
                slot.cluster
                    .clock
                    .pass(period.max(Duration::from_secs(1)))
                    .await;
            }
            self.begun = true;
            let ignored = slot.run.suffers(FaultKind::ProbeIgnored, slot.cluster);
            let mistaken =
                kind == "Liveness" && slot.run.suffers(FaultKind::ProbeKillsHealthy, slot.cluster);
            let healthy = match Box::pin(check(slot, self.probe)).await {
                _ if ignored => true,
                Ok(()) if mistaken => {
                    slot.warn("Unhealthy", format!("{kind} probe failed: "));
                    false
                }
                Ok(()) => true,
                Err(Lost::Nothing { why, .. }) => {
                    slot.warn("Unhealthy", format!("{kind} probe failed: {why}"));
                    false
                }
                Err(Lost::Unknown(why)) => {
                    let text = format!("{kind} probe errored and resulted in unknown state: {why}");
                    slot.warn("Unhealthy", text);
                    continue;
                }
            };
            if self.last == Some(healthy) {
                self.in_a_row += 1;
            } else {
                (self.last, self.in_a_row) = (Some(healthy), 1);
            }
            if self.in_a_row >= threshold(self.probe, healthy) {
                return healthy;
            }
        }
    }
}

fn threshold(probe: &Probe, healthy: bool) -> i32 {
    let set = |field: Option<i32>| field.filter(|value| *value > 0);
    match healthy {
        true => set(probe.success_threshold).unwrap_or(1),
        false => set(probe.failure_threshold).unwrap_or(3),
    }
}

fn seconds(field: Option<i32>, default: u64) -> Duration {
    let given = field.and_then(|value| u64::try_from(value).ok());
    Duration::from_secs(given.unwrap_or(default))
}

/// Runs a probe once.
async fn check(slot: Slot<'_>, probe: &Probe) -> Result<(), Lost> {
    let limit = seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1));
    if let Some(exec) = &probe.exec {
        let command = exec.command.as_deref().unwrap_or_default();
        return by_exec(slot, command, limit).await;
    }
    let reached = if let Some(get) = &probe.http_get {
        reach::get(slot, get, limit).and_then(|answer| match answer.status {
            ..400 => Ok(()),
            status => {
                let why = format!("HTTP probe failed with statuscode: {status}");
                Err(Lost::at_once(why))
            }
        })
    } else if let Some(socket) = &probe.tcp_socket {
        reach::open(slot, socket, limit)
    } else if probe.grpc.is_some() {
        let why = "hybrid-sim does not simulate probes by gRPC";
        Err(Lost::Unknown(why.to_owned()))
    } else {
        let pod = slot.run.written();
        let why = format!("missing probe handler for {pod}:{}", slot.spec.name);
        Err(Lost::Unknown(why))
    };
    if let Err(Lost::Nothing { took, .. }) = &reached {
        slot.cluster.clock.pass(*took).await;
    }
    reached
}

async fn by_exec(slot: Slot<'_>, command: &[String], limit: Duration) -> Result<(), Lost> {
    let real = slot.cluster.clock.real(limit);
    let ran = timeout(real, async {
        match slot.exec(command).await {
            Execed::Stays => std::future::pending().await,
            other => other,
        }
    });
    let why = match ran.await {
        Ok(Execed::Ended(0, _)) => return Ok(()),
        Ok(Execed::Ended(_, output)) => String::from_utf8_lossy(&output).into_owned(),
        Ok(Execed::Refused(why)) => return Err(Lost::Unknown(why)),
        // cri-client, remote_runtime.go, `ErrCommandTimedOut`
        Ok(Execed::Stays) | Err(_) => {
            let (line, seconds) = (command.join(" "), limit.as_secs());
            format!("command timed out: {line:?} timed out after {seconds}s")
        }
    };
    Err(Lost::at_once(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_have_the_kubelets_defaults() {
        let probe = Probe::default();
        assert_eq!((threshold(&probe, true), threshold(&probe, false)), (1, 3));
        let probe = Probe {
            success_threshold: Some(2),
            failure_threshold: Some(1),
            ..Probe::default()
        };
        assert_eq!((threshold(&probe, true), threshold(&probe, false)), (2, 1));
        assert_eq!(seconds(None, 10), Duration::from_secs(10));
        assert_eq!(seconds(Some(-1), 1), Duration::from_secs(1));
    }
}
