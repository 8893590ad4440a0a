//! Reads what a path of the API is about, as its server does (apiserver `request/requestinfo.go`).

use std::fmt;

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ApiPath {
    Resource {
        /// API group; empty for the core.
        group: String,
        /// As in paths, with its subresource: `pods`, `pods/exec`.
        resource: String,
        /// The namespace; for a namespace itself, its own name.
        namespace: Option<String>,
        /// The name of one object; `None` for all.
        name: Option<String>,
    },
    /// Anything else, such as `/version`; without its query.
    Url(String),
}

impl ApiPath {
    /// Reads a path, with or without a query.
    pub fn parse(path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return Self::Url(path.to_owned()),
        };
        let (namespace, rest) = match rest {
            // A path below a namespace is about an object in it, except for the namespace's own subresources
            ["namespaces", name, below @ ..]
                if !matches!(below, [] | ["status" | "finalize", ..]) =>
            {
                (Some(*name), below)
            }
            ["namespaces", name, ..] => (Some(*name), rest),
            _ => (None, rest),
        };
        let (resource, name) = match rest {
            [resource] => ((*resource).to_owned(), None),
            [_, name, below @ ..] => {
                let resource = [&rest[..1], below].concat().join("/");
                (resource, Some((*name).to_owned()))
            }
            [] => return Self::Url(path.to_owned()),
        };
        Self::Resource {
            group: group.to_owned(),
            resource,
            namespace: namespace.map(str::to_owned),
            name,
        }
    }
}

impl fmt::Display for ApiPath {
    /// The resource alone, such as `pods` or `pods/exec`; else the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource { resource, .. } => f.write_str(resource),
            Self::Url(path) => f.write_str(path.trim_matches('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("path.yaml");

    fn resource(path: &str) -> [Option<String>; 4] {
        match ApiPath::parse(path) {
            ApiPath::Resource {
                group,
                resource,
                namespace,
                name,
            } => [Some(group), Some(resource), namespace, name],
            ApiPath::Url(path) => panic!("{path} is about no resource"),
        }
    }

    #[test]
    fn paths_are_read_as_the_server_reads_them() {
        for (path, expected) in rows::<(String, [String; 4])>(TABLES, "paths") {
            let expected = expected.map(|part| (part != "-").then_some(part));
            assert_eq!(resource(&path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_resource_is_a_url() {
        for path in ["/version", "/metrics", "/api/v1", "/apis/apps/v1", "/"] {
            assert_eq!(ApiPath::parse(path), ApiPath::Url(path.to_owned()));
        }
        let queried = ApiPath::parse("/readyz?verbose");
        assert_eq!(queried, ApiPath::Url("/readyz".to_owned()));
    }

    #[test]
    fn a_path_is_shown_by_its_kind_of_objects() {
        for (path, shown) in [
            ("/api/v1/namespaces/a/pods/b", "pods"),
            ("/api/v1/namespaces/a/pods/b/exec?stdin=true", "pods/exec"),
            ("/readyz?verbose", "readyz"),
        ] {
            assert_eq!(ApiPath::parse(path).to_string(), shown);
        }
    }
}
