//! The permissions of a plan as a manifest of RBAC, which grants what `preflight` asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use winconform_core::fixture::FixtureName;
use winconform_core::plan::{Access, AccessVerb, Need, Place, Plan, Purpose, Uses};

/// Columns of the manifest.
const WIDTH: usize = 100;

/// The most fixtures of one rule that a comment names; of more, it gives the number.
const NAMED: usize = 3;

/// Paths that every cluster lets every authenticated user read (`system:discovery`,
/// `system:public-info-viewer`).
const PUBLIC: [&str; 3] = ["/version", "/api", "/apis"];

/// The role an access belongs to.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Role {
    Facts,
    Own,
    Lease,
    NodeLeases,
}

/// The objects of one rule: group, resource, and whether the rule names them.
type Subject = (String, String, bool);

/// The verbs allowed on one subject, each with its reasons.
#[derive(Debug, Default)]
struct Rule {
    names: BTreeSet<String>,
    verbs: BTreeMap<AccessVerb, BTreeSet<String>>,
}

/// The description of a service account, beside its rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// The file's name.
    pub(crate) file: &'static str,
    /// What it can do, as the end of a sentence.
    pub(crate) can: &'static str,
    /// What it creates in its own namespaces, as the end of a sentence; an account that creates nothing has
    /// only the role of facts, whose verbs are get and list.
    pub(crate) makes: Option<&'static str>,
}

fn granted(
    needs: &BTreeMap<Need, String>,
    account: &Account,
) -> BTreeMap<Role, BTreeMap<Subject, Rule>> {
    let mut roles: BTreeMap<Role, BTreeMap<Subject, Rule>> = BTreeMap::new();
    // A verb on all objects of a resource needs no second grant
    let subject = |access: &Access| match access {
        Access::Objects {
            group,
            resource,
            verb,
            ..
        } => Some((group.clone(), resource.clone(), *verb)),
        Access::Url { .. } => None,
    };
    let unnamed = |access: &Access| matches!(access, Access::Objects { name: None, .. });
    let of_facts: BTreeSet<_> = needs
        .keys()
        .filter(|need| role(need) == Role::Facts && unnamed(&need.access))
        .filter_map(|need| subject(&need.access))
        .collect();
    for (need, why) in needs {
        let Access::Objects {
            group,
            resource,
            name,
            verb,
            ..
        } = &need.access
        else {
            continue;
        };
        if account.makes.is_none() && role(need) != Role::Facts {
            continue;
        }
        let role = match role(need) {
            Role::Own if subject(&need.access).is_some_and(|it| of_facts.contains(&it)) => {
                Role::Facts
            }
            role => role,
        };
        // A grant on named objects holds in every namespace: their own may not exist
        let subject = (group.clone(), resource.clone(), name.is_some());
        let granted = roles.entry(role).or_default().entry(subject).or_default();
        granted.names.extend(name.iter().cloned());
        granted.verbs.entry(*verb).or_default().insert(why.clone());
    }
    roles
}

