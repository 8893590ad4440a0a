//! Pins the claims that no case checks yet: the list may only shrink, and cannot grow unnoticed.
//!
//! Runs the command, as a user would. Out of scope: the layout of `list` and `explain`.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::demo::tool;

const PINNED: &str = include_str!("not-implemented.txt");
/// The number of claims in the catalogue.
const CLAIMS: usize = 187;

/// Every claim, and whether it has a case.
fn listed() -> Vec<(String, bool)> {
    let ran = tool(&["list", "--format", "json"]);
    assert!(ran.status.success(), "{ran:?}");
    let claims: Vec<Json> = serde_json::from_slice(&ran.stdout).expect("a list of objects");
    let listed = claims.iter().map(|claim| {
        let id = claim["id"].as_str().expect("an id").to_owned();
        (id, claim["implemented"] == true)
    });
    listed.collect()
}

#[test]
fn claims_without_a_case_are_those_pinned() {
    let listed = listed();
    let without = listed.iter().filter(|(_, implemented)| !implemented);
    let without: BTreeSet<_> = without.map(|(id, _)| id.as_str()).collect();
    let pinned: BTreeSet<_> = PINNED.lines().collect();
    let (new, gone) = (&without - &pinned, &pinned - &without);
    assert!(
        new.is_empty(),
        "give each a case, or add its line to tests/it/not-implemented.txt and say why in the commit: {new:?}"
    );
    assert!(
        gone.is_empty() && pinned.len() == PINNED.lines().count(),
        "remove lines of tests/it/not-implemented.txt: {gone:?} have a case or are no claims, or one is there twice"
    );
}

#[test]
fn every_claim_is_there_once_and_can_be_explained() {
    let listed = listed();
    let ids: BTreeSet<_> = listed.iter().map(|(id, _)| id).collect();
    assert_eq!((listed.len(), ids.len()), (CLAIMS, CLAIMS));
    // One process for each claim, so several at once
    std::thread::scope(|scope| {
        for claims in listed.chunks(CLAIMS / 4) {
            scope.spawn(move || {
                for (id, _) in claims {
                    let ran = tool(&["explain", id]);
                    let text = String::from_utf8_lossy(&ran.stdout);
                    assert!(ran.status.success() && text.starts_with(id), "{ran:?}");
                }
            });
        }
    });
}
