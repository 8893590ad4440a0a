//! The selection of checks of a plan, and of claims.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use winconform_core::config::{Config, Waiver};
use winconform_core::document::{Diagnostic, Place, Placed};
use winconform_core::facts::{Facts, Known, WindowsBuild};
use winconform_core::fixture::FixtureName;
use winconform_core::plan::{Plan, Selection, check_waivers, plan};
use winconform_core::report::claims::{list_json, list_text};
use winconform_core::suite::Suites;

use crate::claims;
use crate::rows::rows;
use crate::runs;

/// Tables of terms, each with its expected result.
const TABLES: &str = include_str!("select.yaml");

/// The suites, read once: properties use them often.
static SUITES: LazyLock<Suites> = LazyLock::new(claims::suites);

/// The facts of the other tests with a second Windows pool.
fn facts() -> Facts {
    let mut facts = runs::facts();
    if let Known::Fact { value, .. } = &mut facts.nodes {
        value[3].build = Some(WindowsBuild::SERVER_2019);
    }
    facts
}

fn written(terms: &[impl AsRef<str>]) -> Vec<Placed<String>> {
    let at = Place::argument("--select");
    let placed = |term| Placed {
        value: AsRef::<str>::as_ref(term).to_owned(),
        at: at.clone(),
    };
    terms.iter().map(placed).collect()
}

fn read(terms: &[impl AsRef<str>]) -> (Selection, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let selection = Selection::read(&written(terms), &SUITES, &mut problems);
    (selection, problems)
}

fn selection(terms: &[impl AsRef<str>]) -> Selection {
    let (selection, problems) = read(terms);
    assert_eq!(problems, Vec::new());
    selection
}

fn planned(facts: &Facts) -> Plan {
    plan(&SUITES, facts, &Config::default())
}

fn ids(plan: &Plan) -> BTreeSet<String> {
    plan.checks
        .iter()
        .map(|check| check.id.to_string())
        .collect()
}

fn selected_of(terms: &[impl AsRef<str>], facts: &Facts) -> BTreeSet<String> {
    let selected = selection(terms)
        .apply(planned(facts), facts)
        .expect("known");
    let left: usize = selected.left_out.values().sum();
    assert_eq!(
        left + selected.plan.checks.len(),
        planned(facts).checks.len()
    );
    ids(&selected.plan)
}

fn selected(terms: &[impl AsRef<str>]) -> BTreeSet<String> {
    selected_of(terms, &facts())
}

/// Each row selects so many of sixteen checks: three of net on two pools, and ten rejections.
#[test]
fn each_kind_of_term_selects() {
    for (terms, count) in rows::<(Vec<String>, usize)>(TABLES, "selects") {
        assert_eq!(selected(&terms).len(), count, "{terms:?}");
    }
}

#[test]
fn what_is_unknown_is_refused_with_the_nearest() {
    for (term, nearest) in rows::<(String, String)>(TABLES, "unknown") {
        let (_, problems) = read(&[&term, "area=net"]);
        match &*nearest {
            "" => assert_eq!(problems, Vec::new(), "{term}"),
            _ => {
                assert_eq!(problems.len(), 1, "{term}");
                let said = problems[0].to_string();
                assert!(said.contains(&nearest), "{term}: {said}");
                assert!(said.starts_with("--select: "), "{said}");
            }
        }
    }
}

#[test]
fn pools_and_points_are_known_with_the_cluster() {
    for (term, said) in rows::<(String, String)>(TABLES, "unknown-in-the-cluster") {
        let refused = selection(&[&term]).apply(planned(&facts()), &facts());
        let error = refused.expect_err("refused");
        assert_eq!(error.all().len(), 1);
        let near = error.all()[0].to_string();
        let (problem, _) = near.split_once("\n  hint: ").expect("a hint");
        let (expected, hint) = said.split_once("\n  hint: ").expect("a hint");
        assert_eq!(problem, expected);
        assert!(
            near.ends_with(hint) || hint.contains("did you mean"),
            "{near}"
        );
    }
    let mut none = facts();
    none.nodes = Known::Fact {
        value: Vec::new(),
        source: "/api/v1/nodes".to_owned(),
    };
    let refused = selection(&["pool=windows-2022"]).apply(planned(&none), &none);
    assert!(
        refused
            .expect_err("refused")
            .to_string()
            .contains("has no Windows pool")
    );
}

/// Nodes that cannot be read exclude nothing: the checks that represent all pools stay.
#[test]
fn of_unknown_nodes_no_pool_is_wrong() {
    let nodes = Known::Unknown {
        reason: "403".to_owned(),
    };
    let facts = Facts { nodes, ..facts() };
    for terms in [
        &["pool=windows-2022"][..],
        &["net.*[pool=windows-2025*"],
        &["area=net", "!pool=windows-2019"],
    ] {
        assert_eq!(selected_of(terms, &facts).len(), 2, "{terms:?}");
    }
}

