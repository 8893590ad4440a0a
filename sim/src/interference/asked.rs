//! What a request asks an API server for, read from its method, path, query and headers.

use http::Method;
use http::header::UPGRADE;
use http::request::Parts;

use crate::base::query::Query;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The verb, as RBAC names it.
    pub(crate) verb: &'static str,
    /// The resource with its subresource, such as `pods/exec`; or the first segment of a path that is no
    /// resource, such as `/healthz`.
    pub(crate) resource: String,
    /// The API group; empty for the core group and for a path that is no resource.
    pub(crate) group: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    /// Whether the server must store nothing.
    pub(crate) dry_run: bool,
    /// Whether and in which form 410 is a possible answer.
    pub(crate) expiry: Expiry,
    /// Whether the connection is upgraded from HTTP.
    pub(crate) upgrades: bool,
    /// Whether it is upgraded for an exec.
    pub(crate) is_exec: bool,
}

/// How a server reports that a version is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    Watch,
    List,
    ContinuedList,
    Never,
}

impl Asked {
    pub(crate) fn read(head: &Parts) -> Self {
        let path = head.uri.path().split('/');
        let segments: Vec<&str> = path.filter(|segment| !segment.is_empty()).collect();
        // A path that is no resource (`/healthz`, `/openapi/v3`) has only a first segment
        let (group, rest) = match segments.as_slice() {
            ["api", _version, rest @ ..] => ("", rest),
            ["apis", group, _version, rest @ ..] => (*group, rest),
            _ => ("", &[][..]),
        };
        let (watched, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        // A namespace's own subresources are `status` and `finalize`; all others are resources in it
        let (namespace, rest) = match rest {
            ["namespaces", name, "status" | "finalize"] | ["namespaces", name] => {
                (Some(*name), rest)
            }
            ["namespaces", name, inside @ ..] => (Some(*name), inside),
            rest => (None, rest),
        };
        let (name, subresource) = (rest.get(1).copied(), rest.get(2).copied());
        let resource = match (rest.first(), subresource) {
            (Some(resource), Some(subresource)) => format!("{resource}/{subresource}"),
            (Some(resource), None) => (*resource).to_owned(),
            (None, _) => format!("/{}", segments.first().copied().unwrap_or_default()),
        };
        let query = Query::parse(head.uri.query());
        let watch = watched || query.is_set("watch");
        let collection = name.is_none();
        let verb = match head.method {
            Method::GET | Method::HEAD if rest.is_empty() => "get",
            Method::GET if watch => "watch",
            Method::GET | Method::HEAD if collection => "list",
            Method::GET | Method::HEAD => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if collection => "deletecollection",
            Method::DELETE => "delete",
            _ => "other",
        };
        let said = |name: &str| query.first(name).unwrap_or_default();
        let expiry = match verb {
            "watch" => Expiry::Watch,
            "list" if !said("continue").is_empty() => Expiry::ContinuedList,
            "list" if !matches!(said("resourceVersion"), "" | "0") => Expiry::List,
            _ => Expiry::Never,
        };
        let upgrades = head.headers.contains_key(UPGRADE);
        Self {
            verb,
            resource,
            group: group.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            dry_run: !said("dryRun").is_empty(),
            expiry,
            upgrades,
            is_exec: upgrades && subresource == Some("exec"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::{Asked, Expiry};

    fn asked(method: &str, uri: &str) -> Asked {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .body(())
            .expect("a request");
        Asked::read(&request.into_parts().0)
    }

    #[test]
    fn names_verb_and_resource() {
        for (method, uri, kind) in [
            ("GET", "/api/v1/pods", "list pods"),
            ("GET", "/api/v1/namespaces", "list namespaces"),
            ("GET", "/api/v1/namespaces/a", "get namespaces"),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "update namespaces/finalize",
            ),
            (
                "POST",
                "/api/v1/namespaces/a/pods?dryRun=All",
                "create pods",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods/b/exec?command=x",
                "get pods/exec",
            ),
            ("GET", "/api/v1/namespaces/a/pods?watch=true", "watch pods"),
            ("GET", "/api/v1/watch/namespaces/a/pods", "watch pods"),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection deployments",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b",
                "patch deployments",
            ),
            ("GET", "/healthz", "get /healthz"),
            ("GET", "/apis/apps/v1", "get /apis"),
            ("GET", "/", "get /"),
        ] {
            let asked = asked(method, uri);
            assert_eq!(
                format!("{} {}", asked.verb, asked.resource),
                kind,
                "{method} {uri}"
            );
        }
    }

    #[test]
    fn names_what_it_is_about() {
        for (uri, group, namespace, name, dry_run) in [
            ("/api/v1/nodes/n", "", None, Some("n"), false),
            ("/api/v1/namespaces/a", "", Some("a"), Some("a"), false),
            (
                "/api/v1/namespaces/a/pods?dryRun=All",
                "",
                Some("a"),
                None,
                true,
            ),
            (
                "/apis/apps/v1/namespaces/a/deployments/d/scale?dryRun=",
                "apps",
                Some("a"),
                Some("d"),
                false,
            ),
            ("/apis/apps/v1", "apps", None, None, false),
            ("/metrics", "", None, None, false),
        ] {
            let asked = asked("GET", uri);
            assert_eq!(asked.group, group, "{uri}");
            assert_eq!(asked.namespace.as_deref(), namespace, "{uri}");
            assert_eq!(asked.name.as_deref(), name, "{uri}");
            assert_eq!(asked.dry_run, dry_run, "{uri}");
        }
    }

    #[test]
    fn knows_what_can_expire() {
        for (uri, expiry) in [
            ("/api/v1/pods?watch=1&resourceVersion=0", Expiry::Watch),
            ("/api/v1/pods?limit=5&continue=abc", Expiry::ContinuedList),
            (
                "/api/v1/pods?resourceVersion=12&resourceVersionMatch=Exact",
                Expiry::List,
            ),
            ("/api/v1/pods?resourceVersion=0", Expiry::Never),
            ("/api/v1/pods?limit=5&continue=", Expiry::Never),
            (
                "/api/v1/namespaces/a/pods/b?resourceVersion=12",
                Expiry::Never,
            ),
        ] {
            assert_eq!(asked("GET", uri).expiry, expiry, "{uri}");
        }
    }

    #[test]
    fn tells_sessions_apart() {
        for (path, is_exec) in [
            ("/api/v1/namespaces/a/pods/b/exec", true),
            ("/api/v1/namespaces/a/pods/b/portforward", false),
        ] {
            let request = Request::get(path).header("upgrade", "websocket").body(());
            let asked = Asked::read(&request.expect("a request").into_parts().0);
            assert!(asked.upgrades && asked.is_exec == is_exec, "{path}");
        }
        let plain = asked("GET", "/api/v1/namespaces/a/pods/b/exec");
        assert!(!plain.upgrades && !plain.is_exec);
    }
}
