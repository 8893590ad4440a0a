//! The preflight report of a cluster, before any run.

use std::collections::BTreeMap;

use winconform_core::config::Config;
use winconform_core::facts::{Facts, Known};
use winconform_core::fixture::FixtureName;
use winconform_core::plan::{Access, AccessVerb, Answer, Need, Place, Plan, Purpose, Uses, plan};
use winconform_core::report::preflight::Preflight;

use crate::{claims, runs};

fn objects(verb: AccessVerb, resource: &str, place: Place) -> Access {
    Access::Objects {
        group: String::new(),
        resource: resource.to_owned(),
        place,
        name: None,
        verb,
    }
}

fn need(access: &Access, purpose: Purpose) -> Need {
    Need {
        access: access.clone(),
        purpose,
    }
}

fn pods() -> Access {
    objects(AccessVerb::Create, "pods", Place::Own)
}

fn removal() -> Access {
    objects(AccessVerb::Delete, "namespaces", Place::Cluster)
}

fn lease() -> Access {
    objects(
        AccessVerb::Create,
        "leases",
        Place::Namespace("default".to_owned()),
    )
}

fn metrics() -> Access {
    Access::Url {
        path: "/metrics".to_owned(),
        verb: AccessVerb::Get,
    }
}

fn uses() -> Uses {
    let nodes = objects(AccessVerb::List, "nodes", Place::Cluster);
    let create = objects(AccessVerb::Create, "namespaces", Place::Cluster);
    let namespaces = [
        need(&create, Purpose::Fixture(FixtureName::NAMESPACES)),
        need(&removal(), Purpose::Removal),
    ];
    Uses {
        facts: [("nodes", [nodes].into()), ("gates", [metrics()].into())].into(),
        fixtures: [(FixtureName::NAMESPACES, namespaces.into())].into(),
        exec: [objects(AccessVerb::Create, "pods/exec", Place::Own)].into(),
        run: [need(&lease(), Purpose::Lease)].into(),
    }
}

fn answers(plan: &Plan, but: &[(Access, Answer)]) -> BTreeMap<Access, Answer> {
    let needs = uses().of_plan(plan).into_iter();
    let mut answers: BTreeMap<_, _> = needs.map(|need| (need.access, Answer::Allowed)).collect();
    for (access, answer) in but {
        let was = answers.insert(access.clone(), answer.clone());
        assert_eq!(was, Some(Answer::Allowed), "{access} is not needed");
    }
    answers
}

/// Reports on a cluster with these answers instead of `Allowed`.
fn report<T>(facts: &Facts, but: &[(Access, Answer)], of: impl FnOnce(&Preflight) -> T) -> T {
    let (suites, config, uses) = (claims::suites(), Config::default(), uses());
    let plan = plan(&suites, facts, &config);
    of(&Preflight {
        context: "kind-hybrid".to_owned(),
        facts: facts.clone(),
        answers: answers(&plan, but),
        plan,
        uses,
        shortages: Vec::new(),
    })
}

fn denied() -> Answer {
    Answer::Denied(String::new())
}

#[test]
fn everything_is_granted() {
    let (text, ready) = report(&runs::facts(), &[], |report| {
        (report.text(100), report.is_ready())
    });
    assert!(ready);
    insta::assert_snapshot!(text);
}

#[test]
fn each_lack_says_what_it_costs() {
    let hostile = Answer::Unknown("status 500: \u{1b}[31m".to_owned());
    let but = [
        (pods(), Answer::Denied("no RBAC policy matched".to_owned())),
        (removal(), denied()),
        (metrics(), denied()),
        (lease(), hostile),
    ];
    let (text, json, ready) = report(&runs::facts(), &but, |report| {
        (report.text(80), report.json(), report.is_ready())
    });
    assert!(!ready);
    assert!(!text.contains('\u{1b}') && !json.contains('\u{1b}'));
    insta::assert_snapshot!(text);
    insta::assert_snapshot!(json);
}

#[test]
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method is of one lifetime, the closure of any"
)]
fn what_no_check_needs_keeps_none_from_being_run() {
    let ready = |access| {
        let but = [(access, denied())];
        report(&runs::facts(), &but, |report| report.is_ready())
    };
    assert!(ready(metrics()));
    for access in [pods(), removal(), lease()] {
        assert!(!ready(access));
    }
}

#[test]
fn a_server_that_ends_no_input_costs_what_runs_in_pods() {
    let of = |version: &str, product: Option<&str>| {
        let fact = |value: &str| Known::Fact {
            value: value.to_owned(),
            source: String::new(),
        };
        let mut facts = runs::facts();
        facts.server = fact(version);
        facts.provider = Known::Fact {
            value: product.map(str::to_owned),
            source: String::new(),
        };
        report(&facts, &[], |report| (report.text(200), report.is_ready()))
    };
    let (old, ready) = of("v1.29.14", None);
    assert!(!ready && old.contains("would be inconclusive: before Kubernetes 1.30 the server"));
    let (new, ready) = of("v1.30.0", Some("openshift"));
    assert!(ready && !new.contains("1.30 the server"), "{new}");
    assert!(new.contains("manifests/rbac/openshift.yaml"));
    assert!(!old.contains("openshift.yaml"));
}

#[test]
fn what_is_not_known_is_said() {
    let mut facts = runs::facts();
    facts.server = Known::Fact {
        value: "v1.99.0".to_owned(),
        source: "/version".to_owned(),
    };
    facts.nodes = Known::Unknown {
        reason: "/api/v1/nodes: status 403: nodes is forbidden: User \"a\" cannot list resource \"nodes\" in API group \"\" at the cluster scope".to_owned(),
    };
    let nodes = objects(AccessVerb::List, "nodes", Place::Cluster);
    let text = report(&facts, &[(nodes, denied())], |report| report.text(100));
    insta::assert_snapshot!(text);
}
