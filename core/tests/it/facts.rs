//! Facts as people read them.

use serde_json::json;
use winconform_core::facts::{Facts, Known};
use winconform_core::report::facts::render;

#[expect(clippy::needless_pass_by_value, reason = "they are made in place")]
fn fact(value: serde_json::Value, source: &str) -> serde_json::Value {
    json!({"fact": {"value": value, "source": source}})
}

/// The facts of a hybrid cluster, of every kind, as a record holds them.
fn facts() -> Facts {
    let node = |name: &str, os: &str, kernel: &str, ready: &str| {
        let build = (os == "windows").then_some("10.0.20348");
        let taints = match os {
            "windows" => json!([{"key": "os", "value": "windows", "effect": "NoSchedule"}]),
            _ => json!([]),
        };
        json!({"name": name, "os": os, "build": build, "usable": ready == "True", "taints": taints,
            "details": {"arch": "amd64", "kernel": kernel, "kubelet": "v1.37.0",
                "runtime": "containerd://2.1.0", "control-plane": os == "linux",
                "capacity": {"memory": "8388608Ki"}, "allocatable": {"memory": "6291456Ki"},
                "conditions": [{"kind": "Ready", "status": ready, "since": null, "reason": ""},
                    {"kind": "MemoryPressure", "status": "False", "since": null, "reason": ""}]}})
    };
    let long = "ip-10-0-10-170.eu-central-1.compute.internal";
    let facts = json!({
        "server": fact(json!("v1.37.0"), "/version"),
        "platform": fact(json!("linux/amd64"), "/version"),
        "gates": fact(json!({"WinDSR": true, "WinOverlay": true, "X": false}), "/metrics"),
        "cluster": fact(json!("8a2c"), "/api/v1/namespaces/kube-system"),
        "nodes": fact(json!([node("l1", "linux", "6.12.0", "True"),
            node("w1", "windows", "10.0.20348.2700", "True"),
            node(long, "windows", "10.0.20348.2700", "Unknown")]), "/api/v1/nodes"),
        "silent-nodes": fact(json!(["new-0", "new-\u{1b}[31m"]), "/api/v1/nodes"),
        "provider": fact(json!("kubeadm"), "/version, /apis, /api/v1/nodes"),
        "cni": fact(json!({"product": "flannel", "mode": "overlay",
            "vxlan": {"vni": 4096, "port": null}, "signs": ["DaemonSet a/b with image c"],
            "unread": ["/api/v1/x: status 403: no"]}), "/apis/apps/v1/daemonsets"),
        "kube-proxy": fact(json!({"linux-mode": "iptables", "windows-mode": null, "dsr": true,
            "signs": ["ConfigMap kube-system/kube-proxy"]}), "ConfigMaps"),
        "dns": fact(json!({"service": "kube-system/kube-dns", "addresses": ["10.96.0.10"],
            "endpoints": [{"address": "10.244.0.2", "node": "l1", "ready": true},
                {"address": "10.244.0.3", "node": null, "ready": false}]}), "/api/v1/services"),
        "runtime-classes": fact(json!([{"name": "windows-2022", "handler": "runhcs-wcow-process",
            "node-selector": {}, "tolerations": []}]), "/apis/node.k8s.io/v1/runtimeclasses"),
        "storage-classes": fact(json!([{"name": "disk", "provisioner": "disk.csi", "default": true}]),
            "/apis/storage.k8s.io/v1/storageclasses"),
        "snapshot-classes": fact(json!([{"name": "disks", "driver": "disk.csi"}]),
            "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses"),
        "csi-drivers": fact(json!([]), "/apis/storage.k8s.io/v1/csidrivers"),
        "csi-nodes": fact(json!([{"node": "w1", "drivers": ["disk.csi"]}]),
            "/apis/storage.k8s.io/v1/csinodes"),
        "webhooks": fact(json!([{"kind": "MutatingWebhookConfiguration", "configuration": "inject",
            "name": "inject.example.com", "mutates": true, "resources": ["pods"],
            "failure-policy": "Ignore", "dry-run": false}]), "/apis/admissionregistration.k8s.io/v1"),
        "load-balancer": fact(json!({"with-address": 1, "pending": 2, "products": ["metallb"]}),
            "/api/v1/services"),
        "metrics-api": {"unknown": {"reason": "/apis/x: status 403: forbidden"}},
        "gmsa": fact(json!({"crd": true, "webhooks": ["gmsa"]}), "/apis/windows.k8s.io/v1"),
        "workloads": fact(json!({"pods": 40, "windows-pods": 12,
            "without-os": ["a/b", "a/c"], "without-os-count": 2, "without-requests": ["a/b"],
            "without-requests-count": 1, "windows-families": {"ipv4": 12},
            "problem-detectors": [["kube-system/npd", "l1"]]}), "/api/v1/pods"),
        "pulls": fact(json!((0..12).map(|index| json!({"image": format!("image-{index}"),
            "node": "w1", "took": 1_000 * index + 250}))
            .collect::<Vec<_>>()), "/api/v1/events"),
    });
    serde_json::from_value(facts).expect("facts")
}

#[test]
fn everything_known() {
    insta::assert_snapshot!(render(&facts(), 100));
}

#[test]
fn nothing_known_says_why() {
    insta::assert_snapshot!(render(&Facts::default(), 80));
}

#[test]
fn hostile_text_is_spelled_out_and_lines_keep_to_the_width() {
    let mut facts = facts();
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\n";
    if let Known::Fact { value, .. } = &mut facts.nodes {
        value[1].name = format!("w{hostile}");
        value[1].details.kernel = hostile.repeat(90);
        value[1].taints = vec![json!({"key": hostile, "effect": hostile})];
    }
    if let Known::Fact {
        value: Some(cni),
        source,
    } = &mut facts.cni
    {
        cni.signs.push(hostile.to_owned());
        source.push_str(hostile);
    }
    if let Known::Fact { value, .. } = &mut facts.pulls {
        value[0].image = hostile.to_owned();
    }
    facts.metrics_api = Known::Unknown {
        reason: hostile.to_owned(),
    };
    let text = render(&facts, 60);
    let bad = text
        .chars()
        .find(|c| *c != '\n' && winconform_core::text::is_hostile(*c));
    assert_eq!(bad, None, "{text}");
    let long: Vec<_> = text
        .lines()
        .filter(|line| line.chars().count() > 60)
        .collect();
    // A node's name is never cut
    assert!(
        long.iter().all(|line| !line.trim_start().contains(' ')),
        "{long:?}"
    );
}
