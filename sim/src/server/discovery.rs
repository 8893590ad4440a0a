//! Which groups, versions and kinds there are: for clients that look before they ask.

use serde_json::{Value, json};

use super::kinds::{KINDS, Kind};
use super::refusal::Refusal;

/// What is served of this group beside objects.
const REVIEWS: (&str, &str) = ("authorization.k8s.io", "v1");

pub(super) fn versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// Groups with the one version that is served of each.
pub(super) fn served() -> Vec<(&'static str, &'static str)> {
    let mut served: Vec<_> = KINDS
        .iter()
        .map(|kind| (kind.group, kind.version))
        .collect();
    served.push(REVIEWS);
    served.sort_unstable();
    served.dedup();
    served
}

fn told(group: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({"name": group, "versions": [version], "preferredVersion": version})
}

pub(super) fn groups() -> Value {
    let groups = served().into_iter().filter(|(group, _)| !group.is_empty());
    let groups: Vec<Value> = groups
        .map(|(group, version)| told(group, version))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(super) fn group(named: &str) -> Result<Value, Refusal> {
    let found = served().into_iter().find(|(group, _)| *group == named);
    let (group, version) = found.ok_or_else(Refusal::no_such_resource)?;
    let mut group = told(group, version);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Ok(group)
}

/// What is in the category `all`.
const ALL: [&str; 10] = [
    "Pod",
    "ReplicationController",
    "Service",
    "DaemonSet",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "CronJob",
    "Job",
];

const VERBS: [&str; 7] = [
    "create", "delete", "get", "list", "patch", "update", "watch",
];

/// The kinds of a group and version that is served.
pub(super) fn kinds_of<'a>(
    group: &'a str,
    version: &'a str,
) -> Result<impl Iterator<Item = &'static Kind> + use<'a>, Refusal> {
    let of = move |kind: &&Kind| kind.group == group && kind.version == version;
    match served().contains(&(group, version)) {
        true => Ok(KINDS.iter().filter(of)),
        false => Err(Refusal::no_such_resource()),
    }
}

pub(super) fn resources(group: &str, version: &str) -> Result<Value, Refusal> {
    let mut all: Vec<Value> = kinds_of(group, version)?.flat_map(entries).collect();
    if (group, version) == REVIEWS {
        let kind = "SelfSubjectAccessReview";
        let name = kind.to_lowercase();
        all.push(
            json!({"name": format!("{name}s"), "singularName": name, "namespaced": false,
                "kind": kind, "verbs": ["create"]}),
        );
    }
    let named = format!("{group}/{version}");
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": named.trim_start_matches('/'), "resources": all});
    Ok(list)
}

fn entries(kind: &Kind) -> Vec<Value> {
    let mut own = json!({
        "name": kind.plural, "singularName": kind.name.to_lowercase(), "namespaced": kind.namespaced,
        "kind": kind.name, "verbs": VERBS,
    });
    if !kind.short.is_empty() {
        own["shortNames"] = json!([kind.short]);
    }
    if ALL.contains(&kind.name) {
        own["categories"] = json!(["all"]);
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
    std::iter::once(own).chain(below).collect()
}
