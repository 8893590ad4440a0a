//! Who asks, by their token, and what roles let them do.
//!
//! After Kubernetes' `plugin/pkg/auth/authorizer/rbac` (1.37.0). Of the roles that a real server
//! begins with there are `cluster-admin`, and what `system:discovery` and `system:basic-user` grant to
//! all. Tokens do not expire, and whoever may write roles may write any.

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};

use super::ask::{Ask, Verb};
use super::kinds::Kind;
use super::refusal::Refusal;
use super::state::State;
use crate::world::Key;

/// Whose members nothing is forbidden.
const MASTERS: &str = "system:masters";

/// What everybody may read (`system:discovery`; rbac/bootstrappolicy/policy.go).
const DISCOVERY: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

/// Who asks.
#[derive(Debug)]
pub(super) struct User {
    name: String,
    groups: Vec<String>,
}

/// What is to be done, and to what.
#[derive(Debug)]
pub(super) enum Access {
    Resource {
        verb: String,
        group: String,
        /// With its subresource, as in `pods/exec`.
        resource: String,
        /// Empty for all of them.
        namespace: String,
        /// Empty for any.
        name: String,
    },
    Path {
        verb: String,
        path: String,
    },
}

/// Who shows what. Of no seed: whoever knows that would know the tokens, too.
pub(super) struct Tokens {
    /// That of whoever may do everything.
    administrator: String,
    /// The UIDs of service accounts by their tokens.
    accounts: BTreeMap<String, String>,
}

impl Tokens {
    pub(super) fn new() -> Self {
        Self {
            administrator: unguessable(),
            accounts: BTreeMap::new(),
        }
    }

    pub(super) fn administrator(&self) -> &str {
        &self.administrator
    }

    /// The header by which somebody is the administrator.
    pub(super) fn as_administrator(&self) -> HeaderValue {
        let value = format!("Bearer {}", self.administrator).parse();
        let mut value: HeaderValue = value.expect("it is plain ASCII");
        value.set_sensitive(true);
        value
    }

    /// The token of an account, the same each time.
    pub(super) fn of(&mut self, uid: &str) -> String {
        let known = self.accounts.iter().find(|(_, own)| *own == uid);
        if let Some((token, _)) = known {
            return token.clone();
        }
        let token = unguessable();
        self.accounts.insert(token.clone(), uid.to_owned());
        token
    }

    /// Nobody has this UID any more.
    pub(super) fn forget(&mut self, uid: &str) {
        self.accounts.retain(|_, own| own != uid);
    }
}

/// 128 bits from the operating system's chance.
fn unguessable() -> String {
    format!("{:032x}", rand::random::<u128>())
}

impl User {
    /// Who sent a request.
    pub(super) fn of(headers: &HeaderMap, state: &State) -> Result<Self, Refusal> {
        if headers
            .keys()
            .any(|name| name.as_str().starts_with("impersonate-"))
        {
            return Err(Refusal::unserved("impersonation"));
        }
        let given = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = given.and_then(|given| given.strip_prefix("Bearer "));
        let token = token.ok_or_else(Refusal::unauthorized)?;
        if token == state.tokens.administrator {
            return Ok(Self {
                name: "kubernetes-admin".to_owned(),
                groups: vec![MASTERS.to_owned(), "system:authenticated".to_owned()],
            });
        }
        let uid = state.tokens.accounts.get(token);
        match uid.and_then(|uid| state.store.place_of(uid)) {
            Some(("serviceaccounts", Key { namespace, name })) => Ok(Self {
                name: format!("system:serviceaccount:{namespace}:{name}"),
                groups: vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated".to_owned(),
                ],
            }),
            _ => Err(Refusal::unauthorized()),
        }
    }

    fn is(&self, subject: &Value, namespace: &str) -> bool {
        let text = |field: &str| subject[field].as_str().unwrap_or_default();
        match text("kind") {
            "User" => text("name") == self.name,
            "Group" => self.groups.iter().any(|group| group == text("name")),
            "ServiceAccount" => {
                let of = match text("namespace") {
                    "" => namespace,
                    of => of,
                };
                self.name == format!("system:serviceaccount:{of}:{}", text("name"))
            }
            _ => false,
        }
    }

    /// The rules that hold for them in a namespace, or in the cluster if it is empty.
    pub(super) fn rules<'a>(&self, state: &'a State, namespace: &str) -> Vec<&'a Value> {
        let everywhere = state.store.all("clusterrolebindings", "");
        let here = state.store.all("rolebindings", "");
        let here = here.filter(|(key, _)| key.namespace == namespace);
        let mut granted = Vec::new();
        for (key, binding) in everywhere.chain(here) {
            let subjects = binding["subjects"].as_array().into_iter().flatten();
            if !subjects
                .into_iter()
                .any(|subject| self.is(subject, &key.namespace))
            {
                continue;
            }
            let role = &binding["roleRef"];
            let name = role["name"].as_str().unwrap_or_default();
            let role = match role["kind"].as_str() {
                Some("Role") => state.store.value("roles", &Key::new(&key.namespace, name)),
                _ => state.store.value("clusterroles", &Key::new("", name)),
            };
            let rules = role.and_then(|role| role["rules"].as_array());
            granted.extend(rules.into_iter().flatten());
        }
        granted
    }

    /// Whether they may.
    pub(super) fn may(&self, state: &State, access: &Access) -> bool {
        if self.groups.iter().any(|group| group == MASTERS) || access.is_everybodys() {
            return true;
        }
        let namespace = match access {
            Access::Resource { namespace, .. } => namespace.as_str(),
            Access::Path { .. } => "",
        };
        let rules = self.rules(state, namespace);
        rules.into_iter().any(|rule| access.is_granted(rule))
    }

    /// Refuses what they may not.
    pub(super) fn must(&self, state: &State, access: &Access) -> Result<(), Refusal> {
        match self.may(state, access) {
            true => Ok(()),
            false => Err(access.refused(&self.name)),
        }
    }
}

