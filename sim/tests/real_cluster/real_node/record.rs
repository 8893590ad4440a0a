//! Records a pod without what differs between runs: lines of text by their subject.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::{Event, Pod};
use serde_json::Value;

use crate::seen::{Record, Rules, normal, rules};

/// The names of one side, which are replaced by what they mean.
pub(crate) struct Names {
    pub(crate) namespace: String,
    pub(crate) node: String,
}

/// Patterns of texts that differ between runs, and their replacements.
static RULES: LazyLock<Rules> = LazyLock::new(|| {
    rules(&[
        (r"ADDRESS:[0-9]{5}\b", "ADDRESS:PORT"),
        (
            r"\bin [0-9.]+m?s \([0-9.]+m?s including waiting\)",
            "in TIME (TIME including waiting)",
        ),
        (r"\bImage size: [0-9]+ bytes", "Image size: SIZE bytes"),
        (
            r"\bused: [0-9]+, capacity: [0-9]+",
            "used: USED, capacity: CAPACITY",
        ),
        // A line of kubectl about a stream of which it learned too late
        (r"(?m)^[IWE][0-9]{4} .* websocket\.go:[0-9]+\] .*\n", ""),
        // The prefix of each line of agnhost's log
        (r"(?m)^[IWE][0-9]{4} [0-9:.]+ +[0-9]+ ", "KLOG "),
        // agnhost starts both servers at once
        (
            r"(?m)^(KLOG .* Started UDP server .*)\n(KLOG .* Started HTTP server .*)$",
            "$2\n$1",
        ),
        (r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "MOMENT"),
    ])
});

/// What a simulated node does not report: the resources and the user of containers, and their mounts.
const UNTOLD: [&str; 4] = ["allocatedResources", "resources", "user", "volumeMounts"];

/// Messages of a busy machine, which say nothing about a node.
const BUSY: [&str; 2] = [
    "cache: timed out waiting for the condition",
    "(Client.Timeout exceeded while awaiting headers)",
];

impl Names {
    pub(crate) fn normal(&self, text: &str) -> String {
        let text = text
            .replace(&self.namespace, "NAMESPACE")
            .replace(&self.node, "NODE");
        normal(&RULES, &text)
    }

    /// A log without repeated lines, since their number depends on timing.
    pub(crate) fn log(&self, text: &str) -> String {
        let text = self.normal(text);
        let mut lines: Vec<&str> = text.lines().collect();
        lines.dedup();
        lines.join("\n")
    }

    /// The status, with a line for each leaf.
    pub(crate) fn status(&self, pod: &Pod) -> Record {
        let mut record = Record::new();
        let status = serde_json::to_value(&pod.status).expect("JSON");
        self.leaves("status", &status, &mut record);
        record
    }

    fn leaves(&self, at: &str, value: &Value, record: &mut Record) {
        match value {
            Value::Object(fields) => {
                let shown = fields
                    .iter()
                    .filter(|(name, _)| !UNTOLD.contains(&name.as_str()));
                for (name, value) in shown {
                    self.leaves(&format!("{at}.{name}"), value, record);
                }
                if fields.is_empty() {
                    record.insert(at.to_owned(), "{}".to_owned());
                }
            }
            Value::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    // The order in lists of conditions, containers and mounts has no meaning
                    let key = ["type", "mountPath", "name"]
                        .iter()
                        .find_map(|key| item.get(key)?.as_str())
                        .map_or_else(|| number.to_string(), ToOwned::to_owned);
                    self.leaves(&format!("{at}[{key}]"), item, record);
                }
            }
            Value::Null => {}
            Value::String(text) => {
                record.insert(at.to_owned(), self.normal(text));
            }
            other => {
                record.insert(at.to_owned(), other.to_string());
            }
        }
    }

    /// The events, with a line for each type, reason and object, and all its messages.
    pub(crate) fn events(&self, events: &[Arc<Event>]) -> Record {
        let mut record = BTreeMap::<String, Vec<String>>::new();
        for event in events {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            let source = event.source.as_ref().and_then(|s| s.component.as_ref());
            let at = format!(
                "event {} {} {} {}",
                source
                    .or(event.reporting_component.as_ref())
                    .map_or("", |s| s),
                text(&event.type_),
                text(&event.reason),
                text(&event.involved_object.field_path),
            );
            let message = self.normal(&text(&event.message));
            if BUSY.iter().any(|busy| message.ends_with(busy)) {
                continue;
            }
            let messages = record.entry(at.trim_end().to_owned()).or_default();
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        let joined = |(at, mut messages): (String, Vec<String>)| {
            messages.sort();
            (at, messages.join("\n"))
        };
        record.into_iter().map(joined).collect()
    }
}
