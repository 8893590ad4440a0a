//! The rules of `products.yaml`, as written.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use super::super::network::CniMode;

/// The rules products are recognised by.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rules {
    pub(super) products: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Cni,
    Provider,
    LoadBalancer,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) product: String,
    pub(super) kind: Kind,
    pub(super) signs: Vec<Sign>,
    #[serde(default)]
    pub(super) unless: Vec<Sign>,
    #[serde(default)]
    pub(super) modes: Vec<Mode>,
    #[serde(default)]
    pub(super) vxlan: Vec<VxlanAt>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Mode {
    pub(super) mode: CniMode,
    pub(super) when: Sign,
}

/// Where a VXLAN is written: `vni` and `port` are pointers into the ConfigMap's key, or names of
/// environment variables of the DaemonSet, that `when` names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct VxlanAt {
    pub(super) when: Sign,
    pub(super) vni: Option<String>,
    pub(super) port: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Sign {
    DaemonSet(DaemonSetRule),
    ConfigMap(ConfigMapRule),
    ApiGroup(String),
    NodeLabel(String),
    NodeAnnotation(String),
    Version(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct DaemonSetRule {
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) image: Option<String>,
    pub(super) label: Option<String>,
    pub(super) env: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ConfigMapRule {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) at: Option<String>,
    pub(super) value: Option<String>,
}

static BUILT_IN: LazyLock<Rules> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("products.yaml")).expect("the built-in rules are valid")
});

impl Rules {
    /// The rules of `products.yaml`.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Namespace and name of every ConfigMap that a rule names.
    pub fn config_maps(&self) -> BTreeSet<(&str, &str)> {
        let named = self.all_signs().filter_map(|sign| match sign {
            Sign::ConfigMap(rule) => Some((rule.namespace.as_str(), rule.name.as_str())),
            _ => None,
        });
        named.collect()
    }

    pub fn names_label(&self, key: &str) -> bool {
        self.all_signs().any(
            |sign| matches!(sign, Sign::NodeLabel(label) if label.split('=').next() == Some(key)),
        )
    }

    pub fn names_annotation(&self, key: &str) -> bool {
        self.all_signs()
            .any(|sign| matches!(sign, Sign::NodeAnnotation(named) if named == key))
    }

    fn all_signs(&self) -> impl Iterator<Item = &Sign> {
        self.products.iter().flat_map(|rule| {
            let modes = rule.modes.iter().map(|mode| &mode.when);
            let vxlan = rule.vxlan.iter().map(|at| &at.when);
            rule.signs
                .iter()
                .chain(&rule.unless)
                .chain(modes)
                .chain(vxlan)
        })
    }
}
