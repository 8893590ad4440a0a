//! Simulated nodes in a real control plane: the real scheduler places, the real controllers count,
//! the real `kubectl` execs.
//!
//! Needs the kubeconfig of a control plane without nodes (`ci/control-plane/up`) in
//! `WINCONFORM_TEST_KUBECONFIG`; without it each test says that it was not run.

mod balancer;
mod families;
mod kubelet;
mod names;
mod pods;
mod scene;

use hybrid_sim::ProductFault;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use serde_json::{Value, json};
use tokio::time::timeout;

use scene::{DEADLINE, Scene, create, is_ready, says, text, until};

const SERVERCORE: &str = "mcr.microsoft.com/windows/servercore:ltsc2022";
const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.66.1";
const LISTENER: &str = "$$listener = New-Object System.Net.HttpListener ; \
     $$listener.Prefixes.Add('http://*:80/') ; $$listener.Start() ;";

async fn win_webserver(scene: &Scene, replicas: usize) -> String {
    let container =
        json!({"image": SERVERCORE, "command": ["powershell.exe", "-command", LISTENER]});
    let labels = json!({"app": "win-webserver"});
    let deployment = json!({"metadata": {"name": "win-webserver"}, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": scene.spec("windows-2022-a", &container)},
    }});
    create(&scene.api::<Deployment>(), deployment).await;
    let service = json!({"metadata": {"name": "win-webserver"}, "spec": {
        "type": "NodePort", "selector": labels, "ports": [{"port": 80, "targetPort": 80}]}});
    let service: Service = create(&scene.api(), service).await;
    service
        .spec
        .and_then(|spec| spec.cluster_ip)
        .expect("a virtual IP")
}

fn host_process(scene: &Scene) -> Value {
    // The image holds nothing: the program is the host's own
    let image =
        "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0";
    let shell = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";
    let args = [
        "-NoLogo",
        "-NonInteractive",
        "-Command",
        "Start-Sleep -Seconds 86400",
    ];
    let container = json!({"image": image, "command": [shell], "args": args});
    let mut spec = scene.spec("windows-2022-a", &container);
    spec["hostNetwork"] = true.into();
    spec["os"] = json!({"name": "windows"});
    spec["securityContext"] =
        json!({"windowsOptions": {"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"}});
    spec
}

fn sweep(address: &str) -> String {
    format!(
        "silent\nshow-error\nnoproxy = \"*\"\nheader = \"Connection: close\"\nconnect-timeout = 4\nmax-time = 8\n\
         url = \"http://{address}:80/\"\nwrite-out = \"\\n@@t0k 0 %{{http_code}} %{{url_effective}}\\n\"\n"
    )
}

