//! What a request asks for, read from its method, path and query.

use http::Method;

use super::kinds::{KINDS, Kind, UNSERVED};
use crate::base::query::Query;
use crate::server::checks::refusal::Refusal;
use crate::server::storage::change::Part;

/// What a request does with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

/// A request for objects.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) verb: Verb,
    pub(crate) kind: &'static Kind,
    /// Empty for all namespaces, and for kinds without namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    pub(crate) query: Query,
}

impl Ask {
    pub(crate) fn dry_run(&self) -> bool {
        self.query.first("dryRun") == Some("All")
    }

    pub(crate) fn part(&self) -> Part {
        match self.subresource == "status" {
            true => Part::Status,
            false => Part::Main,
        }
    }
}

/// Reads a request's line; `None` if it concerns no object: discovery, versions, health, reviews.
pub(crate) fn read(
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> Result<Option<Ask>, Refusal> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Ok(None),
    };
    if group == "authorization.k8s.io" {
        return Ok(None);
    }
    let (namespace, rest) = match rest {
        ["namespaces", _] | ["namespaces", _, "status"] => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("", rest),
    };
    let [plural, rest @ ..] = rest else {
        return Err(Refusal::no_such_resource());
    };
    let Some(kind) = Kind::find(group, version, plural) else {
        let known = UNSERVED.contains(&group) || KINDS.iter().any(|kind| kind.group == group);
        return Err(match known {
            true => Refusal::unserved(format_args!("{plural} of `{group}/{version}`")),
            false => Refusal::no_such_resource(),
        });
    };
    let (name, subresource) = match rest {
        [] => ("", ""),
        [name] => (*name, ""),
        [name, subresource] => (*name, *subresource),
        _ => return Err(Refusal::unserved(format_args!("`{path}`"))),
    };
    if kind.namespaced == namespace.is_empty() && !(name.is_empty() && kind.namespaced) {
        return Err(Refusal::no_such_resource());
    }
    let query = Query::parse(query);
    let verb = match *method {
        Method::GET | Method::HEAD if name.is_empty() && query.is_set("watch") => Verb::Watch,
        Method::GET | Method::HEAD if name.is_empty() => Verb::List,
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT if !name.is_empty() => Verb::Update,
        Method::PATCH if !name.is_empty() => Verb::Patch,
        Method::DELETE if !name.is_empty() => Verb::Delete,
        _ => return Err(Refusal::unserved(format_args!("{method} of {plural}"))),
    };
    let is_served = match (subresource, verb) {
        ("", _) => true,
        (below, _) if !kind.subresources.contains(&below) => false,
        ("binding" | "exec", Verb::Create) | ("exec" | "log", Verb::Get) => true,
        ("binding" | "exec" | "log", _) => false,
        (_, verb) => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
    };
    if !is_served {
        let what = format!("{method} of `{subresource}` of {plural}");
        return Err(Refusal::unserved(what));
    }
    Ok(Some(Ask {
        verb,
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        query,
    }))
}
