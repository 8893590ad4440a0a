//! Plays a scenario on a Linux pod: the tool's own player knows only the pods of its fixtures.

use std::time::Duration;

use ordered_watch as watch;
use serde_json::Value as Json;
use tokio::time::Instant;
use winconform::cluster::{Condition, Watched, apply, poll_until, wait_for_watched};
use winconform::transport::{Api, PodRef};
use winconform_core::facts::Os;
use winconform_core::method::{
    Act, ApiRequest, Condition as Wanted, ErrorKind, ExitStatus, Result, Scenario, Seen, Step,
    Verb, has_ready_endpoint, slices_of,
};

/// How long a pod may take until it runs; the simulated node pulls its images.
const RUNS: Duration = Duration::from_mins(3);

/// How long a namespace may take until pods can be created in it.
const CREATED: Duration = Duration::from_mins(1);

/// The first pause between two queries.
const OFTEN: Duration = Duration::from_millis(200);

/// The container of a scenario.
pub(super) struct Stage {
    pub(super) api: Api,
    pub(super) pods: watch::Receiver<Watched>,
    pub(super) of: PodRef,
}

/// The steps of a scenario, without the programs that only Windows has.
fn steps(scenario: Scenario) -> impl Iterator<Item = Step> {
    let steps = scenario.steps(Os::Linux).into_iter();
    steps.filter(|step| match &step.act {
        Act::Run(command) | Act::Ask(command) => command.on(Os::Linux).is_ok(),
        _ => true,
    })
}

/// These steps in words.
pub(super) fn words(scenario: Scenario) -> Vec<String> {
    steps(scenario).map(|step| step.words.to_owned()).collect()
}

impl Stage {
    /// Creates the objects of a scenario, and takes its steps; returns the pod's name with the steps that came, and the
    /// first that did not.
    pub(super) async fn play(
        mut self,
        scenario: Scenario,
        objects: [Json; 2],
    ) -> (String, Vec<String>) {
        let mut taken = Vec::new();
        if let Err(why) = self.unfold(scenario, &objects, &mut taken).await {
            taken.push(why);
        }
        (self.of.name, taken)
    }

    async fn unfold(
        &mut self,
        scenario: Scenario,
        objects: &[Json],
        taken: &mut Vec<String>,
    ) -> Result<(), String> {
        for object in objects {
            let created = self.create(object).await;
            created.map_err(|error| error.to_string())?;
        }
        self.runs().await.map_err(|error| error.to_string())?;
        let mut leaves = false;
        for step in steps(scenario) {
            let came = self.take(&step, leaves).await;
            came.map_err(|error| format!("not: {}, but {error}", step.words))?;
            leaves |= step.act == Act::Delete;
            taken.push(step.words.to_owned());
        }
        Ok(())
    }

    async fn create(&self, object: &Json) -> Result<()> {
        // The account that pods run as comes a moment after their namespace
        let creates = async || match apply(&self.api, object).await {
            Ok(_) => Condition::Done(()),
            Err(error) => Condition::NotYet(error.to_string()),
        };
        poll_until(OFTEN, CREATED, "an object", creates).await
    }

    fn watched_at(&self) -> String {
        format!("{}/{}", self.of.namespace, self.of.name)
    }

    async fn runs(&mut self) -> Result<()> {
        let key = self.watched_at();
        let is_running = |status: &Json| status["state"]["running"].is_object();
        let running = wait_for_watched(&mut self.pods, RUNS, "a pod that runs", |pods| {
            let pod = pods.objects.get(&key);
            let statuses = pod.and_then(|pod| pod["status"]["containerStatuses"].as_array());
            match statuses.is_some_and(|statuses| statuses.iter().all(is_running)) {
                true => Condition::Done(()),
                false => Condition::NotYet("it does not run".to_owned()),
            }
        });
        running.await
    }

    async fn take(&mut self, step: &Step, leaves: bool) -> Result<()> {
        let (wanted, span, keeps) = match &step.act {
            Act::Run(command) | Act::Ask(command) => {
                let request = command.on(Os::Linux)?;
                let reply = self.api.exec(&self.of, &request).await?;
                return match reply.exit {
                    ExitStatus::Code(0) => Ok(()),
                    other => Err(ErrorKind::UnrecognisedOutput.error(format!("{other:?}"))),
                };
            }
            Act::Delete => return self.delete().await,
            Act::AwaitEndpoint(wanted, span) => return self.endpoint_becomes(*wanted, *span).await,
            // No proxy runs there
            Act::AwaitService(..) => return Ok(()),
            Act::Await(wanted, span) => (wanted, *span, false),
            Act::Keep(wanted, span) => (wanted, *span, true),
        };
        let (key, begun) = (self.watched_at(), Instant::now());
        let container = &self.of.container;
        let came = wait_for_watched(&mut self.pods, span * 2, step.words, |pods| {
            let gone = pods.gone.get(&key).filter(|_| leaves);
            let seen = seen_of(wanted, [pods.objects.get(&key), gone], container, leaves);
            let is_over = begun.elapsed() >= span;
            match seen {
                Seen::Holds if keeps && !is_over => Condition::NotYet("so far".to_owned()),
                Seen::Holds => Condition::Done(()),
                Seen::NotYet(instead) if !keeps && !is_over => Condition::NotYet(instead),
                Seen::NotYet(instead) | Seen::Never(instead) => {
                    Condition::Never(ErrorKind::UnrecognisedOutput.error(instead))
                }
                Seen::Untold(error) => Condition::Never(error),
            }
        });
        came.await
    }

    async fn delete(&self) -> Result<()> {
        let PodRef {
            namespace, name, ..
        } = &self.of;
        let request = ApiRequest {
            verb: Verb::Delete,
            path: format!("/api/v1/namespaces/{namespace}/pods/{name}"),
            body: None,
        };
        let reply = self.api.send(&request).await?;
        match reply.status {
            200 | 202 => Ok(()),
            _ => Err(ErrorKind::ApiUnavailable.error(reply.message())),
        }
    }

    /// Waits until the Service, which has the name of the pod, has it as a ready endpoint, or has it no more.
    async fn endpoint_becomes(&self, wanted: bool, span: Duration) -> Result<()> {
        let PodRef {
            namespace, name, ..
        } = &self.of;
        let request = ApiRequest::get(slices_of(namespace, name));
        let becomes = async || match self.api.send(&request).await {
            Err(error) => Condition::Never(error),
            Ok(reply) if reply.status == 200 && has_ready_endpoint(&reply.body, name) == wanted => {
                Condition::Done(())
            }
            Ok(reply) => Condition::NotYet(format!("status {}", reply.status)),
        };
        poll_until(OFTEN, span, "the endpoints", becomes).await
    }
}

/// What is seen of a condition on a pod that is there, or of one that is gone, by how it was in the end.
fn seen_of(
    wanted: &Wanted,
    [there, gone]: [Option<&Json>; 2],
    container: &str,
    leaves: bool,
) -> Seen {
    let in_the_end = gone.map(|gone| wanted.read(Some(gone), container, leaves));
    in_the_end
        .filter(|seen| !matches!(seen, Seen::NotYet(_)))
        .unwrap_or_else(|| wanted.read(there, container, leaves))
}
