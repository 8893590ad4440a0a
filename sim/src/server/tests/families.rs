//! Services, and the pods behind them, where there are addresses of two families.

use serde_json::{Value, json};

use super::{STRATEGIC, Scene, path_of, pod};
use crate::server::{Server, ServerOptions};
use crate::topology::IpFamilies;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

fn scene() -> Scene {
    let options = ServerOptions {
        ip_families: IpFamilies::DualStack,
        ..ServerOptions::default()
    };
    let server = Server::start(&options).expect("it starts");
    let client = server.client();
    Scene { server, client }
}

/// A Service of port 80, with what more is said of it.
fn service(name: &str, more: &Value) -> Value {
    let mut spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    for (key, value) in more.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn services_have_an_address_of_each_of_their_families() {
    let scene = scene();
    for (name, more, families) in [
        ("one", json!({}), &["IPv4"][..]),
        ("six", json!({"ipFamilies": ["IPv6"]}), &["IPv6"]),
        (
            "both",
            json!({"ipFamilyPolicy": "PreferDualStack"}),
            &["IPv4", "IPv6"],
        ),
        (
            "other",
            json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6"]}),
            &["IPv6", "IPv4"],
        ),
    ] {
        let made = scene.create(SERVICES, service(name, &more)).await;
        let spec = &made["spec"];
        assert_eq!(spec["ipFamilies"], json!(families), "{name}");
        let addresses = spec["clusterIPs"].as_array().expect("a list");
        let of = |address: &Value| match address.as_str().expect("text").contains(':') {
            true => "IPv6",
            false => "IPv4",
        };
        let seen: Vec<_> = addresses.iter().map(of).collect();
        assert_eq!(seen, families, "{name}");
        assert_eq!(spec["clusterIP"], addresses[0], "{name}");
        // What is not said again stays
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let path = format!("{SERVICES}/{name}");
        let changed = scene.patch(&path, STRATEGIC, label).await;
        assert_eq!(changed["spec"]["clusterIPs"], spec["clusterIPs"], "{name}");
    }
    let single = Scene::new();
    let refused = service("six", &json!({"ipFamilies": ["IPv6"]})).to_string();
    let (code, refused) = single
        .send(http::Method::POST, SERVICES, "application/json", refused)
        .await;
    let words = refused["message"].as_str().unwrap_or_default();
    assert!(
        code == 422 && words.contains("not configured on this cluster"),
        "{code}: {words}"
    );
}

#[tokio::test]
async fn a_service_has_a_slice_for_each_family_with_the_pods_that_have_it() {
    let scene = scene();
    let more = json!({"ipFamilyPolicy": "PreferDualStack"});
    scene.create(SERVICES, service("web", &more)).await;
    for (name, addresses) in [
        ("dual", &["10.0.0.1", "fd00::1"][..]),
        ("old", &["10.0.0.2"]),
    ] {
        let mut object = pod(name, json!({}));
        object["metadata"]["labels"] = json!({"app": "web"});
        let made = scene
            .create("/api/v1/namespaces/default/pods", object)
            .await;
        let addresses: Vec<_> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
        let status = json!({"status": {"phase": "Running", "podIP": addresses[0]["ip"],
            "podIPs": addresses, "conditions": [{"type": "Ready", "status": "True"}]}});
        let path = format!("{}/status", path_of(&made));
        scene.patch(&path, STRATEGIC, status).await;
    }
    let (_, list) = scene.get(SLICES).await;
    let slices = list["items"].as_array().expect("a list");
    let mut seen: Vec<_> = slices
        .iter()
        .filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web")
        .map(|slice| {
            let endpoints = slice["endpoints"].as_array().expect("a list").iter();
            let addresses = endpoints.map(|each| each["addresses"][0].clone());
            let family = slice["addressType"].as_str().expect("text");
            (family.to_owned(), json!(addresses.collect::<Vec<_>>()))
        })
        .collect();
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("IPv4".to_owned(), json!(["10.0.0.1", "10.0.0.2"])),
        ("IPv6".to_owned(), json!(["fd00::1"])),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_second_address_that_comes_later_reaches_its_slice() {
    let scene = scene();
    let more = json!({"ipFamilyPolicy": "PreferDualStack"});
    scene.create(SERVICES, service("web", &more)).await;
    let made = scene
        .create("/api/v1/namespaces/default/pods", pod("web", json!({})))
        .await;
    let path = format!("{}/status", path_of(&made));
    let of_ipv6 = async || {
        let (_, list) = scene.get(SLICES).await;
        let slices = list["items"].as_array().expect("a list").iter();
        let mut of_ipv6 = slices.filter(|slice| slice["addressType"] == "IPv6");
        let slice = of_ipv6.next().expect("a slice of IPv6");
        slice["endpoints"].clone()
    };
    for (addresses, six) in [
        (&["10.0.0.1"][..], None),
        (&["10.0.0.1", "fd00::1"], Some("fd00::1")),
    ] {
        let all: Vec<_> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
        let status = json!({"status": {"phase": "Running", "podIP": addresses[0], "podIPs": all,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        scene.patch(&path, STRATEGIC, status).await;
        let endpoints = of_ipv6().await;
        assert_eq!(endpoints[0]["addresses"][0].as_str(), six, "{endpoints}");
    }
}