#[test]
fn fixtures_of_what_is_left_out_are_not_deployed() {
    let fixtures = |terms: &[&str]| {
        let selected = selection(terms)
            .apply(planned(&facts()), &facts())
            .expect("known");
        selected.plan.fixtures()
    };
    let names = |terms: &[&str]| -> BTreeSet<_> {
        fixtures(terms).into_iter().map(|key| key.name).collect()
    };
    let rejections = names(&["type=rejection"]);
    assert!(!rejections.contains(&FixtureName::WIN_WEBSERVER));
    assert!(!rejections.contains(&FixtureName::LINUX_POD_PROBER));
    assert!(names(&[]).contains(&FixtureName::WINDOWS_NODE_PROBER));
    let linux = names(&["source=linux-pod"]);
    assert!(linux.contains(&FixtureName::LINUX_POD_PROBER));
    assert!(!linux.contains(&FixtureName::WINDOWS_NODE_PROBER));
    // The control observes from a Windows pod
    assert!(names(&["type=limitation"]).contains(&FixtureName::WINDOWS_POD_PROBER));
    let pools: BTreeSet<_> = fixtures(&["net.*", "!pool=windows-2019"])
        .into_iter()
        .filter_map(|key| key.pool)
        .map(|pool| pool.to_string())
        .collect();
    assert_eq!(pools, ["linux", "windows-2022"].map(str::to_owned).into());
}

#[test]
fn claims_are_listed_while_one_of_their_checks_may_be_wanted() {
    let listed = |terms: &[String]| -> Vec<String> {
        let selection = selection(terms);
        let wanted = SUITES
            .claims
            .iter()
            .filter(|claim| selection.may_want(claim, &SUITES));
        wanted.map(|claim| claim.id.to_string()).collect()
    };
    for (terms, expected) in rows::<(Vec<String>, Vec<String>)>(TABLES, "listed") {
        assert_eq!(listed(&terms), expected, "{terms:?}");
    }
}

/// The suggested check has the same point, as far as there is one.
#[test]
fn the_nearest_check_is_at_the_same_points() {
    let facts = facts();
    for (term, near) in rows::<(String, String)>(TABLES, "nearest") {
        let refused = selection(&[&term]).apply(planned(&facts), &facts);
        let said = refused.expect_err("refused").to_string();
        assert!(said.contains(&format!("did you mean `{near}`?")), "{said}");
    }
}

#[test]
fn cases_are_counted_that_may_be_wanted() {
    for (terms, line, of_pools) in rows::<(Vec<String>, String, bool)>(TABLES, "counted") {
        let text = list_text(&SUITES, &selection(&terms));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&line), "{terms:?}:\n{text}");
        assert_eq!(text.contains("`winconform plan`"), of_pools, "{text}");
    }
    let json = list_json(&SUITES, &selection(&["reject.*/privileged"]));
    assert!(json.contains("\"cases\": 1"), "{json}");
}

#[test]
fn a_waiver_that_no_check_can_meet_is_refused() {
    let place = Place {
        file: "config.yaml".to_owned(),
        line: 3,
        column: 5,
    };
    let placed = |check| Placed::<Waiver> {
        value: runs::waiver(check, "known", "2026-12-31"),
        at: place.clone(),
    };
    let mut problems = Vec::new();
    let waivers = [
        "net.*",
        "net.service-ip-form-pod[pool=*",
        "env.taint",
        "net.service-ip-from-pod[*node=win-a]",
    ];
    let waivers = waivers.map(placed);
    check_waivers(&waivers, &SUITES, &mut problems);
    let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "config.yaml:3:5: no claim is called `net.service-ip-form-pod[pool=*`\n  \
             hint: did you mean `net.service-ip-from-pod`?",
            "config.yaml:3:5: no node is `win-a` in the id of a check\n  \
             hint: a node is called by its place in its pool, from 1 in the order of the names, such as `node=2`",
        ]
    );
}

const TERMS: [&str; 11] = [
    "area=net",
    "area=reject",
    "type=limitation",
    "type=*i*",
    "pool=windows-2019",
    "pool=*",
    "source=windows-*",
    "container=*",
    "net.*",
    "net.service-ip-from-pod",
    "*[pool=windows-2022,source=linux-pod]",
];

proptest! {
    /// For any A, the checks of A and of !A together are all, and none is in both; several terms select their
    /// union without the negated ones.
    #[test]
    fn the_algebra_of_terms(
        a in prop::sample::select(&TERMS[..]),
        b in prop::sample::select(&TERMS[..]),
        c in prop::sample::select(&TERMS[..]),
    ) {
        let every = ids(&planned(&facts()));
        let not = |term: &str| format!("!{term}");
        let (in_a, out_a) = (selected(&[a]), selected(&[&not(a)]));
        prop_assert_eq!(&in_a | &out_a, every);
        prop_assert!((&in_a & &out_a).is_empty());
        let either = selected(&[a, b]);
        prop_assert_eq!(&either, &(&in_a | &selected(&[b])));
        prop_assert_eq!(selected(&[a, b, &not(c)]), &either - &selected(&[c]));
        prop_assert!(selected(&[a, &not(a)]).is_empty());
    }
}
