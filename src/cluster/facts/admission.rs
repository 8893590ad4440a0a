//! Reads the webhooks and policies that see pods, or objects that create pods, at admission.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use winconform_core::facts::WebhookFact;

use super::read::{Unread, fold, list};
use crate::cluster::objects::status::{items, word};
use crate::transport::Api;

const GROUP: &str = "/apis/admissionregistration.k8s.io";
/// Versions of the policies' API, newest first; the release determines which are served (KEP-3488, KEP-3962).
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

pub(super) const MUTATING_WEBHOOKS: &str = "mutatingwebhookconfigurations";
pub(super) const VALIDATING_WEBHOOKS: &str = "validatingwebhookconfigurations";
pub(super) const MUTATING_POLICIES: &str = "mutatingadmissionpolicies";
pub(super) const VALIDATING_POLICIES: &str = "validatingadmissionpolicies";

/// Group and resource of pods, and of the objects that hold a pod template.
const MAKE_PODS: [(&str, &str); 9] = [
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];

/// The webhooks that matter to a run.
#[derive(Default)]
pub(super) struct Webhooks {
    /// The webhooks that see pods, or objects that create pods.
    pub(super) seeing: Vec<WebhookFact>,
    /// The names of gMSA's configurations.
    pub(super) gmsa: Vec<String>,
    /// Whether one of them sees the pods of whatever namespace a run makes.
    pub(super) gmsa_everywhere: bool,
}

pub(super) async fn webhooks(api: &Api) -> Result<Webhooks, Unread> {
    let (mutating, validating) = tokio::join!(
        configurations(api, MUTATING_WEBHOOKS, "MutatingWebhookConfiguration"),
        configurations(api, VALIDATING_WEBHOOKS, "ValidatingWebhookConfiguration"),
    );
    let (mut all, validating) = (mutating?, validating?);
    all.seeing.extend(validating.seeing);
    all.gmsa.extend(validating.gmsa);
    all.gmsa.dedup();
    all.gmsa_everywhere |= validating.gmsa_everywhere;
    Ok(all)
}

/// The policies that a binding puts into force.
pub(super) async fn policies(api: &Api) -> Result<Vec<WebhookFact>, Unread> {
    let (mutating, validating) = tokio::join!(
        bound_policies(api, MUTATING_POLICIES, "MutatingAdmissionPolicy"),
        bound_policies(api, VALIDATING_POLICIES, "ValidatingAdmissionPolicy"),
    );
    Ok(mutating?.into_iter().chain(validating?).collect())
}

/// The path of a list of this group.
pub(super) fn path(resource: &str) -> String {
    format!("{GROUP}/v1/{resource}")
}

async fn configurations(api: &Api, resource: &str, kind: &str) -> Result<Webhooks, Unread> {
    fold(api, &path(resource), "", |all: &mut Webhooks, object| {
        let configuration = word(&object["metadata"]["name"]);
        for webhook in items(&object["webhooks"]) {
            let name = word(&webhook["name"]);
            // kubernetes-sigs/windows-gmsa charts/gmsa/templates
            if name.contains("windows-gmsa") {
                all.gmsa.push(configuration.clone());
                all.gmsa_everywhere |= sees_new_pods_everywhere(webhook);
            }
            let resources = matched(&webhook["rules"], &Json::Null);
            if resources.is_empty() {
                continue;
            }
            all.seeing.push(WebhookFact {
                kind: kind.to_owned(),
                configuration: configuration.clone(),
                name,
                mutates: resource == MUTATING_WEBHOOKS,
                resources,
                failure_policy: failure_policy(webhook),
                dry_run: matches!(
                    webhook["sideEffects"].as_str(),
                    Some("None" | "NoneOnDryRun")
                ),
            });
        }
    })
    .await
}

/// Whether a webhook sees new pods in whatever namespace a run makes: it selects by no label that such a namespace,
/// or a pod, may lack or have.
fn sees_new_pods_everywhere(webhook: &Json) -> bool {
    // AKS adds these to every webhook, to leave out namespaces of its own (DataDog/datadog-agent#55778)
    let of_aks = ["control-plane", "kubernetes.azure.com/managedby"];
    // No namespace of a run is called by a name that somebody knew before
    let known = ["kubernetes.io/metadata.name", "windows.k8s.io/disabled"];
    let leaves_some_out = |rule: &Json| {
        let is_of = |keys: &[&str]| keys.iter().any(|key| rule["key"] == *key);
        match rule["operator"].as_str() {
            Some("NotIn") => is_of(&known) || is_of(&of_aks),
            Some("DoesNotExist") => is_of(&of_aks),
            _ => false,
        }
    };
    let creates_pods = |rule: &Json| {
        lists(&rule["operations"], "CREATE") && resources(rule).any(|resource| resource == "pods")
    };
    let is_empty = |value: &Json| value.as_object().is_none_or(serde_json::Map::is_empty);
    items(&webhook["rules"]).any(creates_pods)
        && items(&webhook["namespaceSelector"]["matchExpressions"]).all(leaves_some_out)
        && is_empty(&webhook["namespaceSelector"]["matchLabels"])
        && is_empty(&webhook["objectSelector"])
        && items(&webhook["matchConditions"]).next().is_none()
}

