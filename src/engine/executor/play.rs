//! Plays a scenario: takes its steps one after the other, with the pods of the run's watch as what is seen.

use std::time::Duration;

use ordered_watch as watch;
use serde_json::Value as Json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use winconform_core::fixture::FixtureKey;
use winconform_core::method::{
    Act, ApiRequest, Condition as Wanted, ErrorKind, ExitStatus, LEADS_NOWHERE, Moment,
    ObservationError, Play, PodRef, Result, Seen, Step, has_ready_endpoint, slices_of,
};
use winconform_core::text::{exit_code, printable};

use crate::cluster::objects::kinds::PODS;
use crate::cluster::objects::pods::crashes;
use crate::cluster::{Condition, Watched, poll, wait_for_watched};
use crate::engine::fixtures::apply::Fixtures;
use crate::engine::fixtures::readiness::ended;
use crate::engine::integrity::alterations::Altered;
use crate::engine::record::spans::millis;
use crate::transport::Pace;

/// How many times as long as a step may take it is watched, while the server is away.
const PATIENCE: u32 = 3;

/// Containers of a pod that crash have all ended by then.
const ALL_CRASH: Duration = Duration::from_secs(5);

/// The container of another pod from which a pod's Service is asked: no scenario does anything to it.
const ASKS: &str = "control";

