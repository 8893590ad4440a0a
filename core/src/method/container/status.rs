//! The test method `status`: fields of a pod, a Job, a CronJob, a quota, a claim or an autoscaler as the API server has
//! them, of a pod's metrics, and of its events.

use std::fmt;

use serde_json::{Value as Json, json};

use super::PodOf;
use super::begun::drop_overcome;
use crate::fixture::{FixtureName, Need, Until};
use crate::method::NO_IMAGE;
use crate::method::api::placement::unschedulable;
use crate::method::compare::{Comparison, Difference};
use crate::method::error::{AS_CREATED, ErrorKind, Result};
use crate::method::exchange::{ApiRequest, Request};
use crate::method::failure::Signature;
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Method, Test, Traits};
use crate::text::{bound, bounded, counted, exit_code, printable};

/// How many bytes of the named fields an observation keeps.
const KEPT: usize = 2 << 10;
/// The API group of what pods use.
const METRICS: &str = "metrics.k8s.io";
/// In an expectation: any value that is not empty.
const ANY: &str = "any";
/// In an expectation: a quantity above zero.
const SOME: &str = "some";
/// In an expectation: no value.
const NONE: &str = "none";

/// An object of a fixture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatusQuery {
    pub kind: StatusKind,
    pub object: PodOf,
}

/// What a status is of, by its key in a suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum StatusKind {
    Pod,
    Job,
    CronJob,
    Quota,
    /// A claim of a volume.
    Claim,
    /// A `HorizontalPodAutoscaler`.
    Autoscaler,
    /// What a pod uses, as `metrics.k8s.io` has it.
    Metrics,
    /// The list of a pod's events.
    Events,
}

impl fmt::Display for StatusQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            StatusKind::Pod => "pod",
            StatusKind::Job => "Job",
            StatusKind::CronJob => "CronJob",
            StatusKind::Quota => "ResourceQuota",
            StatusKind::Claim => "PersistentVolumeClaim",
            StatusKind::Autoscaler => "HorizontalPodAutoscaler",
            StatusKind::Metrics => "metrics of pod",
            StatusKind::Events => "events of pod",
        };
        write!(f, "{kind} {}", self.object)
    }
}

/// Fields of an object: of a map each that is named; of a list, for each item named, one that has its fields;
/// `any` is any value that is not empty, `some` a quantity above zero, and `none` stands for no value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatusExpectation {
    pub has: Json,
    /// What the object has instead where it decides, too: what fails, or a limitation that is lifted.
    pub instead: Option<Json>,
}

/// The test method `status`. An observation is the object.
#[derive(Clone, Debug)]
pub enum Status {}

impl StatusQuery {
    /// Whether it is of a pod that is to start, beyond being created and placed.
    fn has_to_start(&self) -> bool {
        let until = self.object.of.until();
        self.kind == StatusKind::Pod && !matches!(until, Until::Placed | Until::Applied)
    }
}

/// Why a pod is bound to no node, as the scheduler says: nothing is seen of what it does.
fn unbound(pod: &Json) -> Option<String> {
    let is_unbound = pod["spec"]["nodeName"].as_str().is_none();
    unschedulable(pod).filter(|_| is_unbound).map(printable)
}

/// Why a container of a pod has no image yet, if one has none: nothing is seen of what it does.
fn lacks_image(pod: &Json) -> Option<String> {
    let lists = ["initContainerStatuses", "containerStatuses"].into_iter();
    let lists = lists.filter_map(|list| pod["status"][list].as_array());
    lists.flatten().find_map(|status| {
        let waiting = &status["state"]["waiting"];
        let reason = waiting["reason"].as_str()?;
        let text = |value: &Json| printable(value.as_str().unwrap_or_default());
        let (name, message) = (text(&status["name"]), text(&waiting["message"]));
        let waits = || format!("container {name} waits: {reason} {message}");
        NO_IMAGE.contains(&reason).then(waits)
    })
}

/// What an autoscaler tells of a container without a request for processor time, of which it knows no share
/// (`pkg/controller/podautoscaler/replica_calculator.go`): the containers of manifests have one.
fn lacks_request(autoscaler: &Json) -> Option<String> {
    let conditions = autoscaler["status"]["conditions"].as_array();
    let mut messages = conditions
        .into_iter()
        .flatten()
        .filter_map(|condition| condition["message"].as_str());
    let missing = messages.find_map(|message| {
        let at = message.find("missing request for cpu")?;
        Some(printable(&message[at..]))
    })?;
    Some(format!(
        "{missing}: something in the cluster changed this pod {AS_CREATED}"
    ))
}

