//! Jobs: pods until so many have succeeded (kubernetes 1.37.0, `pkg/controller/job/`), without
//! indices, policies and back-off between pods.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::pods::{self, is_going, is_over, is_ready, set_condition};
use super::{Work, made, number};
use crate::clock;
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::world::Key;

const COMPONENT: &str = "job-controller";

pub(super) fn look(state: &mut State, key: &Key) {
    let kind = Kind::named("jobs");
    let Some(job) = state.store.value("jobs", key).cloned() else {
        return;
    };
    if is_going(&job) {
        return;
    }
    if pods::condition(&job, "Complete")
        .or_else(|| pods::condition(&job, "Failed"))
        .is_some()
    {
        expire(state, key, &job);
        return;
    }
    let now = clock::now();
    let started = job["status"]["startTime"]
        .as_str()
        .and_then(|at| at.parse::<Timestamp>().ok())
        .unwrap_or(now);
    let own = made(&state.store, "pods", &job);
    let with = |phase: &str| {
        own.iter()
            .filter(|(_, pod)| pod["status"]["phase"] == phase)
            .count()
    };
    let counted = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (succeeded, failed) = (counted(with("Succeeded")), counted(with("Failed")));
    let active: Vec<&(Key, Value)> = own
        .iter()
        .filter(|(_, pod)| !is_over(pod) && !is_going(pod))
        .collect();
    let spec = &job["spec"];
    let wanted = spec["completions"].as_i64();
    let mut status = json!({"startTime": started, "conditions": job["status"]["conditions"]});
    let left = spec["activeDeadlineSeconds"]
        .as_i64()
        .map(|limit| SignedDuration::from_secs(limit) - now.duration_since(started));
    let done = match wanted {
        Some(wanted) => succeeded >= wanted,
        None => succeeded > 0 && active.is_empty(),
    };
    let end = if done {
        Some((
            "Complete",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        ))
    } else if left.is_some_and(|left| !left.is_positive()) {
        Some((
            "Failed",
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        ))
    } else if failed > number(&spec["backoffLimit"]) {
        Some((
            "Failed",
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        ))
    } else {
        None
    };
    if let Some((how, reason, message)) = end {
        for (key, _) in &active {
            pods::delete(state, COMPONENT, (kind, &job), key);
        }
        let before = if how == "Complete" {
            "SuccessCriteriaMet"
        } else {
            "FailureTarget"
        };
        set_condition(&mut status, before, "True", reason, message);
        set_condition(&mut status, how, "True", reason, message);
        if how == "Complete" {
            status["completionTime"] = json!(now);
        }
        let severity = if how == "Complete" {
            "Normal"
        } else {
            "Warning"
        };
        let told = if how == "Complete" {
            ("Completed", "Job completed")
        } else {
            (reason, message)
        };
        state.tell(COMPONENT, (kind, &job), (severity, told.0, told.1));
    } else {
        if let Some(left) = left {
            state.later(
                Duration::try_from(left).unwrap_or_default(),
                Work::Job(key.clone()),
            );
        }
        let suspended = spec["suspend"] == true;
        let most = number(&spec["parallelism"]);
        let needed = match wanted {
            _ if suspended => 0,
            Some(wanted) => (wanted - succeeded).min(most),
            None if succeeded > 0 => 0,
            None => most,
        };
        for _ in counted(active.len())..needed {
            let template = spec["template"].clone();
            if pods::create(state, COMPONENT, (kind, &job), &template, |_| {}).is_err() {
                break;
            }
        }
        if suspended {
            for (key, _) in &active {
                pods::delete(state, COMPONENT, (kind, &job), key);
            }
        }
    }
    let active: Vec<Value> = made(&state.store, "pods", &job)
        .into_iter()
        .map(|(_, pod)| pod)
        .filter(|pod| !is_over(pod) && !is_going(pod))
        .collect();
    let ready = active.iter().filter(|pod| is_ready(pod)).count();
    for (field, count) in [
        ("active", counted(active.len())),
        ("succeeded", succeeded),
        ("failed", failed),
    ] {
        if count != 0 {
            status[field] = json!(count);
        }
    }
    status["ready"] = json!(ready);
    status["terminating"] = json!(
        own.iter()
            .filter(|(_, pod)| is_going(pod) && !is_over(pod))
            .count()
    );
    status["uncountedTerminatedPods"] = json!({});
    if status["conditions"].is_null()
        && let Some(status) = status.as_object_mut()
    {
        status.remove("conditions");
    }
    state.set_status("jobs", key, status);
}

/// `ttlSecondsAfterFinished`.
fn expire(state: &mut State, key: &Key, job: &Value) {
    let Some(ttl) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else {
        return;
    };
    let ended = ["Complete", "Failed"]
        .iter()
        .find_map(|how| pods::condition(job, how));
    let ended = ended.and_then(|end| {
        end["lastTransitionTime"]
            .as_str()?
            .parse::<Timestamp>()
            .ok()
    });
    let passed = ended
        .map(|at| clock::now().duration_since(at))
        .unwrap_or_default();
    let left = SignedDuration::from_secs(ttl) - passed;
    match left.is_positive() {
        true => state.later(
            Duration::try_from(left).unwrap_or_default(),
            Work::Job(key.clone()),
        ),
        false => state.discard("jobs", key),
    }
}
