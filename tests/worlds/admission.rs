//! What a cluster refuses or adds by itself, on the real server: for one run's namespaces alone,
//! so that others go on beside it.

use serde_json::{Value as Json, json};
use winconform::transport::Api;
use winconform_core::way::{ApiRequest, Verb};

use crate::asking::send;
use crate::earth::until;
use crate::world::Outcome;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A rule of the house.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum House {
    /// Pods select their nodes, as a webhook wants it where pods of Windows get their addresses by
    /// that (Amazon EKS, "Deploy Windows nodes").
    PodsSelect,
    /// No HostProcess containers.
    NoHostProcess,
    /// Services have IPv6 addresses and no others, as of an API server whose only range is one of IPv6.
    IPv6Services,
    /// Every new namespace is held to the Pod Security Standard `restricted`.
    Restricted,
    /// Every new namespace gets a `ResourceQuota` without room for any pod.
    Quota,
}

/// One that holds.
pub(crate) struct Rule {
    paths: Vec<String>,
    house: House,
    run: String,
}

impl House {
    /// What is applied, by the plural of its kind.
    fn objects(self, run: &str) -> [(&'static str, Json); 2] {
        let (group, resource, subject) = match self {
            Self::PodsSelect | Self::NoHostProcess => ("", "pods", "request.namespace"),
            Self::IPv6Services => ("", "services", "request.namespace"),
            Self::Quota => ("", "serviceaccounts", "request.namespace"),
            Self::Restricted => ("", "namespaces", "request.name"),
        };
        let mut spec = json!({
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": [resource]}]},
            "matchConditions": [{"name": "of-the-run",
                "expression": format!("{subject}.endsWith('{run}')")}],
        });
        let mut binding = json!({"policyName": run, "validationActions": ["Deny"]});
        let validation = |expression: &str, message: &str| json!([{"expression": expression, "message": message}]);
        match self {
            Self::PodsSelect => {
                spec["validations"] = validation(
                    "has(object.spec.nodeSelector)",
                    "pods have to select their nodes",
                );
            }
            Self::NoHostProcess => {
                spec["validations"] = validation(
                    "!object.spec.?securityContext.?windowsOptions.?hostProcess.orValue(false)",
                    "the house runs no HostProcess containers",
                );
            }
            Self::Quota => {
                // Pods are refused until there is a service account: the quota comes first
                spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ResourceQuota"});
                spec["validations"] = validation("has(params.status.hard)", "no quota yet");
                binding["paramRef"] = json!({"selector": {}, "parameterNotFoundAction": "Deny"});
            }
            Self::IPv6Services => {
                spec["reinvocationPolicy"] = json!("Never");
                spec["mutations"] = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression":
                    "[JSONPatch{op: 'add', path: '/spec/ipFamilies', value: ['IPv6']}, \
                     JSONPatch{op: 'add', path: '/spec/ipFamilyPolicy', value: 'SingleStack'}]"}}]);
                binding = json!({"policyName": run});
            }
            Self::Restricted => {
                spec["reinvocationPolicy"] = json!("Never");
                spec["mutations"] = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression":
                    "[JSONPatch{op: 'add', path: '/metadata/labels/' + \
                     jsonpatch.escapeKey('pod-security.kubernetes.io/enforce'), \
                     value: 'restricted'}]"}}]);
                binding = json!({"policyName": run});
            }
        }
        let object = |kind: &str, spec: Json| {
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": run}, "spec": spec})
        };
        match self {
            Self::Restricted | Self::IPv6Services => [
                (
                    "mutatingadmissionpolicies",
                    object("MutatingAdmissionPolicy", spec),
                ),
                (
                    "mutatingadmissionpolicybindings",
                    object("MutatingAdmissionPolicyBinding", binding),
                ),
            ],
            _ => [
                (
                    "validatingadmissionpolicies",
                    object("ValidatingAdmissionPolicy", spec),
                ),
                (
                    "validatingadmissionpolicybindings",
                    object("ValidatingAdmissionPolicyBinding", binding),
                ),
            ],
        }
    }

    /// What it turns away or alters.
    fn offence(self, probe: &str) -> (String, Json) {
        let metadata = json!({"name": probe});
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "a", "image": "a"}]}});
        if self == Self::NoHostProcess {
            pod["spec"]["hostNetwork"] = json!(true);
            pod["spec"]["os"] = json!({"name": "windows"});
            pod["spec"]["securityContext"] = json!({"windowsOptions":
                {"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"}});
        }
        match self {
            Self::PodsSelect | Self::NoHostProcess => {
                (format!("/api/v1/namespaces/{probe}/pods"), pod)
            }
            Self::IPv6Services => (
                format!("/api/v1/namespaces/{probe}/services"),
                json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
                    "spec": {"ports": [{"port": 80}]}}),
            ),
            Self::Quota => (
                format!("/api/v1/namespaces/{probe}/serviceaccounts"),
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
            ),
            Self::Restricted => (
                "/api/v1/namespaces".to_owned(),
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata":
                    {"name": format!("dry-{probe}")}}),
            ),
        }
    }
}

impl Rule {
    /// Makes it hold for the namespaces whose names end as a run's id.
    pub(crate) async fn set(api: &Api, house: House, run: &str) -> Result<Self, String> {
        let probe = format!("probe-{run}");
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": probe}});
        let mut paths = vec![format!("/api/v1/namespaces/{probe}")];
        send(api, Verb::Apply, &paths[0], Some(namespace)).await?;
        for (plural, object) in house.objects(run) {
            let path = format!("{GROUP}/{plural}/{run}");
            send(api, Verb::Apply, &path, Some(object)).await?;
            paths.push(path);
        }
        let (path, offence) = house.offence(&probe);
        let request = ApiRequest {
            verb: Verb::Create,
            path: format!("{path}?dryRun=All"),
            body: Some(offence),
        };
        until("the rule to hold", async || {
            let reply = api
                .send(&request)
                .await
                .map_err(|trouble| trouble.to_string())?;
            let said = reply.body.to_string();
            let altered = ["restricted", r#""ipFamilies":["IPv6"]"#, "denied request"];
            Ok(altered.iter().any(|words| said.contains(words)))
        })
        .await?;
        let run = run.to_owned();
        Ok(Self { paths, house, run })
    }

    /// Gives each new namespace of the run its quota, as a policy engine does; never returns.
    pub(crate) async fn keep(&self, api: &Api) {
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "worlds"}, "spec": {"hard": {"pods": "0"}}});
        if self.house == House::Quota {
            let _ = until("the end of the run", async || {
                let found = send(api, Verb::Get, "/api/v1/namespaces", None).await?;
                let names = found["items"].as_array().into_iter().flatten();
                let names = names.filter_map(|object| object["metadata"]["name"].as_str());
                for name in names.filter(|name| name.ends_with(&self.run)) {
                    let path = format!("/api/v1/namespaces/{name}/resourcequotas/worlds");
                    // One that is going takes none
                    let _ = send(api, Verb::Apply, &path, Some(quota.clone())).await;
                }
                Ok(false)
            })
            .await;
        }
        std::future::pending::<()>().await;
    }

    pub(crate) async fn remove(self, api: &Api) -> Outcome {
        for path in self.paths.iter().rev() {
            send(api, Verb::Delete, path, None).await?;
        }
        let gone = ApiRequest::get(self.paths[0].clone());
        until("the probe's namespace to go", async || {
            let reply = api
                .send(&gone)
                .await
                .map_err(|trouble| trouble.to_string())?;
            Ok(reply.status == 404)
        })
        .await
    }
}