async fn bound_policies(api: &Api, resource: &str, kind: &str) -> Result<Vec<WebhookFact>, Unread> {
    // A binding's resource is named like its policy's, with another ending
    let bindings = format!("{}ybindings", resource.trim_end_matches("ies"));
    let (policies, bound) = tokio::join!(
        any_version(api, resource, |policy| {
            let spec = &policy["spec"];
            let constraints = &spec["matchConstraints"];
            let resources = matched(
                &constraints["resourceRules"],
                &constraints["excludeResourceRules"],
            );
            (!resources.is_empty()).then(|| WebhookFact {
                kind: kind.to_owned(),
                configuration: word(&policy["metadata"]["name"]),
                name: String::new(),
                mutates: resource == MUTATING_POLICIES,
                resources,
                failure_policy: failure_policy(spec),
                dry_run: true,
            })
        }),
        any_version(api, &bindings, |binding| {
            let spec = &binding["spec"];
            let mut actions = items(&spec["validationActions"]);
            // A binding that only warns or audits rejects nothing
            let acts = resource == MUTATING_POLICIES || actions.any(|action| action == "Deny");
            acts.then(|| word(&spec["policyName"]))
        }),
    );
    let (mut policies, bound) = (policies?, bound?);
    policies.retain(|policy| bound.contains(&policy.configuration));
    Ok(policies)
}

/// The objects in the newest version that is served; empty when none is.
async fn any_version<T>(
    api: &Api,
    resource: &str,
    read: impl Fn(&Json) -> Option<T>,
) -> Result<Vec<T>, Unread> {
    for version in VERSIONS {
        match list(api, &format!("{GROUP}/{version}/{resource}"), &read).await {
            Err(Unread { absent: true, .. }) => {}
            other => return other,
        }
    }
    Ok(Vec::new())
}

fn failure_policy(of: &Json) -> String {
    match of["failurePolicy"].as_str() {
        None => "Fail".to_owned(),
        Some(_) => word(&of["failurePolicy"]),
    }
}

/// The resources of `MAKE_PODS` whose creation or update these rules match.
fn matched(rules: &Json, except: &Json) -> Vec<String> {
    let one_of = |rules: &Json| -> BTreeSet<&'static str> {
        let rules = items(rules).filter(|rule| {
            let operations = &rule["operations"];
            let written = lists(operations, "CREATE") || lists(operations, "UPDATE");
            written && rule["scope"] != "Cluster"
        });
        rules.flat_map(resources).collect()
    };
    let except = one_of(except);
    let matched = one_of(rules);
    let left = matched.difference(&except);
    left.map(|resource| (*resource).to_owned()).collect()
}

fn resources(rule: &Json) -> impl Iterator<Item = &'static str> {
    let every = items(&rule["resources"]).any(|item| item == "*/*");
    MAKE_PODS.into_iter().filter_map(move |(group, resource)| {
        let named = every || lists(&rule["resources"], resource);
        (named && lists(&rule["apiGroups"], group)).then_some(resource)
    })
}

