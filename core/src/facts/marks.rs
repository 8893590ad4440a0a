//! Nodes that a run never uses, and nodes that it spares where others are there, by their signs.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value as Json;

/// What a node is besides a machine for anybody's pods.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Marked {
    /// Why no kubelet of a machine runs its pods, such as `EKS Fargate, by its label type=virtual-kubelet`.
    pub virtual_by: Option<String>,
    /// Why a run spares it where others are there.
    pub spared_by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Marks {
    r#virtual: Vec<Mark>,
    spared: Vec<Mark>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    what: String,
    signs: Vec<Sign>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sign {
    Label(String),
    Taint(String),
    Annotation(String),
    Resource(String),
}

static MARKS: LazyLock<Marks> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("marks.yaml")).expect("the built-in marks are valid")
});

impl Marked {
    /// Reads the marks of a node, an object of the API.
    pub fn read(node: &Json) -> Self {
        Self {
            virtual_by: first(&MARKS.r#virtual, node),
            spared_by: first(&MARKS.spared, node),
        }
    }
}

fn first(marks: &[Mark], node: &Json) -> Option<String> {
    let found = marks.iter().find_map(|mark| {
        let sign = mark.signs.iter().find(|sign| sign.is_on(node))?;
        Some((mark, sign))
    });
    found.map(|(Mark { what, .. }, sign)| match sign {
        Sign::Label(sign) => format!("{what}, by its label {sign}"),
        Sign::Taint(sign) => format!("{what}, by its taint {sign}"),
        Sign::Annotation(sign) => format!("{what}, by its annotation {sign}"),
        Sign::Resource(sign) => format!("{what}, by its capacity of {sign}"),
    })
}

impl Sign {
    fn is_on(&self, node: &Json) -> bool {
        let metadata = &node["metadata"];
        match self {
            Self::Label(sign) => {
                let (key, value) = of(sign);
                let has = metadata["labels"][key].as_str();
                has.is_some_and(|has| value.is_none_or(|value| value == has))
            }
            Self::Taint(sign) => {
                let (key, value) = of(sign);
                let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
                taints.any(|taint| {
                    taint["key"] == key && value.is_none_or(|value| taint["value"] == value)
                })
            }
            Self::Annotation(key) => metadata["annotations"][key].is_string(),
            Self::Resource(name) => {
                let amount = node["status"]["capacity"][name].as_str();
                amount.is_some_and(|amount| amount != "0")
            }
        }
    }
}

fn of(sign: &str) -> (&str, Option<&str>) {
    sign.split_once('=')
        .map_or((sign, None), |(key, value)| (key, Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn machines_are_told_from_what_only_looks_like_one() {
        let label = |key: &str, value: &str| json!({"metadata": {"labels": {key: value}}});
        let taint = |key: &str, value: &str| {
            json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"},
                {"key": key, "value": value, "effect": "NoSchedule"}]}})
        };
        let eks = "eks.amazonaws.com/compute-type";
        for (node, what) in [
            (label(eks, "fargate"), Some("EKS Fargate")),
            (taint(eks, "fargate"), Some("EKS Fargate")),
            (label(eks, "hybrid"), None),
            (taint(eks, "auto"), None),
            (label("type", "virtual-kubelet"), Some("virtual kubelet")),
            (
                taint("virtual-kubelet.io/provider", "azure"),
                Some("virtual kubelet"),
            ),
            (
                json!({"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}}),
                Some("kwok"),
            ),
            (label("type", "kwok"), Some("kwok")),
            (label("type", "large"), None),
            (json!({}), None),
        ] {
            let by = Marked::read(&node).virtual_by;
            let is = by.as_deref().map(|by| by.split(',').next().unwrap_or(by));
            assert_eq!(is, what, "{node}");
        }
    }

    #[test]
    fn what_is_spared_says_by_which_sign() {
        let spared = |node: &Json| Marked::read(node).spared_by;
        let system = json!({"metadata": {"labels": {"kubernetes.azure.com/mode": "system"}}});
        let by = spared(&system);
        assert_eq!(
            by.as_deref(),
            Some("system, by its label kubernetes.azure.com/mode=system")
        );
        let user = json!({"metadata": {"labels": {"kubernetes.azure.com/mode": "user"}}});
        assert_eq!(spared(&user), None);
        for (amount, by) in [
            ("1", Some("GPU, by its capacity of nvidia.com/gpu")),
            ("0", None),
        ] {
            let node = json!({"status": {"capacity": {"nvidia.com/gpu": amount}}});
            assert_eq!(spared(&node).as_deref(), by);
        }
    }
}
