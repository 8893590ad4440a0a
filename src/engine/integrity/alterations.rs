//! What of a pod the server stores otherwise than it was sent: a webhook changed it.

use serde_json::Value as Json;

/// What others choose without a change of what a pod does: from where its images come, and how often.
const FREE: [&str; 2] = ["image", "imagePullPolicy"];

/// The fields of what was sent that what is stored lacks or has otherwise, such as `spec.containers[main].env`, below
/// `at`. What is stored has more: the server adds defaults, and webhooks containers.
pub(crate) fn alterations(stored: &Json, sent: &Json, at: &str) -> Vec<String> {
    match (stored, sent) {
        (Json::Object(stored), Json::Object(sent)) => {
            let sent = sent.iter();
            let sent = sent.filter(|(key, sent)| !FREE.contains(&key.as_str()) && !sent.is_null());
            let below = sent.flat_map(|(key, sent)| {
                let at = format!("{at}.{key}");
                match stored.get(key) {
                    Some(stored) => alterations(stored, sent, &at),
                    None => vec![at],
                }
            });
            below.collect()
        }
        (Json::Array(stored), Json::Array(sent)) => {
            let below = sent.iter().flat_map(|sent| {
                // Mounts of one volume have one name
                if stored
                    .iter()
                    .any(|one| alterations(one, sent, at).is_empty())
                {
                    return vec![];
                }
                let name = sent["name"].as_str();
                let same = stored
                    .iter()
                    .find(|one| name.is_some() && one["name"].as_str() == name);
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
        let sent = json!({"restartPolicy": "Never", "tolerations": [{"key": "a"}], "containers": [
            {"name": "main", "image": "i", "args": ["a", "b"], "volumeMounts": mounts,
                "env": [{"name": "E", "value": "1", "valueFrom": null}]}]});
        let proxy = json!({"name": "proxy"});
        let stored = |policy: &str, tolerations: Json, main: Json| json!({"restartPolicy": policy, "tolerations": tolerations, "containers": [proxy, main]});
        let main = json!({"name": "main", "image": "mirror/i", "args": ["a", "b"], "resources": {}, "volumeMounts": mounts,
            "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "1"}]});
        let added = json!([{"key": "b"}, {"key": "a", "operator": "Exists"}]);
        let alike = stored("Never", added, main.clone());
        assert_eq!(alterations(&alike, &sent, "spec"), Vec::<String>::new());

        let mut bare = main;
        bare["env"][1]["value"] = json!("2");
        bare["args"].take();
        let other = stored("Always", json!([]), bare);
        let expected = [
            "spec.containers[main].args",
            "spec.containers[main].env[E].value",
            "spec.restartPolicy",
            "spec.tolerations",
        ];
        assert_eq!(alterations(&other, &sent, "spec"), expected);
    }
}