/// Whether a list of a rule has a name, or the star that stands for all.
fn lists(list: &Json, name: &str) -> bool {
    items(list).any(|item| item == "*" || item == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::fake::Fake;
    use super::*;

    fn rule(groups: &[&str], resources: &[&str], operations: &[&str]) -> Json {
        json!([{"apiGroups": groups, "resources": resources, "operations": operations,
            "apiVersions": ["*"]}])
    }

    #[expect(clippy::needless_pass_by_value, reason = "they are made in place")]
    fn put(fake: &Fake, version: &str, resource: &str, object: Json) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let path = format!("{GROUP}/{version}/{resource}/{name}");
        fake.put(&path, object.clone());
    }

    #[test]
    fn rules_match_what_makes_pods() {
        let of = |rules: Json| matched(&rules, &Json::Null);
        assert_eq!(of(rule(&[""], &["pods"], &["CREATE"])), ["pods"]);
        assert_eq!(of(rule(&["*"], &["*"], &["*"])).len(), 9);
        assert_eq!(of(rule(&["*"], &["*/*"], &["UPDATE"])).len(), 9);
        let batch = of(rule(&["batch"], &["*"], &["CREATE"]));
        assert_eq!(batch, ["cronjobs", "jobs"]);
        for nothing in [
            rule(&[""], &["pods"], &["DELETE", "CONNECT"]),
            rule(&["apps"], &["pods"], &["CREATE"]),
            rule(&[""], &["pods/exec", "pods/*"], &["CREATE"]),
            rule(&[""], &["services"], &["*"]),
            json!(null),
        ] {
            assert_eq!(of(nothing.clone()), [""; 0], "{nothing}");
        }
        let all = rule(&[""], &["*"], &["*"]);
        let except = rule(&[""], &["pods"], &["*"]);
        let left = ["podtemplates", "replicationcontrollers"];
        assert_eq!(matched(&all, &except), left);
    }

    #[tokio::test(start_paused = true)]
    async fn webhooks_are_read_from_both_kinds_of_configuration() {
        let fake = Fake::default();
        let pods = rule(&[""], &["pods"], &["CREATE"]);
        let webhook = json!({"name": "inject.example.com", "rules": pods, "sideEffects": "Some",
            "failurePolicy": "Ignore"});
        let other = json!({"name": "x.example.com", "rules": rule(&[""], &["nodes"], &["*"])});
        let object = json!({"metadata": {"name": "inject"}, "webhooks": [webhook, other]});
        put(&fake, "v1", MUTATING_WEBHOOKS, object);
        let gmsa = json!({"name": "admission-webhook.windows-gmsa.sigs.k8s.io", "rules": pods,
            "sideEffects": "None"});
        let object = json!({"metadata": {"name": "gmsa"}, "webhooks": [gmsa]});
        put(&fake, "v1", VALIDATING_WEBHOOKS, object);
        let found = webhooks(&fake.api()).await.expect("read");
        assert_eq!(found.gmsa, ["gmsa"]);
        assert!(found.gmsa_everywhere);
        let seeing = found.seeing.iter();
        let seeing = seeing.map(|one| (one.mutates, one.dry_run, one.failure_policy.as_str()));
        let inject_and_gmsa = [(true, false, "Ignore"), (false, true, "Fail")];
        assert_eq!(seeing.collect::<Vec<_>>(), inject_and_gmsa);
    }

    #[test]
    fn a_webhook_that_selects_may_not_see_the_pods_of_a_run() {
        let pods = rule(&[""], &["pods"], &["CREATE"]);
        let with = |key: &str, value: Json| {
            let mut webhook = json!({"rules": pods});
            webhook[key] = value;
            sees_new_pods_everywhere(&webhook)
        };
        let rule_of = |key: &str, operator: &str| json!({"matchExpressions": [{"key": key, "operator": operator, "values": ["gmsa"]}]});
        let named = "kubernetes.io/metadata.name";
        assert!(with("namespaceSelector", rule_of(named, "NotIn")));
        assert!(with("objectSelector", json!({})));
        assert!(!with("namespaceSelector", rule_of(named, "In")));
        assert!(!with("namespaceSelector", rule_of(named, "DoesNotExist")));
        for operator in ["NotIn", "DoesNotExist"] {
            assert!(with(
                "namespaceSelector",
                rule_of("control-plane", operator)
            ));
        }
        assert!(!with("namespaceSelector", rule_of("team", "NotIn")));
        let labels = json!({"matchLabels": {"gmsa": "on"}});
        assert!(!with("namespaceSelector", labels.clone()));
        assert!(!with("objectSelector", labels));
        assert!(!with("matchConditions", json!([{"name": "some"}])));
        assert!(!with("rules", rule(&[""], &["pods"], &["UPDATE"])));
    }

    #[tokio::test(start_paused = true)]
    async fn policies_count_when_bound_in_whichever_version_is_served() {
        let fake = Fake::default();
        let absent = || json!({"message": "the server could not find the requested resource"});
        let bindings = "mutatingadmissionpolicybindings";
        for resource in [MUTATING_POLICIES, bindings] {
            fake.script(&format!("GET {GROUP}/v1/{resource}"), 404, absent());
        }
        let policy = |name: &str| {
            json!({"metadata": {"name": name}, "spec": {"matchConstraints":
                {"resourceRules": rule(&["apps"], &["deployments"], &["CREATE"])}}})
        };
        let binding = |policy: &str, actions: &[&str]| {
            json!({"metadata": {"name": policy}, "spec": {"policyName": policy,
                "validationActions": actions}})
        };
        put(&fake, "v1beta1", MUTATING_POLICIES, policy("inject"));
        put(&fake, "v1beta1", bindings, binding("inject", &[]));
        let bindings = "validatingadmissionpolicybindings";
        for (name, actions) in [("deny", ["Deny"]), ("warn", ["Warn"])] {
            put(&fake, "v1", VALIDATING_POLICIES, policy(name));
            put(&fake, "v1", bindings, binding(name, &actions));
        }
        put(&fake, "v1", VALIDATING_POLICIES, policy("unbound"));
        let found = policies(&fake.api()).await.expect("read");
        let names = found.iter().map(|p| (p.configuration.as_str(), p.mutates));
        assert_eq!(
            names.collect::<Vec<_>>(),
            [("inject", true), ("deny", false)]
        );
        assert_eq!(found[0].resources, ["deployments"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_not_be_read_is_not_taken_for_none() {
        let fake = Fake::default();
        let forbidden = json!({"message": "forbidden"});
        let bindings = format!("GET {GROUP}/v1/validatingadmissionpolicyb");
        fake.script(&bindings, 403, forbidden);
        let reason = policies(&fake.api()).await.expect_err("unread").reason;
        let said = "bindings: status 403: forbidden";
        assert!(reason.ends_with(said), "{reason}");
    }
}
