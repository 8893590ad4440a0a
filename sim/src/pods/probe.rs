//! Probes, evaluated against what the container serves: `httpGet`, `tcpSocket` and `exec`.
//!
//! What cannot be evaluated is told as an event, and the container stays not ready.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::container::Slot;
use super::events;
use crate::program::serve::{self, Exchange};
use crate::program::{self, Started};

/// What one look gave.
enum Checked {
    Healthy,
    Failed(String),
    Unsupported(&'static str),
}

/// Keeps the container's readiness current; ends, with the probe's kind, when the container must be
/// restarted.
pub(crate) async fn watch(slot: Slot<'_>) -> &'static str {
    if slot.init {
        return std::future::pending().await;
    }
    if let Some(probe) = &slot.spec.startup_probe {
        if repeat(slot, probe, "Startup", |healthy| healthy.then_some(()))
            .await
            .is_none()
        {
            return "startup";
        }
        slot.note(|container| {
            container.past_startup = true;
            container.ready = slot.spec.readiness_probe.is_none();
        });
    }
    let readiness = async {
        match &slot.spec.readiness_probe {
            Some(probe) => loop {
                repeat(slot, probe, "Readiness", |healthy| {
                    slot.note(|container| container.ready = healthy);
                    None::<()>
                })
                .await;
                slot.note(|container| container.ready = false);
            },
            None => std::future::pending::<()>().await,
        }
    };
    let liveness = async {
        match &slot.spec.liveness_probe {
            Some(probe) => {
                repeat(slot, probe, "Liveness", |_| None::<()>).await;
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = readiness => "readiness",
        () = liveness => "liveness",
    }
}

/// Looks every period. Ends with `Some` when `at_success` says so, with `None` after as many
/// failures in a row as the probe allows.
async fn repeat<T>(
    slot: Slot<'_>,
    probe: &Probe,
    kind: &str,
    at_success: impl Fn(bool) -> Option<T>,
) -> Option<T> {
    let clock = slot.cluster.clock;
    let seconds = |field: Option<i32>, default: u64| {
        Duration::from_secs(
            field
                .and_then(|value| u64::try_from(value).ok())
                .unwrap_or(default),
        )
    };
    let times = |field: Option<i32>, default| field.filter(|value| *value > 0).unwrap_or(default);
    let period = seconds(probe.period_seconds, 10).max(Duration::from_secs(1));
    let (mut successes, mut failures) = (0, 0);
    clock.pass(seconds(probe.initial_delay_seconds, 0)).await;
    loop {
        match check(slot, probe).await {
            Checked::Healthy => {
                failures = 0;
                successes += 1;
                if successes >= times(probe.success_threshold, 1)
                    && let Some(end) = at_success(true)
                {
                    return Some(end);
                }
            }
            Checked::Failed(why) => {
                successes = 0;
                failures += 1;
                events::warning(
                    slot.cluster,
                    slot.run,
                    "Unhealthy",
                    format!("{kind} probe failed: {why}"),
                );
                if failures >= times(probe.failure_threshold, 3) {
                    return None;
                }
            }
            Checked::Unsupported(what) => {
                let text = format!("{kind} probe errored: hybrid-sim does not evaluate {what}");
                events::warning(slot.cluster, slot.run, "Unhealthy", text);
                return std::future::pending().await;
            }
        }
        clock.pass(period).await;
    }
}

async fn check(slot: Slot<'_>, probe: &Probe) -> Checked {
    if let Some(exec) = &probe.exec {
        return by_exec(slot, exec.command.as_deref().unwrap_or_default()).await;
    }
    let (port, get) = match (&probe.http_get, &probe.tcp_socket) {
        (Some(get), _) if get.host.is_some() => {
            return Checked::Unsupported("a probe of another host");
        }
        (Some(get), _) if get.scheme.as_deref() == Some("HTTPS") => {
            return Checked::Failed("http: server gave HTTP response to HTTPS client".to_owned());
        }
        (Some(get), _) => (&get.port, Some(get)),
        (None, Some(socket)) if socket.host.is_some() => {
            return Checked::Unsupported("a probe of another host");
        }
        (None, Some(socket)) => (&socket.port, None),
        (None, None) => return Checked::Unsupported("probes of this kind"),
    };
    let Some(port) = number(slot, port) else {
        return Checked::Failed("couldn't find port".to_owned());
    };
    let world = slot.cluster.world();
    let pod = world.pods.get(&slot.run.key);
    let Some((pod, page)) = pod.and_then(|pod| Some((pod, pod.listening.get(&port)?))) else {
        let address = slot
            .run
            .address()
            .map(|address| address.to_string())
            .unwrap_or_default();
        return Checked::Failed(format!(
            "dial tcp {address}:{port}: connect: connection refused"
        ));
    };
    let Some(get) = get else {
        return Checked::Healthy;
    };
    let exchange = Exchange {
        hostname: &slot.run.key.name,
        address: pod.address.into(),
        source: slot.run.node.view.address.into(),
    };
    let answer = serve::respond(*page, get.path.as_deref().unwrap_or("/"), exchange);
    if (200..400).contains(&answer.status) {
        Checked::Healthy
    } else {
        Checked::Failed(format!(
            "HTTP probe failed with statuscode: {}",
            answer.status
        ))
    }
}

async fn by_exec(slot: Slot<'_>, command: &[String]) -> Checked {
    let book =
        |containers: &[super::book::ContainerBook]| containers.get(slot.index)?.place.clone();
    let Some(place) = book(&slot.run.book().containers) else {
        return Checked::Failed("container is not running".to_owned());
    };
    let world = slot.cluster.world();
    match program::start(&place, command, b"", &slot.cluster.view(&world)) {
        Started::Ended(ran) => {
            slot.cluster.clock.pass(ran.took).await;
            if ran.code == 0 {
                Checked::Healthy
            } else {
                Checked::Failed(String::from_utf8_lossy(&ran.stderr).into_owned())
            }
        }
        Started::Serves { .. } | Started::Stays { .. } => {
            Checked::Failed("command timed out".to_owned())
        }
        Started::Refused(refusal) => Checked::Failed(refusal.text(place.os, &slot.run.uid)),
    }
}

fn number(slot: Slot<'_>, port: &IntOrString) -> Option<u16> {
    match port {
        IntOrString::Int(port) => u16::try_from(*port).ok(),
        IntOrString::String(name) => {
            let named = slot
                .spec
                .ports
                .iter()
                .flatten()
                .find(|port| port.name.as_ref() == Some(name))?;
            u16::try_from(named.container_port).ok()
        }
    }
}
