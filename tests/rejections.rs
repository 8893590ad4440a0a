//! Whole runs of all rejections on a real API server, each with one rule of it broken.
//!
//! Needs a control plane, found by `WINCONFORM_TEST_KUBECONFIG`, and no nodes: nothing is ever
//! scheduled. Without it every trial is listed as ignored and named as not run. A layer of the client
//! has the server forget one rule at a time; every rule must be missed by exactly the checks that are
//! about it.

#![expect(clippy::print_stdout, reason = "trials tell what is not run")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use winconform::transport::Env;

use hybrid_sim::interference::{Fault, Interference};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use winconform::cluster::{Cluster, connect};
use winconform::engine::{Journal, Keep, Repeat, RunOptions, run};
use winconform_core::config::{Config, Durations, Limits};
use winconform_core::facts::Facts;
use winconform_core::plan::{Fate, Selection, plan};
use winconform_core::record::{CheckView, Exit, RunView, read};
use winconform_core::report::terminal::{Colour, render};
use winconform_core::text::is_hostile;
use winconform_core::verdict::{Because, SkipReason, Verdict};
use winconform_core::way::{Bound, FixtureKey, FixtureName, Standing, StandingFixture};
use world::{Outcome, VARIABLE, options};

#[path = "world/suites.rs"]
mod suites;
#[expect(dead_code, reason = "no nodes are joined")]
mod world;

/// Runs at once: each spends most of its time waiting for its namespaces to go.
const AT_ONCE: usize = 6;