/// Whether a path is meant by one of `nonResourceURLs`.
fn covers(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => path.starts_with(begin),
        None => pattern == path,
    }
}

/// Whether a list of verbs, groups or resources holds one.
fn has(list: &Value, wanted: &str) -> bool {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(Value::as_str)
        .any(|item| item == "*" || item == wanted)
}

impl Access {
    /// What a request for objects does.
    pub(super) fn all_of(ask: &Ask) -> Vec<Self> {
        let verb = match ask.verb {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        };
        // Who execs by a WebSocket, which begins with GET, must be let create, too
        // (`AuthorizePodWebsocketUpgradeCreatePermission`, on by default since 1.35)
        let upgrades = ask.verb == Verb::Get && ask.subresource == "exec";
        let verbs = [Some(verb), upgrades.then_some("create")];
        let access = |verb: &str| Self::Resource {
            verb: verb.to_owned(),
            group: ask.kind.group.to_owned(),
            resource: within(ask.kind.plural, &ask.subresource),
            namespace: match ask.kind.plural {
                // A namespace is in itself
                "namespaces" => ask.name.clone(),
                _ => ask.namespace.clone(),
            },
            name: ask.name.clone(),
        };
        verbs.into_iter().flatten().map(access).collect()
    }

    /// What a request for something else does.
    pub(super) fn of_path(method: &Method, parts: &[&str]) -> Self {
        match parts {
            ["apis", group @ "authorization.k8s.io", _, review] => Self::Resource {
                verb: "create".to_owned(),
                group: (*group).to_owned(),
                resource: (*review).to_owned(),
                namespace: String::new(),
                name: String::new(),
            },
            parts => Self::Path {
                verb: method.as_str().to_lowercase(),
                path: format!("/{}", parts.join("/")),
            },
        }
    }

    /// What an access review asks about.
    pub(super) fn of_review(spec: &Value) -> Self {
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let of = &spec["nonResourceAttributes"];
        if of.is_object() {
            let (verb, path) = (text(of, "verb"), text(of, "path"));
            return Self::Path { verb, path };
        }
        let of = &spec["resourceAttributes"];
        Self::Resource {
            verb: text(of, "verb"),
            group: text(of, "group"),
            resource: within(&text(of, "resource"), &text(of, "subresource")),
            namespace: text(of, "namespace"),
            name: text(of, "name"),
        }
    }

    fn is_everybodys(&self) -> bool {
        match self {
            Self::Path { verb, path } => {
                verb == "get" && DISCOVERY.iter().any(|pattern| covers(pattern, path))
            }
            Self::Resource {
                verb,
                group,
                resource,
                ..
            } => {
                let own = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
                verb == "create"
                    && group == "authorization.k8s.io"
                    && own.contains(&resource.as_str())
            }
        }
    }

    fn is_granted(&self, rule: &Value) -> bool {
        match self {
            Self::Path { verb, path } => {
                let paths = rule["nonResourceURLs"].as_array().into_iter().flatten();
                let mut paths = paths.filter_map(Value::as_str);
                has(&rule["verbs"], verb) && paths.any(|pattern| covers(pattern, path))
            }
            Self::Resource {
                verb,
                group,
                resource,
                name,
                ..
            } => {
                let below = resource
                    .split_once('/')
                    .map(|(_, below)| format!("*/{below}"));
                // No name stands for all (pkg/apis/rbac/v1/evaluation_helpers.go, `ResourceNameMatches`)
                let names = rule["resourceNames"].as_array();
                let holds = |names: &Vec<Value>| names.iter().any(|own| own == name);
                has(&rule["verbs"], verb)
                    && has(&rule["apiGroups"], group)
                    && (has(&rule["resources"], resource)
                        || below.is_some_and(|below| has(&rule["resources"], &below)))
                    && names.is_none_or(|names| names.is_empty() || holds(names))
            }
        }
    }

    fn refused(&self, user: &str) -> Refusal {
        match self {
            Self::Path { verb, path } => {
                let why = format!("User \"{user}\" cannot {verb} path \"{path}\"");
                Refusal::denied(None, &why)
            }
            Self::Resource {
                verb,
                group,
                resource,
                namespace,
                name,
            } => {
                let place = match namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace \"{namespace}\""),
                };
                let why = format!(
                    "User \"{user}\" cannot {verb} resource \"{resource}\" in API group \
                     \"{group}\" {place}"
                );
                let plural = resource.split('/').next().unwrap_or_default();
                Refusal::denied(Some((plural, group, name)), &why)
            }
        }
    }
}

fn within(resource: &str, below: &str) -> String {
    match below {
        "" => resource.to_owned(),
        below => format!("{resource}/{below}"),
    }
}

/// What a server begins with.
pub(super) fn begin(state: &mut State) {
    let anything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let any_path = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    let api = "rbac.authorization.k8s.io";
    let role = json!({"metadata": {"name": "cluster-admin"}, "rules": [anything, any_path]});
    let binding = json!({
        "metadata": {"name": "cluster-admin"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": MASTERS}],
    });
    for (plural, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let made = state.create(Kind::named(plural), "", body, false);
        made.expect("what every cluster has can be made");
    }
}
