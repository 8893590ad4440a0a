//! The claims that no case checks yet, pinned: the list may only shrink, and it cannot grow unseen.
//!
//! Asks the command, as a user would. Out of scope: what `list` and `explain` look like.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value as Json;

const FILE: &str = "tests/not-implemented.txt";
const PINNED: &str = include_str!("not-implemented.txt");
/// Claims in the catalogue.
const CLAIMS: usize = 168;

struct Listed {
    id: String,
    implemented: bool,
}

fn winconform(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_winconform"))
        .args(args)
        .output()
        .expect("the command starts")
}

fn listed() -> Vec<Listed> {
    let ran = winconform(&["list", "--format", "json"]);
    assert!(ran.status.success(), "{ran:?}");
    let claims: Vec<Json> = serde_json::from_slice(&ran.stdout).expect("a list of objects");
    claims
        .iter()
        .map(|claim| Listed {
            id: claim["id"].as_str().expect("an id").to_owned(),
            implemented: claim["implemented"]
                .as_bool()
                .expect("whether it has a case"),
        })
        .collect()
}

/// What the list and the file disagree about, each with what to do.
fn disagreements(listed: &[Listed], pinned: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = BTreeSet::new();
    for line in pinned.lines() {
        if !lines.insert(line) {
            found.push(format!("`{line}` is there twice: remove one line"));
        }
    }
    for claim in listed {
        match (claim.implemented, lines.remove(claim.id.as_str())) {
            (true, true) => {
                found.push(format!("`{}` has a case now: remove its line", claim.id));
            }
            (false, false) => found.push(format!(
                "`{}` has no case: give it one, or add its line and say why in the commit",
                claim.id
            )),
            (true, false) | (false, true) => {}
        }
    }
    let unknown = lines
        .into_iter()
        .map(|line| format!("`{line}` is no claim: remove its line"));
    found.extend(unknown);
    found
}

#[test]
fn claims_without_a_case_are_those_pinned() {
    let found = disagreements(&listed(), PINNED);
    assert!(found.is_empty(), "{FILE}:\n  {}", found.join("\n  "));
}

#[test]
fn every_claim_is_there_once() {
    let listed = listed();
    let ids: BTreeSet<_> = listed.iter().map(|claim| &claim.id).collect();
    assert_eq!((listed.len(), ids.len()), (CLAIMS, CLAIMS));
}

#[test]
fn every_claim_can_be_explained() {
    let listed = listed();
    // A process each, so several at once
    std::thread::scope(|scope| {
        for claims in listed.chunks(CLAIMS / 4) {
            scope.spawn(move || {
                for Listed { id, .. } in claims {
                    let ran = winconform(&["explain", id]);
                    let text = String::from_utf8_lossy(&ran.stdout);
                    assert!(ran.status.success() && text.starts_with(id), "{ran:?}");
                }
            });
        }
    });
}

#[test]
fn each_disagreement_is_found() {
    let claim = |id: &str, implemented| Listed {
        id: id.to_owned(),
        implemented,
    };
    let listed = [
        claim("a.new", false),
        claim("b.done", true),
        claim("c.kept", false),
    ];
    assert_eq!(
        disagreements(&listed, "b.done\nc.kept\nc.kept\nd.gone\n"),
        [
            "`c.kept` is there twice: remove one line",
            "`a.new` has no case: give it one, or add its line and say why in the commit",
            "`b.done` has a case now: remove its line",
            "`d.gone` is no claim: remove its line",
        ]
    );
    assert!(disagreements(&listed, "a.new\nc.kept\n").is_empty());
}