impl Method for Status {
    type Query = StatusQuery;
    type Expectation = StatusExpectation;
    type Observation = Json;

    const TEST: fn(Assertion<Self>) -> Test = Test::Status;

    fn prepare<'a>(query: &'a StatusQuery, at: &Bound<'a>) -> Result<Prepared<'a, Json>> {
        let (namespace, name) = query.object.place(at);
        // Pods of the fixture may have its name and more
        let own = query.object.key(at).name_of(&query.object.name);
        let path = match query.kind {
            StatusKind::Pod => format!("/api/v1/namespaces/{namespace}/pods/{name}"),
            StatusKind::Job => format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}"),
            StatusKind::CronJob => {
                format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}")
            }
            StatusKind::Quota => format!("/api/v1/namespaces/{namespace}/resourcequotas/{name}"),
            StatusKind::Claim => {
                format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{own}")
            }
            StatusKind::Autoscaler => format!(
                "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{own}"
            ),
            StatusKind::Metrics => {
                format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{name}")
            }
            StatusKind::Events => format!(
                "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.kind%3DPod%2C\
                 involvedObject.name%3D{name}&limit=500"
            ),
        };
        let request = Request::Api(ApiRequest::get(path));
        Ok(Prepared::new(request, move |reply| {
            let reply = reply.api()?;
            let of_metrics = query.kind == StatusKind::Metrics;
            match reply.status {
                200 if !of_metrics || reply.body["kind"] == "PodMetrics" => {
                    let mut seen = reply.body.clone();
                    if query.has_to_start()
                        && let Some(why) = unbound(&seen)
                    {
                        return Err(ErrorKind::Unscheduled.error(why));
                    }
                    if let (StatusKind::Pod, Some(why)) = (query.kind, lacks_image(&seen)) {
                        return Err(ErrorKind::ImagePull.error(why));
                    }
                    if let (StatusKind::Autoscaler, Some(why)) = (query.kind, lacks_request(&seen))
                    {
                        return Err(ErrorKind::FixtureFailed.error(why));
                    }
                    if let (StatusKind::Events, Some(events)) =
                        (query.kind, seen["items"].as_array_mut())
                    {
                        drop_overcome(events);
                    }
                    Ok(seen)
                }
                // A metrics server answered, and has none of this pod
                404 if of_metrics && reply.body["details"]["group"] == METRICS => Ok(json!({})),
                404 if !of_metrics => Err(reply.refused(ErrorKind::NotApplied)),
                _ => Err(reply.refused(ErrorKind::UnrecognisedOutput)),
            }
        }))
    }

    fn needs(query: &StatusQuery) -> Vec<(FixtureName, Need)> {
        let mut needs = super::needs(query.object.of);
        // Whether their controllers make pods is what the checks of these are about
        if matches!(query.kind, StatusKind::Job | StatusKind::CronJob) {
            needs[0].1 = Need::Settled;
        }
        needs
    }

    fn traits(query: &StatusQuery, _: &StatusExpectation) -> Traits {
        Traits {
            is_slow: query.kind == StatusKind::Metrics,
            ..super::traits()
        }
    }

    fn kept(seen: Json) -> Json {
        let kept = ["status", "containers", "items"].into_iter();
        let kept = kept.map(|key| &seen[key]).find(|field| !field.is_null());
        let kept = kept.unwrap_or(&seen);
        let mut text = kept.to_string();
        match bound(&mut text, KEPT) {
            true => Json::String(text),
            false => kept.clone(),
        }
    }

    fn failing(
        expectation: &StatusExpectation,
        signature: &Signature,
    ) -> Option<StatusExpectation> {
        let Signature::Has(has) = signature else {
            return None;
        };
        Some(StatusExpectation {
            has: has.clone(),
            instead: Some(expectation.has.clone()),
        })
    }

    fn compare(expectation: &StatusExpectation, seen: &Json) -> Result<Comparison> {
        let mut others = Vec::new();
        match seen.as_object().is_some_and(serde_json::Map::is_empty) {
            true => others.push("the server has none of it".to_owned()),
            false => differing(&expectation.has, seen, "", &mut others),
        }
        if let (Some(instead), false) = (&expectation.instead, others.is_empty()) {
            let mut neither = Vec::new();
            differing(instead, seen, "", &mut neither);
            // Neither that it holds nor that it does not
            if !neither.is_empty() {
                return Err(ErrorKind::UnrecognisedOutput.error(neither.join("; ")));
            }
        }
        let words = match others.is_empty() {
            true => "these fields".to_owned(),
            false => others.join("; "),
        };
        let difference = Difference::between(expectation, words);
        Ok(match others.is_empty() {
            true => Comparison::Met(difference),
            false => Comparison::NotMet(difference),
        })
    }
}

