//! Whole runs, each with something broken, on simulated nodes joined to a real control plane.
//!
//! *Product faults* break the cluster: each turns exactly the checks it names, to the verdict it
//! names. *Harness faults* break what lies between harness and API server: none may make a
//! verdict of either sign. Both kinds need a control plane, found by `WINCONFORM_TEST_KUBECONFIG`;
//! without it every trial is listed as ignored and named as not run.

#![expect(
    clippy::print_stdout,
    reason = "trials tell what they found and what is not run"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use hybrid_sim::ProductFault;
use hybrid_sim::front::{Front, FrontFault, FrontOptions};
use winconform::cluster::{connect, kube_config, remove_run};
use winconform::engine::{Journal, RunOptions, run};
use winconform_core::config::{Config, Durations, Limits};
use winconform_core::document::Diagnostics;
use winconform_core::plan::Selection;
use winconform_core::record::{Exit, RunView, read};
use winconform_core::suite::{SuiteFile, Suites};
use winconform_core::verdict::Verdict;

use world::{Outcome, Trials, World, options};

mod world;

/// Runs at once while harness faults are tried.
const AT_ONCE: usize = 10;

const LABEL: &str = "env.windows-build-label[pool=windows-2022]";
const REJECT: &str = "reject.hostPID";
const SAMPLE: &str = "sample.win-webserver[pool=windows-2022]";
const FROM_LINUX: &str = "net.service-ip-from-pod[pool=windows-2022,source=linux-pod]";
const FROM_WINDOWS: &str = "net.service-ip-from-pod[pool=windows-2022,source=windows-pod]";
const FROM_NODE: &str = "net.node-to-service-ip[pool=windows-2022,source=windows-node]";

/// What a healthy cluster gives.
const HEALTHY: [(&str, Verdict); 6] = [
    (LABEL, Verdict::Pass),
    (REJECT, Verdict::Pass),
    (SAMPLE, Verdict::Pass),
    (FROM_LINUX, Verdict::Pass),
    (FROM_WINDOWS, Verdict::Pass),
    (FROM_NODE, Verdict::KnownLimitation),
];

/// Something broken, the checks it turns and to what, and what the run then comes to.
struct Product {
    fault: &'static str,
    turns: &'static [(&'static str, Verdict)],
    exit: Exit,
}

