//! Products are recognised by objects that are cut down from their manifests.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;
use winconform_core::document::parse;
use winconform_core::facts::products::{
    ConfigMapSign, DaemonSetSign, NodeSigns, Rules, Signs, texts,
};
use winconform_core::facts::{Cni, CniMode, Vxlan};

/// The objects of a file in `products/`.
fn objects(name: &str) -> Vec<Json> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/products");
    let text = std::fs::read_to_string(path.join(format!("{name}.yaml"))).expect("a fixture");
    let tree = parse(name, &text).expect("valid YAML").to_json();
    tree.as_array().expect("a list of objects").clone()
}

/// The signs of a cluster that has the objects of these files and no others.
fn signs(names: &[&str]) -> Signs {
    let objects: Vec<_> = names.iter().flat_map(|name| objects(name)).collect();
    let of_kind = |kind: &'static str| objects.iter().filter(move |o| o["kind"] == kind);
    let rules = Rules::built_in();
    let config_maps = rules.config_maps();
    let mut nodes = NodeSigns::default();
    of_kind("Node").for_each(|node| nodes.add(rules, node));
    let version = of_kind("Version").find_map(|o| o["gitVersion"].as_str());
    let config_map = |(namespace, name): (&str, &str)| {
        let mut maps = of_kind("ConfigMap").filter(|object| {
            object["metadata"]["namespace"] == namespace && object["metadata"]["name"] == name
        });
        ConfigMapSign {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            data: Ok(maps.next().map(|map| texts(&map["data"]))),
        }
    };
    Signs {
        version: Ok(version.unwrap_or("v1.37.0").to_owned()),
        groups: Ok(BTreeSet::new()),
        daemon_sets: Ok(of_kind("DaemonSet").map(DaemonSetSign::read).collect()),
        nodes: Ok(nodes),
        config_maps: config_maps.into_iter().map(config_map).collect(),
    }
}

fn cni(name: &str) -> Cni {
    let cni = Rules::built_in().cni(&signs(&[name]));
    let cni = cni.expect("one at most").expect("one");
    assert!(cni.unread.is_empty() && !cni.signs.is_empty(), "{cni:?}");
    cni
}

#[test]
fn every_network_plugin_is_recognised_with_its_mode() {
    let vxlan = |vni, port| Some(Vxlan { vni, port });
    for (name, product, mode, configured) in [
        (
            "flannel-vxlan",
            "flannel",
            Some(CniMode::Overlay),
            vxlan(Some(4096), Some(4789)),
        ),
        ("flannel-host-gw", "flannel", Some(CniMode::L2bridge), None),
        (
            "flannel-windows-tools",
            "flannel",
            Some(CniMode::Overlay),
            vxlan(None, None),
        ),
        ("calico-windows", "calico", Some(CniMode::Overlay), None),
        (
            "calico-windows-tools",
            "calico",
            Some(CniMode::Overlay),
            vxlan(Some(4096), None),
        ),
        ("calico-bgp", "calico", Some(CniMode::L2bridge), None),
        ("canal", "flannel", None, None),
        ("antrea", "antrea", Some(CniMode::Transparent), None),
        ("azure-cni", "azure-cni", None, None),
        (
            "ovn-kubernetes",
            "ovn-kubernetes",
            Some(CniMode::Overlay),
            None,
        ),
        ("cilium", "cilium", None, None),
        ("aws-vpc-cni", "aws-vpc-cni", None, None),
    ] {
        let cni = cni(name);
        let seen = (cni.product.as_str(), cni.mode, cni.vxlan);
        assert_eq!(seen, (product, mode, configured), "{name}");
    }
}

#[test]
fn what_it_was_recognised_by_is_said() {
    assert_eq!(
        cni("flannel-vxlan").signs,
        [
            "DaemonSet kube-flannel/kube-flannel-ds with image ghcr.io/flannel-io/flannel:v0.27.3",
            "ConfigMap kube-flannel/kube-flannel-cfg with net-conf.json/Backend/Type vxlan",
        ]
    );
}

#[test]
fn every_provider_is_recognised() {
    for name in ["aks", "eks", "gke", "kubeadm"] {
        let provider = Rules::built_in().provider(&signs(&[name]));
        assert_eq!(provider, Ok(Some(name.to_owned())));
    }
}

#[test]
fn a_load_balancer_is_recognised() {
    let products = Rules::built_in().load_balancers(&signs(&["metallb", "flannel-vxlan"]));
    assert_eq!(products, (vec!["metallb".to_owned()], vec![]));
}

#[test]
fn two_at_once_are_named_and_neither_is_chosen() {
    let reason = Rules::built_in()
        .cni(&signs(&["flannel-vxlan", "antrea"]))
        .expect_err("two");
    let words = [
        "signs of several: flannel (",
        "antrea (DaemonSet kube-system/antrea-agent",
    ];
    assert!(words.iter().all(|w| reason.contains(w)), "{reason}");
    let reason = Rules::built_in()
        .provider(&signs(&["eks", "kubeadm"]))
        .expect_err("two");
    assert!(
        reason.contains("eks (version v1.33.5-eks-113cf36"),
        "{reason}"
    );
}

#[test]
fn none_is_known_to_be_none_only_when_everything_was_read() {
    let rules = Rules::built_in();
    let mut signs = signs(&["metallb"]);
    assert_eq!(rules.cni(&signs), Ok(None));
    assert_eq!(rules.provider(&signs), Ok(None));
    let why = "/apis/apps/v1/daemonsets: status 403: no";
    signs.daemon_sets = Err(why.to_owned());
    assert_eq!(rules.cni(&signs), Err(why.to_owned()));
    assert_eq!(rules.provider(&signs), Ok(None));
    assert_eq!(rules.load_balancers(&signs).1, [why]);
}

#[test]
fn a_configuration_that_may_not_be_read_leaves_the_mode_unknown_not_unset() {
    let mut signs = signs(&["flannel-vxlan"]);
    let why = "/api/v1/namespaces/kube-flannel/configmaps/kube-flannel-cfg: status 403: no";
    for map in &mut signs.config_maps {
        if map.namespace == "kube-flannel" {
            map.data = Err(why.to_owned());
        }
    }
    let cni = Rules::built_in().cni(&signs).expect("one").expect("one");
    assert_eq!(
        (cni.product.as_str(), cni.mode, cni.vxlan),
        ("flannel", None, None)
    );
    assert_eq!(cni.unread, [why]);
}

#[test]
fn whether_it_only_enforces_policy_must_be_readable() {
    let mut signs = signs(&["cilium"]);
    for map in &mut signs.config_maps {
        map.data = Err("status 403".to_owned());
    }
    assert_eq!(Rules::built_in().cni(&signs), Err("status 403".to_owned()));
}

#[test]
fn hostile_names_do_not_reach_a_terminal() {
    let mut signs = signs(&["antrea"]);
    if let Ok(sets) = &mut signs.daemon_sets {
        sets[0].images[0].insert_str(0, "\u{1b}[31m");
    }
    let cni = Rules::built_in().cni(&signs).expect("one").expect("one");
    assert!(
        cni.signs.iter().all(|sign| !sign.contains('\u{1b}')),
        "{cni:?}"
    );
}
