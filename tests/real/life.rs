//! The life of a run of the real binary: success, signals, a kill at several moments. Whatever happens,
//! kubectl sees afterwards what it saw before.

mod scenarios;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use hybrid_sim::ProductFault;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use winconform_core::record::{exit, read};

use super::world::{Outcome, Trials, World};

/// The check with the last verdict: a signal after it cuts nothing short, a kill after it hits the tear-down.
const LAST: &str = "sample.win-webserver[";
/// Checks to leave out: one that waits for probes, which takes longer than all the rest, and those whose
/// verdicts come together with the last one.
const WITHOUT: [&str; 3] = [
    "!sample.dotnet-probes",
    "!sample.pods-listed",
    "!sample.win-webserver-service",
];
/// Moments of a run, each by a part of its progress line.
const MOMENTS: [&str; 4] = [
    "planned",
    "ready              namespaces",
    "linux-pod-prober",
    LAST,
];

pub(crate) fn add(trials: &mut Trials) {
    trials.add("life::success_leaves_nothing".to_owned(), success);
    for signal in ["INT", "TERM"] {
        for moment in &MOMENTS {
            let name = format!("life::sig{}_at::{moment}", signal.to_lowercase());
            trials.add(name, async move |world: &World| {
                signalled(world, signal, moment).await
            });
        }
    }
    for moment in &MOMENTS {
        let name = format!("life::kill_at::{moment}");
        trials.add(name, async move |world: &World| killed(world, moment).await);
    }
    trials.add("life::images_are_pulled_beforehand".to_owned(), prepulled);
    trials.add("life::a_killed_run_is_gone_on_with".to_owned(), resumed);
    trials.add("life::what_is_to_stay_stays".to_owned(), kept);
    trials.add(
        "life::pulling_ends_with_its_lease".to_owned(),
        prepulled_without_lease,
    );
    trials.add(
        "life::pull_secrets_go_with_the_run".to_owned(),
        pulled_with_secrets,
    );
    trials.add(
        "life::a_protected_cluster_is_left_alone".to_owned(),
        protected_cluster,
    );
    trials.add(
        "life::a_load_balancer_goes_with_its_service".to_owned(),
        load_balancer,
    );
    trials.add("life::a_second_signal_abandons".to_owned(), abandoned);
    scenarios::add(trials);
}

/// A run of the binary, with its progress lines.
struct Run {
    child: Child,
    progress: Lines<BufReader<ChildStderr>>,
    told: Vec<String>,
}

impl Run {
    fn start(world: &World, out: &Path) -> Self {
        Self::of(world, out, &WITHOUT)
    }

