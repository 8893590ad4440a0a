//! The list, the explanations and the plan, which the tool prints before any run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use winconform_core::claims::{ClaimId, ClaimType};
use winconform_core::config::Config;
use winconform_core::facts::{Facts, Known, PoolName, WindowsBuild};
use winconform_core::fixture::FixtureName;
use winconform_core::method::Quantity;
use winconform_core::plan::{PoolCost, Pulls, Selection, plan};
use winconform_core::report::claims::{list_json, list_text, plan_text};
use winconform_core::report::explain::explain;
use winconform_core::report::plan::costs_text;
use winconform_core::suite::{SuiteFile, Suites};

use crate::runs;

/// A suites folder of four claims, so that snapshots do not change with the project's suites.
pub(crate) fn suites() -> Suites {
    let file = |path: &str, text: &str| SuiteFile {
        path: path.to_owned(),
        shown: path.to_owned(),
        text: text.to_owned(),
    };
    Suites::read(vec![
        file(
            "claims.yaml",
            "claims:\n\
             - {id: env.taint, type: advice, from: [guide, hybrid], claim: nodes carry a taint}\n\
             - {id: net.node-to-service-ip, type: limitation, from: [guide], claim: nodes cannot reach Services}\n\
             - {id: net.service-ip-from-pod, type: capability, from: [guide, docs], claim: pods reach Services}\n\
             - {id: reject.hostPID, type: rejection, from: [concept-127], claim: hostPID is refused}\n",
        ),
        file(
            "limitations.yaml",
            "limitations:\n\
             - claim: net.node-to-service-ip\n  \
               scope: {builds: [\"10.0.17763\", \"10.0.20348\"], kubernetes: \">=1.14\"}\n  \
               outside: capability\n  \
               signature: {failure: [timeout, no-route]}\n  \
               reason: the host does not translate what it sends\n  \
               source: the user guide\n",
        ),
        file("net/service.yaml", include_str!("suites/service.yaml")),
        file("reject/pod.yaml", include_str!("suites/reject.yaml")),
    ])
    .expect("valid suites")
}

#[test]
fn list() {
    insta::assert_snapshot!(list_text(&suites(), &Selection::default()));
    insta::assert_snapshot!(list_json(&suites(), &Selection::default()));
}

#[test]
fn explained() {
    let suites = suites();
    for id in ["net.node-to-service-ip", "reject.hostPID", "env.taint"] {
        insta::assert_snapshot!(explain(&suites, id).expect("a claim"));
    }
}

#[test]
fn ids_of_cases_and_checks_are_explained_as_reports_print_them() {
    let suites = suites();
    let cases = |id: &str| {
        let text = explain(&suites, id).expect("there is one");
        text.lines().filter(|line| line.starts_with("case")).count()
    };
    let case = "reject.hostPID/privileged";
    assert_eq!(cases("reject.hostPID"), 2);
    assert_eq!(cases(case), 1);
    assert_eq!(cases(&format!("{case}[workload=pod]")), 1);
    assert_eq!(
        cases("net.service-ip-from-pod[pool=windows-2022,source=windows-pod]"),
        1
    );
    let unknown = explain(&suites, "reject.hostPID/privelegd").expect_err("no such case");
    assert_eq!(unknown.nearest.as_deref(), Some(case));
}

#[test]
fn an_unknown_claim_is_named_with_the_nearest() {
    let unknown = explain(&suites(), "net.service-ip-from-pods").expect_err("no such claim");
    assert_eq!(unknown.nearest.as_deref(), Some("net.service-ip-from-pod"));
    assert_eq!(
        unknown.to_string(),
        "no claim is called `net.service-ip-from-pods`"
    );
    let hostile = explain(&suites(), "\u{1b}[31m").expect_err("no such claim");
    assert_eq!(
        (
            hostile.nearest.as_deref(),
            hostile.to_string().contains('\u{1b}')
        ),
        (None, false)
    );
}