/// Rules that validation forgets, and the claims or cases whose checks then fail. A case is named
/// as in an id; a claim alone means all its cases but those that ask for nothing.
const FORGOTTEN: &[(&str, &[&str])] = &[
    ("spec.hostPID", &["reject.hostPID"]),
    ("spec.hostIPC", &["reject.hostIPC"]),
    (
        "spec.shareProcessNamespace",
        &["reject.shareProcessNamespace"],
    ),
    (
        "spec.securityContext.seLinuxOptions",
        &["reject.pod.seLinuxOptions"],
    ),
    (
        "spec.securityContext.seccompProfile",
        &["reject.pod.seccompProfile"],
    ),
    ("spec.securityContext.fsGroup", &["reject.pod.fsGroup"]),
    (
        "spec.securityContext.fsGroupChangePolicy",
        &["reject.pod.fsGroupChangePolicy"],
    ),
    ("spec.securityContext.sysctls", &["reject.pod.sysctls"]),
    ("spec.securityContext.runAsUser", &["reject.pod.runAsUser"]),
    (
        "spec.securityContext.runAsGroup",
        &["reject.pod.runAsGroup"],
    ),
    (
        "spec.securityContext.supplementalGroups",
        &["reject.pod.supplementalGroups"],
    ),
    ("spec.hostUsers", &["reject.feature-gate/host-users"]),
    (
        "spec.securityContext.appArmorProfile",
        &["reject.feature-gate/pod-app-armor"],
    ),
    (
        "spec.securityContext.supplementalGroupsPolicy",
        &["reject.feature-gate/supplemental-groups-policy"],
    ),
    (
        "spec.securityContext.seLinuxChangePolicy",
        &["reject.feature-gate/se-linux-change-policy"],
    ),
    ("spec.resources", &["reject.feature-gate/pod-resources"]),
    (
        "container.securityContext.seLinuxOptions",
        &[
            "reject.container.seLinuxOptions",
            "reject.all-container-kinds/se-linux-options",
        ],
    ),
    (
        "container.securityContext.seccompProfile",
        &[
            "reject.container.seccompProfile",
            "reject.all-container-kinds/seccomp-profile",
        ],
    ),
    (
        "container.securityContext.capabilities",
        &[
            "reject.container.capabilities",
            "reject.all-container-kinds/capabilities",
        ],
    ),
    (
        "container.securityContext.readOnlyRootFilesystem",
        &[
            "reject.container.readOnlyRootFilesystem",
            "reject.all-container-kinds/read-only-root-filesystem",
        ],
    ),
    (
        "container.securityContext.privileged",
        &[
            "reject.container.privileged",
            "reject.all-container-kinds/privileged",
        ],
    ),
    (
        "container.securityContext.allowPrivilegeEscalation",
        &[
            "reject.container.allowPrivilegeEscalation",
            "reject.all-container-kinds/allow-privilege-escalation",
        ],
    ),
    (
        "container.securityContext.procMount",
        &[
            "reject.container.procMount",
            "reject.all-container-kinds/proc-mount",
        ],
    ),
    (
        "container.securityContext.runAsUser",
        &[
            "reject.container.runAsUser",
            "reject.all-container-kinds/run-as-user",
        ],
    ),
    (
        "container.securityContext.runAsGroup",
        &[
            "reject.container.runAsGroup",
            "reject.all-container-kinds/run-as-group",
        ],
    ),
    (
        "container.securityContext.appArmorProfile",
        &[
            "reject.feature-gate/container-app-armor",
            "reject.all-container-kinds/app-armor-profile",
        ],
    ),
    // Only one kind of container is forgotten
    (
        "spec.ephemeralContainers[*].securityContext.privileged",
        &[EPHEMERAL],
    ),
    // Who forgets what is in an object forgets that the object itself is forbidden, too, and
    // the other way round
    (
        "spec.securityContext.windowsOptions",
        &[
            "reject.linux-with-windows-options[",
            "reject.linux-with-windows-options/values",
            "reject.feature-gate/run-as-user-name[",
            "reject.feature-gate/gmsa-name",
            "reject.feature-gate/gmsa-spec",
        ],
    ),
    (
        "container.securityContext.windowsOptions",
        &[
            "reject.linux-with-windows-options/container",
            "reject.linux-with-windows-options/container-empty",
            "reject.feature-gate/run-as-user-name-container",
            "reject.feature-gate/host-process-disagrees",
        ],
    ),
    (
        "spec.securityContext.windowsOptions.runAsUserName",
        &[
            "reject.linux-with-windows-options[",
            "reject.linux-with-windows-options/values",
            "reject.feature-gate/run-as-user-name[",
        ],
    ),
    (
        "container.securityContext.windowsOptions.runAsUserName",
        &[
            "reject.linux-with-windows-options/container",
            "reject.linux-with-windows-options/container-empty",
            "reject.feature-gate/run-as-user-name-container",
        ],
    ),
    (
        "spec.securityContext.windowsOptions.gmsaCredentialSpecName",
        &[
            "reject.linux-with-windows-options[",
            "reject.linux-with-windows-options/values",
            "reject.feature-gate/gmsa-name",
        ],
    ),
    (
        "spec.securityContext.windowsOptions.gmsaCredentialSpec",
        &[
            "reject.linux-with-windows-options[",
            "reject.linux-with-windows-options/values",
            "reject.feature-gate/gmsa-spec",
        ],
    ),
];
/// The fields of these that are dropped as well, without a word.
const DROPPED: [&str; 3] = [
    "spec.hostPID",
    "spec.securityContext.sysctls",
    "spec.ephemeralContainers[*].securityContext.privileged",
];
const EPHEMERAL: &str = "reject.all-container-kinds/privileged[workload=pod,container=ephemeral]";

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(AT_ONCE);
    let given = std::env::var_os(VARIABLE).filter(|_| !arguments.list);
    let runtime = Arc::new(Runtime::new().expect("a runtime starts"));
    let server = given.map(|path| Server {
        kubeconfig: PathBuf::from(path),
        turns: Arc::new(Semaphore::new(AT_ONCE)),
    });
    let mut trials = Trials {
        server,
        runtime,
        list: Vec::new(),
    };
    trials.add("healthy".to_owned(), async |server| server.healthy().await);
    for (field, turned) in FORGOTTEN {
        for way in ["allows", "drops"] {
            let fault = format!("admission-{way}={field}");
            // How a dropped field is told from a kept one does not depend on which it is
            if way == "drops" && !DROPPED.contains(field) {
                continue;
            }
            // What does not come back may never have been validated
            let to = match way {
                "allows" => (&[Verdict::Fail], Exit::NotConformant),
                _ => (&[Verdict::Broken], Exit::CouldNotTell),
            };
            trials.add(format!("forgotten::{fault}"), async move |server| {
                server.forgets(&fault, turned, to).await
            });
        }
    }
    trials.add(
        "forgotten::admission-allows-resize".to_owned(),
        async |server| {
            let turned = &["reject.feature-gate/resize"];
            let to = (&[Verdict::Fail], Exit::NotConformant);
            server.forgets("admission-allows-resize", turned, to).await
        },
    );
    for fault in UNTOLD {
        trials.add(format!("untold::{fault}"), async move |server| {
            server.untold(fault).await
        });
    }
    for fault in BAD_WORLDS {
        trials.add(format!("bad_world::{fault}"), async move |server| {
            server.bad_world(fault).await
        });
    }
    trials.add("injected".to_owned(), async |server| {
        server.injected().await
    });
    let conclusion = libtest_mimic::run(&arguments, trials.list);
    conclusion.exit()
}