async fn exit_codes_and_refusals_come_back(scene: &Scene) {
    let ran = scene
        .kubectl(&["exec", "windows", "--", "cmd", "/c", "exit 7"], "")
        .await;
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    let ran = scene
        .kubectl(&["exec", "host", "--", "cmd", "/c", "exit 3"], "")
        .await;
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let ran = scene
        .kubectl(&["exec", "linux", "--", "sh", "-c", "echo out; exit 9"], "")
        .await;
    assert_eq!(
        (text(&ran.stdout).as_str(), ran.status.code()),
        ("out\n", Some(9))
    );
    let ran = scene
        .kubectl(&["exec", "windows", "--", "nonesuch.exe"], "")
        .await;
    assert!(
        text(&ran.stderr).contains("The system cannot find the file specified."),
        "{ran:?}"
    );
    let ran = scene.kubectl(&["exec", "host", "--", "nonesuch"], "").await;
    assert!(
        text(&ran.stderr).contains("is not recognized as an internal or external command"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_run_and_exec_reaches_them() {
    let Some(scene) = Scene::begin("workloads_run_and_exec_reaches_them", "healthy", &[]).await
    else {
        return;
    };
    let address = win_webserver(&scene, 2).await;
    let agnhost = json!({"image": AGNHOST, "args": ["netexec", "--http-port=80"],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 80}}});
    scene.pod("linux", scene.spec("linux-a", &agnhost)).await;
    scene
        .pod(
            "windows",
            scene.spec("windows-2022-a", &json!({"image": AGNHOST})),
        )
        .await;
    scene.pod("host", host_process(&scene)).await;

    until(
        scene.api::<Deployment>(),
        "win-webserver",
        |found: Option<&Deployment>| {
            found.and_then(|d| d.status.as_ref()?.ready_replicas) == Some(2)
        },
    )
    .await;
    for name in ["linux", "windows", "host"] {
        scene.pod_until(name, is_ready).await;
    }

    exit_codes_and_refusals_come_back(&scene).await;

    // The listener stands some time after its pod is Ready: eventually it answers
    let (config, curl) = (sweep(&address), r"C:\Windows\System32\curl.exe");
    let in_pod = async |pod: &str, curl: &str| {
        scene
            .kubectl(&["exec", "-i", pod, "--", curl, "-q", "-K", "-"], &config)
            .await
    };
    let answers = async {
        loop {
            let ran = in_pod("windows", curl).await;
            if ran.status.success() {
                break ran;
            }
        }
    };
    let ran = timeout(DEADLINE, answers)
        .await
        .expect("the Service answers");
    assert!(
        text(&ran.stdout).contains("<H1>Windows Container Web Server</H1>"),
        "{ran:?}"
    );
    assert!(text(&ran.stdout).contains("\n@@t0k 0 200 "), "{ran:?}");
    let ran = in_pod("linux", "curl").await;
    assert!(
        text(&ran.stdout).contains("Windows Container Web Server"),
        "{ran:?}"
    );
    let ran = in_pod("host", curl).await;
    assert_eq!(ran.status.code(), Some(28), "{ran:?}");
    assert!(
        text(&ran.stderr).contains("curl: (28) Connection timed out after 4001 milliseconds"),
        "{ran:?}"
    );

    let ran = scene.kubectl(&["logs", "deploy/win-webserver"], "").await;
    assert!(
        text(&ran.stdout).contains("Listening at http://*:80/"),
        "{ran:?}"
    );

    let ran = scene
        .kubectl(&["delete", "pod", "windows", "--timeout=30s"], "")
        .await;
    assert!(ran.status.success(), "{ran:?}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_refuse_and_containers_fail_as_they_are_told() {
    let faults = [
        "servercore-crashes=windows-2022",
        "node-label-wrong=windows-2022",
    ];
    let Some(scene) = Scene::begin(
        "nodes_refuse_and_containers_fail_as_they_are_told",
        "broken",
        &faults,
    )
    .await
    else {
        return;
    };
    let name = scene.node("windows-2022-a");
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let labels = nodes
        .get(&name)
        .await
        .expect("the node")
        .metadata
        .labels
        .expect("labels");
    assert_eq!(labels["node.kubernetes.io/windows-build"], "10.0.17763");
    scene
        .joined
        .faults()
        .lift(&faults[1].parse::<ProductFault>().expect("a fault"));
    until(nodes, &name, |node: Option<&Node>| {
        let labels = node.and_then(|node| node.metadata.labels.as_ref());
        labels.is_some_and(|labels| labels["node.kubernetes.io/windows-build"] == "10.0.20348")
    })
    .await;

    let waits = json!({"image": SERVERCORE, "command": ["ping", "-t", "localhost"]});
    scene
        .pod("crashes", scene.spec("windows-2022-a", &waits))
        .await;
    let other = json!({"image": "mcr.microsoft.com/windows/servercore:ltsc2019"});
    scene
        .pod("mismatch", scene.spec("windows-2022-a", &other))
        .await;
    let mut foreign = scene.spec("linux-a", &json!({"image": AGNHOST}));
    foreign["os"] = json!({"name": "windows"});
    scene.pod("foreign", foreign).await;
    let mut late = scene.spec("linux-a", &json!({"image": AGNHOST}));
    late["activeDeadlineSeconds"] = 2.into();
    scene.pod("late", late).await;
    let mut once = scene.spec(
        "linux-a",
        &json!({"image": AGNHOST, "command": ["sh", "-c", "exit 0"]}),
    );
    once["restartPolicy"] = "Never".into();
    scene.pod("once", once).await;

    let crashed = scene
        .pod_until(
            "crashes",
            says(
                "/containerStatuses/0/state/waiting/reason",
                "CrashLoopBackOff",
            ),
        )
        .await;
    let status = serde_json::to_value(crashed.status).expect("JSON");
    // 0xC0000142, STATUS_DLL_INIT_FAILED, in the signed 32 bits that the API has for exit codes
    assert_eq!(
        status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"],
        -1_073_741_502
    );
    let reason = "/containerStatuses/0/state/waiting/reason";
    let waiting = scene
        .pod_until("mismatch", says(reason, "ImagePullBackOff"))
        .await;
    let status = serde_json::to_value(waiting.status).expect("JSON");
    let message = status["containerStatuses"][0]["state"]["waiting"]["message"].to_string();
    assert!(
        message.contains("no match for platform in manifest: not found"),
        "{message}"
    );
    scene
        .pod_until("foreign", says("/reason", "PodOSNotSupported"))
        .await;
    scene
        .pod_until("late", says("/reason", "DeadlineExceeded"))
        .await;
    scene.pod_until("once", says("/phase", "Succeeded")).await;

    scene
        .joined
        .faults()
        .lift(&faults[0].parse::<ProductFault>().expect("a fault"));
    scene.pod_until("crashes", is_ready).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_bound_against_taints_while_taints_are_ignored() {
    let name = "pods_are_bound_against_taints_while_taints_are_ignored";
    let Some(scene) = Scene::begin(name, "taints", &[]).await else {
        return;
    };
    let intolerant = |node: &str| {
        let mut spec = scene.spec(node, &json!({"image": AGNHOST}));
        spec["tolerations"] = json!([]);
        spec
    };
    let passed_over = || says("/conditions/0/reason", "Unschedulable");
    scene.pod("before", intolerant("windows-2022-a")).await;
    let mut elsewhere = intolerant("windows-2022-a");
    elsewhere["nodeSelector"]["example.com/accelerator"] = "any".into();
    scene.pod("elsewhere", elsewhere).await;
    scene.pod_until("before", passed_over()).await;
    scene.pod_until("elsewhere", passed_over()).await;

    let fault: ProductFault = "taint-ignored=windows-2022".parse().expect("a fault");
    scene.joined.faults().set(fault.clone());
    let bound = scene.pod_until("before", is_ready).await;
    let node = bound.spec.and_then(|spec| spec.node_name);
    assert_eq!(node, Some(scene.node("windows-2022-a")));
    scene.pod("during", intolerant("windows-2022-a")).await;
    scene.pod_until("during", is_ready).await;
    let elsewhere = scene.pod_until("elsewhere", passed_over()).await;
    assert_eq!(elsewhere.spec.and_then(|spec| spec.node_name), None);

    // What is bound stays; what comes now does not get there, and one that tolerates does
    scene.joined.faults().lift(&fault);
    scene.pod("after", intolerant("windows-2022-a")).await;
    scene.pod_until("after", passed_over()).await;
    let tolerant = scene.spec("windows-2022-a", &json!({"image": AGNHOST}));
    scene.pod("tolerant", tolerant).await;
    scene.pod_until("tolerant", is_ready).await;
    let after = scene.pod_until("after", passed_over()).await;
    assert_eq!(after.spec.and_then(|spec| spec.node_name), None);
    scene.pod_until("before", is_ready).await;
    scene.end().await;
}
