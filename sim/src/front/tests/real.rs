//! kubectl through the front to a real API server; needs `WINCONFORM_TEST_KUBECONFIG`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};

use super::faults;
use crate::front::{Front, FrontOptions};

const VARIABLE: &str = "WINCONFORM_TEST_KUBECONFIG";

/// A folder with a kubeconfig and kubectl's cache, which goes when dropped.
struct Folder(PathBuf);

impl Folder {
    fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that ends when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A front before the real API server and a kubeconfig that leads to it, if there is one.
async fn real(name: &str) -> Option<(Front, Folder)> {
    let Ok(path) = std::env::var(VARIABLE) else {
        // Past the test harness, which keeps what passing tests print
        let _ = writeln!(std::io::stdout(), "not run: {name}: {VARIABLE} is not set");
        return None;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(path).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a whole kubeconfig");
    let front = Front::start(config, FrontOptions::default())
        .await
        .expect("a front");
    let folder = Folder(std::env::temp_dir().join(format!("front-{name}-{}", std::process::id())));
    std::fs::create_dir(&folder.0).expect("a temporary folder");
    std::fs::write(folder.kubeconfig(), front.kubeconfig()).expect("a temporary file");
    Some((front, folder))
}

fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("kubectl");
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
    command.env("KUBECACHEDIR", kubeconfig.with_file_name("cache"));
    command
}

/// Runs kubectl; its output and whether it succeeded.
async fn run(kubeconfig: &Path, arguments: &[&str]) -> (String, bool) {
    let mut command = kubectl(kubeconfig, arguments);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("it does not panic")
        .expect("kubectl is installed");
    let text = [output.stdout, output.stderr].concat();
    (
        String::from_utf8_lossy(&text).into_owned(),
        output.status.success(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_gets_and_watches() {
    let Some((front, folder)) = real("kubectl_gets_and_watches").await else {
        return;
    };
    let kubeconfig = folder.kubeconfig();
    let name = format!("front-{}", std::process::id());
    let (text, well) = run(&kubeconfig, &["get", "namespaces"]).await;
    assert!(well && text.contains("kube-system"), "{text}");

    let watch = [
        "get",
        "configmaps",
        "-n",
        "default",
        "-w",
        "--watch-only",
        "-o",
        "name",
    ];
    let mut command = kubectl(&kubeconfig, &watch);
    let child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl is installed");
    let mut watching = Running(child);
    while front.counts().of("watch configmaps") == 0 {
        tokio::task::yield_now().await;
    }
    let (text, well) = run(
        &kubeconfig,
        &["create", "configmap", &name, "-n", "default"],
    )
    .await;
    assert!(well, "{text}");
    let output = watching.0.stdout.take().expect("it is piped");
    let wanted = format!("configmap/{name}");
    let seen = tokio::task::spawn_blocking(move || {
        BufReader::new(output)
            .lines()
            .map_while(Result::ok)
            .any(|line| line == wanted)
    });
    assert!(
        seen.await.expect("it does not panic"),
        "the watch showed `{name}`"
    );
    drop(watching);
    let (text, well) = run(
        &kubeconfig,
        &["delete", "configmap", &name, "-n", "default"],
    )
    .await;
    assert!(well, "{text}");
    front.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_meets_faults() {
    let Some((front, folder)) = real("kubectl_meets_faults").await else {
        return;
    };
    let kubeconfig = folder.kubeconfig();
    let name = format!("front-{}", std::process::id());
    let pod = format!(
        r#"{{"spec":{{"os":{{"name":"windows"}},"hostPID":true,"automountServiceAccountToken":false,
        "containers":[{{"name":"c","image":"i"}}]}},"metadata":{{"name":"{name}"}},
        "apiVersion":"v1","kind":"Pod"}}"#
    );
    let manifest = folder.0.join("pod.json");
    std::fs::write(&manifest, pod).expect("a temporary file");
    let manifest = manifest.to_str().expect("a name in UTF-8");
    let create = [
        "create",
        "-n",
        "default",
        "--dry-run=server",
        "-o",
        "json",
        "-f",
        manifest,
    ];

    let (text, well) = run(&kubeconfig, &create).await;
    assert!(!well && text.contains("spec.hostPID"), "{text}");
    front.set(faults(&["admission-allows=spec.hostPID"]));
    let (text, well) = run(&kubeconfig, &create).await;
    assert!(well && text.contains("\"hostPID\": true"), "{text}");
    front.set(faults(&["admission-drops=spec.hostPID"]));
    let (text, well) = run(&kubeconfig, &create).await;
    assert!(well && !text.contains("hostPID"), "{text}");
    assert_eq!(front.counts().of("create pods"), 3);

    front.set(faults(&["html-502"]));
    let (text, well) = run(&kubeconfig, &["get", "nodes"]).await;
    assert!(!well, "{text}");
    front.set(faults(&["reset"]));
    let (text, well) = run(&kubeconfig, &["get", "nodes"]).await;
    assert!(!well, "{text}");
    front.stop().await;
}
