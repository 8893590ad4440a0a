//! Answers requests that concern no object: the kinds, as much of `OpenAPI` as kubectl needs before it
//! writes, health, the version, reviews. There are no schemas, so `kubectl explain` explains nothing.

use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::server::checks::refusal::Refusal;
use crate::server::kinds::{KINDS, Kind, root};
use crate::server::serve::{Answer, Shared, json, respond, text};

/// The group and version of reviews, which are served beside objects.
const REVIEWS: (&str, &str) = ("authorization.k8s.io", "v1");

/// The media type of an `OpenAPI` document of version 2.
const V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

const VERBS: [&str; 7] = [
    "create", "delete", "get", "list", "patch", "update", "watch",
];

pub(crate) fn answer(shared: &Shared, head: &Parts, body: &Bytes) -> Result<Answer, Refusal> {
    let path = head.uri.path().split('/').filter(|part| !part.is_empty());
    let parts: Vec<&str> = path.collect();
    if let (&Method::POST, ["apis", "authorization.k8s.io", "v1", review]) = (&head.method, &*parts)
    {
        let review = reviewed(review, json(body)?)?;
        return Ok(respond(StatusCode::CREATED, &review));
    }
    let value = match (head.method == Method::GET, &*parts) {
        (true, ["healthz" | "livez" | "readyz", ..]) => {
            return Ok(text(StatusCode::OK, "text/plain", "ok"));
        }
        (true, ["metrics"]) => {
            let metrics = shared.state().recorded.metrics();
            return Ok(text(StatusCode::OK, "text/plain; version=0.0.4", metrics));
        }
        // kubectl requests this for lists, in protobuf: an empty document has no bytes
        (true, ["openapi", "v2"]) => return Ok(text(StatusCode::OK, V2, "")),
        (true, ["version"]) => {
            let state = shared.state();
            version(&format!("{}{}", state.recorded.git_version(), state.suffix))
        }
        (true, ["api"]) => {
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        }
        (true, ["apis"]) => groups(&shared.state().groups),
        (true, ["apis", group]) => self::group(group)?,
        (true, ["api", version]) => resources("", version)?,
        (true, ["apis", group, version]) => resources(group, version)?,
        (true, ["openapi", "v3"]) => index(),
        (true, ["openapi", "v3", "api", version]) => document("", version)?,
        (true, ["openapi", "v3", "apis", group, version]) => document(group, version)?,
        _ => return Err(Refusal::unserved(format_args!("`/{}`", parts.join("/")))),
    };
    Ok(respond(StatusCode::OK, &value))
}

fn version(git: &str) -> Value {
    let mut numbers = git.trim_start_matches('v').split('.');
    json!({
        "major": numbers.next(), "minor": numbers.next(), "gitVersion": git, "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

/// Answers a review: the administrator may do everything.
fn reviewed(review: &str, mut body: Value) -> Result<Value, Refusal> {
    if review != "selfsubjectaccessreviews" {
        return Err(Refusal::unserved(review));
    }
    if !body.is_object() {
        return Err(Refusal::bad("a review is an object"));
    }
    body["apiVersion"] = json!("authorization.k8s.io/v1");
    body["kind"] = json!("SelfSubjectAccessReview");
    body["status"] = json!({"allowed": true});
    Ok(body)
}

/// The served groups, each with its one version.
fn served() -> Vec<(&'static str, &'static str)> {
    let served = KINDS.iter().map(|kind| (kind.group, kind.version));
    let mut served: Vec<_> = served.chain([REVIEWS]).collect();
    served.sort_unstable();
    served.dedup();
    served
}

/// Returns the kinds of a served group and version.
fn kinds_of<'a>(
    group: &'a str,
    version: &'a str,
) -> Result<impl Iterator<Item = &'static Kind> + use<'a>, Refusal> {
    let of = move |kind: &&Kind| kind.group == group && kind.version == version;
    match served().contains(&(group, version)) {
        true => Ok(KINDS.iter().filter(of)),
        false => Err(Refusal::no_such_resource()),
    }
}

fn of_version(group: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({"name": group, "versions": [version], "preferredVersion": version})
}

/// Lists the served groups, and those without any object.
fn groups(others: &[String]) -> Value {
    let groups = served().into_iter().filter(|(group, _)| !group.is_empty());
    let others = others.iter().map(|group| (group.as_str(), "v1"));
    let groups = groups
        .chain(others)
        .map(|(group, version)| of_version(group, version));
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Vec<_>>()})
}

fn group(named: &str) -> Result<Value, Refusal> {
    let known = served().into_iter().find(|(group, _)| *group == named);
    let (group, version) = known.ok_or_else(Refusal::no_such_resource)?;
    let mut group = of_version(group, version);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Ok(group)
}

fn resources(group: &str, version: &str) -> Result<Value, Refusal> {
    let mut list: Vec<Value> = kinds_of(group, version)?.flat_map(entries).collect();
    if (group, version) == REVIEWS {
        list.push(
            json!({"name": "selfsubjectaccessreviews", "namespaced": false, "verbs": ["create"],
            "singularName": "selfsubjectaccessreview", "kind": "SelfSubjectAccessReview"}),
        );
    }
    let named = format!("{group}/{version}");
    Ok(json!({"kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": named.trim_start_matches('/'), "resources": list}))
}

fn entries(kind: &Kind) -> Vec<Value> {
    let mut entry = json!({
        "name": kind.plural, "singularName": kind.name.to_lowercase(), "namespaced": kind.namespaced,
        "kind": kind.name, "verbs": VERBS,
    });
    if !kind.short.is_empty() {
        entry["shortNames"] = json!([kind.short]);
    }
    if kind.in_all {
        entry["categories"] = json!(["all"]);
    }
    let below = kind.subresources.iter().map(|below| {
        let verbs = match *below {
            "binding" => &["create"][..],
            "exec" => &["create", "get"],
            "log" => &["get"],
            _ => &["get", "patch", "update"],
        };
        let is = if *below == "scale" { "Scale" } else { kind.name };
        json!({"name": format!("{}/{below}", kind.plural), "singularName": "", "namespaced": kind.namespaced,
            "kind": is, "verbs": verbs})
    });
    std::iter::once(entry).chain(below).collect()
}

fn index() -> Value {
    let paths = served().into_iter().map(|(group, version)| {
        let path = root(group, version);
        let at = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
        (path, at)
    });
    json!({"paths": paths.collect::<Map<_, _>>()})
}

/// The `OpenAPI` document that tells kubectl that the server validates patches.
fn document(group: &str, version: &str) -> Result<Value, Refusal> {
    let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
    let paths = kinds_of(group, version)?.map(|kind| {
        let named = json!({"group": group, "version": version, "kind": kind.name});
        let operation = json!({"parameters": parameters, "x-kubernetes-group-version-kind": named,
            "responses": {"200": {"description": "OK"}}});
        let path = format!("{}/{{name}}", kind.path("{namespace}"));
        (path, json!({"patch": operation}))
    });
    Ok(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths.collect::<Map<_, _>>(), "components": {"schemas": {}},
    }))
}
