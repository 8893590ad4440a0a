//! Compares an accepted object as it came back with the object sent.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::AdmissionQuery;
use super::object::{Workload, at_path, related};

/// How the object that came back differs from the one sent, except for what API servers fill in themselves.
/// Paths name containers by their names.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Alterations {
    /// Paths that were sent and came back otherwise or not at all.
    pub lost: Vec<String>,
    /// Paths that came back and were not sent.
    pub added: Vec<String>,
}

impl Alterations {
    /// The differences between the object sent and the one that came back; for a pod that existed before,
    /// only what was lost.
    pub(super) fn between(query: &AdmissionQuery, sent: &Json, kept: &Json) -> Self {
        let mut altered = Self::default();
        let spec = query.workload.path("spec", query.container);
        if let [Some(sent), Some(kept)] = [sent, kept].map(|object| at_path(object, object, &spec))
        {
            altered.walk(&spec, sent, kept);
        }
        for key in ["labels", "annotations"] {
            let [before, after] = [sent, kept].map(|object| &object["metadata"][key]);
            if query.workload == Workload::Pod && before.is_null() && !after.is_null() {
                altered.added.push(format!("metadata.{key}"));
            }
        }
        if query.needs_pod() {
            altered.added.clear();
        }
        altered
    }

    /// All paths, in words.
    pub(super) fn all(&self) -> String {
        let paths = self.lost.iter().chain(&self.added);
        paths.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The paths that may explain why validation let a field pass: each lost path except an image's name, and
    /// each added path that the documented rule reads: `spec.os`, or `field`.
    pub(super) fn deciding(&self, field: Option<&str>) -> Vec<&str> {
        let lost = self
            .lost
            .iter()
            .filter(|path| path.rsplit('.').next() != Some("image"));
        let added = self.added.iter().filter(|path| {
            // An added container is no part of our object
            path.ends_with("spec.os")
                || !path.ends_with(']') && field.is_some_and(|field| related(path, field))
        });
        lost.chain(added).map(String::as_str).collect()
    }

    fn walk(&mut self, path: &str, sent: &Json, kept: &Json) {
        match (sent, kept) {
            (Json::Object(sent), Json::Object(kept)) => {
                for (key, value) in sent {
                    match kept.get(key) {
                        Some(kept) => self.walk(&format!("{path}.{key}"), value, kept),
                        None if is_blank(value) => {}
                        None => self.lost.push(format!("{path}.{key}")),
                    }
                }
                // Limits of resources are also their requests where none are sent
                let by_limits = |key: &str| key == "requests" && sent.contains_key("limits");
                let added = kept.iter().filter(|(key, value)| {
                    !(sent.contains_key(*key) || by_limits(key) || is_filled_in(key, value))
                });
                self.added
                    .extend(added.map(|(key, _)| format!("{path}.{key}")));
            }
            (Json::Array(sent), Json::Array(kept))
                if sent.iter().all(|one| one["name"].is_string()) =>
            {
                let named =
                    |one: &Json| format!("{path}[{}]", one["name"].as_str().unwrap_or_default());
                for one in sent {
                    match kept.iter().find(|kept| kept["name"] == one["name"]) {
                        Some(kept) => self.walk(&named(one), one, kept),
                        None => self.lost.push(named(one)),
                    }
                }
                let is_sent = |one: &Json| sent.iter().any(|sent| sent["name"] == one["name"]);
                let added = kept.iter().filter(|one| !is_sent(one));
                self.added.extend(added.map(named));
            }
            (sent, kept) if sent == kept || is_empty(sent) && is_empty(kept) => {}
            _ => self.lost.push(path.to_owned()),
        }
    }
}

/// Whether the value that came back holds the one sent; the server may have filled in the rest.
pub(super) fn holds(kept: &Json, sent: &Json) -> bool {
    match (kept, sent) {
        (Json::Object(kept), Json::Object(sent)) => sent.iter().all(|(key, sent)| {
            kept.get(key)
                .map_or(is_empty(sent), |kept| holds(kept, sent))
        }),
        (Json::Array(kept), Json::Array(sent)) => {
            kept.len() == sent.len() && kept.iter().zip(sent).all(|(kept, sent)| holds(kept, sent))
        }
        (kept, sent) => kept == sent,
    }
}

pub(super) fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::Number(number) => number.as_i64() == Some(0),
        Json::String(text) => text.is_empty(),
        Json::Array(list) => list.is_empty(),
        Json::Object(map) => map.is_empty(),
        Json::Bool(true) => false,
    }
}

/// Whether Go leaves out every part of a value.
pub fn is_blank(value: &Json) -> bool {
    is_empty(value)
        || value
            .as_object()
            .is_some_and(|map| map.values().all(is_blank))
}

/// Whether API servers fill this in themselves (kubernetes 1.24 to 1.37: the defaults of pods, and the
/// admission plugins that are always on), or the value is empty.
fn is_filled_in(key: &str, value: &Json) -> bool {
    const DEFAULTS: [(&str, &str); 10] = [
        ("dnsPolicy", "ClusterFirst"),
        ("enableServiceLinks", "true"),
        ("imagePullPolicy", "IfNotPresent"),
        ("restartPolicy", "Always"),
        ("schedulerName", "default-scheduler"),
        ("serviceAccount", "default"),
        ("serviceAccountName", "default"),
        ("terminationGracePeriodSeconds", "30"),
        ("terminationMessagePath", "/dev/termination-log"),
        ("terminationMessagePolicy", "File"),
    ];
    // `DefaultTolerationSeconds` adds these
    const TOLERATED: [&str; 2] = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    let by_default = |toleration: &Json| TOLERATED.iter().any(|key| toleration["key"] == *key);
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    match DEFAULTS.iter().find(|(known, _)| *known == key) {
        Some((_, default)) => *default == text,
        None if key == "tolerations" => value
            .as_array()
            .is_some_and(|list| list.iter().all(by_default)),
        // Those of the class that pods without a class have
        None => ["preemptionPolicy", "priority"].contains(&key) || is_empty(value),
    }
}
