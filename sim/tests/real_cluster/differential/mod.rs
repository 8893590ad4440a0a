//! The embedded API server beside a real one: the same objects in, with the same simulated nodes; the
//! same objects and statuses have to come out. And the same answers to requests, of which most are
//! refused.
//!
//! Needs the kubeconfig of a control plane without nodes (`ci/control-plane/up`) in
//! `WINCONFORM_TEST_KUBECONFIG`; without it the test says that it was not run.

mod answers;
mod normal;
mod world;

use std::time::Duration;

use hybrid_sim::server::{Server, ServerOptions};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{PLANE, control_plane, say};
use crate::seen::{Difference, Record, between};
use answers::Side;
use normal::Allowed;
use world::World;

/// How long the two may take to come to the same, and how long nothing changes once they have come to
/// what they are.
const PATIENCE: Duration = Duration::from_mins(1);
const QUIET: Duration = Duration::from_secs(10);

/// One thing after the other that is done in a namespace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// What is sent.
    #[serde(rename = "do")]
    actions: Vec<Action>,
    /// What both show then; only after that they are compared.
    until: Vec<Shown>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Action {
    Create(Value),
    Patch { object: String, merge: Value },
    Delete { object: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    /// As `deployments/web`, or `pods` for how many there are.
    of: String,
    /// A JSON pointer into it.
    #[serde(default)]
    at: String,
    is: Value,
}

/// Does the same in both, step by step, and gives what differs in the end of each.
async fn differs(worlds: [&World; 2], scenario: &Scenario) -> Vec<Difference> {
    let namespace = format!("differential-{}", scenario.name);
    for world in worlds {
        world.namespace(&namespace).await;
    }
    let mut all = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        for world in worlds {
            for action in &step.actions {
                world.send(&namespace, action).await;
            }
            world.until(&namespace, &step.until).await;
        }
        let case = format!("{} {}", scenario.name, number + 1);
        all.extend(settled(worlds, &namespace, &case).await);
    }
    for world in worlds {
        world.without(&namespace).await;
    }
    all
}

/// Looks again until both show the same, or have had time enough for it.
async fn settled([real, memory]: [&World; 2], namespace: &str, case: &str) -> Vec<Difference> {
    let deadline = Instant::now() + PATIENCE;
    let mut changes = (real.changes(namespace), memory.changes(namespace));
    loop {
        let seen: [Record; 2] = [real.record(namespace).await, memory.record(namespace).await];
        let found = between(case, &seen[0], &seen[1]);
        let unknown = found.iter().any(|one| !Allowed::objects().knows(one));
        if !unknown {
            return found;
        }
        let either = async {
            tokio::select! {
                biased;
                () = changes.0.next() => {}
                () = changes.1.next() => {}
            }
        };
        let quiet = deadline.min(Instant::now() + QUIET);
        if timeout_at(quiet, either).await.is_err() {
            return found;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_does_what_a_real_one_does() {
    let scenarios: Vec<Scenario> =
        serde_saphyr::from_str(include_str!("scenarios.yaml")).expect("scenarios.yaml");
    let test = "the_embedded_server_does_what_a_real_one_does";
    let Some((_, client)) = control_plane(test).await else {
        return;
    };
    let _alone = PLANE.write().await;
    let server = Server::start(&ServerOptions::default()).expect("it starts");
    let (real, memory) = (
        World::join(client).await,
        World::join(server.client()).await,
    );
    let (mut found, mut steps) = (Vec::new(), 0);
    for scenario in &scenarios {
        found.extend(differs([&real, &memory], scenario).await);
        steps += scenario.steps.len();
    }
    real.leave().await;
    memory.leave().await;
    server.stop().await;
    let what = format!("{} scenarios, {steps} steps", scenarios.len());
    conclude(&what, Allowed::objects(), &found);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_what_a_real_one_does() {
    let test = "the_embedded_server_answers_what_a_real_one_does";
    let Some((_, real)) = control_plane(test).await else {
        return;
    };
    let _alone = PLANE.write().await;
    let server = Server::start(&ServerOptions::default()).expect("it starts");
    let memory = server.client();
    let (found, requests) = answers::differ([&Side(real), &Side(memory)]).await;
    server.stop().await;
    conclude(&format!("{requests} requests"), Allowed::answers(), &found);
}

/// Fails on what differs and is not known to, and on what is known to and differs no more.
fn conclude(what: &str, allowed: &Allowed, found: &[Difference]) {
    let (known, unknown): (Vec<_>, Vec<_>) = found.iter().partition(|one| allowed.knows(one));
    let (of_known, others) = (known.len(), unknown.len());
    say(&format!(
        "{what}: {of_known} known differences, {others} others"
    ));
    let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    assert_eq!(unknown, Vec::<String>::new(), "\n{}", unknown.join("\n"));
    assert_eq!(
        allowed.unused(found),
        Vec::<String>::new(),
        "known, and seen no more"
    );
}
