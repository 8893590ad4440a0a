//! Each claim of the catalogue has a case.
//!
//! Runs the command, as a user would. Out of scope: the layout of `list` and `explain`.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::demo::tool;

/// The number of claims in the catalogue.
const CLAIMS: usize = 197;

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
fn every_claim_has_a_case() {
    let listed = listed();
    let without = listed.iter().filter(|(_, implemented)| !implemented);
    let without: Vec<_> = without.map(|(id, _)| id).collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn every_claim_is_there_once() {
    let listed = listed();
    let ids: BTreeSet<_> = listed.iter().map(|(id, _)| id).collect();
    assert_eq!((listed.len(), ids.len()), (CLAIMS, CLAIMS));
}
