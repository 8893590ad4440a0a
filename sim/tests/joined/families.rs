//! Both IP families, as the real API server and its controllers give and count them.

use std::io::Write;

use hybrid_sim::{IpFamilies, Topology};
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::AGNHOST;
use crate::scene::{Scene, create, is_ready, text, until};

#[tokio::test(flavor = "multi_thread")]
async fn services_of_both_families_are_reached() {
    let name = "services_of_both_families_are_reached";
    let topology = Topology {
        ip_families: IpFamilies::DualStack,
        ..Topology::hybrid()
    };
    let Some(scene) = Scene::begin_with(topology, name, "dual", &[]).await else {
        return;
    };
    let service = json!({"metadata": {"name": "six"}, "spec": {"ipFamilyPolicy": "PreferDualStack",
        "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let service: Service = create(&scene.api(), service).await;
    let addresses = service
        .spec
        .and_then(|spec| spec.cluster_ips)
        .unwrap_or_default();
    if addresses.len() < 2 {
        writeln!(
            std::io::stderr(),
            "not run: {name}: the control plane has Services of one family"
        )
        .expect("stderr is open");
        return scene.end().await;
    }
    for (pod, node, args) in [
        (
            "web",
            "windows-2022-a",
            json!(["netexec", "--http-port=80"]),
        ),
        ("prober", "linux-a", json!(["pause"])),
        ("looker", "windows-2022-a", json!(["pause"])),
    ] {
        let spec = scene.spec(node, &json!({"image": AGNHOST, "args": args}));
        let labels = json!({"app": pod});
        let object = json!({"metadata": {"name": pod, "labels": labels}, "spec": spec});
        create::<k8s_openapi::api::core::v1::Pod>(&scene.api(), object).await;
    }
    for pod in ["prober", "looker"] {
        scene.pod_until(pod, is_ready).await;
    }
    let web = scene
        .pod_until("web", is_ready)
        .await
        .status
        .expect("a status");
    let own: Vec<String> = web
        .pod_ips
        .unwrap_or_default()
        .into_iter()
        .map(|own| own.ip)
        .collect();
    assert_eq!(
        (own.len(), web.host_ips.map(|all| all.len())),
        (2, Some(2)),
        "{own:?}"
    );
    assert!(own[1].starts_with("fd00:10:244:"), "{own:?}");
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = nodes
        .get(&scene.node("linux-a"))
        .await
        .expect("it is there");
    let cidrs = node
        .spec
        .and_then(|spec| spec.pod_cidrs)
        .unwrap_or_default();
    assert_eq!(cidrs.len(), 2, "{cidrs:?}");
    // The real controller makes a slice of each family
    let slices: Api<EndpointSlice> = scene.api();
    let all = ListParams::default().labels("kubernetes.io/service-name=six");
    let of_six = slices.list(&all).await.expect("a list").items;
    let six = of_six
        .iter()
        .find(|slice| slice.address_type == "IPv6")
        .expect("a slice");
    let six = six.metadata.name.clone().expect("a name");
    until(slices, &six, |slice: Option<&EndpointSlice>| {
        slice.is_some_and(|slice| slice.endpoints.iter().flatten().next().is_some())
    })
    .await;
    let session = "silent\nheader = \"Connection: close\"\nurl = \"http://six/hostname\"\n";
    for pod in ["prober", "looker"] {
        let curl = ["exec", "-i", pod, "--", "curl", "-q", "-K", "-"];
        let ran = scene.kubectl(&curl, session).await;
        assert_eq!(text(&ran.stdout), "web", "{pod}: {}", text(&ran.stderr));
    }
    scene.end().await;
}
