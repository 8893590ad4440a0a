//! The manifests in `manifests/rbac` grant what the checks ask for, no more and no less.
//!
//! `INSTA_UPDATE=always cargo test --test it rbac` writes them again. `tests/real/access.rs` shows that a
//! real server lets the account do all of it, and what each missing verb costs.

use std::collections::BTreeMap;
use std::path::Path;

use winconform::engine::uses;
use winconform_core::config::{Allowed, Config};
use winconform_core::facts::{
    Cni, CsiNodeFact, Facts, Known, LoadBalancerFact, NodeDetails, NodeFact, Os, SnapshotClassFact,
    StorageClassFact, WindowsBuild,
};
use winconform_core::plan::{Plan, plan};
use winconform_core::report::preflight::EXPECTED;
use winconform_core::verdict::Disposition;

use super::suites;
use manifest::Account;

mod manifest;

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
        can: "collect all facts of a cluster and check the areas `env` and `reject`, but for `env.node-services`",
        makes: Some("a few pods that no scheduler binds, and dry runs of workloads"),
    },
);

const WHOLE_RUN: (&[&str], Account) = (
    &[
        "env", "identity", "limit", "net", "pod", "reject", "sample", "sched", "storage",
        "workload",
    ],
    Account {
        file: "whole-run.yaml",
        can: "collect all facts of a cluster and check all there is to check",
        makes: Some(
            "the samples and the pods it observes from, which it execs into; on each pool of Windows some of \
             them are HostProcess pods, which are SYSTEM on their nodes; of what failed it reads the logs",
        ),
    },
);

fn known<T>(value: T) -> Known<T> {
    Known::Fact {
        value,
        source: String::new(),
    }
}

/// The manifests of a service account that can check these areas: one with the verbs on objects, and one with
/// the paths that not every user may read.
fn roles(areas: &[&str], account: &Account) -> (String, String) {
    let suites = match areas.contains(&"pod") {
        true => suites::of_areas(areas),
        false => suites::without_programs(areas),
    };
    let mut config = Config::default();
    config.outside.load_balancers = true;
    config.allow.extend(Allowed::ALL);
    let uses = uses(&config.images);
    // A cluster on which a run observes every check of the areas
    let node = |name: &str, os, build| NodeFact {
        name: name.to_owned(),
        os,
        build,
        usable: true,
        excluded: None,
        spared: None,
        taints: Vec::new(),
        details: NodeDetails::default(),
    };
    let windows = [
        WindowsBuild::SERVER_2019,
        WindowsBuild::SERVER_2022,
        WindowsBuild::SERVER_2025,
    ];
    let windows = windows.map(|build| node(&format!("{build:?}"), Os::Windows, Some(build)));
    let (driver, shares) = (
        "disk.csi.example.com".to_owned(),
        "file.csi.azure.com".to_owned(),
    );
    let class = StorageClassFact {
        name: "default".to_owned(),
        provisioner: driver.clone(),
        default: true,
        retains: false,
        file_system: None,
        sharing: BTreeMap::new(),
        expands: true,
    };
    let sharing = StorageClassFact {
        name: "shares".to_owned(),
        provisioner: shares.clone(),
        default: false,
        ..class.clone()
    };
    let of_snapshots = SnapshotClassFact {
        name: "snapshots".to_owned(),
        driver: driver.clone(),
        retains: false,
    };
    let drivers = windows.iter().map(|node| CsiNodeFact {
        node: node.name.clone(),
        drivers: vec![driver.clone(), shares.clone()],
    });
    let drivers: Vec<_> = drivers.collect();
    let linux = node("linux", Os::Linux, None);
    let nodes = known(windows.into_iter().chain([linux]).collect());
    let keeps_policies = Cni {
        product: "calico".to_owned(),
        mode: None,
        vxlan: None,
        signs: Vec::new(),
        unread: Vec::new(),
    };
    // Checks come and go with versions; what one asks does not depend on them
    let mut checks = BTreeMap::new();
    for minor in EXPECTED {
        let facts = Facts {
            server: known(format!("v1.{minor}.0")),
            nodes: nodes.clone(),
            cni: known(Some(keeps_policies.clone())),
            storage_classes: known(vec![class.clone(), sharing.clone()]),
            snapshot_classes: known(vec![of_snapshots.clone()]),
            csi_nodes: known(drivers.clone()),
            metrics_api: known(true),
            load_balancer: known(LoadBalancerFact {
                with_address: 1,
                ..LoadBalancerFact::default()
            }),
            ..Facts::default()
        };
        for check in plan(&suites, &facts, &config).checks {
            if check.disposition == Disposition::Observe {
                checks.insert(check.id.clone(), check);
            }
        }
    }
    let plan = Plan {
        checks: checks.into_values().collect(),
    };
    let objects = manifest::objects(&plan, &uses, account);
    (objects, manifest::paths(&plan, &uses))
}

#[test]
fn an_account_of_facts_gets_and_lists_alone() {
    let (areas, account) = FACTS;
    let (objects, _) = roles(areas, &account);
    let (_, granted) = objects.split_once("rules:\n").expect("it has rules");
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
        let (objects, paths) = roles(areas, &account);
        files.push((account.file, objects));
        if account.makes.is_some() {
            files.push(("metrics.yaml", paths));
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
             INSTA_UPDATE=always cargo test --test it rbac writes it anew"
        );
    }
}
