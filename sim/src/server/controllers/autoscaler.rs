//! Autoscalers of Deployments, by the processor time that their pods use (kubernetes 1.37.0,
//! `pkg/controller/podautoscaler/horizontal.go` and `replica_calculator.go`): of one metric, a share of what the pods
//! request. They scale up alone: real ones scale down once five minutes want it
//! (`--horizontal-pod-autoscaler-downscale-stabilization`). Every sample counts, whatever its window. The condition
//! `AbleToScale` says only that the target is there.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::pods::{is_ready, set_condition};
use crate::base::clock;
use crate::base::fields::Fields;
use crate::pods::spec::resources::amount;
use crate::server::kubelet::metrics;
use crate::server::serve::Shared;
use crate::world::Key;

const SCALERS: &str = "horizontalpodautoscalers";

/// How often the controller looks at each (`--horizontal-pod-autoscaler-sync-period`).
const PERIOD: Duration = Duration::from_secs(15);

/// Within a tenth of the target nothing is done (`--horizontal-pod-autoscaler-tolerance`).
const TOLERANCE: f64 = 0.1;

const NO_METRICS: &str =
    "unable to get metrics for resource cpu: no metrics returned from resource metrics API";

/// Looks at all of them again and again; never completes.
pub(crate) async fn keep(shared: Arc<Shared>) {
    loop {
        clock::elapse(PERIOD).await;
        let all: Vec<_> = {
            let state = shared.state();
            let all = state.store.all(SCALERS, "");
            all.map(|(key, scaler)| (key.clone(), Arc::clone(scaler)))
                .collect()
        };
        for (key, scaler) in all {
            look(&shared, &key, &scaler).await;
        }
    }
}

async fn look(shared: &Arc<Shared>, key: &Key, scaler: &Value) {
    let spec = &scaler["spec"];
    let target = Key::new(&key.namespace, spec["scaleTargetRef"]["name"].text());
    let (deployment, pods) = {
        let state = shared.state();
        let Some(deployment) = state.store.get("deployments", &target).cloned() else {
            return;
        };
        let selector = &deployment["spec"]["selector"]["matchLabels"];
        let pods = state
            .store
            .all("pods", &key.namespace)
            .filter(|(_, pod)| pod["metadata"]["labels"].includes(selector) && is_ready(pod));
        let pods: Vec<_> = pods
            .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
            .collect();
        (deployment, pods)
    };
    let (mut used, mut requested, mut measured) = (0.0, 0.0, 0.0);
    let mut missing = None;
    for (at, pod) in &pods {
        let containers = metrics::of(shared, at).await.unwrap_or_default();
        let Some(cores) = sum(&containers, "/usage/cpu") else {
            continue;
        };
        used += cores;
        let containers = pod["spec"]["containers"].items();
        requested += sum(containers.as_slice(), "/resources/requests/cpu").unwrap_or_default();
        missing = missing.or_else(|| without_request(pod));
        measured += 1.0;
    }
    let current = deployment["status"]["replicas"].number();
    let known = match missing {
        Some(why) => Err(why),
        None if requested > 0.0 => Ok(used / requested),
        None => Err(NO_METRICS.to_owned()),
    };
    let metric = &spec["metrics"][0]["resource"];
    let share = metric["target"]["averageUtilization"].number();
    let wanted = known.as_ref().map_or(current, |known| {
        let ratio = known * 100.0 / in_float(share);
        let wanted = match (ratio - 1.0).abs() <= TOLERANCE {
            true => current,
            false => whole(ratio * measured),
        };
        let (least, most) = (spec["minReplicas"].number(), spec["maxReplicas"].number());
        wanted.max(current).clamp(least.max(1), most.max(1))
    });
    shared.step(|state| {
        if wanted != deployment["spec"]["replicas"].number() {
            state.edit("deployments", &target, |value| {
                value["spec"]["replicas"] = json!(wanted);
            });
        }
        let mut status = scaler["status"].clone();
        status["currentReplicas"] = json!(current);
        let (is, reason, message) = match &known {
            Ok(known) => {
                status["desiredReplicas"] = json!(wanted);
                let known = whole(known * 100.0);
                status["currentMetrics"] = json!([{"type": "Resource", "resource":
                    {"name": metric["name"], "current": {"averageUtilization": known}}}]);
                (
                    "True",
                    "ValidMetricFound",
                    "the HPA was able to successfully calculate a replica count \
                    from cpu resource utilization (percentage of request)"
                        .to_owned(),
                )
            }
            Err(why) => {
                status["desiredReplicas"] = json!(status["desiredReplicas"].number());
                (
                    "False",
                    "FailedGetResourceMetric",
                    format!(
                        "the HPA was unable to compute the replica count: \
                        failed to get cpu utilization: {why}"
                    ),
                )
            }
        };
        let now = state.wall.now();
        let able = ("AbleToScale", "True", "SucceededGetScale");
        let reached = "the HPA controller was able to get the target's current scale";
        set_condition(&mut status, able, reached, now);
        set_condition(&mut status, ("ScalingActive", is, reason), &message, now);
        state.set_status(SCALERS, key, status);
    });
}

/// That a container of a pod requests no processor time, if one does not (`calculatePodRequestsFromContainers`).
fn without_request(pod: &Value) -> Option<String> {
    let mut containers = pod["spec"]["containers"].items();
    let other =
        containers.find(|container| container.pointer("/resources/requests/cpu").is_none())?;
    let (container, pod) = (other["name"].text(), pod["metadata"]["name"].text());
    Some(format!(
        "missing request for cpu in container {container} of Pod {pod}"
    ))
}

/// The sum of a quantity over containers that have it; `None` where there are none.
fn sum(containers: &[Value], path: &str) -> Option<f64> {
    let amounts = containers.iter().map(|container| container.pointer(path));
    let amounts = amounts.map(|quantity| quantity.and_then(|quantity| amount(quantity.text())));
    (!containers.is_empty()).then(|| amounts.map(Option::unwrap_or_default).sum())
}

#[expect(clippy::cast_precision_loss, reason = "a percentage")]
fn in_float(number: i64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a number of pods, or a percentage"
)]
fn whole(number: f64) -> i64 {
    number.ceil() as i64
}
