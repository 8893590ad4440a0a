//! How objects come, change and go.

use http::Method;
use serde_json::{Value, json};

use super::{APPLY, MERGE, STRATEGIC, Scene, path_of, pod};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn what_is_created_is_there_until_it_is_deleted() {
    let scene = Scene::new();
    let made = scene
        .create(
            MAPS,
            json!({"metadata": {"generateName": "a-"}, "data": {"x": "1"}}),
        )
        .await;
    let name = made["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("a-") && name.len() == 7, "{name}");
    let path = format!("{MAPS}/{name}");
    assert_eq!(scene.get(&path).await, (200, made.clone()));
    let (code, refused) = scene
        .send(
            Method::POST,
            MAPS,
            "application/json",
            json!({"metadata": {"name": name}}).to_string(),
        )
        .await;
    assert_eq!(
        (code, refused["reason"].as_str()),
        (409, Some("AlreadyExists"))
    );
    let other = json!({"preconditions": {"uid": "other"}});
    assert_eq!(scene.delete(&path, other).await.0, 409);
    let foreground = json!({"propagationPolicy": "Foreground"});
    assert_eq!(scene.delete(&path, foreground).await.0, 501);
    let (code, status) = scene.delete(&path, json!({})).await;
    assert_eq!(
        (
            code,
            status["status"].as_str(),
            status["details"]["uid"].clone()
        ),
        (200, Some("Success"), made["metadata"]["uid"].clone())
    );
    assert_eq!(scene.get(&path).await.0, 404);
    let (code, refused) = scene
        .send(
            Method::POST,
            "/api/v1/namespaces/none/configmaps",
            "application/json",
            json!({"metadata": {"name": "x"}}).to_string(),
        )
        .await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (404, Some("namespaces \"none\" not found"))
    );
}

#[tokio::test]
async fn a_secret_given_as_text_is_kept_as_bytes() {
    let scene = Scene::new();
    let secrets = "/api/v1/namespaces/default/secrets";
    let given =
        json!({"metadata": {"name": "a"}, "data": {"x": "eA=="}, "stringData": {"a": "hello"}});
    let made = scene.create(secrets, given).await;
    assert_eq!(made["data"], json!({"x": "eA==", "a": "aGVsbG8="}));
    assert_eq!(made.get("stringData"), None);
    let change = json!({"stringData": {"a": "bye"}}).to_string();
    let secret = format!("{secrets}/a");
    let (code, changed) = scene.send(Method::PATCH, &secret, MERGE, change).await;
    assert_eq!((code, &changed["data"]["a"]), (200, &json!("Ynll")));
}

#[tokio::test]
async fn a_dry_run_leaves_nothing() {
    let scene = Scene::new();
    let path = format!("{MAPS}?dryRun=All");
    let made = scene
        .create(&path, json!({"metadata": {"name": "dry"}}))
        .await;
    assert!(made["metadata"]["uid"].is_string());
    assert_eq!(scene.get(&format!("{MAPS}/dry")).await.0, 404);
    scene
        .create(
            MAPS,
            json!({"metadata": {"name": "wet"}, "data": {"a": "1"}}),
        )
        .await;
    let patched = scene
        .patch(
            &format!("{MAPS}/wet?dryRun=All"),
            MERGE,
            json!({"data": {"a": "2"}}),
        )
        .await;
    assert_eq!(patched["data"]["a"], "2");
    assert_eq!(
        scene
            .delete(&format!("{MAPS}/wet?dryRun=All"), json!({}))
            .await
            .0,
        200
    );
    assert_eq!(scene.get(&format!("{MAPS}/wet")).await.1["data"]["a"], "1");
}