/// A service account with the verbs on objects that a plan needs.
pub(crate) fn objects(plan: &Plan, uses: &Uses, account: &Account) -> String {
    let needs = reasons(plan, uses);
    let roles = granted(&needs, account);
    let paragraph = |words: &str| {
        let lines = wrap(words, WIDTH - 2);
        lines
            .iter()
            .fold(String::new(), |text, line| text + "# " + line + "\n")
    };
    let can = format!(
        "A service account that can {}. Generated from what the checks ask for; `winconform preflight` \
         asks the server for the same.",
        account.can
    );
    let reads_logs = |need: &Need| {
        let log = |access: &Access| {
            matches!(access, Access::Objects { resource, place: Place::Namespace(_), .. }
                if resource == "pods/log")
        };
        need.purpose == Purpose::Diagnosis && log(&need.access)
    };
    let elsewhere = match needs.keys().any(reads_logs) {
        true => {
            " Of a node of which checks failed it reads kube-proxy's log, too, in kube-system: that is \
             not its own."
        }
        false => "",
    };
    let about_run = format!(
        "Beside `winconform-facts`, what a run does in namespaces of its own, which it makes and \
         removes: {}.{} RBAC knows neither a dry run nor the beginning of a name, so these verbs hold \
         in every namespace, which is as good as any right of a workload there. Give the account to \
         nothing but winconform; an admission policy can narrow it (`request.dryRun`, \
         `request.namespace.startsWith('winconform-')`).",
        account.makes.unwrap_or_default(),
        elsewhere
    );
    let others = account.makes.map_or("", |_| OTHERS);
    let mut text = paragraph(&can)
        + &ACCOUNT
            .replace("FILE", account.file)
            .replace("OTHERS", others);
    for (role, head, name, namespace) in [
        (Role::Facts, FACTS, "winconform-facts", None),
        (Role::Own, &paragraph(&about_run), "winconform-run", None),
        (Role::Lease, LEASE, "winconform-lease", Some("default")),
        (
            Role::NodeLeases,
            NODE_LEASES,
            "winconform-node-leases",
            Some("kube-node-lease"),
        ),
    ] {
        let Some(granted) = roles.get(&role) else {
            continue;
        };
        let kind = namespace.map_or("ClusterRole", |_| "Role");
        let place = namespace.map_or(String::new(), |name| format!("  namespace: {name}\n"));
        let _ = write!(
            text,
            "---\n{head}apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{place}rules:\n"
        );
        for (subject, rule) in granted {
            write_rule(&mut text, subject, rule);
        }
        text.push_str(&binding(kind, name, &place));
    }
    text
}

/// A role for the paths that a plan reads and not every user may read.
pub(crate) fn paths(plan: &Plan, uses: &Uses) -> String {
    let is_public = |path: &str| {
        let mut public = PUBLIC.iter();
        public.any(|public| path == *public || path.starts_with(&format!("{public}/")))
    };
    let mut text = PATHS.to_owned();
    for (need, why) in reasons(plan, uses) {
        if let Access::Url { path, verb } = &need.access
            && !is_public(path)
        {
            let verb = verb.as_str();
            let _ = write!(
                text,
                "  # {why}\n  - nonResourceURLs: [{path}]\n    verbs: [{verb}]\n"
            );
        }
    }
    text.push_str(&binding("ClusterRole", "winconform-metrics", ""));
    text
}

fn binding(kind: &str, name: &str, place: &str) -> String {
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata:\n  name: {name}\n{place}\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {name}\n\
         subjects:\n  - kind: ServiceAccount\n    name: winconform\n    namespace: winconform\n"
    )
}

fn reasons(plan: &Plan, uses: &Uses) -> BTreeMap<Need, String> {
    let mut claims: BTreeMap<Need, BTreeSet<&str>> = BTreeMap::new();
    for check in &plan.checks {
        for need in uses.of_check(check) {
            let area = check.claim.area();
            claims.entry(need).or_default().insert(area);
        }
    }
    let needs = uses.of_plan(plan).into_iter();
    needs
        .map(|need| {
            let why = match &need.purpose {
                Purpose::Fact(fact) => format!("the fact {fact}"),
                Purpose::Observe => {
                    let areas = claims.get(&need).into_iter().flatten();
                    let areas: Vec<_> = areas.map(|area| format!("{area}.*")).collect();
                    let dry = match (role(&need), areas.as_slice()) {
                        (Role::Own, [.., area]) if area == "reject.*" => ", by dry runs",
                        _ => "",
                    };
                    format!("assertions of {}{dry}", areas.join(", "))
                }
                Purpose::Fixture(FixtureName::NAMESPACES) => {
                    "the run's own namespaces and priority class".to_owned()
                }
                Purpose::Fixture(name) => format!("the fixture {}", name.as_str()),
                Purpose::Lease => "one run at a time".to_owned(),
                Purpose::Removal => "finding and removing what a run made".to_owned(),
                Purpose::Diagnosis => "telling more of what failed".to_owned(),
                Purpose::Silence => "telling what failed from nodes that fell silent".to_owned(),
            };
            (need, why)
        })
        .collect()
}

