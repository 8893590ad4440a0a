//! Simulated nodes in a real control plane: the real scheduler places pods, the real controllers count them,
//! and the real `kubectl` execs into them.
//!
//! Each test needs the kubeconfig of a control plane without nodes (`ci/control-plane/up`) in
//! `WINCONFORM_TEST_KUBECONFIG`; without it, it reports that it was not run.

mod balancer;
mod kubelet;
mod names;
mod pods;
mod scene;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use tokio::time::timeout;

use scene::{DEADLINE, Scene, create, is_ready, text, until};

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
    // The image is empty: the program is the host's own
    let image =
        "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0";
    let shell = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";
    let args = json!([
        "-NoLogo",
        "-NonInteractive",
        "-Command",
        "Start-Sleep -Seconds 86400"
    ]);
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
    let not_found = "The system cannot find the file specified.";
    let not_recognized = "is not recognized as an internal or external command";
    for (pod, command, code, printed) in [
        ("windows", &["cmd", "/c", "exit 7"][..], Some(7), ""),
        ("host", &["cmd", "/c", "exit 3"], Some(3), ""),
        ("linux", &["sh", "-c", "echo out; exit 9"], Some(9), "out\n"),
        ("windows", &["nonesuch.exe"], None, not_found),
        ("host", &["nonesuch"], None, not_recognized),
    ] {
        let ran = scene
            .kubectl(&[&["exec", pod, "--"], command].concat(), "")
            .await;
        match code {
            Some(_) => {
                assert_eq!(
                    (text(&ran.stdout).as_str(), ran.status.code()),
                    (printed, code),
                    "{ran:?}"
                );
            }
            None => assert!(text(&ran.stderr).contains(printed), "{ran:?}"),
        }
    }
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
    scene.start("linux", "linux-a", &agnhost).await;
    let plain = json!({"image": AGNHOST});
    scene.start("windows", "windows-2022-a", &plain).await;
    scene.pod("host", host_process(&scene)).await;

    let is_served = |object: Option<&Deployment>| {
        object.and_then(|object| object.status.as_ref()?.ready_replicas) == Some(2)
    };
    until(scene.api::<Deployment>(), "win-webserver", is_served).await;
    for name in ["linux", "windows", "host"] {
        scene.pod_until(name, is_ready).await;
    }

    exit_codes_and_refusals_come_back(&scene).await;

    // The listener opens some time after its pod is Ready, so the test repeats the request
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
    let out = text(&ran.stdout);
    let page = "<H1>Windows Container Web Server</H1>";
    assert!(
        out.contains(page) && out.contains("\n@@t0k 0 200 "),
        "{ran:?}"
    );
    let ran = in_pod("linux", "curl").await;
    assert!(
        text(&ran.stdout).contains("Windows Container Web Server"),
        "{ran:?}"
    );
    let ran = in_pod("host", curl).await;
    assert_eq!(ran.status.code(), Some(28), "{ran:?}");
    let words = "curl: (28) Connection timed out after 4001 milliseconds";
    assert!(text(&ran.stderr).contains(words), "{ran:?}");

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