#[tokio::test]
async fn who_knows_an_older_version_is_told_so() {
    let scene = Scene::new();
    let made = scene.create(MAPS, json!({"metadata": {"name": "m"}})).await;
    let path = format!("{MAPS}/m");
    let mut first = made.clone();
    first["data"] = json!({"a": "1"});
    let (code, changed) = scene
        .send(Method::PUT, &path, "application/json", first.to_string())
        .await;
    assert_eq!((code, changed["data"]["a"].as_str()), (200, Some("1")));
    let (code, refused) = scene
        .send(Method::PUT, &path, "application/json", first.to_string())
        .await;
    assert_eq!((code, refused["reason"].as_str()), (409, Some("Conflict")));
    // What changes nothing makes no version
    let same = scene.patch(&path, MERGE, json!({"data": {"a": "1"}})).await;
    assert_eq!(
        same["metadata"]["resourceVersion"],
        changed["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn what_is_applied_is_merged_and_what_is_applied_no_more_goes() {
    let scene = Scene::new();
    let path = format!("{MAPS}/applied?fieldManager=me&force=true");
    let first = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "2"}});
    let (code, made) = scene
        .send(Method::PATCH, &path, APPLY, first.to_string())
        .await;
    assert_eq!(code, 201);
    assert_eq!(made["data"], first["data"]);
    scene
        .patch(
            &format!("{MAPS}/applied"),
            MERGE,
            json!({"data": {"c": "3"}}),
        )
        .await;
    let second = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "9"}});
    let (code, changed) = scene
        .send(Method::PATCH, &path, APPLY, second.to_string())
        .await;
    assert_eq!(
        (code, &changed["data"]),
        (200, &json!({"a": "9", "c": "3"}))
    );
}

#[tokio::test]
async fn a_pod_that_runs_goes_after_its_grace_and_others_at_once() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    scene
        .create(PODS, pod("waits", json!({"nodeSelector": {"no": "where"}})))
        .await;
    assert_eq!(
        scene.delete(&format!("{PODS}/waits"), json!({})).await.0,
        200
    );
    assert_eq!(scene.get(&format!("{PODS}/waits")).await.0, 404);
    let made = scene
        .create(
            PODS,
            pod("runs", json!({"terminationGracePeriodSeconds": 7})),
        )
        .await;
    let path = path_of(&made);
    let (_, going) = scene.delete(&path, json!({})).await;
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 7);
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    // The kubelet says when it is over, of the pod that it means
    let other = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": "other"}});
    assert_eq!(scene.delete(&path, other).await.0, 409);
    let own = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": made["metadata"]["uid"]}});
    assert_eq!(scene.delete(&path, own).await.0, 200);
    assert_eq!(scene.get(&path).await.0, 404);
}

#[tokio::test]
async fn a_status_is_written_apart_and_only_for_the_same_pod() {
    let scene = Scene::new();
    let made = scene.create(PODS, pod("p", json!({}))).await;
    let path = format!("{}/status", path_of(&made));
    let told = json!({"metadata": {"uid": "other"}, "status": {"phase": "Running"}});
    let (code, refused) = scene
        .send(Method::PATCH, &path, STRATEGIC, told.to_string())
        .await;
    assert_eq!((code, refused["reason"].as_str()), (409, Some("Conflict")));
    let told = json!({"status": {"phase": "Running"}, "spec": {"hostname": "other"}});
    let changed = scene.patch(&path, STRATEGIC, told).await;
    assert_eq!(
        (
            changed["status"]["phase"].as_str(),
            changed["spec"].get("hostname")
        ),
        (Some("Running"), None)
    );
    assert_eq!(changed["metadata"]["generation"], 1);
}

#[tokio::test]
async fn finalizers_hold_and_owners_take_with_them() {
    let scene = Scene::new();
    let owner = scene
        .create(
            MAPS,
            json!({"metadata": {"name": "owner", "finalizers": ["a/b"]}}),
        )
        .await;
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    scene
        .create(
            MAPS,
            json!({"metadata": {"name": "owned", "ownerReferences": reference}}),
        )
        .await;
    let (_, going) = scene.delete(&format!("{MAPS}/owner"), json!({})).await;
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(scene.get(&format!("{MAPS}/owned")).await.0, 200);
    scene
        .patch(
            &format!("{MAPS}/owner"),
            MERGE,
            json!({"metadata": {"finalizers": []}}),
        )
        .await;
    assert_eq!(scene.get(&format!("{MAPS}/owner")).await.0, 404);
    assert_eq!(scene.get(&format!("{MAPS}/owned")).await.0, 404);
    // Of an owner that there is not
    scene
        .create(
            MAPS,
            json!({"metadata": {"name": "late", "ownerReferences": reference}}),
        )
        .await;
    assert_eq!(scene.get(&format!("{MAPS}/late")).await.0, 404);
}