    /// Starts a run of the checks that are selected.
    fn of(world: &World, out: &Path, selected: &[&str]) -> Self {
        let mut arguments = vec!["run", "--details", "--out"];
        let out = out.to_string_lossy();
        arguments.push(&out);
        arguments.extend(selected.iter().flat_map(|check| ["--select", check]));
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
            let is_it = line.contains(part);
            self.told.push(line);
            if is_it {
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

    /// Reads the rest and returns the exit code; `None` if a signal killed it.
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

/// All objects, by the names kubectl gives them, without those that change by themselves.
async fn everything(world: &World) -> BTreeSet<String> {
    let kinds = ["api-resources", "--verbs=list", "-o", "name"];
    let kinds = kubectl_does(world, &kinds).await.expect("listed");
    // Events and node Leases come and go; the server manages IPAddresses itself, and repairs them some time
    // after a Service is deleted (kubernetes `ipallocator` repair)
    let changing = ["events", "leases.coordination", "ipaddresses"];
    let stays = |kind: &&str| !changing.iter().any(|other| kind.starts_with(other));
    let kinds: Vec<_> = kinds.lines().filter(stays).collect();
    let template = "jsonpath={range .items[*]}{.kind}{\" \"}{.metadata.namespace}{\"/\"}{.metadata.name}{\"\\n\"}{end}";
    let list = ["get", &kinds.join(","), "-A", "-o", template];
    let list = kubectl_does(world, &list).await.expect("listed");
    let leases = ["get", "leases", "-n", "default", "-o", template];
    let leases = kubectl_does(world, &leases).await.expect("listed");
    list.lines()
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

fn equal(seen: Option<i32>, expected: Option<i32>, text: &str) -> Outcome {
    if seen == expected {
        Ok(())
    } else {
        Err(format!("{seen:?}, not {expected:?}:\n{text}"))
    }
}

/// The output of a command that must end with this exit code.
async fn ends(command: Command, code: u8) -> Result<String, String> {
    let (seen, text) = output(command).await;
    equal(seen, Some(code.into()), &text)?;
    Ok(text)
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
    let (code, progress) = Run::start(world, out.path()).end().await;
    equal(code, Some(0), &progress)?;
    written(out.path())?;
    unchanged(&before, &everything(world).await)
}

async fn signalled(world: &World, signal: &str, moment: &str) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let mut run = Run::start(world, out.path());
    run.until(moment).await?;
    run.signal(signal).await;
    let (code, progress) = run.end().await;
    // On a busy machine there may be something to observe even then
    let complete = moment == LAST && code == Some(0);
    if !complete {
        equal(code, Some(130), &progress)?;
    }
    written(out.path())?;
    unchanged(&before, &everything(world).await)
}

async fn killed(world: &World, moment: &str) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let mut run = Run::start(world, out.path());
    run.until(moment).await?;
    run.signal("KILL").await;
    let (code, progress) = run.end().await;
    equal(code, None, &progress)?;
    // The run announced every object before it created it
    let record = std::fs::read_to_string(out.path().join("record.jsonl")).expect("a record");
    let view = read(record.as_bytes()).map_err(|error| error.to_string())?;
    let after = everything(world).await;
    for object in after.difference(&before) {
        let kinds = [
            "Namespace ",
            "Lease default/",
            "Deployment ",
            "Service ",
            "PriorityClass ",
            "RuntimeClass ",
        ];
        let known = view.intents.iter().any(|intent| {
            let namespace = intent.namespace.as_deref().unwrap_or_default();
            *object == format!("{} {namespace}/{}", intent.kind, intent.name)
        });
        if kinds.iter().any(|kind| object.starts_with(kind)) && !known {
            return Err(format!("{object} was made without being announced"));
        }
    }
    let record = out.path().join("record.jsonl");
    let report = binary(world, &["report", &record.to_string_lossy()]);
    ends(report, exit(&view).code()).await?;
    ends(binary(world, &["cleanup"]), 0).await?;
    unchanged(&before, &everything(world).await)
}

/// The run that left something, by the last clean-up command in an output.
fn left_of(text: &str) -> Result<&str, String> {
    text.rsplit_once("winconform cleanup --run ")
        .and_then(|(_, rest)| rest.lines().next())
        .ok_or_else(|| format!("no clean-up command in:\n{text}"))
}

async fn abandoned(world: &World) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let mut run = Run::start(world, out.path());
    run.until("linux-pod-prober").await?;
    run.signal("INT").await;
    run.until("interrupted").await?;
    run.signal("INT").await;
    let (code, progress) = run.end().await;
    equal(code, Some(130), &progress)?;
    written(out.path())?;
    ends(binary(world, &["cleanup", "--run", left_of(&progress)?]), 0).await?;
    unchanged(&before, &everything(world).await)
}

async fn prepulled(world: &World) -> Outcome {
    let before = everything(world).await;
    let prepull = || binary(world, &["prepull", "--select", "sample.*"]);
    let text = ends(prepull(), 0).await?;
    // Server Core, IIS and Nano Server on the one Windows node
    let there = text.lines().filter(|line| line.contains("there after"));
    equal(i32::try_from(there.count()).ok(), Some(3), &text)?;
    unchanged(&before, &everything(world).await)?;

    let missing = "image-missing=windows-2022";
    let missing: ProductFault = missing.parse().expect("a fault");
    world.joined.faults().set(missing.clone());
    let (code, text) = output(prepull()).await;
    world.joined.faults().lift(&missing);
    equal(code, Some(11), &text)?;
    for (image, outcome) in [
        ("servercore:", "not pulled: "),
        ("nanoserver:", "there after"),
    ] {
        let is_told = |line: &str| line.contains(image) && line.contains(outcome);
        if !text.lines().any(is_told) {
            return Err(format!("no `{outcome}` of {image} in:\n{text}"));
        }
    }
    unchanged(&before, &everything(world).await)
}

/// A run resumes a killed run: it repeats the verdicts of that, and observes the rest.
async fn resumed(world: &World) -> Outcome {
    let before = everything(world).await;
    let [out, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut run = Run::start(world, out.path());
    run.until(MOMENTS[2]).await?;
    run.signal("KILL").await;
    run.end().await;
    let record = out.path().join("record.jsonl");
    let record = record.to_string_lossy();
    ends(binary(world, &["cleanup"]), 0).await?;
    let folder = other.path().to_string_lossy();
    let mut arguments = vec!["run", "--resume", &record, "--out", &folder];
    arguments.extend(WITHOUT.iter().flat_map(|check| ["--select", check]));
    ends(binary(world, &arguments), 0).await?;
    let text = |out: &Path| std::fs::read_to_string(out.join("record.jsonl")).expect("a record");
    let view = |out: &Path| read(text(out).as_bytes()).map_err(|error| error.to_string());
    let (earlier, whole) = (view(out.path())?, view(other.path())?);
    let settled = earlier.settled().count();
    match &whole.resumed {
        Some((run, checks)) if *run == earlier.started.run && *checks == settled => {}
        other => {
            return Err(format!(
                "{other:?}, not {settled} of {}",
                earlier.started.run
            ));
        }
    }
    if settled == 0 || settled == whole.checks.len() {
        return Err(format!("{settled} of {} were settled", whole.checks.len()));
    }
    let concluded = whole
        .checks
        .values()
        .filter(|check| check.conclusion.is_some());
    let concluded = concluded.count();
    if concluded != earlier.checks.len() {
        return Err(format!(
            "{concluded} of {} are concluded",
            earlier.checks.len()
        ));
    }
    unchanged(&before, &everything(world).await)
}

async fn prepulled_without_lease(world: &World) -> Outcome {
    let before = everything(world).await;
    let slow: ProductFault = "pull-slow=windows-2022".parse().expect("a fault");
    world.joined.faults().set(slow.clone());
    // Images with another name, so that no node has them yet
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
    let mut text = String::new();
    let mut taken = false;
    while let Ok(Some(line)) = lines.next_line().await {
        text.push_str(&line);
        text.push('\n');
        // An image on Linux, while Windows still pulls
        if !taken && line.contains("there after") {
            let delete = ["delete", "lease", "winconform", "-n", "default"];
            kubectl_does(world, &delete).await?;
            taken = true;
        }
    }
    let code = child.wait().await.expect("it ends").code();
    world.joined.faults().lift(&slow);
    equal(code, Some(11), &text)?;
    if !text.contains("ended early by the loss of its Lease") {
        return Err(format!("the loss is not told in:\n{text}"));
    }
    unchanged(&before, &everything(world).await)
}

async fn kubectl_does(world: &World, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("kubectl");
    let of = command.arg("--kubeconfig").arg(&world.kubeconfig);
    of.args(arguments);
    ends(command, 0).await
}

/// A run's pods pull with copies of the named Secrets; the tool prints nothing of their content, and the
/// copies do not stay.
async fn pulled_with_secrets(world: &World) -> Outcome {
    const PASSWORD: &str = "correct-horse-battery";
    kubectl_does(world, &["create", "namespace", "registry-of-life"]).await?;
    let password = format!("--docker-password={PASSWORD}");
    let secret = ["create", "secret", "docker-registry", "regcred", &password];
    let of = ["-n", "registry-of-life", "--docker-username=me"];
    kubectl_does(world, &[&secret[..], &of].concat()).await?;
    let outcome = pulls_with_secrets(world, PASSWORD).await;
    kubectl_does(world, &["delete", "namespace", "registry-of-life"]).await?;
    outcome
}

async fn pulls_with_secrets(world: &World, password: &str) -> Outcome {
    let before = everything(world).await;
    let out = tempfile::tempdir().expect("a folder");
    let config = out.path().join("config.yaml");
    let images = "images: {pull-policy: Always, pull-secrets: [registry-of-life/regcred]}\n";
    std::fs::write(&config, images).expect("written");
    let (config, folder) = (config.to_string_lossy(), out.path().join("out"));
    let folder = folder.to_string_lossy();
    let checks = ["--select", "net.service-ip-from-pod*", "--config", &config];
    let arguments = ["run", "--keep", "always", "--out", &folder];
    let mut text = ends(binary(world, &[&arguments[..], &checks].concat()), 0).await?;

    let ours = ["-A", "-l", "app.kubernetes.io/managed-by=winconform"];
    let template = "jsonpath={range .items[*]}{.spec.imagePullSecrets[*].name}{\" \"}{.spec.containers[*].imagePullPolicy}{\"\\n\"}{end}";
    let pods = [&["get", "pods", "-o", template], &ours[..]].concat();
    let pods = kubectl_does(world, &pods).await?;
    let carries = |line: &&str| *line == "winconform-pull-1 Always";
    if pods.lines().count() < 3 || !pods.lines().all(|line| carries(&line)) {
        return Err(format!("not every pod pulls with the copy:\n{pods}"));
    }
    let template = "jsonpath={range .items[*]}{.type}{\" \"}{.data}{\"\\n\"}{end}";
    let secrets = [&["get", "secrets", "-o", template], &ours[..]].concat();
    let copies = kubectl_does(world, &secrets).await?;
    let source = ["get", "secret", "regcred", "-n", "registry-of-life"];
    let template = "jsonpath={.type}{\" \"}{.data}{\"\\n\"}";
    let source = [&source[..], &["-o", template]].concat();
    let source = kubectl_does(world, &source).await?;
    if source.is_empty() || copies != source.repeat(2) {
        return Err(format!("{} bytes of copies", copies.len()));
    }

    text += &ends(binary(world, &["cleanup"]), 0).await?;
    unchanged(&before, &everything(world).await)?;
    let prepull = ["prepull", "--select", "sample.nanoserver*"];
    let prepull = [&prepull[..], &["--config", &config]].concat();
    text += &ends(binary(world, &prepull), 0).await?;
    unchanged(&before, &everything(world).await)?;

    for file in std::fs::read_dir(out.path().join("out")).expect("reports") {
        let file = file.expect("a file").path();
        text.push_str(&std::fs::read_to_string(file).expect("text"));
    }
    let (_, data) = source.split_once(' ').unwrap_or_default();
    let encoded = data.split('"').nth(3).unwrap_or_default();
    if encoded.len() < password.len() || text.contains(encoded) || text.contains(password) {
        return Err("what a pull secret holds is told".to_owned());
    }
    Ok(())
}

/// The tool creates nothing on a protected cluster, unless an argument names the context.
async fn protected_cluster(world: &World) -> Outcome {
    let before = everything(world).await;
    let annotate = ["annotate", "namespace", "kube-system"];
    let on = [&annotate[..], &["winconform/protected=payroll"]].concat();
    let off = [&annotate[..], &["winconform/protected-"]].concat();
    kubectl_does(world, &on).await?;
    let checks = ["--select", "env.all-nodes-healthy"];
    let refused = output(binary(world, &[&["run"][..], &checks].concat())).await;
    let pulls = output(binary(world, &["prepull"])).await;
    let context = kubectl_does(world, &["config", "get-contexts", "-o", "name"]).await?;
    let allowed = ["run", "--allow-protected", context.trim()];
    let allowed = output(binary(world, &[&allowed[..], &checks].concat())).await;
    let planned = output(binary(world, &["plan"])).await;
    kubectl_does(world, &off).await?;
    for (code, text) in [refused, pulls] {
        equal(code, Some(20), &text)?;
        let how = format!("--allow-protected '{}'", context.trim());
        if !text.contains("which says `payroll`") || !text.contains(&how) {
            return Err(format!("why and how is not told:\n{text}"));
        }
    }
    equal(allowed.0, Some(0), &allowed.1)?;
    equal(planned.0, Some(0), &planned.1)?;
    unchanged(&before, &everything(world).await)
}

/// A run waits for a Service that a load balancer's controller holds by its finalizer, and asks for a load
/// balancer only if the configuration says so.
async fn load_balancer(world: &World) -> Outcome {
    let before = everything(world).await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "outside: {load-balancers: true}\n").expect("written");
    let config = config.to_string_lossy();
    let checks = ["run", "--details", "--select", "sample.iis-loadbalancer*"];
    let balanced = [&checks[..], &["--config", &config]].concat();
    let text = ends(binary(world, &balanced), 0).await?;
    if !text.contains("pass               sample.iis-loadbalancer/address") {
        return Err(format!("no address is told:\n{text}"));
    }
    unchanged(&before, &everything(world).await)?;
    let text = ends(binary(world, &checks), 11).await?;
    if !text.contains("not asked for: the configuration does not say that Services of type") {
        return Err(format!("why there is none is not told:\n{text}"));
    }
    unchanged(&before, &everything(world).await)
}

/// `--keep` makes a run leave what it created: always, or if something fails. Other runs can start then.
async fn kept(world: &World) -> Outcome {
    let before = everything(world).await;
    let run = |keep: &'static str| {
        let checks = ["--select", "net.service-ip-from-pod*"];
        let arguments = ["run", "--repeat", "2", "--keep", keep];
        binary(world, &[&arguments[..], &checks].concat())
    };
    let text = ends(run("on-failure"), 0).await?;
    if !text.contains("the run performed every check 2 times") {
        return Err(format!("it was not repeated:\n{text}"));
    }
    unchanged(&before, &everything(world).await)?;
    let dead = "kube-proxy-dead=windows-2022";
    let dead: ProductFault = dead.parse().expect("a fault");
    for (keep, expected) in [("always", 0), ("on-failure", 10)] {
        if expected == 10 {
            world.joined.faults().set(dead.clone());
        }
        let (code, text) = output(run(keep)).await;
        world.joined.faults().lift(&dead);
        equal(code, Some(expected), &text)?;
        let after = everything(world).await;
        let has_new = |kind: &str| after.difference(&before).any(|it| it.starts_with(kind));
        if !has_new("Pod ") || has_new("Lease default/") {
            return Err(format!("not what was to stay: {after:?}"));
        }
        if !text.contains("What the run created is left") {
            return Err(format!("it is not told what is left:\n{text}"));
        }
        ends(binary(world, &["cleanup", "--run", left_of(&text)?]), 0).await?;
        unchanged(&before, &everything(world).await)?;
    }
    Ok(())
}
