//! The manifests in `manifests/rbac` are what the checks ask for, no more and no less.
//!
//! `INSTA_UPDATE=always cargo test --test rbac` writes them anew. That a real server lets the
//! account do all of it, and what the lack of each verb costs, is shown in `access.rs`.

use std::path::Path;

use winconform::engine::roles;
use winconform_core::report::rbac::Account;

#[path = "world/suites.rs"]
mod suites;

const FACTS: (&[&str], Account) = (
    &["env"],
    Account {
        file: "facts.yaml",
        can: "collect all facts of a cluster, for `winconform facts` and `plan`: it can get and list, and \
              nothing else",
        makes: None,
    },
);

const REJECTIONS: (&[&str], Account) = (
    &["env", "reject"],
    Account {
        file: "rejections.yaml",
        can: "collect all facts of a cluster and check the areas `env` and `reject`",
        makes: Some("a few pods that no scheduler binds, and dry runs of workloads"),
    },
);

const WHOLE_RUN: (&[&str], Account) = (
    &["env", "net", "reject", "sample", "sched"],
    Account {
        file: "whole-run.yaml",
        can: "collect all facts of a cluster and check all there is to check",
        makes: Some(
            "the samples and the pods it looks from, which it execs into; on each pool of Windows some of \
             them are HostProcess pods, which are SYSTEM on their nodes; of what failed it reads the logs",
        ),
    },
);

#[test]
fn an_account_of_facts_gets_and_lists_alone() {
    let (areas, account) = FACTS;
    let roles = roles(&suites::of_areas(areas), &account).expect("the manifests are valid");
    let (_, granted) = roles.objects.split_once("rules:\n").expect("it has rules");
    let verbs = granted.split("verbs: [").skip(1);
    let verbs = verbs.flat_map(|rest| rest[..rest.find(']').unwrap_or(0)].split(", "));
    let (read, other): (Vec<_>, Vec<_>) = verbs.partition(|verb| matches!(*verb, "get" | "list"));
    assert!(read.len() > 5 && other.is_empty(), "{other:?}");
    assert!(!granted.contains("\nkind: Role\n"), "{granted}");
}

#[test]
fn the_manifests_are_those_generated() {
    let mut files = Vec::new();
    for (areas, account) in [FACTS, REJECTIONS, WHOLE_RUN] {
        let roles = roles(&suites::of_areas(areas), &account).expect("the manifests are valid");
        files.push((account.file, roles.objects));
        if account.makes.is_some() {
            files.push(("metrics.yaml", roles.paths));
        }
    }
    for (file, generated) in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("manifests/rbac")
            .join(file);
        if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
            std::fs::write(&path, &generated).expect("it can be written");
        }
        let written = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(
            written, generated,
            "manifests/rbac/{file} is not what the checks ask for: \
             INSTA_UPDATE=always cargo test --test rbac writes it anew"
        );
    }
}
