//! Jobs: run pods until enough of them have succeeded (kubernetes 1.37.0, `pkg/controller/job/`),
//! without indices, policies, deadlines and back-off between pods.

use serde_json::{Value, json};

use super::pods::{self, condition, is_active, is_going, is_over, is_ready, set_condition};
use super::{count, counted, made, without_zeros};
use crate::base::fields::Fields;
use crate::fault::FaultKind;
use crate::server::storage::state::State;
use crate::world::Key;

const COMPONENT: &str = "job-controller";

pub(super) fn look(state: &mut State, key: &Key, job: &Value) {
    let has_ended = |how: &&str| condition(job, how).is_some();
    if ["Complete", "Failed"].iter().any(has_ended) {
        return;
    }
    let owned = made(&state.store, "pods", job);
    let with = |phase: &str| counted(count(&owned, |pod| pod["status"]["phase"] == phase));
    let (succeeded, failed) = (with("Succeeded"), with("Failed"));
    let active = owned.iter().filter(|(_, pod)| is_active(pod));
    let active: Vec<&Key> = active.map(|(key, _)| key).collect();
    let most = job["spec"]["parallelism"].number();
    let (done, needed) = match job["spec"]["completions"].as_i64() {
        Some(wanted) => (succeeded >= wanted, (wanted - succeeded).min(most)),
        None if succeeded > 0 => (active.is_empty(), 0),
        None => (false, most),
    };
    let ending = if done {
        let message = "Reached expected number of succeeded pods";
        let conditions = ["SuccessCriteriaMet", "Complete"];
        Some((conditions, "CompletionsReached", message))
    } else if failed > job["spec"]["backoffLimit"].number() {
        let message = "Job has reached the specified backoff limit";
        Some((["FailureTarget", "Failed"], "BackoffLimitExceeded", message))
    } else {
        None
    };
    if ending.is_some() && state.suffers(FaultKind::JobsNeverOver) {
        return;
    }
    match ending {
        Some((_, reason, message)) => {
            for key in active {
                pods::delete(state, COMPONENT, job, key);
            }
            let event = match done {
                true => ("Normal", "Completed", "Job completed"),
                false => ("Warning", reason, message),
            };
            state.tell(COMPONENT, job, event);
        }
        None => pods::create_some(state, COMPONENT, job, needed - counted(active.len())),
    }
    let owned = made(&state.store, "pods", job);
    let started = match &job["status"]["startTime"] {
        Value::Null => json!(state.wall.now()),
        started => started.clone(),
    };
    let counts = json!({
        "startTime": started, "uncountedTerminatedPods": {},
        "ready": count(&owned, |pod| is_ready(pod) && is_active(pod)),
        "terminating": count(&owned, |pod| is_going(pod) && !is_over(pod)),
        "conditions": job["status"]["conditions"],
        "active": count(&owned, is_active), "succeeded": succeeded, "failed": failed,
    });
    let mut status = without_zeros(counts, &["ready", "terminating"]);
    if let Some((conditions, reason, message)) = ending {
        let now = state.wall.now();
        for named in conditions {
            set_condition(&mut status, (named, "True", reason), message, now);
        }
        if done {
            status["completionTime"] = json!(now);
        }
    }
    state.set_status("jobs", key, status);
}
