//! Which images a run pulls.

use winconform_core::config::{Config, Images};
use winconform_core::document::{Place, Placed};
use winconform_core::facts::{Facts, Known, WindowsBuild};
use winconform_core::plan::{Offer, Platform, Pulls, Selection, plan, pulls};
use winconform_core::report::images;
use winconform_core::text::printable;
use winconform_core::{config, facts::PoolName};

use crate::{claims, runs};
use std::collections::BTreeMap;

/// The facts of the other tests with a second Windows pool.
fn facts() -> Facts {
    let mut facts = runs::facts();
    if let Known::Fact { value, .. } = &mut facts.nodes {
        value[3].build = Some(WindowsBuild::SERVER_2019);
    }
    facts
}

fn pulled(table: &Images, select: &str) -> BTreeMap<PoolName, Pulls> {
    pulled_on(&facts(), table, select)
}

fn pulled_on(facts: &Facts, table: &Images, select: &str) -> BTreeMap<PoolName, Pulls> {
    let (suites, mut problems) = (claims::project_suites(), Vec::new());
    let written = Placed {
        value: select.to_owned(),
        at: Place::argument("--select"),
    };
    let selection = Selection::read(&[written], &suites, &mut problems);
    assert_eq!(problems, Vec::new());
    let config = Config {
        images: table.clone(),
        ..Config::default()
    };
    let selected = selection
        .apply(plan(&suites, facts, &config), facts)
        .expect("known");
    pulls(&selected.plan, facts, table)
}

#[test]
fn the_images_of_samples() {
    let pulled = pulled(&Images::default(), "sample.*");
    let unasked = BTreeMap::new();
    insta::assert_snapshot!(images::text(&pulled, &unasked));
    insta::assert_snapshot!(images::json(&pulled, &unasked));
}

#[test]
fn server_2025_pulls_that_of_2022_where_another_build_is_tried() {
    let mut facts = facts();
    if let Known::Fact { value, .. } = &mut facts.nodes {
        value[3].build = Some(WindowsBuild::SERVER_2025);
    }
    let images = Images::default();
    let pulled = pulled_on(&facts, &images, "sched.build-mismatch");
    let of_pool = &pulled[&PoolName::windows(WindowsBuild::SERVER_2025)];
    let names: Vec<_> = of_pool.images.keys().collect();
    assert_eq!(names, ["mcr.microsoft.com/windows/servercore:ltsc2022"]);
}

#[test]
fn what_registries_say_stands_beside_each_image() {
    let pulled = pulled(&Images::default(), "sample.nanoserver");
    let [one, other] =
        [("windows-2019", "ltsc2019"), ("windows-2022", "ltsc2022")].map(|(pool, tag)| {
            let name = pulled.keys().find(|name| name.as_str() == pool);
            let image = format!("mcr.microsoft.com/windows/nanoserver:{tag}");
            (name.expect("a pool").clone(), image)
        });
    let linux = Platform {
        os: Some("linux".to_owned()),
        build: None,
    };
    let offers = [
        (one, Offer::Lacks(vec![linux])),
        (other, Offer::Unknown("no answer\u{1b}[2J".to_owned())),
    ];
    let offers = offers.into();
    insta::assert_snapshot!(images::text(&pulled, &offers), @r"
    windows-2019 (1 node)
      mcr.microsoft.com/windows/nanoserver:ltsc2019
        nano-server
        NOT for these nodes: the registry has it for linux alone
    windows-2022 (1 node)
      mcr.microsoft.com/windows/nanoserver:ltsc2022
        nano-server
        whether it is for these nodes is not known: no answer\u{1b}[2J
    ");
    let json: serde_json::Value =
        serde_json::from_str(&images::json(&pulled, &offers)).expect("JSON");
    let registry = &json["pools"][0]["images"][0]["registry"];
    assert_eq!(registry["offer"], "lacks");
}

#[test]
fn what_is_not_wanted_is_not_pulled() {
    let table = Images::default();
    assert_eq!(pulled(&table, "reject.*"), BTreeMap::new());
    assert_eq!(
        images::text(&BTreeMap::new(), &BTreeMap::new()),
        "Nothing is pulled.\n"
    );
    let nano = pulled(&table, "sample.nanoserver");
    let images = nano.values().map(|pool| pool.images.len());
    assert_eq!(images.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_mirror_and_tags_of_ones_own_are_in_the_list() {
    let text =
        "images:\n  mirror: registry.example.com/m\n  nano-server-tags: {10.0.17763: \"1809\"}\n";
    let mut problems = Vec::new();
    let Config { images: table, .. } = config::read("config.yaml", text, &mut problems);
    assert_eq!(problems, Vec::new());
    let pulled = pulled(&table, "sample.nanoserver");
    let names: Vec<_> = pulled
        .values()
        .flat_map(|pool| pool.images.keys())
        .collect();
    assert_eq!(
        names,
        [
            "registry.example.com/m/windows/nanoserver:1809",
            "registry.example.com/m/windows/nanoserver:ltsc2022"
        ]
    );
    assert!(names.iter().all(|name| printable(name) == **name));
}
