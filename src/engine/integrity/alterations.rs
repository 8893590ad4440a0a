//! What of a pod the server stores otherwise than it was sent: a webhook changed it.

use serde_json::Value as Json;
use winconform_core::method::{AS_CREATED, ErrorKind, Fields, ObservationError, is_blank};
use winconform_core::text::printable;

/// What others choose without a change of what a pod does: from where its images come, and how often.
const FREE: [&str; 2] = ["image", "imagePullPolicy"];

/// The fields that say where a pod may run, and with how much.
const OF_PLACEMENT: [&str; 4] = ["affinity", "priorityClassName", "resources", "tolerations"];

/// The fields that say which programs a pod runs.
const OF_PROGRAMS: [&str; 3] = [".args", ".command", "spec.containers"];

/// The fields of a pod that are stored otherwise than they were sent.
#[derive(Clone, Debug)]
pub(crate) struct Altered {
    fields: Vec<String>,
    pod: String,
}

impl Altered {
    /// The difference of a pod's stored spec from the one sent, if there is one.
    pub(crate) fn between(stored: &Json, sent: &Json) -> Option<Self> {
        let fields = alterations(&stored["spec"], &sent["spec"], "spec");
        let pod = printable(stored["metadata"]["name"].as_str().unwrap_or_default());
        (!fields.is_empty()).then_some(Self { fields, pod })
    }

    /// That one of these fields is otherwise.
    pub(crate) fn error(&self, is_about: impl Fn(&str) -> bool) -> Option<ObservationError> {
        let mut fields = self.fields.iter();
        let (at, pod) = (fields.find(|at| is_about(at))?, &self.pod);
        let detail = format!("something in the cluster changed {at} of pod {pod} {AS_CREATED}");
        Some(ErrorKind::FixtureChanged.error(detail))
    }

    /// That one of the fields is otherwise that decide what is observed.
    pub(crate) fn of(&self, deciding: Fields) -> Option<ObservationError> {
        self.error(|at| match deciding {
            Fields::All => true,
            Fields::Place => {
                at.starts_with("spec.nodeSelector")
                    || OF_PLACEMENT.iter().any(|field| at.contains(field))
            }
            Fields::Doings => !OF_PLACEMENT.iter().any(|field| at.contains(field)),
            Fields::Programs => {
                let is_of_probe = at.contains("Probe.") || at.contains(".lifecycle.");
                !is_of_probe && OF_PROGRAMS.iter().any(|field| at.ends_with(field))
            }
        })
    }
}

/// The fields of what was sent that what is stored lacks or has otherwise, such as `spec.containers[main].env`, below
/// `at`. What is stored has more: the server adds defaults, and webhooks containers.
fn alterations(stored: &Json, sent: &Json, at: &str) -> Vec<String> {
    match (stored, sent) {
        (Json::Object(stored), Json::Object(sent)) => {
            let sent = sent.iter();
            let sent = sent.filter(|(key, sent)| !FREE.contains(&key.as_str()) && !is_blank(sent));
            let below = sent.flat_map(|(key, sent)| {
                let at = format!("{at}.{key}");
                match stored.get(key) {
                    Some(stored) => alterations(stored, sent, &at),
                    None => vec![at],
                }
            });
            below.collect()
        }
        (Json::Array(stored), Json::Array(sent)) if sent.iter().all(Json::is_object) => {
            let below = sent.iter().flat_map(|sent| {
                // Mounts of one volume have one name
                let holds = |one| alterations(one, sent, at).is_empty();
                if stored.iter().any(holds) {
                    return vec![];
                }
                let name = sent["name"].as_str();
                let mut stored = stored.iter();
                let same = stored.find(|one| name.is_some() && one["name"].as_str() == name);
                match (same, name) {
                    (Some(one), Some(name)) => alterations(one, sent, &format!("{at}[{name}]")),
                    _ => vec![at.to_owned()],
                }
            });
            below.collect()
        }
        _ if stored == sent => vec![],
        _ => vec![at.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_added_is_no_alteration_and_what_is_missing_or_otherwise_is() {
        let mounts = json!([{"name": "v", "mountPath": "a"}, {"name": "v", "mountPath": "b"}]);
        let sent = json!({"restartPolicy": "Never", "hostname": "", "containers": [
            {"name": "main", "image": "i", "args": ["a", "b"], "volumeMounts": mounts,
                "env": [{"name": "E", "value": "1", "valueFrom": null}]}],
            "tolerations": [{"key": "a", "operator": "Equal", "value": ""}]});
        let proxy = json!({"name": "proxy"});
        let stored = |policy: &str, main: Json| {
            json!({"restartPolicy": policy, "containers": [proxy, main],
                "tolerations": [{"key": "b"}, {"key": "a", "operator": "Equal"}]})
        };
        let main = json!({"name": "main", "image": "mirror/i", "args": ["a", "b"], "resources": {},
            "volumeMounts": mounts,
            "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "1"}]});
        let alike = stored("Never", main.clone());
        assert_eq!(alterations(&alike, &sent, "spec"), Vec::<String>::new());

        let mut other = main;
        other["env"][1]["value"] = json!("2");
        other["args"] = json!(["a", "b", "c"]);
        let expected = [
            "spec.containers[main].args",
            "spec.containers[main].env[E].value",
            "spec.restartPolicy",
        ];
        let other = stored("Always", other);
        assert_eq!(alterations(&other, &sent, "spec"), expected);
    }
}