/// Adds to `others` each field that is otherwise than expected, with its path.
fn differing(expected: &Json, seen: &Json, path: &str, others: &mut Vec<String>) {
    match (expected, seen) {
        (Json::Object(expected), seen) => {
            for (key, expected) in expected {
                let seen = seen.get(key).unwrap_or(&Json::Null);
                differing(expected, seen, &format!("{path}.{key}"), others);
            }
        }
        (Json::Array(expected), Json::Array(seen)) => {
            for item in expected {
                let fits = |seen: &&Json| {
                    let mut others = Vec::new();
                    differing(item, seen, path, &mut others);
                    others.is_empty()
                };
                if seen.iter().find(fits).is_none() {
                    let told = told(seen).or_else(|| containers(seen));
                    others.push(told.unwrap_or_else(|| shown(path, &Json::Array(seen.clone()))));
                }
            }
        }
        (Json::String(any), seen) if any == ANY => {
            let is_empty = seen.is_null() || *seen == "" || *seen == Json::Array(Vec::new());
            if is_empty {
                others.push(format!("no {}", path.trim_start_matches('.')));
            }
        }
        (Json::String(some), Json::String(seen)) if some == SOME => {
            let amount = seen.trim_start_matches(['0', '.']);
            if !amount.starts_with(|first: char| first.is_ascii_digit()) {
                others.push(format!(
                    "{} {}",
                    path.trim_start_matches('.'),
                    printable(seen)
                ));
            }
        }
        (Json::String(none), Json::Null) if none == NONE => {}
        (Json::String(around), Json::String(seen))
            if part_of(around).is_some_and(|part| seen.contains(part)) => {}
        // A program's last line ends as its system ends lines
        (Json::String(expected), Json::String(seen)) if expected == seen.trim_end() => {}
        (expected, seen) if expected == seen => {}
        (_, seen) => others.push(shown(path, seen)),
    }
}

/// The part that a text has to have, of `…PART…`.
fn part_of(expected: &str) -> Option<&str> {
    expected.strip_prefix('…')?.strip_suffix('…')
}

/// What events tell, warnings first, if these are events.
fn told(seen: &[Json]) -> Option<String> {
    let mut events = Vec::new();
    for event in seen.iter().filter(|one| !one["involvedObject"].is_null()) {
        let [reason, message] = ["reason", "message"].map(|key| event[key].as_str());
        let words = format!("{}: {}", reason?, printable(message?));
        events.push((event["type"] != "Warning", words));
    }
    events.sort_by_key(|(is_normal, _)| *is_normal);
    let words = events.into_iter().map(|(_, words)| words);
    let text = bounded(words.collect::<Vec<_>>().join("; "), KEPT / 4);
    (!text.is_empty()).then_some(text)
}

/// What the statuses of containers tell, if these are such.
fn containers(seen: &[Json]) -> Option<String> {
    let container = |status: &Json| {
        let (name, restarts) = (status["name"].as_str()?, status["restartCount"].as_u64()?);
        let mut words = format!("{} {}", printable(name), in_state(&status["state"])?);
        if let Some(before) = in_state(&status["lastState"]) {
            words.push_str(&format!(", before {before}"));
        }
        let times = counted(usize::try_from(restarts).unwrap_or(usize::MAX), "time");
        Some(format!("{words}, restarted {times}"))
    };
    let containers: Option<Vec<_>> = seen.iter().map(container).collect();
    let text = bounded(containers?.join("; "), KEPT / 4);
    (!text.is_empty()).then_some(text)
}

/// The state of a container: its name and what it says.
fn in_state(state: &Json) -> Option<String> {
    let (name, says) = state.as_object()?.iter().next()?;
    let [reason, message] = ["reason", "message"].map(|key| says[key].as_str().map(printable));
    let code = says["exitCode"].as_i64();
    let code = code.map(|code| format!("with exit code {}", exit_code(code)));
    let words = [Some(printable(name)), code].into_iter().flatten();
    let said = [reason, message].into_iter().flatten();
    let said: Vec<_> = said.collect();
    let words = words.collect::<Vec<_>>().join(" ");
    Some(match said.is_empty() {
        true => words,
        false => format!("{words} ({})", said.join(": ")),
    })
}

fn shown(path: &str, seen: &Json) -> String {
    let text = bounded(printable(&seen.to_string()), KEPT / 4);
    format!("{} {text}", path.trim_start_matches('.'))
}

