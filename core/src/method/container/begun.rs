//! Which of a pod's events are over, because the kubelet went on after them.

use serde_json::Value as Json;

/// What the kubelet reports only once the pod has its volumes and its sandbox (`pkg/kubelet/kubelet.go`, `SyncPod`:
/// `WaitForAttachAndMount` stands before the container runtime's part).
const AFTER: [&str; 4] = ["Pulling", "Pulled", "Created", "Started"];

/// What it and the controller that attaches volumes report before that.
const BEFORE: [&str; 4] = [
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "FailedMapVolume",
    "FailedMount",
];

/// Drops the events of pods that failed on their way to their containers, and came to them after that.
pub(super) fn drop_overcome(events: &mut Vec<Json>) {
    let last = |event: &Json| event["lastTimestamp"].as_str().map(str::to_owned);
    let pod = |event: &Json| event["involvedObject"]["name"].clone();
    let is = |event: &Json, reasons: &[&str]| {
        let reason = event["reason"].as_str();
        reason.is_some_and(|reason| reasons.contains(&reason))
    };
    let begun = events.iter().filter(|event| is(event, &AFTER));
    let begun: Vec<_> = begun.map(|event| (pod(event), last(event))).collect();
    events.retain(|event| {
        let (of, at) = (pod(event), last(event));
        let went_on = |(other, later): &(Json, Option<String>)| {
            // Times of one server, in whole seconds of UTC
            *other == of && at.is_some() && at <= *later
        };
        !is(event, &BEFORE) || !begun.iter().any(went_on)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_failed_before_the_kubelet_pulls_is_over_and_what_fails_after_is_not() {
        let event = |pod: &str, reason: &str, minute: u8| {
            json!({"involvedObject": {"name": pod}, "reason": reason,
                "lastTimestamp": format!("2026-01-01T00:{minute:02}:00Z")})
        };
        let mut events = vec![
            event("p", "FailedAttachVolume", 1),
            event("p", "FailedMount", 2),
            event("p", "BackOff", 1),
            event("p", "Pulling", 2),
            // The node was restarted
            event("p", "FailedMount", 3),
            event("q", "FailedMount", 1),
        ];
        let mut untimed = event("p", "FailedMount", 1);
        untimed["lastTimestamp"] = Json::Null;
        events.push(untimed.clone());
        let left = [&events[2..], &[]].concat();
        drop_overcome(&mut events);
        assert_eq!(events, left);
    }
}
