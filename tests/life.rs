//! The life of a run of the real binary: success, signals, a kill at several moments, another run
//! meanwhile. Whatever happens, kubectl sees afterwards what it saw before.
//!
//! Needs a control plane; without it every trial is listed as ignored and named as not run.

#![expect(clippy::print_stdout, reason = "what is not run is named")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use hybrid_sim::ProductFault;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use winconform_core::record::read;

use world::{Outcome, Trials, World};

mod world;

/// The last verdict: a signal that comes then cuts nothing short, a kill hits the tear-down.
const LAST: &str = "sample.win-webserver";
/// What is not checked: what waits for what probes might do, which takes longer than all the rest,
/// and what is told together with the last verdict.
const WITHOUT: [&str; 3] = [
    "!sample.dotnet-probes",
    "!sample.pods-listed",
    "!sample.win-webserver-service",
];
/// Moments of a run, by a part of the progress line that tells of them.
const MOMENTS: [&str; 4] = [
    "planned",
    "stands             namespaces",
    "linux-pod-prober",
    LAST,
];

fn main() {
    let mut trials = Trials::new("life-");
    trials.add("success_leaves_nothing".to_owned(), success);
    for signal in ["INT", "TERM"] {
        for moment in &MOMENTS {
            let name = format!("sig{}_at::{moment}", signal.to_lowercase());
            trials.add(name, async move |world: &World| {
                signalled(world, signal, moment).await
            });
        }
    }
    for moment in &MOMENTS {
        let name = format!("kill_at::{moment}");
        trials.add(name, async move |world: &World| killed(world, moment).await);
    }
    trials.add("images_are_pulled_beforehand".to_owned(), prepulled);
    trials.add(
        "pulling_ends_with_its_lease".to_owned(),
        prepulled_without_lease,
    );
    trials.add("a_second_signal_abandons".to_owned(), abandoned);
    trials.add("a_second_run_and_a_cleanup_are_refused".to_owned(), refused);
    trials.run()
}

/// A run of the binary that tells how far it is.
struct Run {
    child: Child,
    progress: Lines<BufReader<ChildStderr>>,
    told: Vec<String>,
}

impl Run {
    fn start(world: &World, out: &Path) -> Self {
        let mut arguments = vec!["run", "--out"];
        let out = out.to_string_lossy();
        arguments.push(&out);
        arguments.extend(WITHOUT.iter().flat_map(|check| ["--select", check]));
        let mut child = binary(world, &arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let progress = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self {
            child,
            progress,
            told: Vec::new(),
        }
    }

    /// Reads progress until a line holds `part`.
    async fn until(&mut self, part: &str) -> Outcome {
        while let Some(line) = self.progress.next_line().await.map_err(|e| e.to_string())? {
            let found = line.contains(part);
            self.told.push(line);
            if found {
                return Ok(());
            }
        }
        Err(format!("no `{part}` in:\n{}", self.told.join("\n")))
    }

    async fn signal(&self, signal: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status()
            .await;
        assert!(sent.expect("kill runs").success());
    }

    /// Reads the rest and gives the exit code; `None` when a signal killed it.
    async fn end(mut self) -> (Option<i32>, String) {
        while let Ok(Some(line)) = self.progress.next_line().await {
            self.told.push(line);
        }
        let status = self.child.wait().await.expect("it ends");
        (status.code(), self.told.join("\n"))
    }
}

fn binary(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_winconform"));
    command
        .args(arguments)
        .env("KUBECONFIG", &world.kubeconfig)
        .stdin(Stdio::null());
    command
}

async fn output(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().await.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Everything there is, by the names kubectl gives it, but for what changes by itself.
async fn everything(world: &World) -> BTreeSet<String> {
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(&world.kubeconfig)
            .args(arguments);
        command
    };
    let (code, kinds) = output(kubectl(&["api-resources", "--verbs=list", "-o", "name"])).await;
    assert_eq!(code, Some(0), "{kinds}");
    // Events and node Leases come and go; IPAddresses are the server's own bookkeeping, which it
    // mends some time after a Service has gone (kubernetes `ipallocator` repair)
    let changing = ["events", "leases.coordination", "ipaddresses"];
    let stays = |kind: &&str| !changing.iter().any(|other| kind.starts_with(other));
    let kinds: Vec<_> = kinds.lines().filter(stays).collect();
    let template = "jsonpath={range .items[*]}{.kind}{\" \"}{.metadata.namespace}{\"/\"}{.metadata.name}{\"\\n\"}{end}";
    let (code, all) = output(kubectl(&["get", &kinds.join(","), "-A", "-o", template])).await;
    assert_eq!(code, Some(0), "{all}");
    let (code, leases) = output(kubectl(&["get", "leases", "-n", "default", "-o", template])).await;
    assert_eq!(code, Some(0), "{leases}");
    all.lines()
        .chain(leases.lines())
        .map(str::to_owned)
        .collect()
}

fn unchanged(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Outcome {
    let left: Vec<_> = after.difference(before).collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("left behind: {left:#?}"))
    }
}

