//! Compares the embedded API server with a real one: the same objects, with the same simulated nodes, must
//! lead to the same objects and statuses; and both must answer alike to requests, most of which they refuse.
//!
//! Each test needs the kubeconfig of a control plane without nodes (`ci/control-plane/up`) in
//! `WINCONFORM_TEST_KUBECONFIG`; without it, it reports that it was not run.

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

/// How long the two may take to become equal, and how long nothing may change before they count as settled.
const PATIENCE: Duration = Duration::from_mins(1);
const QUIET: Duration = Duration::from_secs(10);

/// A sequence of steps in a namespace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// The requests.
    #[serde(rename = "do")]
    actions: Vec<Action>,
    /// The values that both must show before they are compared.
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
    /// An object, such as `deployments/web`; or `pods` for their number.
    of: String,
    /// A JSON pointer into the object.
    #[serde(default)]
    at: String,
    is: Value,
}

/// Runs the steps of a scenario in both worlds; returns the differences after each.
async fn differs(worlds: [&World; 2], scenario: &Scenario) -> Vec<Difference> {
    let namespace = format!("differential-{}", scenario.name);
    for world in worlds {
        world.namespace(&namespace).await;
    }
    let mut differences = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        for world in worlds {
            for action in &step.actions {
                world.send(&namespace, action).await;
            }
        }
        for world in worlds {
            world.until(&namespace, &step.until).await;
        }
        let case = format!("{} {}", scenario.name, number + 1);
        differences.extend(settled(worlds, &namespace, &case).await);
    }
    for world in worlds {
        world.without(&namespace).await;
    }
    differences
}

/// Compares again after each change until both are equal, or the time is over.
async fn settled([real, memory]: [&World; 2], namespace: &str, case: &str) -> Vec<Difference> {
    let deadline = Instant::now() + PATIENCE;
    let mut changes = (real.changes(namespace), memory.changes(namespace));
    loop {
        let seen: [Record; 2] = [real.record(namespace).await, memory.record(namespace).await];
        let differences = between(case, &seen[0], &seen[1]);
        let unknown = differences.iter().any(|one| !Allowed::objects().knows(one));
        if !unknown {
            return differences;
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
            return differences;
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
    let (mut differences, mut steps) = (Vec::new(), 0);
    for scenario in &scenarios {
        differences.extend(differs([&real, &memory], scenario).await);
        steps += scenario.steps.len();
    }
    real.leave().await;
    memory.leave().await;
    server.stop().await;
    let what = format!("{} scenarios, {steps} steps", scenarios.len());
    conclude(&what, Allowed::objects(), &differences);
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
    let (seen, requests) = answers::differ([&Side(real), &Side(memory)]).await;
    server.stop().await;
    conclude(&format!("{requests} requests"), Allowed::answers(), &seen);
}

/// Fails for a difference that is not known, and for a known one that no longer occurs.
fn conclude(what: &str, allowed: &Allowed, seen: &[Difference]) {
    let (known, unknown): (Vec<_>, Vec<_>) = seen.iter().partition(|one| allowed.knows(one));
    let (of_known, others) = (known.len(), unknown.len());
    say(&format!(
        "{what}: {of_known} known differences, {others} others"
    ));
    let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    assert_eq!(unknown, Vec::<String>::new(), "\n{}", unknown.join("\n"));
    assert_eq!(
        allowed.unused(seen),
        Vec::<String>::new(),
        "known, and seen no more"
    );
}
