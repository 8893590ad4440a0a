//! The `env.*` cases on a real API server: nodes that are objects alone, with one thing wrong at
//! a time. Each row names every check that turns, and every piece of evidence that tells
//! something else; nothing besides may.
//!
//! Needs a control plane, found by `WINCONFORM_TEST_KUBECONFIG`, without other nodes; without it
//! every row is listed as ignored and named as not run.

#![expect(
    clippy::print_stdout,
    reason = "rows tell what they found and what is not run"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use winconform::transport::Env;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;
use winconform::cluster::connect;
use winconform::engine::{Journal, Keep, Repeat, RunOptions, run};
use winconform_core::claims::Kind;
use winconform_core::config::{Config, Durations, Limits};
use winconform_core::plan::Selection;
use winconform_core::record::read;
use winconform_core::suite::Suites;
use winconform_core::verdict::Verdict::{self, Broken, Fail, Pass, Recorded, Skip, Warn};

use rows::ROWS;
use scene::{Hindered, Scene, Stage};

mod rows;
mod scene;
#[path = "../world/suites.rs"]
mod suites;
#[expect(dead_code, reason = "no nodes are joined")]
#[path = "../world/mod.rs"]
mod world;

/// One thing that is otherwise than in a healthy cluster.
struct Row {
    is: &'static str,
    by: fn(&mut Scene),
    turns: &'static [(&'static str, Verdict)],
    /// What tells something else without turning: all evidence that does, and of other claims
    /// those listed.
    tells: &'static [&'static str],
}

/// What a check came to, with what it rests on.
struct Outcome {
    kind: Kind,
    verdict: Verdict,
    observation: Json,
    words: String,
}

type Outcomes = BTreeMap<String, Outcome>;

/// What the rows share.
struct Shared {
    stage: Stage,
    suites: Suites,
    healthy: Outcomes,
}

fn main() {
    let mut arguments = Arguments::from_args();
    // They share the server's objects
    arguments.test_threads = Some(1);
    let runtime = Arc::new(Runtime::new().expect("a runtime starts"));
    let given = std::env::var_os(world::VARIABLE).filter(|_| !arguments.list);
    let shared = given.map(|path| {
        let shared = runtime.block_on(Shared::begin(Path::new(&path)));
        Arc::new(Mutex::new(shared.expect("a healthy cluster of objects")))
    });
    let trials = ROWS.iter().map(|row| match &shared {
        Some(shared) => {
            let (shared, runtime) = (Arc::clone(shared), Arc::clone(&runtime));
            Trial::test(row.is, move || {
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                runtime.block_on(shared.row(row)).map_err(Failed::from)
            })
        }
        None => {
            if !arguments.list {
                println!("not run: {}: {} is not set", row.is, world::VARIABLE);
            }
            Trial::test(row.is, || Ok(())).with_ignored_flag(true)
        }
    });
    let trials = trials.collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(shared) = shared {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.print_counts();
        runtime
            .block_on(shared.stage.clear())
            .expect("what was made is removed");
    }
    conclusion.exit()
}

impl Shared {
    async fn begin(kubeconfig: &Path) -> Hindered<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let durations = Durations {
            look_again: Duration::from_millis(10),
            ..Durations::default()
        };
        let cluster = connect(&world::options(kubeconfig), durations, Limits::default())
            .await
            .map_err(|error| error.to_string())?;
        let mut shared = Self {
            stage: Stage::new(cluster),
            suites: suites::of_areas(&["env"]),
            healthy: Outcomes::new(),
        };
        shared.healthy = shared.look(&Scene::healthy()).await?;
        Ok(shared)
    }

    /// Makes the server hold a scene and looks at it with every case of the environment.
    async fn look(&mut self, scene: &Scene) -> Hindered<Outcomes> {
        self.stage.set(scene).await?;
        let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}));
        let journal = journal.map_err(|error| error.to_string())?;
        let options = RunOptions {
            run: "r-environment".to_owned(),
            lease: "winconform-environment".to_owned(),
            holder: "environment".to_owned(),
            config: Config::default(),
            selection: Selection::default(),
            deadline: None,
            repeat: Repeat::Times(1),
            resume: None,
            keep: Keep::Never,
        };
        let (_alive, signals) = tokio::sync::watch::channel(0);
        run(
            &self.stage.cluster,
            &self.suites,
            &options,
            &journal,
            signals,
        )
        .await
        .map_err(|error| error.to_string())?;
        let view = read(&journal.text()).map_err(|error| error.to_string())?;
        let outcome = |check: &winconform_core::record::CheckView| {
            let looks = check.attempts.last().map(|attempt| &attempt.looks);
            let look = looks.and_then(|looks| looks.first());
            let conclusion = check.conclusion.as_ref().expect("every check concludes");
            Outcome {
                kind: check.planned.kind,
                verdict: conclusion.verdict,
                observation: json!(look.and_then(|look| look.observation.clone())),
                words: format!("{:?}", conclusion.because),
            }
        };
        let checks = view.checks.values();
        Ok(checks
            .map(|check| (check.planned.id.to_string(), outcome(check)))
            .collect())
    }

    async fn row(&mut self, row: &Row) -> Hindered<()> {
        let began = Instant::now();
        let mut scene = Scene::healthy();
        (row.by)(&mut scene);
        let seen = self.look(&scene).await?;
        let mut turned = BTreeMap::new();
        let mut told = Vec::new();
        for (id, outcome) in &seen {
            // A pool of the row's own is healthy but for what the row says
            let healthy = self.healthy.get(id);
            let expected = healthy.map_or(usual(outcome.kind), |healthy| healthy.verdict);
            if outcome.verdict != expected {
                turned.insert(id.as_str(), outcome);
            } else if (outcome.kind == Kind::Evidence || row.tells.contains(&id.as_str()))
                && healthy.is_some_and(|healthy| healthy.observation != outcome.observation)
            {
                told.push(id.as_str());
            }
        }
        let verdicts: Vec<_> = turned
            .iter()
            .map(|(id, seen)| (*id, seen.verdict))
            .collect();
        if verdicts != row.turns || told != row.tells {
            let why: Vec<_> = turned
                .iter()
                .map(|(id, seen)| format!("{id}: {}", seen.words))
                .collect();
            return Err(format!(
                "turned {verdicts:?}, told {told:?}\nnot {:?}, {:?}\n{}",
                row.turns,
                row.tells,
                why.join("\n")
            ));
        }
        println!(
            "{}: {} checks, {verdicts:?}, {:?}",
            row.is,
            seen.len(),
            began.elapsed()
        );
        Ok(())
    }

    /// How the healthy cluster was judged.
    fn print_counts(&self) {
        for &verdict in Verdict::ALL {
            let of = |outcome: &&Outcome| outcome.verdict == verdict;
            let count = self.healthy.values().filter(of).count();
            if count > 0 {
                println!("healthy: {count} {verdict}");
            }
        }
    }
}

/// What a healthy cluster gives for a claim of a kind.
fn usual(kind: Kind) -> Verdict {
    match kind {
        Kind::Evidence => Recorded,
        _ => Pass,
    }
}
