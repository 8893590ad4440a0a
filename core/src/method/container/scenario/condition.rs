//! What a step of a scenario waits for: a condition on the pod, read without I/O.

use serde_json::Value as Json;

use crate::method::api::disruption::{disrupted, is_disrupted, lost, lost_container, statuses};
use crate::method::error::{ErrorKind, ObservationError};
use crate::text::printable;

/// A condition on the container that a scenario is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Condition {
    /// The kubelet says that it is ready, or that it is not.
    Ready(bool),
    /// The kubelet says that it has started, or that it has not; and it was never restarted.
    Started(bool),
    /// It was restarted.
    Restarted,
    /// It runs and was never restarted.
    Runs,
    /// It, or another container of the pod, has ended with this code, if any is named, and with this message, if
    /// any is named.
    Ended {
        /// Another container.
        other: Option<&'static str>,
        code: Option<i64>,
        message: Option<&'static str>,
    },
    /// Its pod is gone, after the scenario has deleted it.
    Gone,
}

/// What is seen of a condition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Seen {
    Holds,
    /// Not yet; what is seen instead.
    NotYet(String),
    /// It can no longer hold, and what is seen instead.
    Never(String),
    /// What is seen proves nothing.
    Untold(ObservationError),
}

impl Condition {
    /// Reads it off the pod, which is `None` once it is gone. `leaves` says whether the scenario has deleted it.
    pub fn read(&self, pod: Option<&Json>, container: &str, leaves: bool) -> Seen {
        let by_others = |what: &str| {
            let detail = format!("somebody else {what} the pod");
            Seen::Untold(ErrorKind::FixtureChanged.error(detail))
        };
        let Some(pod) = pod else {
            if !leaves {
                return by_others("deleted");
            }
            if *self == Self::Gone {
                return Seen::Holds;
            }
            let detail = "the pod is gone, and the watch did not show how its container ended";
            return Seen::Untold(ErrorKind::UnrecognisedOutput.error(detail));
        };
        if is_disrupted(pod) {
            return Seen::Untold(disrupted(pod));
        }
        if lost_container(pod).is_some() {
            return Seen::Untold(lost(pod["metadata"]["name"].as_str().unwrap_or_default()));
        }
        if !leaves && !pod["metadata"]["deletionTimestamp"].is_null() {
            return by_others("deletes");
        }
        if !leaves && let Some(other) = ended_by_itself(pod, container) {
            let detail =
                format!("container {other} ended, too, though the scenario does nothing to it");
            return Seen::Untold(ErrorKind::FixtureFailed.error(detail));
        }
        let of = |name: &str| {
            let mut statuses = statuses(pod);
            statuses.find(|status| status["name"] == name)
        };
        let Some(status) = of(container) else {
            return Seen::NotYet("it has no status".to_owned());
        };
        let restarts = status["restartCount"].as_u64().unwrap_or(0);
        let restarted = || Seen::Never(format!("it was restarted: {}", end(&status["lastState"])));
        let is = |field: &str, wanted: bool, words: [&str; 2]| match status[field] == wanted {
            true => Seen::Holds,
            false => Seen::NotYet(format!("it is {}", words[usize::from(!wanted)])),
        };
        match self {
            Self::Ready(wanted) => is("ready", *wanted, ["not ready", "ready"]),
            Self::Started(_) | Self::Runs if restarts > 0 => restarted(),
            Self::Started(wanted) => is("started", *wanted, ["not started", "started"]),
            Self::Restarted if restarts > 0 => Seen::Holds,
            Self::Restarted => Seen::NotYet("it was not restarted".to_owned()),
            Self::Runs if status["state"]["running"].is_object() => Seen::Holds,
            Self::Runs => Seen::Never(format!("it ended: {}", end(&status["state"]))),
            Self::Gone if pod["metadata"]["finalizers"][0].is_string() => by_others("keeps"),
            Self::Gone => Seen::NotYet("it is still there".to_owned()),
            Self::Ended {
                other,
                code,
                message,
            } => {
                let state = &other.and_then(of).unwrap_or(status)["state"];
                let ended = &state["terminated"];
                let said = ended["message"].as_str().unwrap_or_default().trim_end();
                match ended.is_object() {
                    false => Seen::NotYet("it runs".to_owned()),
                    true if code.is_none_or(|code| ended["exitCode"] == code)
                        && message.is_none_or(|message| said == message) =>
                    {
                        Seen::Holds
                    }
                    true => Seen::Never(format!("it ended: {}", end(state))),
                }
            }
        }
    }
}

