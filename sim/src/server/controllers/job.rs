//! Jobs: pods until so many have succeeded (kubernetes 1.37.0, `pkg/controller/job/`), without
//! indices, policies, deadlines and back-off between pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pods::{self, condition, is_going, is_over, is_ready, set_condition};
use super::{made, number};
use crate::clock;
use crate::server::kinds::Kind;
use crate::server::state::State;
use crate::world::Key;

const COMPONENT: &str = "job-controller";

/// How far a job is.
struct Course {
    started: Timestamp,
    active: Vec<Key>,
    succeeded: i64,
    failed: i64,
}

/// How a job ends: the condition, its reason and its message.
type Ending = (&'static str, &'static str, &'static str);

pub(super) fn look(state: &mut State, key: &Key) {
    let Some(job) = state.store.get("jobs", key).cloned() else {
        return;
    };
    if is_going(&job) {
        return;
    }
    let is_over = |how: &&str| condition(&job, how).is_some();
    if ["Complete", "Failed"].iter().any(is_over) {
        return;
    }
    let course = course(state, &job);
    let ending = ending(&job, &course);
    match ending {
        Some(ending) => end(state, &job, &course, ending),
        None => go_on(state, &job, &course),
    }
    tell(state, key, &job, &course, ending);
}

fn counted(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn course(state: &State, job: &Value) -> Course {
    let own = made(&state.store, "pods", job);
    let with = |phase: &str| {
        let all = own
            .iter()
            .filter(|(_, pod)| pod["status"]["phase"] == phase);
        counted(all.count())
    };
    let started = job["status"]["startTime"]
        .as_str()
        .and_then(|at| at.parse().ok());
    Course {
        started: started.unwrap_or_else(clock::now),
        succeeded: with("Succeeded"),
        failed: with("Failed"),
        active: own
            .iter()
            .filter(|(_, pod)| !is_over(pod) && !is_going(pod))
            .map(|(key, _)| key.clone())
            .collect(),
    }
}

fn ending(job: &Value, course: &Course) -> Option<Ending> {
    let done = match job["spec"]["completions"].as_i64() {
        Some(wanted) => course.succeeded >= wanted,
        None => course.succeeded > 0 && course.active.is_empty(),
    };
    if done {
        Some((
            "Complete",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        ))
    } else if course.failed > number(&job["spec"]["backoffLimit"]) {
        Some((
            "Failed",
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        ))
    } else {
        None
    }
}

fn end(state: &mut State, job: &Value, course: &Course, (how, reason, message): Ending) {
    let about = (Kind::named("jobs"), job);
    for key in &course.active {
        pods::delete(state, COMPONENT, about, key);
    }
    let event = match how {
        "Complete" => ("Normal", "Completed", "Job completed"),
        _ => ("Warning", reason, message),
    };
    state.tell(COMPONENT, about, event);
}

/// Makes the pods that are missing.
fn go_on(state: &mut State, job: &Value, course: &Course) {
    let about = (Kind::named("jobs"), job);
    let spec = &job["spec"];
    let most = number(&spec["parallelism"]);
    let needed = match spec["completions"].as_i64() {
        Some(wanted) => (wanted - course.succeeded).min(most),
        None if course.succeeded > 0 => 0,
        None => most,
    };
    for _ in counted(course.active.len())..needed {
        if pods::create(state, COMPONENT, about, &spec["template"], |_| {}).is_err() {
            break;
        }
    }
}

fn tell(state: &mut State, key: &Key, job: &Value, course: &Course, ending: Option<Ending>) {
    let own = made(&state.store, "pods", job);
    let count = |which: &dyn Fn(&Value) -> bool| own.iter().filter(|(_, pod)| which(pod)).count();
    let mut status = json!({
        "startTime": course.started, "uncountedTerminatedPods": {},
        "ready": count(&|pod| is_ready(pod) && !is_over(pod) && !is_going(pod)),
        "terminating": count(&|pod| is_going(pod) && !is_over(pod)),
    });
    if let Some(conditions) = job["status"].get("conditions") {
        status["conditions"] = conditions.clone();
    }
    let active = counted(count(&|pod| !is_over(pod) && !is_going(pod)));
    for (field, count) in [
        ("active", active),
        ("succeeded", course.succeeded),
        ("failed", course.failed),
    ] {
        if count != 0 {
            status[field] = json!(count);
        }
    }
    if let Some((how, reason, message)) = ending {
        let before = if how == "Complete" {
            "SuccessCriteriaMet"
        } else {
            "FailureTarget"
        };
        set_condition(&mut status, before, "True", reason, message);
        set_condition(&mut status, how, "True", reason, message);
        if how == "Complete" {
            status["completionTime"] = json!(clock::now());
        }
    }
    state.set_status("jobs", key, status);
}
