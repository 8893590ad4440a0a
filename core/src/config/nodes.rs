//! Which nodes a run keeps off.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;

use crate::document::{Decoder, Node, Placed};
use crate::text::{is_dns_subdomain, is_label_key, is_label_value};

/// Which nodes a run keeps off.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nodes {
    /// Nodes on which a run puts no pod: the name of each, or a label of them, as `KEY=VALUE` or `KEY=*`. None unless set.
    #[schemars(default, with = "Vec<String>")]
    pub exclude: Vec<Placed<NodeSelector>>,
}

impl Nodes {
    /// Whether a label decides which nodes are excluded.
    pub fn names_label(&self, key: &str) -> bool {
        let mut labels = self.exclude.iter();
        labels
            .any(|one| matches!(&one.value, NodeSelector::Label { key: named, .. } if named == key))
    }
}

/// The nodes of a name or a label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeSelector {
    /// The node of this name.
    Name(String),
    /// The nodes with this label.
    Label {
        /// Its key.
        key: String,
        /// Its value, which may be empty; any value for `None`.
        value: Option<String>,
    },
}

impl NodeSelector {
    /// Reads `NAME`, `KEY=VALUE`, or `KEY=*` for any value.
    fn parse(text: &str) -> Option<Self> {
        let Some((key, value)) = text.split_once('=') else {
            return is_dns_subdomain(text).then(|| Self::Name(text.to_owned()));
        };
        let is_value = value.is_empty() || value == ANY || is_label_value(value);
        (is_label_key(key) && is_value).then(|| Self::Label {
            key: key.to_owned(),
            value: (value != ANY).then(|| value.to_owned()),
        })
    }

    /// Whether it is about a node with this name and these labels.
    pub fn covers(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Name(name) => name == node,
            Self::Label { key, value } => {
                let has = labels.get(key);
                has.is_some_and(|has| value.as_ref().is_none_or(|value| value == has))
            }
        }
    }
}

/// Any value of a label.
const ANY: &str = "*";

impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Label { key, value } => write!(f, "{key}={}", value.as_deref().unwrap_or(ANY)),
        }
    }
}

/// Reads the section.
pub(super) fn read(decoder: &mut Decoder<'_>, node: &Node) -> Option<Nodes> {
    let mut fields = decoder.fields(node, "`nodes`")?;
    let exclude = fields.set(decoder, "exclude", |decoder, node| {
        decoder.kept(node, "`exclude`", read_selector)
    });
    fields.finish(decoder);
    Some(Nodes {
        exclude: exclude.unwrap_or_default(),
    })
}

fn read_selector(decoder: &mut Decoder<'_>, node: &Node) -> Option<Placed<NodeSelector>> {
    let hint = Some("write a label as KEY=VALUE, or as KEY=* for any value");
    let is_not = ("is neither the name of a node nor a label", hint);
    let value = decoder.parsed(node, "what is excluded", is_not, NodeSelector::parse)?;
    let at = decoder.place(node);
    Some(Placed { value, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_read_as_they_print() {
        for text in [
            "win-a",
            "ip-10-0-1-2.eu-west-1.compute.internal",
            "team=payments",
            "example.com/team=payments",
            "node-role.kubernetes.io/infra=",
            "kubernetes.azure.com/mode=*",
        ] {
            let read = NodeSelector::parse(text).map(|selector| selector.to_string());
            assert_eq!(read.as_deref(), Some(text));
        }
        for text in [
            "", "Win-A", "win a", "a/b", "=x", "/a=b", "a/=b", "a=b c", "a=*b", "-a=b",
        ] {
            assert_eq!(NodeSelector::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_empty_value_is_a_value() {
        let labels = BTreeMap::from([("infra".to_owned(), String::new())]);
        for (text, covers) in [("infra=", true), ("infra=*", true), ("infra=x", false)] {
            let selector = NodeSelector::parse(text).expect("a selector");
            assert_eq!(selector.covers("n", &labels), covers, "{text}");
        }
    }
}
