//! The kind `CronJob`: makes a Job at each full minute (kubernetes 1.37.0, `pkg/controller/cronjob/cronjob_controllerv2.go`),
//! of the schedule `* * * * *` alone, without time zones, deadlines and `status.active`; a suspended one does nothing.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pods::{condition, is_going};
use super::{Work, made, owned_by};
use crate::base::fields::Fields;
use crate::fault::FaultKind;
use crate::server::kinds::Kind;
use crate::server::storage::state::State;
use crate::world::Key;

const COMPONENT: &str = "cronjob-controller";
const MINUTE: i64 = 60;

/// The annotation of a Job that says at which minute it was due.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// How a Job ends, and the field that says how many such Jobs stay.
const LIMITS: [(&str, &str); 2] = [
    ("Complete", "successfulJobsHistoryLimit"),
    ("Failed", "failedJobsHistoryLimit"),
];

pub(super) fn look(state: &mut State, key: &Key, cron: &Value) {
    let is_other = cron["spec"]["schedule"] != "* * * * *" || cron["spec"]["suspend"] == true;
    if is_other || state.suffers(FaultKind::CronJobsIdle) {
        return;
    }
    let now = state.wall.now().as_second();
    let minute = now - now.rem_euclid(MINUTE);
    let seconds = |field: &Value| field.text().parse::<Timestamp>().map(Timestamp::as_second);
    let last = seconds(&cron["status"]["lastScheduleTime"])
        .or_else(|_| seconds(&cron["metadata"]["creationTimestamp"]))
        .unwrap_or(now);
    let jobs = made(&state.store, "jobs", cron);
    let has_ended = |job: &Value| LIMITS.iter().any(|(how, _)| condition(job, how).is_some());
    let is_busy = jobs
        .iter()
        .any(|(_, job)| !has_ended(job) && !is_going(job));
    let mut status = cron["status"].clone();
    if minute > last && !(is_busy && cron["spec"]["concurrencyPolicy"] == "Forbid") {
        let template = &cron["spec"]["jobTemplate"];
        let mut job = template.clone();
        let scheduled = json!(Timestamp::from_second(minute).ok());
        job["metadata"]["annotations"][SCHEDULED] = scheduled.clone();
        job["metadata"]["name"] = format!("{}-{}", key.name, minute / MINUTE).into();
        job["metadata"]["ownerReferences"] = owned_by(cron);
        let event = match state.create(Kind::named("jobs"), &key.namespace, job, false) {
            Ok(job) => {
                status["lastScheduleTime"] = scheduled;
                let name = job["metadata"]["name"].text();
                ("Normal", "SuccessfulCreate", format!("Created job {name}"))
            }
            Err(refusal) => {
                let words = format!("Error creating job: {}", refusal.message);
                ("Warning", "FailedCreate", words)
            }
        };
        state.tell(COMPONENT, cron, (event.0, event.1, &event.2));
    }
    let ends = jobs
        .iter()
        .filter(|(_, job)| condition(job, "Complete").is_some());
    let ends = ends.filter_map(|(_, job)| job["status"]["completionTime"].as_str());
    if let Some(end) = ends.max() {
        status["lastSuccessfulTime"] = end.into();
    }
    for (how, limit) in LIMITS {
        let over = jobs.iter();
        let over = over.filter(|(_, job)| condition(job, how).is_some());
        let over: Vec<_> = over.collect();
        let limit = usize::try_from(cron["spec"][limit].number()).unwrap_or(usize::MAX);
        let many = over.len().saturating_sub(limit);
        for (job, _) in over.into_iter().take(many) {
            state.discard("jobs", job);
        }
    }
    if status != cron["status"] {
        state.set_status("cronjobs", key, status);
    }
    let left = u64::try_from(MINUTE - now.rem_euclid(MINUTE)).unwrap_or(1);
    state.later_once(Duration::from_secs(left), Work::workload("cronjobs", key));
}