fn equal(seen: Option<i32>, expected: Option<i32>, told: &str) -> Outcome {
    if seen == expected {
        Ok(())
    } else {
        Err(format!("{seen:?}, not {expected:?}:\n{told}"))
    }
}

fn written(out: &Path) -> Outcome {
    for file in ["record.jsonl", "junit.xml", "report.json"] {
        if !out.join(file).is_file() {
            return Err(format!("{file} was not written"));
        }
    }
    Ok(())
}

async fn success(world: &World) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let (code, told) = Run::start(world, out.path()).end().await;
    equal(code, Some(0), &told)?;
    written(out.path())?;
    unchanged(&before, &everything(world).await)
}

async fn signalled(world: &World, signal: &str, moment: &str) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let mut run = Run::start(world, out.path());
    run.until(moment).await?;
    run.signal(signal).await;
    let (code, told) = run.end().await;
    let expected = if moment == LAST { 0 } else { 130 };
    equal(code, Some(expected), &told)?;
    written(out.path())?;
    unchanged(&before, &everything(world).await)
}

async fn killed(world: &World, moment: &str) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let mut run = Run::start(world, out.path());
    run.until(moment).await?;
    run.signal("KILL").await;
    let (code, told) = run.end().await;
    equal(code, None, &told)?;
    // What is there now was announced before it was made
    let record = std::fs::read_to_string(out.path().join("record.jsonl")).expect("a record");
    let view = read(&record).map_err(|error| error.to_string())?;
    let after = everything(world).await;
    for made in after.difference(&before) {
        let own = [
            "Namespace ",
            "Lease default/",
            "Deployment ",
            "Service ",
            "PriorityClass ",
            "RuntimeClass ",
        ];
        let known = view.intents.iter().any(|intent| {
            let namespace = intent.namespace.as_deref().unwrap_or_default();
            *made == format!("{} {namespace}/{}", intent.kind, intent.name)
        });
        if own.iter().any(|kind| made.starts_with(kind)) && !known {
            return Err(format!("{made} was made without being announced"));
        }
    }
    let record = out.path().join("record.jsonl");
    let (code, told) = output(binary(world, &["report", &record.to_string_lossy()])).await;
    equal(code, Some(0), &told)?;
    let (code, told) = output(binary(world, &["cleanup"])).await;
    equal(code, Some(0), &told)?;
    unchanged(&before, &everything(world).await)
}