const PRODUCT: &[Product] = &[
    Product {
        fault: "none",
        turns: &[],
        exit: Exit::Conformant,
    },
    Product {
        fault: "node-label-wrong=windows-2022",
        turns: &[(LABEL, Verdict::Fail)],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "admission-allows=spec.hostPID",
        turns: &[(REJECT, Verdict::Fail)],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "admission-drops=spec.hostPID",
        turns: &[(REJECT, Verdict::Fail)],
        exit: Exit::NotConformant,
    },
    // A webhook that adds a forbidden field makes the control speak. The front alters what is
    // created by POST; what is applied by PATCH reaches the server as it is
    Product {
        fault: "admission-injects=spec.hostIPC:true",
        turns: &[(REJECT, Verdict::Broken)],
        exit: Exit::CouldNotTell,
    },
    Product {
        fault: "servercore-crashes=windows-2022",
        turns: &[
            (SAMPLE, Verdict::Fail),
            (FROM_LINUX, Verdict::Broken),
            (FROM_WINDOWS, Verdict::Broken),
            (FROM_NODE, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "image-missing=windows-2022",
        turns: &[
            (SAMPLE, Verdict::Broken),
            (FROM_LINUX, Verdict::Broken),
            (FROM_WINDOWS, Verdict::Broken),
            (FROM_NODE, Verdict::Broken),
        ],
        exit: Exit::CouldNotTell,
    },
    Product {
        fault: "kube-proxy-dead=windows-2022",
        turns: &[(FROM_WINDOWS, Verdict::Fail), (FROM_NODE, Verdict::Broken)],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "service-answers-wrong",
        turns: &[
            (FROM_LINUX, Verdict::Fail),
            (FROM_WINDOWS, Verdict::Fail),
            (FROM_NODE, Verdict::Broken),
        ],
        exit: Exit::NotConformant,
    },
    Product {
        fault: "node-service-ip-answers=windows-2022",
        turns: &[(FROM_NODE, Verdict::LimitationLifted)],
        exit: Exit::Conformant,
    },
    Product {
        fault: "node-service-ip-resets=windows-2022",
        turns: &[(FROM_NODE, Verdict::Fail)],
        exit: Exit::NotConformant,
    },
];

/// Harness faults, each at a fifth of all requests it can hit.
const HARNESS: [&str; 8] = [
    "too-many-requests=0.2",
    "internal-error=0.2",
    "html-502=0.2",
    "gone=0.2",
    "hang=0.2",
    "reset=0.2",
    "cut-exec=0.2",
    "lose-exit-frame=0.2",
];

/// Faults under which nothing on these checks may pass, whatever the harness meets.
const BROKEN_WORLD: [&str; 3] = [
    "node-label-wrong=windows-2022",
    "admission-allows=spec.hostPID",
    "kube-proxy-dead=windows-2022",
];

fn main() {
    let seeds = std::env::var("WINCONFORM_TEST_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok());
    let seeds: u64 = seeds.unwrap_or(20);
    let mut trials = Trials::new("faults-");
    for product in PRODUCT {
        let name = format!("product::{}", product.fault);
        trials.add(name, async |world: &World| world.product(product).await);
    }
    for fault in HARNESS {
        let name = format!("harness::{fault}");
        trials.add(name, async move |world: &World| {
            world.harness(fault, seeds, &[]).await
        });
        let name = format!("harness_in_a_broken_world::{fault}");
        let few = seeds.div_ceil(5);
        trials.add(name, async move |world: &World| {
            world.harness(fault, few, &BROKEN_WORLD).await
        });
    }
    trials.run()
}

impl World {
    /// Runs the tool through a front with these faults.
    async fn run(&self, faults: Vec<FrontFault>, seed: u64) -> RunView {
        let config = kube_config(&options(&self.kubeconfig))
            .await
            .expect("a configuration");
        let front = Front::start(
            config,
            FrontOptions {
                faults: Vec::new(),
                seed,
            },
        )
        .await
        .expect("a front");
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, front.kubeconfig()).expect("written");
        let cluster = connect(&options(&kubeconfig), durations(), Limits::default())
            .await
            .expect("connects");
        // From here on: connecting has its own tests
        front.set(faults);
        let run_id = format!("r{:08x}", rand::random::<u32>());
        let settings = RunOptions {
            run: run_id.clone(),
            lease: format!("winconform-{run_id}"),
            holder: run_id.clone(),
            config: Config::default(),
            selection: Selection::default(),
            deadline: None,
        };
        let journal =
            Journal::create(None, Vec::new(), Box::new(|_| {})).expect("a record in memory");
        let (_alive, signals) = tokio::sync::watch::channel(0);
        let suites = suites().expect("the suites are valid");
        let _ = run(&cluster, &suites, &settings, &journal, signals).await;
        front.stop().await;
        let view = read(&journal.text()).expect("a readable record");
        // What tear-down said must be true; what it could not remove is removed here
        let torn_down = view.torn_down.as_ref().expect("tear-down is on record");
        let direct = connect(&options(&self.kubeconfig), durations(), Limits::default()).await;
        let direct = direct.expect("the control plane answers without a front");
        let left = remove_run(&direct.api, Some(&run_id), Duration::from_mins(1)).await;
        let left = left.expect("the control plane answers");
        if torn_down.left.is_empty() && torn_down.troubles.is_empty() {
            assert!(
                left.removed.is_empty(),
                "{run_id} said it left nothing: {:?}",
                left.removed
            );
        }
        view
    }

    fn set(&self, faults: &[&str]) -> Vec<FrontFault> {
        for fault in self.joined.faults().current().iter() {
            self.joined.faults().lift(fault);
        }
        let mut before = Vec::new();
        for fault in faults.iter().filter(|fault| **fault != "none") {
            match fault.parse::<ProductFault>() {
                Ok(fault) => self.joined.faults().set(fault),
                Err(_) => before.push(fault.parse().expect("a fault of the front")),
            }
        }
        before
    }

    async fn product(&self, product: &Product) -> Outcome {
        let before = self.set(&[product.fault]);
        let view = self.run(before, 1).await;
        let mut expected: BTreeMap<_, _> = HEALTHY.into_iter().collect();
        expected.extend(product.turns.iter().copied());
        let seen = verdicts(&view);
        let seen_exit = winconform_core::record::exit(&view);
        if seen == expected && seen_exit == product.exit {
            return Ok(());
        }
        Err(format!(
            "{}: expected {:?} and {expected:#?}\nsaw {seen_exit:?} and {}",
            product.fault,
            product.exit,
            described(&view)
        ))
    }

    /// Under a harness fault no check of a healthy cluster fails, and none that is broken passes.
    async fn harness(&self, fault: &str, seeds: u64, broken: &[&str]) -> Outcome {
        let mut before = self.set(broken);
        before.insert(0, fault.parse().expect("a fault of the front"));
        let mut expected: BTreeMap<_, _> = HEALTHY.into_iter().collect();
        for product in PRODUCT
            .iter()
            .filter(|product| broken.contains(&product.fault))
        {
            expected.extend(product.turns.iter().copied());
        }
        let runs = (0..seeds).map(|seed| {
            let before = before.clone();
            async move { (seed, self.run(before, seed).await) }
        });
        let views: Vec<_> = futures::stream::iter(runs)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let (mut told, mut untold) = (0, 0);
        for (seed, view) in &views {
            for (check, seen) in verdicts(view) {
                if expected.get(check) == Some(&seen) {
                    told += 1;
                } else if matches!(seen, Verdict::Broken | Verdict::Skip) {
                    // Skipped: the Lease could not be renewed in time, which ends a run early
                    untold += 1;
                } else {
                    let wanted = expected.get(check);
                    let what = described(view);
                    return Err(format!(
                        "seed {seed}: {check}: {seen}, not {wanted:?}\n{what}"
                    ));
                }
            }
        }
        println!(
            "{fault}: {} runs, {told} verdicts right, {untold} untold, none wrong",
            views.len()
        );
        // Patience that always gives up would be right too, and useless
        if untold * 4 > told + untold {
            Err(format!("{untold} of {} untold", told + untold))
        } else {
            Ok(())
        }
    }
}

/// The run's own limits, nearer than for a real cluster: the simulated one is faster, too.
fn durations() -> Durations {
    let seconds = Duration::from_secs;
    Durations {
        api_answer: seconds(3),
        api_body: seconds(3),
        api_in_all: seconds(40),
        transport_pause: Duration::from_millis(30),
        exec_connect: seconds(4),
        exec_idle: seconds(8),
        fixture: seconds(120),
        settle: seconds(1),
        lease: seconds(40),
        stays_ready: seconds(1),
        converge: seconds(5),
        look_again: Duration::from_millis(100),
        ..Durations::default()
    }
}

fn suites() -> Result<Suites, Diagnostics> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/suites"));
    let paths = [
        "claims.yaml",
        "limitations.yaml",
        "env/nodes.yaml",
        "reject/pod.yaml",
        "sample/win-webserver.yaml",
        "net/service.yaml",
    ];
    let file = |path: &str| SuiteFile {
        path: path.to_owned(),
        shown: path.to_owned(),
        text: std::fs::read_to_string(root.join(path)).expect("a suite of the project"),
    };
    Suites::read(paths.map(file).into())
}

fn verdicts(view: &RunView) -> BTreeMap<&str, Verdict> {
    let of = |check: &'_ winconform_core::record::CheckView| {
        check
            .conclusion
            .as_ref()
            .map(|conclusion| conclusion.verdict)
    };
    view.checks
        .values()
        .map(|check| {
            (
                check.planned.id.as_str(),
                of(check).expect("every check came to a verdict"),
            )
        })
        .collect()
}

fn described(view: &RunView) -> String {
    winconform_core::report::terminal::render(
        view,
        160,
        winconform_core::report::terminal::Colour::Never,
    )
}
