//! Service accounts with the project's manifests, whole or without one verb.

use std::fmt;
use std::path::Path;

use serde_json::{Value as Json, json};
use winconform::cluster::{Cluster, connect};
use winconform::transport::Api;
use winconform_core::config::{Durations, Limits};
use winconform_core::method::Verb;

use super::asking::send;
use super::world::{World, options};

/// The manifests for checks that need no pod.
pub(crate) const REJECTIONS_ONLY: [&str; 2] = ["rejections.yaml", "metrics.yaml"];
/// The manifests for all checks.
pub(crate) const WHOLE_RUN: [&str; 2] = ["whole-run.yaml", "metrics.yaml"];
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// One verb of one rule.
#[derive(Clone, Debug)]
pub(crate) struct Lacking {
    role: String,
    rule: usize,
    of: Json,
    /// The verb.
    pub(crate) verb: String,
}

impl Lacking {
    /// The resource with its group, as `preflight` writes it; or the path.
    pub(crate) fn resource(&self) -> String {
        let text = |key: &str| self.of[key][0].as_str().unwrap_or_default();
        if self.of["nonResourceURLs"].is_array() {
            return text("nonResourceURLs").to_owned();
        }
        let (plural, below) = text("resources")
            .split_once('/')
            .unwrap_or((text("resources"), ""));
        let mut written = plural.to_owned();
        for (mark, part) in [(".", text("apiGroups")), ("/", below)] {
            if !part.is_empty() {
                written.push_str(&format!("{mark}{part}"));
            }
        }
        written
    }

    /// Whether this rule and verb grant an access.
    pub(crate) fn is_of(&self, access: &str) -> bool {
        let begin = format!("{} {}", self.verb, self.resource());
        access
            .strip_prefix(&begin)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource())
    }
}

/// Every verb of every rule of these manifests.
pub(crate) fn every_verb(of: [&str; 2]) -> Vec<Lacking> {
    let mut verbs = Vec::new();
    for object in manifests(of) {
        let rules = object["rules"].as_array().into_iter().flatten();
        for (rule, of) in rules.enumerate() {
            for verb in of["verbs"].as_array().into_iter().flatten() {
                verbs.push(Lacking {
                    role: name(&object).to_owned(),
                    rule,
                    of: of.clone(),
                    verb: verb.as_str().expect("a verb").to_owned(),
                });
            }
        }
    }
    assert!(!verbs.is_empty(), "the manifests have rules");
    verbs
}

/// A service account with its own roles.
pub(crate) struct Account {
    /// The end of every name.
    pub(crate) id: String,
    objects: Vec<String>,
    token: String,
}

impl Account {
    /// Creates an account with the roles of these manifests, without one verb.
    pub(crate) async fn make(
        api: &Api,
        id: &str,
        of: [&str; 2],
        lack: Option<&Lacking>,
    ) -> Result<Self, String> {
        let mut objects = Vec::new();
        for mut object in manifests(of) {
            let role = name(&object).to_owned();
            if let Some(lack) = lack.filter(|lack| lack.role == role && object["rules"].is_array())
                && let Some(verbs) = object["rules"][lack.rule]["verbs"].as_array_mut()
            {
                verbs.retain(|verb| *verb != lack.verb.as_str());
                if verbs.is_empty() {
                    object["rules"]
                        .as_array_mut()
                        .expect("rules")
                        .remove(lack.rule);
                }
            }
            own(&mut object, id);
            let path = path(&object);
            if !path.starts_with("/api/v1/namespaces/") || path.contains("/serviceaccounts/") {
                objects.push(path.clone());
            }
            send(api, Verb::Apply, &path, Some(object)).await?;
        }
        let asks = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600}});
        let path = format!("{}/token", objects[0]);
        let answer = send(api, Verb::Create, &path, Some(asks)).await?;
        let token = answer["status"]["token"]
            .as_str()
            .ok_or("no token")?
            .to_owned();
        Ok(Self {
            id: id.to_owned(),
            objects,
            token,
        })
    }

    /// The cluster as this account sees it.
    pub(crate) async fn cluster(
        &self,
        world: &World,
        durations: Durations,
    ) -> Result<Cluster, String> {
        let text = std::fs::read_to_string(&world.kubeconfig).map_err(|e| e.to_string())?;
        let mut kubeconfig: Json = serde_saphyr::from_str(&text).map_err(|e| e.to_string())?;
        for user in kubeconfig["users"].as_array_mut().into_iter().flatten() {
            user["user"] = json!({"token": self.token});
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, kubeconfig.to_string()).map_err(|error| error.to_string())?;
        connect(&options(&file), durations, Limits::default())
            .await
            .map_err(|error| error.to_string())
    }

    /// Removes the account with its roles.
    pub(crate) async fn remove(&self, api: &Api) -> Result<(), String> {
        for path in self.objects.iter().rev() {
            send(api, Verb::Delete, path, None).await?;
        }
        Ok(())
    }
}

fn manifests(of: [&str; 2]) -> Vec<Json> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/rbac");
    let read = |file: &&str| {
        let text = std::fs::read_to_string(folder.join(file)).expect("a manifest");
        serde_saphyr::from_multiple::<Json>(&text).expect("YAML")
    };
    let mut list: Vec<Json> = of.iter().flat_map(read).collect();
    // The account first, since it gets a token, before its bindings
    list.sort_by_key(|object| object["kind"] != "Namespace" && object["kind"] != "ServiceAccount");
    list
}

fn name(object: &Json) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// Appends the id to the names in an object, but not to those of namespaces.
fn own(object: &mut Json, id: &str) {
    if object["kind"] == "Namespace" {
        return;
    }
    let renamed = |name: &Json| json!(format!("{}-{id}", name.as_str().expect("a name")));
    object["metadata"]["name"] = renamed(&object["metadata"]["name"]);
    if object["roleRef"].is_object() {
        object["roleRef"]["name"] = renamed(&object["roleRef"]["name"]);
        object["subjects"][0]["name"] = renamed(&object["subjects"][0]["name"]);
    }
}

fn path(object: &Json) -> String {
    let name = name(object);
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    match object["kind"].as_str().expect("a kind") {
        "Namespace" => format!("/api/v1/namespaces/{name}"),
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}"),
        "ClusterRole" => format!("{RBAC}/clusterroles/{name}"),
        "ClusterRoleBinding" => format!("{RBAC}/clusterrolebindings/{name}"),
        "Role" => format!("{RBAC}/namespaces/{namespace}/roles/{name}"),
        "RoleBinding" => format!("{RBAC}/namespaces/{namespace}/rolebindings/{name}"),
        other => panic!("the manifests have no {other}"),
    }
}