impl fmt::Display for StatusExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.has.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(expected: &Json, seen: &Json) -> Vec<String> {
        let mut others = Vec::new();
        differing(expected, seen, "", &mut others);
        others
    }

    #[test]
    fn named_fields_alone_count_and_each_difference_is_named() {
        let seen = json!({"status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [
            {"type": "Ready", "status": "True", "reason": "x"}, {"type": "Initialized", "status": "False"},
        ]}});
        let expected = json!({"status": {"phase": "Running", "podIP": "any", "conditions": [
            {"type": "Ready", "status": "True"},
        ]}});
        assert_eq!(others(&expected, &seen), Vec::<String>::new());
        let expected = json!({"status": {"phase": "Failed", "hostIP": "any", "conditions": [
            {"type": "Initialized", "status": "True"},
        ]}});
        let others = others(&expected, &seen);
        assert_eq!(others.len(), 3, "{others:?}");
        assert!(
            others.contains(&"status.phase \"Running\"".to_owned()),
            "{others:?}"
        );
        assert!(
            others.contains(&"no status.hostIP".to_owned()),
            "{others:?}"
        );
    }

    #[test]
    fn a_pod_that_is_bound_to_no_node_shows_nothing() {
        let says = json!({"type": "PodScheduled", "reason": "Unschedulable", "message": "0/6 nodes are available"});
        let mut pod = json!({"spec": {}, "status": {"conditions": [says]}});
        assert_eq!(unbound(&pod).as_deref(), Some("0/6 nodes are available"));
        pod["spec"]["nodeName"] = json!("win-a");
        assert_eq!(unbound(&pod), None);
    }

    #[test]
    fn statuses_of_containers_are_told_in_words() {
        let ended = json!({"terminated": {"exitCode": 7, "reason": "Error", "finishedAt": "x"}});
        let seen = json!([
            {"name": "main", "restartCount": 1, "state": {"running": {"startedAt": "x"}}, "lastState": ended},
            {"name": "other", "restartCount": 0, "lastState": {},
                "state": {"waiting": {"reason": "CreateContainerError", "message": "no\nuser"}}},
        ]);
        assert_eq!(
            others(&json!([{"restartCount": 2}]), &seen),
            [
                "main running, before terminated with exit code 7 (Error), restarted 1 time; \
                 other waiting (CreateContainerError: no⏎user), restarted 0 times"
            ]
        );
    }

    #[test]
    fn what_fails_is_told_from_what_shows_nothing_yet() {
        let event = |kind: &str, reason: &str, message: &str| json!({"involvedObject": {"name": "p"}, "type": kind, "reason": reason, "message": message});
        let scheduled = event("Normal", "Scheduled", "assigned to a");
        let failed = event("Warning", "FailedMount", "it failed for volume v");
        let expectation = StatusExpectation {
            has: json!({"items": [{"reason": "Started"}]}),
            instead: Some(json!({"items": [{"message": "…failed for volume…"}]})),
        };
        let compare = |items: &[&Json]| Status::compare(&expectation, &json!({"items": items}));
        assert!(compare(&[&scheduled]).is_err());
        let started = event("Normal", "Started", "Container started");
        let met = compare(&[&failed, &started]).expect("it compares");
        assert!(met.holds());
        let Ok(Comparison::NotMet(difference)) = compare(&[&scheduled, &failed]) else {
            panic!("it is not met")
        };
        let told = "FailedMount: it failed for volume v; Scheduled: assigned to a";
        assert_eq!(difference.seen, told);
    }

    #[test]
    fn a_container_without_a_request_leaves_an_autoscaler_without_a_use() {
        let active = |message: &str| json!({"type": "ScalingActive", "message": message});
        let told = |message: &str| {
            let conditions = json!([{"type": "AbleToScale", "message": "ready"}, active(message)]);
            lacks_request(&json!({"status": {"conditions": conditions}}))
        };
        assert_eq!(
            told("failed: missing request for cpu in container proxy of Pod p").as_deref(),
            Some(
                "missing request for cpu in container proxy of Pod p: \
                 something in the cluster changed this pod as it was created"
            )
        );
        let unmeasured = "failed to get cpu utilization: no metrics returned";
        assert_eq!(told(unmeasured), None);
        assert_eq!(lacks_request(&json!({})), None);
    }

    #[test]
    fn a_quantity_above_zero_is_some() {
        let expected = json!({"memory": "some"});
        for (memory, is_some) in [
            ("64Mi", true),
            ("0.5Gi", true),
            ("0", false),
            ("0Ki", false),
            ("", false),
        ] {
            let others = others(&expected, &json!({"memory": memory}));
            assert_eq!(others.is_empty(), is_some, "{memory}: {others:?}");
        }
        assert_eq!(others(&expected, &json!({})).len(), 1);
    }
}