/// Worlds in which nothing can be told of rejections: whatever is sent by dry run is refused, or
/// nobody answers for it.
const UNTOLD: [&str; 5] = [
    "admission-refuses=RESOURCE",
    "admission-refuses=RESOURCE:Forbidden",
    "webhook-refuses=RESOURCE:403",
    "webhook-times-out=RESOURCE",
    "webhook-no-dry-run=RESOURCE",
];

/// What dry runs are of.
const RESOURCES: [&str; 11] = [
    "pods",
    "pods/ephemeralcontainers",
    "pods/resize",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "replicationcontrollers",
    "podtemplates",
];

/// Worlds in which most can be told, and nothing may be told wrongly.
const BAD_WORLDS: [&str; 7] = [
    "too-many-requests=0.2",
    "server-restarts=200",
    "token-expires=400",
    "answers-403=jobs",
    "aggregated-down",
    "hostile-texts",
    "slow=0.1",
];

struct Trials {
    server: Option<Server>,
    runtime: Arc<Runtime>,
    list: Vec<Trial>,
}

impl Trials {
    fn add<F>(&mut self, name: String, trial: F)
    where
        F: AsyncFnOnce(&Server) -> Outcome + Send + 'static,
    {
        let trial = if let Some(server) = self.server.clone() {
            let runtime = Arc::clone(&self.runtime);
            Trial::test(name, move || {
                runtime.block_on(trial(&server)).map_err(Failed::from)
            })
        } else {
            println!("not run: {name}: {VARIABLE} is not set");
            Trial::test(name, || Ok(())).with_ignored_flag(true)
        };
        self.list.push(trial);
    }
}

/// The control plane given.
#[derive(Clone)]
struct Server {
    kubeconfig: PathBuf,
    turns: Arc<Semaphore>,
}