/// The fields that scenarios are about.
const FIELDS: [&str; 5] = [
    "terminationGracePeriodSeconds",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

impl Fixtures {
    /// Takes the steps of a scenario; with `again`, on a new pod. `cancel` ends the wait but no request that
    /// creates anything.
    pub(super) async fn play(
        mut self,
        play: Play,
        again: bool,
        cancel: CancellationToken,
    ) -> Result<Vec<Moment>> {
        if again {
            let pod = self.clone().renew(&play.of, &play.container, &cancel);
            Box::pin(pod).await?;
        }
        let unfolded = cancel
            .run_until_cancelled(Box::pin(self.unfold(&play)))
            .await;
        unfolded.unwrap_or_else(|| Err(ended()))
    }

    /// Deletes a pod of a fixture, and creates it again from its manifest.
    async fn renew(
        mut self,
        of: &FixtureKey,
        pod: &PodRef,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let object = self.sent(of, pod)?;
        if let Some(there) = self.watched(pod) {
            let deleted = cancel.run_until_cancelled(self.delete(&there)).await;
            deleted.unwrap_or_else(|| Err(ended()))?;
        }
        self.announce(&object)?;
        let applied = self.apply(&object, cancel).await?;
        let applied: Vec<_> = applied.into_iter().collect();
        let runs = cancel.run_until_cancelled(Box::pin(self.wait_for_running(of, &applied)));
        runs.await.unwrap_or_else(|| Err(ended())).map(|_| ())
    }

    /// The pod as its manifest has it.
    fn sent(&self, of: &FixtureKey, pod: &PodRef) -> Result<Json> {
        let is_it =
            |object: &Json| object["kind"] == PODS.kind && object["metadata"]["name"] == *pod.name;
        let object = self.objects(of)?.into_iter().find(is_it);
        object.ok_or_else(|| unknown(pod))
    }

    /// The pod as the watch shows it.
    fn watched(&self, pod: &PodRef) -> Option<Json> {
        self.pods.borrow().objects.get(&watched_at(pod)).cloned()
    }

    async fn unfold(&mut self, play: &Play) -> Result<Vec<Moment>> {
        let pod = self.watched(&play.container);
        let pod = pod.ok_or_else(|| unknown(&play.container))?;
        if let Some(why) = crashes(&pod) {
            let detail = format!("before the scenario began, {why}");
            return Err(ErrorKind::FixtureFailed.error(detail));
        }
        self.is_stored_as_sent(play, &pod)?;
        let (began, mut moments, mut leaves) = (Instant::now(), Vec::new(), false);
        let mut led = None;
        for step in play.scenario.steps(play.of.name.os()) {
            let asks = matches!(step.act, Act::AwaitService(..));
            if asks && led == Some(false) {
                continue;
            }
            let mut words = step.words;
            let mut instead = self.take(&step, play, &pod, leaves).await?;
            if asks && led.is_none() {
                led = Some(instead.is_none());
                if instead.take().is_some() {
                    words = LEADS_NOWHERE;
                }
            }
            leaves |= step.act == Act::Delete;
            if let (true, Some(instead)) = (step.presumed, &instead) {
                let detail = format!("not so: {}, but {instead}", step.words);
                return Err(ErrorKind::UnrecognisedOutput.error(detail));
            }
            let is_over = instead.is_some();
            moments.push(Moment {
                step: words.to_owned(),
                after_ms: millis(began.elapsed()),
                instead,
            });
            if is_over {
                break;
            }
        }
        Ok(moments)
    }

    /// An error unless the pod has the fields that a scenario is about as its manifest has them: a webhook may
    /// have changed them.
    fn is_stored_as_sent(&self, play: &Play, pod: &Json) -> Result<()> {
        let sent = self.sent(&play.of, &play.container)?;
        let is_about =
            |at: &str| at == "spec.containers" || FIELDS.iter().any(|field| at.contains(field));
        let altered = Altered::between(pod, &sent).and_then(|altered| altered.error(is_about));
        altered.map_or(Ok(()), Err)
    }

    /// Takes one step; returns what is seen instead of what it waits for, if that does not come.
    async fn take(
        &mut self,
        step: &Step,
        play: &Play,
        pod: &Json,
        leaves: bool,
    ) -> Result<Option<String>> {
        let (api, begun) = (self.api.clone(), Instant::now());
        let away = || api.outage.last_met().filter(|at| *at > begun);
        let (wanted, span) = match &step.act {
            Act::Run(command) | Act::Ask(command) => {
                let request = command.on(play.of.name.os())?;
                let reply = api.exec(&play.container, &request).await?;
                if let (Act::Ask(_), ExitStatus::Code(1)) = (&step.act, &reply.exit) {
                    return Ok(Some("the program that looks does not find it".to_owned()));
                }
                if reply.exit != ExitStatus::Code(0) {
                    let how = match &reply.exit {
                        ExitStatus::Code(code) => format!("ended with {}", exit_code(*code)),
                        ExitStatus::NotStarted(why) => format!("did not start: {why}"),
                    };
                    let words = printable(format!("{how} {}", reply.stderr).trim());
                    let detail = format!("not so: {}, for the program {words}", step.words);
                    return Err(ErrorKind::UnrecognisedOutput.error(detail));
                }
                return Ok(None);
            }
            Act::Delete => return self.delete(pod).await.map(|()| None),
            Act::AwaitEndpoint(wanted, span) | Act::AwaitService(wanted, span) => {
                return self.becomes(play, &step.act, *wanted, *span).await;
            }
            Act::Await(wanted, span) | Act::Keep(wanted, span) => (wanted, *span),
        };
        let awaited = |now: Instant, seen| match seen {
            Seen::Holds => Condition::Done(None),
            Seen::Never(instead) => Condition::Done(Some(instead)),
            Seen::NotYet(instead) if now >= away().unwrap_or(begun) + span => {
                Condition::Done(Some(format!("{instead} {} s later", span.as_secs())))
            }
            Seen::NotYet(instead) => Condition::NotYet(instead),
            Seen::Untold(error) => Condition::Never(error),
        };
        let kept = |now: Instant, seen| match seen {
            Seen::Untold(error) => Condition::Never(error),
            _ if away().is_some() => Condition::Never(unavailable()),
            Seen::Holds if now >= begun + span => Condition::Done(None),
            Seen::Holds => Condition::NotYet("so far".to_owned()),
            Seen::NotYet(instead) | Seen::Never(instead) => Condition::Done(Some(instead)),
        };
        let read = |now, seen| match &step.act {
            Act::Keep(..) => kept(now, seen),
            _ => awaited(now, seen),
        };
        let PodRef {
            namespace,
            name,
            container,
        } = &play.container;
        let key = watched_at(&play.container);
        let is_it = |there: &&Json| there["metadata"]["uid"] == pod["metadata"]["uid"];
        let mut never = false;
        let instead = wait_for_watched(&mut self.pods, span * PATIENCE, step.words, |pods| {
            let there = pods.objects.get(&key).filter(is_it);
            let gone = pods.gone.get(&key).filter(is_it).filter(|_| leaves);
            let seen = seen_of(wanted, [there, gone], container, leaves);
            never = matches!(seen, Seen::Never(_));
            read(Instant::now(), seen)
        });
        let instead = instead.await?;
        if instead.is_none() {
            return Ok(None);
        }
        if matches!(step.act, Act::Keep(..)) {
            let others = others_run(&mut self.pods, |pods| {
                let there = pods.objects.get(&key).filter(is_it);
                wanted.read(there, container, leaves)
            });
            others.await?;
            return match away() {
                Some(_) => Err(unavailable()),
                None => Ok(instead),
            };
        }
        // The watch may be late
        let path = PODS.object_path(Some(namespace), name);
        let reply = api.send(&ApiRequest::get(path)).await?;
        let there = match reply.status {
            200 => Some(&reply.body).filter(is_it),
            404 => None,
            _ => return Err(reply.refused(ErrorKind::ApiUnavailable)),
        };
        match wanted.read(there, container, leaves) {
            Seen::Holds => Ok(None),
            Seen::Untold(error) if there.is_some() || !leaves || !never => Err(error),
            _ => Ok(instead),
        }
    }

    /// Waits until the fixture's Service has the pod as a ready endpoint or leads to it, or no longer does; returns
    /// what is seen instead once the time is over.
    async fn becomes(
        &self,
        play: &Play,
        act: &Act,
        wanted: bool,
        span: Duration,
    ) -> Result<Option<String>> {
        let [missing, there] = match act {
            Act::AwaitService(..) => ["it does not", "it still does"],
            _ => ["none is", "it still is"],
        };
        let instead = if wanted { missing } else { there };
        let begun = Instant::now();
        let pace = Pace::new(self.api.durations().observe_again);
        poll(pace, span * PATIENCE, "the Service", async || {
            match self.is_served(play, act).await {
                Err(error) => return Condition::Never(error),
                Ok(is_so) if is_so == wanted => return Condition::Done(None),
                Ok(_) => {}
            }
            let since = self.api.outage.last_met().max(Some(begun));
            match since.is_some_and(|since| since.elapsed() >= span) {
                true => Condition::Done(Some(format!("{instead} {} s later", span.as_secs()))),
                false => Condition::NotYet(instead.to_owned()),
            }
        })
        .await
    }

    /// Whether the fixture's Service has the pod as a ready endpoint, or leads to it.
    async fn is_served(&self, play: &Play, act: &Act) -> Result<bool> {
        if matches!(act, Act::AwaitService(..)) {
            let (from, request) = (self.asks_service(play)?, play.service_request()?);
            let asked = self
                .api
                .exec_read(&from, &request, |reply| play.has_answered(reply));
            return asked.await;
        }
        let PodRef {
            namespace, name, ..
        } = &play.container;
        let request = ApiRequest::get(slices_of(namespace, &play.of.object_name()));
        let reply = self.api.send(&request).await?;
        match reply.status {
            200 => Ok(has_ready_endpoint(&reply.body, name)),
            _ => Err(reply.refused(ErrorKind::ApiUnavailable)),
        }
    }

    /// The container that asks the Service, in another pod of the fixture: not every network leads a pod to itself.
    fn asks_service(&self, play: &Play) -> Result<PodRef> {
        let PodRef {
            namespace, name, ..
        } = &play.container;
        let objects = self.objects(&play.of)?;
        let pods = objects.iter().filter(|object| object["kind"] == PODS.kind);
        let mut names = pods.filter_map(|pod| pod["metadata"]["name"].as_str());
        let other = names.rfind(|other| *other != name.as_str());
        let other = other.ok_or_else(|| {
            let detail = "no other pod of the fixture can ask the pod's Service";
            ErrorKind::FixtureFailed.error(detail)
        })?;
        Ok(PodRef {
            namespace: namespace.clone(),
            name: other.to_owned(),
            container: ASKS.to_owned(),
        })
    }
}

fn unavailable() -> ObservationError {
    ErrorKind::ApiUnavailable.error("the API server was away meanwhile")
}

/// Ends with the error if what is seen proves nothing a moment later: where all containers of a pod crash, the
/// kubelet may tell of one before the others.
async fn others_run(
    pods: &mut watch::Receiver<Watched>,
    mut read: impl FnMut(&Watched) -> Seen,
) -> Result<()> {
    let begun = Instant::now();
    let what = "whether other containers end, too";
    let moment = wait_for_watched(pods, 2 * ALL_CRASH, what, |pods| match read(pods) {
        Seen::Untold(error) => Condition::Never(error),
        _ if begun.elapsed() >= ALL_CRASH => Condition::Done(()),
        _ => Condition::NotYet("so far they run".to_owned()),
    });
    moment.await
}

/// What is seen of a condition on a pod, or of one that is gone: a kubelet deletes it right after it has posted how
/// its containers ended, and the watch may show both at once.
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

/// The key of a pod in the watch.
fn watched_at(pod: &PodRef) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

fn unknown(pod: &PodRef) -> ObservationError {
    let detail = format!("pod {} is not there", printable(&pod.name));
    ErrorKind::FixtureChanged.error(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::pause;
    use serde_json::json;

    #[test]
    fn a_pod_that_is_gone_shows_how_its_container_ended() {
        let wanted = Wanted::Ended {
            other: None,
            code: Some(0),
            message: None,
        };
        let seen = |state: Json| {
            let gone = json!({"metadata": {"name": "p"}, "status": {"containerStatuses":
                [{"name": "main", "restartCount": 0, "state": state}]}});
            seen_of(&wanted, [None, Some(&gone)], "main", true)
        };
        assert_eq!(seen(json!({"terminated": {"exitCode": 0}})), Seen::Holds);
        assert!(matches!(
            seen(json!({"terminated": {"exitCode": 1067}})),
            Seen::Never(_)
        ));
        // Deleted by force, say
        assert!(matches!(seen(json!({"running": {}})), Seen::Untold(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_container_that_ends_with_the_others_tells_nothing() {
        for (other_ends, ends) in [(Some(2), "untold"), (None, "told")] {
            let (send, mut pods) = watch::channel(Watched::default());
            let pod = |restarts: u32| {
                let status = json!({"phase": "Running", "containerStatuses": [
                    {"name": "main", "restartCount": 1}, {"name": "control", "restartCount": restarts}]});
                let pod = json!({"metadata": {"name": "p"}, "status": status});
                let objects = [("n/p".to_owned(), pod)].into();
                Watched {
                    objects: std::sync::Arc::new(objects),
                    ..Watched::default()
                }
            };
            send.send_replace(pod(0));
            let changes = async {
                if let Some(after) = other_ends {
                    pause(Duration::from_secs(after)).await;
                    send.send_replace(pod(1));
                }
                std::future::pending::<()>().await;
            };
            let read = |pods: &Watched| {
                Wanted::Started(false).read(pods.objects.get("n/p"), "main", false)
            };
            let seen = tokio::select! {
                biased;
                seen = others_run(&mut pods, read) => seen,
                () = changes => unreachable!("it does not end"),
            };
            let word = if seen.is_ok() { "told" } else { "untold" };
            assert_eq!(word, ends);
        }
    }
}