fn role(need: &Need) -> Role {
    let (Access::Objects { verb, .. } | Access::Url { verb, .. }) = &need.access;
    let reads = matches!(verb, AccessVerb::Get | AccessVerb::List | AccessVerb::Watch);
    let is_own = matches!(
        &need.access,
        Access::Objects {
            place: Place::Own,
            ..
        }
    );
    match &need.purpose {
        Purpose::Fact(_) => Role::Facts,
        Purpose::Observe if reads && !is_own => Role::Facts,
        Purpose::Lease => Role::Lease,
        Purpose::Removal if in_a_namespace(&need.access) => Role::Lease,
        Purpose::Silence if in_a_namespace(&need.access) => Role::NodeLeases,
        Purpose::Observe
        | Purpose::Fixture(_)
        | Purpose::Removal
        | Purpose::Diagnosis
        | Purpose::Silence => Role::Own,
    }
}

fn in_a_namespace(access: &Access) -> bool {
    matches!(
        access,
        Access::Objects {
            place: Place::Namespace(_),
            ..
        }
    )
}

fn write_rule(text: &mut String, (group, resource, _): &Subject, rule: &Rule) {
    let mut why: BTreeMap<&BTreeSet<String>, Vec<&str>> = BTreeMap::new();
    for (verb, reasons) in &rule.verbs {
        why.entry(reasons).or_default().push(verb.as_str());
    }
    for (reasons, verbs) in why {
        let verbs = match rule.verbs.len() == verbs.len() {
            true => String::new(),
            false => format!("{}: ", verbs.join(", ")),
        };
        let words = format!("{verbs}{}", together(reasons));
        for line in wrap(&words, WIDTH - 4) {
            let _ = writeln!(text, "  # {line}");
        }
    }
    let _ = writeln!(
        text,
        "  - apiGroups: [\"{group}\"]\n    resources: [{resource}]"
    );
    if !rule.names.is_empty() {
        let names: Vec<_> = rule.names.iter().map(String::as_str).collect();
        let _ = writeln!(text, "    resourceNames:");
        for name in names {
            let _ = writeln!(text, "      - {name}");
        }
    }
    let verbs: Vec<_> = rule.verbs.keys().map(|verb| verb.as_str()).collect();
    let _ = writeln!(text, "    verbs: [{}]", verbs.join(", "));
}

/// Lines of at most `limit` columns.
fn wrap(words: &str, limit: usize) -> Vec<String> {
    let mut lines = Vec::<String>::new();
    for word in words.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= limit => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The reasons in one line, with all facts as one reason, and all fixtures as one.
fn together(reasons: &BTreeSet<String>) -> String {
    let join = |of: &str, more: usize| -> Option<String> {
        let begin = format!("the {of} ");
        let named: Vec<_> = reasons
            .iter()
            .filter_map(|it| it.strip_prefix(&begin))
            .collect();
        match named.as_slice() {
            [] => None,
            [one] => Some(begin + one),
            many if many.len() > more => Some(format!("{} {of}s", many.len())),
            many => Some(format!("the {of}s {}", many.join(", "))),
        }
    };
    let single = |it: &&String| !it.starts_with("the fact ") && !it.starts_with("the fixture ");
    let others = reasons.iter().filter(single).cloned();
    let facts = join("fact", usize::MAX).into_iter();
    let words: Vec<_> = facts.chain(others).chain(join("fixture", NAMED)).collect();
    words.join("; ")
}

const ACCOUNT: &str = include_str!("heads/account.txt");
const OTHERS: &str = include_str!("heads/others.txt");
const FACTS: &str = include_str!("heads/facts.txt");
const LEASE: &str = include_str!("heads/lease.txt");
const NODE_LEASES: &str = include_str!("heads/node-leases.txt");
const PATHS: &str = include_str!("heads/paths.txt");