impl Server {
    /// Runs the tool with these faults on its way.
    async fn run(&self, faults: &[&str]) -> RunView {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let _turn = self.turns.acquire().await.expect("never closed");
        let direct = connect(&options(&self.kubeconfig), durations(), Limits::default()).await;
        let direct = direct.expect("connects").client;
        let interference = Interference::new(Vec::new(), 1);
        let client = interference.before(&direct);
        let cluster = Cluster::behind(
            Env::system(),
            client,
            "test",
            durations(),
            Limits::default(),
        );
        let parsed = faults.iter().map(|fault| fault.parse::<Fault>());
        interference.set(parsed.collect::<Result<_, _>>().expect("faults of the way"));
        let run_id = format!("r{:08x}", rand::random::<u32>());
        let settings = RunOptions {
            run: run_id.clone(),
            lease: format!("winconform-{run_id}"),
            holder: run_id.clone(),
            config: Config::default(),
            selection: Selection::default(),
            deadline: None,
            repeat: Repeat::Times(1),
            resume: None,
            keep: Keep::Never,
        };
        let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}))
            .expect("a record in memory");
        let (_alive, signals) = tokio::sync::watch::channel(0);
        let _ = run(
            &cluster,
            &suites::of_areas(&["reject"]),
            &settings,
            &journal,
            signals,
        )
        .await;
        // What a world without rights left is removed here
        let direct = connect(&options(&self.kubeconfig), durations(), Limits::default()).await;
        let direct = direct.expect("the control plane answers");
        let left =
            winconform::cluster::remove_run(&direct.api, Some(&run_id), Duration::from_mins(1));
        left.await.expect("the control plane answers");
        read(&journal.text()).expect("a readable record")
    }

    async fn healthy(&self) -> Outcome {
        let view = self.run(&[]).await;
        let wrong = differing(&view, |_| &[Verdict::Pass])?;
        let ended = view.ended.as_ref().ok_or("the run did not end")?;
        let dry = |name: &str| {
            name.starts_with("patch pods/")
                || (name.starts_with("create ") && name != "create leases")
        };
        let requests = ended.requests.iter().filter(|(name, _)| dry(name));
        let sent: u64 = requests.map(|(_, count)| count).sum();
        let facts = view.facts.as_ref().ok_or("no facts")?;
        let distinct = distinct(facts);
        let resent = ended
            .requests
            .iter()
            .any(|(name, _)| name.starts_with("resent"));
        if sent != distinct || resent {
            return Err(format!("{distinct} dry runs, sent {:?}", ended.requests));
        }
        println!(
            "{sent} dry runs for {} checks, each sent once",
            view.checks.len()
        );
        match wrong.as_slice() {
            [] => Ok(()),
            _ => Err(wrong.join("\n")),
        }
    }

    /// A rule is forgotten: exactly the checks about it come to something else.
    async fn forgets(
        &self,
        fault: &str,
        turned: &[&str],
        (to, exit): (&'static [Verdict; 1], Exit),
    ) -> Outcome {
        let view = self.run(&[fault]).await;
        let about =
            |id: &str| !id.contains("/nothing-asked") && turned.iter().any(|name| is_of(id, name));
        if !view
            .checks
            .values()
            .any(|check| about(check.planned.id.as_str()))
        {
            return Err(format!("no check is about {turned:?}"));
        }
        let wrong = differing(&view, |id| match about(id) {
            true => to,
            false => &[Verdict::Pass],
        })?;
        match winconform_core::record::exit(&view) {
            _ if !wrong.is_empty() => Err(wrong.join("\n")),
            came if came == exit => Ok(()),
            other => Err(format!("came to {other:?}")),
        }
    }

    /// Something refuses or breaks whatever is asked: nothing passes and nothing fails.
    async fn untold(&self, fault: &str) -> Outcome {
        let faults = RESOURCES.map(|resource| fault.replace("RESOURCE", resource));
        let view = self.run(&faults.each_ref().map(String::as_str)).await;
        asked(&view)?;
        let wrong = differing(&view, |_| &[Verdict::Broken])?;
        match wrong.as_slice() {
            [] => Ok(()),
            _ => Err(wrong.join("\n")),
        }
    }

    /// Trouble of all kinds: what passes, passes; what cannot be told is broken; most is told.
    async fn bad_world(&self, fault: &str) -> Outcome {
        let view = self.run(&[fault]).await;
        asked(&view)?;
        let wrong = differing(&view, |_| &[Verdict::Pass, Verdict::Broken])?;
        if !wrong.is_empty() {
            return Err(wrong.join("\n"));
        }
        let told = |check: &&CheckView| {
            let conclusion = check.conclusion.as_ref();
            conclusion.is_some_and(|conclusion| conclusion.verdict == Verdict::Pass)
        };
        let passes = view.checks.values().filter(told).count();
        if passes * 4 < view.checks.len() {
            return Err(format!("only {passes} of {} told", view.checks.len()));
        }
        let text = render(&view, 120, Colour::Never);
        match text.lines().find(|line| line.contains(is_hostile)) {
            None => Ok(()),
            Some(line) => Err(format!("raw text in the report: {line:?}")),
        }
    }

    /// A webhook that sets a forbidden field in every pod makes the controls speak: what they
    /// control is not told, and the report names the field.
    async fn injected(&self) -> Outcome {
        let view = self.run(&["admission-injects=spec.hostIPC:true"]).await;
        for check in view.checks.values() {
            let id = check.planned.id.as_str();
            let conclusion = check.conclusion.as_ref().ok_or("a check without verdict")?;
            let named = match &conclusion.because {
                Because::Control { difference, .. } | Because::Seen(difference) => {
                    difference.seen.contains("hostIPC") && difference.seen.contains("not sent")
                }
                Because::Trouble(trouble) | Because::ControlTrouble { trouble, .. } => {
                    trouble.detail.contains("hostIPC") && trouble.detail.contains("not sent")
                }
                _ => false,
            };
            match conclusion.verdict {
                Verdict::Broken if named => {}
                // Windows pods are refused there, and that is what this claim is about
                Verdict::Fail if id.starts_with("reject.control-accepted/plain") && named => {}
                // Neither windows pods nor unbound ones are created for it
                Verdict::Pass if untouched(id) => {}
                verdict => {
                    return Err(format!("{id}: {verdict}, {:?}", conclusion.because));
                }
            }
        }
        Ok(())
    }
}