/// Another container of the pod, which nothing ends, and which ended.
fn ended_by_itself(pod: &Json, container: &str) -> Option<String> {
    let mut others = statuses(pod).filter(|status| status["name"] != *container);
    let ended = others.find(|status| {
        status["restartCount"]
            .as_u64()
            .is_some_and(|count| count > 0)
            || status["state"]["terminated"].is_object()
    });
    ended.map(|status| printable(status["name"].as_str().unwrap_or_default()))
}

/// How a container ended.
fn end(state: &Json) -> String {
    let ended = &state["terminated"];
    let text = |field: &str| ended[field].as_str().unwrap_or_default();
    let code = &ended["exitCode"];
    let words = format!("{} {}", text("reason"), text("message").trim_end());
    match ended.is_object() {
        true => format!("exit code {code} {}", words.trim()),
        false => "unknown how".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Json) -> Json {
        json!({"metadata": {"name": "p"}, "status": {"phase": "Running",
            "containerStatuses": [status]}})
    }

    #[test]
    fn each_condition_is_read_off_the_container() {
        let running = json!({"name": "main", "ready": true, "started": true, "restartCount": 0,
            "state": {"running": {}}});
        let again = json!({"name": "main", "ready": false, "started": false, "restartCount": 1,
            "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 9}}});
        let over = json!({"name": "main", "ready": false, "started": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "message": "bye\r\n"}}});
        let ended = |code, message| Condition::Ended {
            other: None,
            code,
            message,
        };
        for (condition, status, leaves, seen) in [
            (Condition::Ready(true), &running, false, "holds"),
            (Condition::Ready(false), &running, false, "not yet"),
            (Condition::Started(true), &running, false, "holds"),
            (Condition::Started(true), &again, false, "never"),
            (Condition::Restarted, &running, false, "not yet"),
            (Condition::Restarted, &again, false, "holds"),
            (Condition::Runs, &running, false, "holds"),
            (Condition::Runs, &again, false, "never"),
            (Condition::Runs, &over, false, "never"),
            (ended(None, None), &running, true, "not yet"),
            (ended(Some(0), Some("bye")), &over, true, "holds"),
            (ended(Some(1), None), &over, true, "never"),
            (ended(None, Some("no")), &over, true, "never"),
            (Condition::Gone, &over, true, "not yet"),
        ] {
            let word = match condition.read(Some(&pod(status)), "main", leaves) {
                Seen::Holds => "holds",
                Seen::NotYet(_) => "not yet",
                Seen::Never(_) => "never",
                Seen::Untold(_) => "untold",
            };
            assert_eq!(word, seen, "{condition:?} {status}");
        }
    }

    #[test]
    fn a_pod_that_others_end_proves_nothing() {
        let mut evicted = pod(&json!({"name": "main"}));
        evicted["status"]["phase"] = json!("Failed");
        evicted["status"]["reason"] = json!("Evicted");
        let mut deleted = pod(&json!({"name": "main"}));
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let lost =
            pod(&json!({"name": "main", "lastState": {"terminated": {"reason": "Unknown"}}}));
        let untold = |pod: Option<&Json>, leaves| {
            matches!(
                Condition::Restarted.read(pod, "main", leaves),
                Seen::Untold(_)
            )
        };
        assert!(untold(None, false) && untold(None, true));
        let mut kept = pod(&json!({"name": "main"}));
        kept["metadata"]["finalizers"] = json!(["example.com/keeps"]);
        let seen = Condition::Gone.read(Some(&kept), "main", true);
        assert!(matches!(seen, Seen::Untold(_)), "{seen:?}");
        assert_eq!(Condition::Gone.read(None, "main", true), Seen::Holds);
        assert!(untold(Some(&evicted), false) && untold(Some(&lost), false));
        assert!(untold(Some(&deleted), false) && !untold(Some(&deleted), true));
        let both =
            json!([{"name": "main", "restartCount": 1}, {"name": "control", "restartCount": 1}]);
        let crashing = json!({"status": {"phase": "Running", "containerStatuses": both}});
        assert!(untold(Some(&crashing), false) && !untold(Some(&crashing), true));
    }
}
