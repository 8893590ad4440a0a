//! Which of a pod's events are over, because the kubelet went on after them.

use serde_json::Value as Json;

/// What the kubelet reports of a pod only once it has its volumes and its sandbox (`pkg/kubelet/kubelet.go`, `SyncPod`:
/// `WaitForAttachAndMount` stands before the container runtime's part).
const AFTER: [&str; 4] = ["Pulling", "Pulled", "Created", "Started"];

/// What it and the controller that attaches volumes report before that.
const BEFORE: [&str; 4] = [
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "FailedMapVolume",
    "FailedMount",
];

/// Drops each event of what a pod has overcome: its volumes were not attached or mounted, or it had no sandbox, and
/// the kubelet went on to its containers later.
pub(super) fn drop_overcome(events: &mut Vec<Json>) {
    let is_among = |event: &Json, reasons: &[&str]| {
        let reason = event["reason"].as_str();
        reason.is_some_and(|reason| reasons.contains(&reason))
    };
    let begun = events.iter().filter(|event| is_among(event, &AFTER));
    let begun: Vec<_> = begun.cloned().collect();
    events.retain(|event| {
        let mut of_pod = begun
            .iter()
            .filter(|later| later["involvedObject"]["uid"] == event["involvedObject"]["uid"]);
        // The controller that attaches volumes has another clock than the node's kubelet
        let is_of_controller = event["reason"] == "FailedAttachVolume";
        let at = event["lastTimestamp"].as_str();
        let is_overcome = is_among(event, &BEFORE)
            && of_pod.any(|later| {
                is_of_controller || at.is_some() && at <= later["lastTimestamp"].as_str()
            });
        !is_overcome
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_failed_before_the_kubelet_pulls_is_over_and_what_fails_after_is_not() {
        let event = |pod: &str, reason: &str, minute: u8| {
            json!({"involvedObject": {"uid": pod}, "reason": reason,
                "lastTimestamp": format!("2026-01-01T00:{minute:02}:00Z")})
        };
        let mut untimed = event("p", "FailedMount", 1);
        untimed["lastTimestamp"] = Json::Null;
        let mut events = vec![
            event("p", "FailedMount", 2),
            // Its clock is another
            event("p", "FailedAttachVolume", 7),
            event("p", "BackOff", 1),
            event("p", "Pulling", 2),
            // The node was restarted
            event("p", "FailedMount", 3),
            event("q", "FailedMount", 1),
            untimed,
        ];
        let left = events[2..].to_vec();
        drop_overcome(&mut events);
        assert_eq!(events, left);
    }
}