/// Whether a check is of a claim or case.
fn is_of(id: &str, name: &str) -> bool {
    let Some(rest) = id.strip_prefix(name) else {
        return false;
    };
    let ends = |rest: &str| rest.is_empty() || rest.starts_with('[');
    name.ends_with(['[', ']'])
        || ends(rest)
        || rest.starts_with("/values")
        || rest.strip_prefix("-values").is_some_and(ends)
}

/// Checks that an injected field in what is created does not touch: their controls declare no
/// Windows, or ask a pod that is there.
fn untouched(id: &str) -> bool {
    id.contains("linux-with-windows-options")
        || id.contains("/without-os")
        || id.contains("ephemeral")
        || id.contains("/resize")
        || id.contains("/stop-signal-without-os")
}

/// How many dry runs there are that differ from each other.
fn distinct(facts: &Facts) -> u64 {
    let key = |name| FixtureKey {
        name,
        pool: None,
        node: None,
    };
    let names = [FixtureName::Namespaces, FixtureName::UnboundPods];
    let standing = Standing {
        fixtures: names
            .map(|name| (key(name), StandingFixture::default()))
            .into(),
        ..Standing::default()
    };
    let at = Bound::of(&standing);
    let plan = plan(&suites::of_areas(&["reject"]), facts, &Config::default());
    let looks = plan.checks.iter().flat_map(|check| &check.looks);
    let requests = looks.map(|look| format!("{:?}", look.test.request(&at)));
    let distinct: BTreeSet<_> = requests.collect();
    u64::try_from(distinct.len()).unwrap_or(u64::MAX)
}

/// That a run came to ask by dry run at all.
fn asked(view: &RunView) -> Outcome {
    let attempts = view.checks.values().flat_map(|check| &check.attempts);
    match attempts
        .flat_map(|attempt| &attempt.looks)
        .any(|look| look.reply.is_some() || look.trouble.is_some())
    {
        true => Ok(()),
        false => Err("nothing was asked".to_owned()),
    }
}

/// The checks whose verdict is none of the expected; those that the plan skips for the server's
/// version aside.
fn differing(
    view: &RunView,
    expected: impl Fn(&str) -> &'static [Verdict],
) -> Result<Vec<String>, String> {
    if let Some(by) = &view.interrupted {
        return Err(format!("interrupted by {by}"));
    }
    let mut wrong = Vec::new();
    for check in view.checks.values() {
        let id = check.planned.id.as_str();
        if matches!(check.planned.fate, Fate::Skip(SkipReason::Version { .. })) {
            continue;
        }
        let Some(conclusion) = &check.conclusion else {
            return Err(format!("{id} has no verdict"));
        };
        if !expected(id).contains(&conclusion.verdict) {
            let because = &conclusion.because;
            wrong.push(format!("{id}: {}, {because:?}", conclusion.verdict));
        }
    }
    if view.checks.is_empty() {
        return Err("nothing was planned".to_owned());
    }
    wrong.truncate(10);
    Ok(wrong)
}

fn durations() -> Durations {
    Durations {
        api_in_all: Duration::from_secs(20),
        transport_pause: Duration::from_millis(30),
        lease: Duration::from_secs(40),
        look_again: Duration::from_millis(100),
        ..Durations::default()
    }
}