#[test]
fn planned() {
    let (suites, config) = (suites(), Config::default());
    insta::assert_snapshot!(plan_text(&plan(&suites, &runs::facts(), &config)));
    // Without an image for the one pool, and with unknown nodes
    let mut facts = runs::facts();
    if let Known::Fact { value, .. } = &mut facts.nodes {
        for node in value.iter_mut().filter(|node| node.build.is_some()) {
            node.build = WindowsBuild::parse_label("10.0.99999");
        }
    }
    insta::assert_snapshot!(plan_text(&plan(&suites, &facts, &config)));
    let nodes = Known::Unknown {
        reason: "403: nodes is forbidden".to_owned(),
    };
    let facts = Facts { nodes, ..facts };
    insta::assert_snapshot!(plan_text(&plan(&suites, &facts, &config)));
}

#[test]
fn what_a_run_asks_of_each_pool() {
    let mut cost = PoolCost::default();
    let requests = ["10m", "64Mi"].map(|text| Quantity::parse(text).expect("a quantity"));
    cost.add_pods(2, [requests, requests].into_iter());
    let fixtures = BTreeSet::from([FixtureName::IIS]);
    let images = BTreeMap::from([("iis".to_owned(), fixtures)]);
    cost.add_pulls(&Pulls {
        nodes: Vec::new(),
        images,
    });
    let said = "\na run asks of each pool\n  linux: 2 pods that request 40m CPU and 256Mi of memory, \
                0 pods that are there to be placed, 1 image of about 1.1 GB\n";
    assert_eq!(costs_text(&[(PoolName::linux(), cost)].into()), said);
    assert_eq!(costs_text(&BTreeMap::new()), "");
}

#[test]
fn the_projects_own_suites_are_listed_and_explained() {
    let suites = project_suites();
    let text = list_text(&suites, &Selection::default());
    let claims = suites.claims.iter().count();
    assert!(text.trim_end().ends_with("not implemented"), "{text}");
    assert!(
        text.contains(&format!(" of {claims} claims implemented, ")),
        "{text}"
    );
    for claim in suites.claims.iter() {
        assert!(text.contains(claim.id.as_str()));
        assert!(explain(&suites, claim.id.as_str()).is_ok());
    }
    let sticky = explain(&suites, "net.session-affinity").expect("a claim");
    let asks =
        "one-pod-behind-service-ip of win-webserver, through the Service of sticky-service\n";
    assert!(sticky.contains(asks), "{sticky}");
}

#[test]
fn one_case_of_a_capability_may_be_a_limitation() {
    let suites = project_suites();
    let claim = ClaimId::parse("net.dns-search").expect("an id");
    let plan = plan(&suites, &runs::facts(), &Config::default());
    let checks = plan.checks.iter().filter(|check| check.claim == claim);
    let seen: BTreeSet<_> = checks
        .map(|check| {
            let case = check.id.as_str().split(['/', '[']).nth(1);
            (case.unwrap_or_default(), check.claim_type)
        })
        .collect();
    let expected = [
        ("each-node", ClaimType::Capability),
        ("namespaced-name", ClaimType::Capability),
        ("namespaced-name-from-windows", ClaimType::Limitation),
        ("short-name", ClaimType::Capability),
    ];
    assert_eq!(seen, expected.into());
    let text = explain(&suites, claim.as_str()).expect("a claim");
    let entry = "\nknown limitation\n  case       namespaced-name-from-windows\n";
    assert!(text.contains(entry), "{text}");
}

/// The project's suites.
pub(crate) fn project_suites() -> Suites {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites");
    let mut files = Vec::new();
    for entry in walk(&root) {
        let path = entry.strip_prefix(&root).expect("below the root");
        let path = path.to_str().expect("UTF-8").replace('\\', "/");
        let text = std::fs::read_to_string(&entry).expect("a suite file");
        files.push(SuiteFile {
            shown: path.clone(),
            path,
            text,
        });
    }
    Suites::read(files).expect("valid suites")
}

/// The YAML files below a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            paths.extend(walk(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            paths.push(path);
        }
    }
    paths
}
