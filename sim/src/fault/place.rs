//! The place of a fault.

use std::fmt;
use std::str::FromStr;

use super::kind::Parameter;
use crate::topology::{Build, Os, Pool};

/// A part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// All of it.
    Everywhere,
    /// All Windows nodes.
    Windows,
    /// The nodes of a pool.
    Pool(Pool),
    /// One node.
    Node(String),
    /// The objects of one namespace, on any node.
    Namespace(String),
}

impl Place {
    /// Whether a node, with everything that runs on it, lies in the place.
    pub fn has_node(&self, name: &str, pool: Pool) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Windows => pool.os() == Os::Windows,
            Self::Pool(of) => *of == pool,
            Self::Node(node) => node == name,
            Self::Namespace(_) => false,
        }
    }

    /// Whether a pod, given by its namespace and its node, lies in the place.
    pub fn has_pod(&self, namespace: &str, node: &str, pool: Pool) -> bool {
        match self {
            Self::Namespace(of) => of == namespace,
            of_nodes => of_nodes.has_node(node, pool),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everywhere => f.write_str("all"),
            Self::Windows => f.write_str("windows"),
            Self::Pool(pool) => write!(f, "{pool}"),
            Self::Node(name) => write!(f, "node/{name}"),
            Self::Namespace(name) => write!(f, "namespace/{name}"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    /// Parses `all`, `windows`, a pool, `node/NAME` or `namespace/NAME`. The error lists all places.
    fn from_str(text: &str) -> Result<Self, String> {
        let named = |rest: &str| (!rest.is_empty()).then(|| rest.to_owned());
        let place = match (text, text.split_once('/')) {
            ("all", _) => Some(Self::Everywhere),
            ("windows", _) => Some(Self::Windows),
            (_, Some(("node", name))) => named(name).map(Self::Node),
            (_, Some(("namespace", name))) => named(name).map(Self::Namespace),
            _ => text.parse().ok().map(Self::Pool),
        };
        place.ok_or_else(|| unknown(text, Parameter::Pods))
    }
}

/// The error for a text that names no place; lists the places that a fault with this parameter can have.
pub(super) fn unknown(text: &str, parameter: Parameter) -> String {
    let linux = (!parameter.is_of_windows()).then_some(Pool::Linux);
    let pools = linux.into_iter().chain(Build::ALL.map(Pool::Windows));
    let pools: Vec<String> = pools.map(|pool| pool.to_string()).collect();
    let last = match parameter.takes_namespaces() {
        true => ", node/NAME and namespace/NAME",
        false => " and node/NAME",
    };
    let is_node = pools.iter().any(|pool| text.starts_with(pool.as_str()));
    let meant = match is_node {
        true => format!("; did you mean `node/{text}`?"),
        false => ";".to_owned(),
    };
    let pools = pools.join(", ");
    format!("`{text}` is no place{meant} there are all, windows, {pools}{last}")
}

impl From<Pool> for Place {
    fn from(pool: Pool) -> Self {
        Self::Pool(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WS2022: Pool = Pool::Windows(Build::Ws2022);

    #[test]
    fn places_read_as_they_print() {
        for text in [
            "all",
            "windows",
            "linux",
            "windows-2019",
            "node/a",
            "namespace/b",
        ] {
            assert_eq!(
                text.parse::<Place>().map(|place| place.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "win", "node/", "namespace/", "pod/a"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }

    #[test]
    fn places_have_their_nodes_and_pods_and_no_others() {
        let has = |text: &str, name, pool| {
            let place: Place = text.parse().expect(text);
            place.has_node(name, pool)
        };
        assert!(has("all", "a", Pool::Linux) && has("windows", "a", WS2022));
        assert!(!has("windows", "a", Pool::Linux) && !has("windows-2019", "a", WS2022));
        assert!(has("node/a", "a", WS2022) && !has("node/a", "b", WS2022));
        let ours = Place::Namespace("ours".to_owned());
        assert!(ours.has_pod("ours", "a", WS2022) && !ours.has_pod("theirs", "a", WS2022));
        assert!(!ours.has_node("ours", WS2022));
    }
}