#[tokio::test]
async fn a_namespace_has_what_pods_need_and_goes_with_all_in_it() {
    let scene = Scene::new();
    scene.node("n", json!({})).await;
    let made = scene
        .create("/api/v1/namespaces", json!({"metadata": {"name": "mine"}}))
        .await;
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "mine"
    );
    let within = |what: &str| format!("/api/v1/namespaces/mine/{what}");
    assert_eq!(scene.get(&within("serviceaccounts/default")).await.0, 200);
    let (_, trust) = scene.get(&within("configmaps/kube-root-ca.crt")).await;
    assert!(
        trust["data"]["ca.crt"]
            .as_str()
            .is_some_and(|pem| pem.contains("BEGIN CERTIFICATE"))
    );
    let made = scene.create(&within("pods"), pod("p", json!({}))).await;
    let (_, going) = scene.delete("/api/v1/namespaces/mine", json!({})).await;
    assert_eq!(going["status"]["phase"], "Terminating");
    let (code, refused) = scene
        .send(
            Method::POST,
            &within("pods"),
            "application/json",
            pod("q", json!({})).to_string(),
        )
        .await;
    assert_eq!((code, refused["reason"].as_str()), (403, Some("Forbidden")));
    assert_eq!(
        scene.get("/api/v1/namespaces/mine").await.0,
        200,
        "a pod is still there"
    );
    scene
        .delete(&path_of(&made), json!({"gracePeriodSeconds": 0}))
        .await;
    assert_eq!(scene.get("/api/v1/namespaces/mine").await.0, 404);
}

#[tokio::test]
async fn services_get_addresses_and_ports_and_keep_them() {
    let scene = Scene::new();
    let path = "/api/v1/namespaces/default/services";
    let service = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
    let one = scene.create(path, service("one", spec.clone())).await;
    let two = scene.create(path, service("two", spec)).await;
    for of in ["clusterIP", "clusterIPs"] {
        assert_ne!(one["spec"][of], two["spec"][of]);
    }
    let port = one["spec"]["ports"][0]["nodePort"].clone();
    assert_ne!(port, two["spec"]["ports"][0]["nodePort"]);
    let changed = scene
        .patch(
            &format!("{path}/one"),
            MERGE,
            json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}),
        )
        .await;
    assert_eq!(changed["spec"]["ports"][0]["nodePort"], port);
    assert_eq!(changed["spec"]["clusterIP"], one["spec"]["clusterIP"]);
    let headless = scene
        .create(
            path,
            service(
                "none",
                json!({"clusterIP": "None", "ports": [{"port": 80}]}),
            ),
        )
        .await;
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    let dns = json!({"metadata": {"name": "kube-dns"}, "spec": {"ports": [{"port": 53}]}});
    let dns = scene
        .create("/api/v1/namespaces/kube-system/services", dns)
        .await;
    assert_eq!(dns["spec"]["clusterIP"], "10.96.0.10");
}

#[tokio::test]
async fn tables_and_metadata_are_told_to_those_who_ask() {
    let scene = Scene::new();
    for (accept, kind) in [
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            "Table",
        ),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            "PartialObjectMetadataList",
        ),
        ("application/json", "NamespaceList"),
    ] {
        let request = http::Request::get("/api/v1/namespaces").header("accept", accept);
        let request = request.body(Vec::new()).expect("a request");
        let text = scene.client.request_text(request).await.expect("an answer");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["kind"], kind);
    }
}