async fn abandoned(world: &World) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let mut run = Run::start(world, out.path());
    run.until("linux-pod-prober").await?;
    run.signal("INT").await;
    run.until("interrupted").await?;
    run.signal("INT").await;
    let (code, told) = run.end().await;
    equal(code, Some(130), &told)?;
    let id = told
        .split_once("winconform cleanup --run ")
        .and_then(|(_, rest)| rest.lines().next())
        .ok_or_else(|| format!("no clean-up command in:\n{told}"))?;
    written(out.path())?;
    let (code, told) = output(binary(world, &["cleanup", "--run", id])).await;
    equal(code, Some(0), &told)?;
    unchanged(&before, &everything(world).await)
}

async fn prepulled(world: &World) -> Outcome {
    let before = everything(world).await;
    let prepull = || output(binary(world, &["prepull", "--select", "sample.*"]));
    let (code, told) = prepull().await;
    equal(code, Some(0), &told)?;
    // Server Core, IIS and Nano Server on the one Windows node
    let there = told.lines().filter(|line| line.contains("there after"));
    equal(i32::try_from(there.count()).ok(), Some(3), &told)?;
    unchanged(&before, &everything(world).await)?;

    let missing = "image-missing=windows-2022";
    let missing: ProductFault = missing.parse().expect("a fault");
    world.joined.faults().set(missing.clone());
    let (code, told) = prepull().await;
    world.joined.faults().lift(&missing);
    equal(code, Some(11), &told)?;
    for (image, outcome) in [
        ("servercore:", "not pulled: "),
        ("nanoserver:", "there after"),
    ] {
        let is_told = |line: &str| line.contains(image) && line.contains(outcome);
        if !told.lines().any(is_told) {
            return Err(format!("no `{outcome}` of {image} in:\n{told}"));
        }
    }
    unchanged(&before, &everything(world).await)
}

async fn prepulled_without_lease(world: &World) -> Outcome {
    let before = everything(world).await;
    let slow: ProductFault = "pull-slow=windows-2022".parse().expect("a fault");
    world.joined.faults().set(slow.clone());
    // Of another name, so that no node has them yet
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.yaml");
    let mirror = "images: {mirror: registry.example.com/mirror}\n";
    std::fs::write(&config, mirror).expect("written");
    let config = config.to_string_lossy();
    let mut prepull = binary(
        world,
        &["prepull", "--select", "net.*", "--config", &config],
    );
    let mut child = prepull
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut told = String::new();
    let mut taken = false;
    while let Ok(Some(line)) = lines.next_line().await {
        told.push_str(&line);
        told.push('\n');
        // On Linux, while Windows pulls still
        if !taken && line.contains("there after") {
            let mut delete = Command::new("kubectl");
            delete.arg("--kubeconfig").arg(&world.kubeconfig).args([
                "delete",
                "lease",
                "winconform",
                "-n",
                "default",
            ]);
            let (code, said) = output(delete).await;
            equal(code, Some(0), &said)?;
            taken = true;
        }
    }
    let code = child.wait().await.expect("it ends").code();
    world.joined.faults().lift(&slow);
    equal(code, Some(11), &told)?;
    if !told.contains("ended early by the loss of its Lease") {
        return Err(format!("the loss is not told in:\n{told}"));
    }
    unchanged(&before, &everything(world).await)
}

async fn refused(world: &World) -> Outcome {
    let before = everything(world).await;
    let (out, other) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let mut run = Run::start(world, out.path());
    run.until("namespaces").await?;
    let second = Run::start(world, other.path()).end();
    let cleanup = output(binary(world, &["cleanup"]));
    let ((code, told), (cleanup_code, cleanup_told)) = tokio::join!(second, cleanup);
    let pid = run
        .child
        .id()
        .map(|pid| format!("/{pid}/"))
        .unwrap_or_default();
    let (first_code, first_told) = run.end().await;
    equal(code, Some(20), &told)?;
    if !told.contains(&pid) {
        return Err(format!("the holder {pid} is not named in:\n{told}"));
    }
    equal(cleanup_code, Some(20), &cleanup_told)?;
    equal(first_code, Some(0), &first_told)?;
    unchanged(&before, &everything(world).await)
}
