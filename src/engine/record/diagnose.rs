//! Collects evidence about fixtures that failed, and about those that failed checks depend on, and puts it
//! on record before their pods are removed: once nothing observes them any more, or after the last verdict.
//!
//! It never takes longer than its own limit, a healthy run asks for nothing, and no verdict depends on it:
//! evidence that cannot be read is on record as such.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use ordered_watch as watch;
use serde_json::Value as Json;
use tokio::time::timeout;
use winconform_core::command::Command;
use winconform_core::facts::Os;
use winconform_core::fixture::{FixtureKey, FixtureName};
use winconform_core::method::{ApiRequest, SourceKind, VantageKey};
use winconform_core::plan::{CheckId, Plan};
use winconform_core::record::{Diagnosis, Event, Evidence, EvidenceKind, FixtureOutcome, RunView};
use winconform_core::text::printable;
use winconform_core::verdict::Verdict;

use super::evidence::{describe_events, name_of, node_of, node_status, status};
use super::journal::Journal;
use crate::cluster::labels;
use crate::cluster::objects::kinds::PODS;
use crate::cluster::objects::status::{containers, is, text};
use crate::engine::fixtures::manifest::{self, prober};
use crate::engine::fixtures::stuck_pods::belongs;
use crate::engine::stop::signalled;
use crate::transport::{Api, encode};

/// The most fixtures that are diagnosed; those that failed come first.
const FIXTURES: usize = 12;
const PODS_EACH: usize = 3;
/// The lines that are requested of a log.
const TAIL: usize = 30;
/// The most bytes that are read of a log.
const LOG: usize = 64 << 10;
/// Where kube-proxy runs as a `DaemonSet`.
pub(crate) const SYSTEM: &str = "kube-system";

/// By check, what it depends on: the fixtures that it needs and the prober that it observes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dependencies(BTreeMap<CheckId, BTreeSet<FixtureKey>>);

impl Dependencies {
    pub(crate) fn from_plan(plan: &Plan) -> Self {
        let checks = plan.checks.iter().map(|check| {
            let keys = check.depends_on().map(|(key, _)| key);
            (check.id.clone(), keys.collect())
        });
        Self(checks.collect())
    }

    /// The fixtures to diagnose, with the failed checks that depend on each.
    fn subjects(&self, view: &RunView) -> Vec<(FixtureKey, Vec<CheckId>)> {
        let failed = view.fixtures.iter();
        let failed =
            failed.filter(|(_, (outcome, _))| matches!(outcome, FixtureOutcome::Failed(_)));
        let mut subjects: Vec<_> = failed.map(|(key, _)| (key.clone(), Vec::new())).collect();
        for check in view.checks.values() {
            if check.verdict() != Some(Verdict::Fail) {
                continue;
            }
            let id = &check.planned.id;
            for key in self.0.get(id).into_iter().flatten() {
                match subjects.iter_mut().find(|(known, _)| known == key) {
                    Some((_, checks)) => checks.push(id.clone()),
                    None => subjects.push((key.clone(), vec![id.clone()])),
                }
            }
        }
        subjects.retain(|(key, _)| {
            let has_no_pods = matches!(key.name, FixtureName::NAMESPACES | FixtureName::ALIAS);
            !has_no_pods && !view.diagnoses.contains_key(key)
        });
        subjects.truncate(FIXTURES.saturating_sub(view.diagnoses.len()));
        subjects
    }
}

/// Puts the evidence on record, as far as it can be read within the time limit and before the user
/// signals.
pub(crate) async fn diagnose(
    api: &Api,
    run: &str,
    journal: &Journal,
    dependencies: &Dependencies,
    mut signals: watch::Receiver<u32>,
) {
    let Ok(view) = journal.view() else {
        return;
    };
    // A run that has to end early takes no time for this
    if view.interrupted.is_some() || view.deadline.is_some() {
        return;
    }
    let subjects = dependencies.subjects(&view);
    if subjects.is_empty() {
        return;
    }
    let looking = async {
        let seen = Seen::read(api, run, &view).await;
        // Each diagnosis is on record as soon as it is complete
        for (key, checks) in subjects {
            seen.note(journal, key, checks).await;
        }
    };
    tokio::select! {
        biased;
        () = signalled(&mut signals, 1) => {}
        _ = timeout(api.durations().diagnose, looking) => {}
    }
}

/// Puts the evidence about one fixture on record, before its pods are removed.
pub(crate) async fn diagnose_one(
    api: &Api,
    run: &str,
    journal: &Journal,
    key: &FixtureKey,
    checks: Vec<CheckId>,
) {
    let Ok(view) = journal.view() else {
        return;
    };
    let looking = async {
        let seen = Seen::read(api, run, &view).await;
        seen.note(journal, key.clone(), checks).await;
    };
    let _ = timeout(api.durations().diagnose, looking).await;
}

/// A run so far, with its pods and the events of its namespaces, from one list each per namespace.
struct Seen<'r> {
    api: &'r Api,
    run: &'r str,
    view: &'r RunView,
    pods: Result<Vec<Json>, String>,
    events: Result<Vec<Json>, String>,
}

impl<'r> Seen<'r> {
    async fn read(api: &'r Api, run: &'r str, view: &'r RunView) -> Self {
        let [plain, host] = [manifest::namespace(run), manifest::host_namespace(run)];
        let selector = encode(&labels::selector(Some(run)));
        let path = |kind: &str, namespace: &str, query: &str| {
            format!("/api/v1/namespaces/{namespace}/{kind}{query}")
        };
        let selected = format!("?labelSelector={selector}");
        let pods = [&plain, &host].map(|ns| path("pods", ns, &selected));
        let events = [&plain, &host].map(|ns| path("events", ns, "?limit=500"));
        let (pods, events) = futures::join!(both(api, pods), both(api, events));
        Self {
            api,
            run,
            view,
            pods,
            events,
        }
    }

    /// Puts the diagnosis of a fixture on record.
    async fn note(&self, journal: &Journal, fixture: FixtureKey, checks: Vec<CheckId>) {
        let evidence = self.evidence(&fixture, &checks).await;
        let diagnosis = Diagnosis {
            fixture,
            checks,
            evidence,
        };
        // The journal reports a failed write itself
        let _ = journal.write(Event::Diagnosis(diagnosis));
    }

    async fn evidence(&self, key: &FixtureKey, checks: &[CheckId]) -> Vec<Evidence> {
        let unknown = |kind, why: &String| Evidence::unknown(kind, key.to_string(), why);
        let pods = match &self.pods {
            Ok(pods) => pods,
            Err(why) => return vec![unknown(EvidenceKind::Status, why)],
        };
        let mut members: Vec<_> = pods.iter().filter(|pod| belongs(pod, key)).collect();
        members.sort_by_key(|pod| is(pod, "Ready"));
        members.truncate(PODS_EACH);
        let mut evidence: Vec<_> = members.iter().map(|pod| status(pod)).collect();
        match &self.events {
            Ok(events) => {
                let lines = describe_events(events, &members, key);
                if !lines.is_empty() {
                    let of = key.to_string();
                    evidence.push(Evidence::from_text(EvidenceKind::Events, of, &lines));
                }
            }
            Err(why) => evidence.push(unknown(EvidenceKind::Events, why)),
        }
        let logs = members.iter().flat_map(|pod| logs_of(pod));
        let logs = logs.map(|log| log.read(self.api));
        evidence.extend(join_all(logs).await);
        let on: BTreeSet<_> = members.iter().filter_map(|pod| node_of(pod)).collect();
        evidence.extend(join_all(on.iter().map(|name| of_node(self.api, name))).await);
        if !checks.is_empty() {
            evidence.extend(self.network(key, &on).await);
        }
        evidence
    }

    /// Evidence about the network of a Windows node: its load balancers, and kube-proxy, which creates them.
    async fn network(&self, key: &FixtureKey, on: &BTreeSet<&str>) -> Vec<Evidence> {
        // A prober on another node would show nothing of this one
        let is_there = |outcome: &FixtureOutcome| match outcome {
            FixtureOutcome::Ready(prober) => prober.pods.iter().any(|pod| on.contains(&*pod.node)),
            FixtureOutcome::Failed(_) => false,
        };
        let is_node = |other: &FixtureKey| {
            let names = [
                FixtureName::WINDOWS_NODE_PROBER,
                FixtureName::EACH_WINDOWS_NODE,
            ];
            names.contains(&other.name) && other.pool == key.pool
        };
        let mut probers = self
            .view
            .fixtures
            .iter()
            .filter(|(other, _)| is_node(other));
        let Some((prober_key, _)) = probers.find(|(_, (outcome, _))| is_there(outcome)) else {
            return Vec::new();
        };
        let from = VantageKey {
            kind: SourceKind::WindowsNode,
            pool: key.pool.clone(),
            node: prober_key.node,
        };
        let Some(pod) = prober(self.run, &from) else {
            return Vec::new();
        };
        let of = from.to_string();
        let balancers = async {
            let request = Command::LoadBalancers.on(Os::Windows)?;
            self.api.exec(&pod, &request).await
        };
        let hns = match balancers.await {
            Ok(reply) => {
                let text = format!("{}\n{}", reply.stdout, reply.stderr);
                Evidence::from_text(EvidenceKind::Hns, of, &text)
            }
            Err(error) => Evidence::unknown(EvidenceKind::Hns, of, &error.to_string()),
        };
        let mut evidence = vec![hns];
        let proxies = join_all(on.iter().map(|node| proxies_on(self.api, node))).await;
        evidence.extend(proxies.into_iter().flatten());
        evidence
    }
}

/// The logs of kube-proxy on a node.
async fn proxies_on(api: &Api, node: &str) -> Vec<Evidence> {
    let selector = encode(&format!("spec.nodeName={node}"));
    let path = format!("/api/v1/namespaces/{SYSTEM}/pods?fieldSelector={selector}");
    let pods = match items(api, path).await {
        Ok(pods) => pods,
        Err(why) => {
            let of = format!("namespace {SYSTEM}");
            return vec![Evidence::unknown(EvidenceKind::KubeProxy, of, &why)];
        }
    };
    let is_own = |pod: &&Json| name_of(pod).contains("kube-proxy") && node_of(pod) == Some(node);
    let logs = pods.iter().filter(is_own).flat_map(logs_of);
    let logs = logs
        .filter(|log| log.kind == EvidenceKind::Log)
        .map(|log| Log {
            kind: EvidenceKind::KubeProxy,
            of: format!("kube-proxy on {node}, {}", log.of),
            ..log
        });
    join_all(logs.map(|log| log.read(api))).await
}

/// The status of a node, or why it cannot be read.
async fn of_node(api: &Api, name: &str) -> Evidence {
    let path = format!("/api/v1/nodes/{}", encode(name));
    match got(api, path).await {
        Ok(node) => node_status(&node),
        Err(why) => {
            let of = format!("Node {}", printable(name));
            Evidence::unknown(EvidenceKind::Node, of, &why)
        }
    }
}

/// The object at a path, or why it cannot be read.
async fn got(api: &Api, path: String) -> Result<Json, String> {
    match api.send(&ApiRequest::get(path)).await {
        Ok(reply) if reply.status == 200 => Ok(reply.body),
        Ok(reply) => Err(reply.message()),
        Err(error) => Err(error.to_string()),
    }
}

/// The items of two lists.
async fn both(api: &Api, [one, other]: [String; 2]) -> Result<Vec<Json>, String> {
    let (one, other) = futures::join!(items(api, one), items(api, other));
    Ok([one?, other?].concat())
}

async fn items(api: &Api, path: String) -> Result<Vec<Json>, String> {
    let list = got(api, path).await?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

struct Log {
    kind: EvidenceKind,
    of: String,
    path: String,
}

impl Log {
    async fn read(self, api: &Api) -> Evidence {
        let why = match api.text(&self.path).await {
            Ok(reply) if reply.status == 200 => {
                return Evidence::from_text(self.kind, self.of, text(&reply.body));
            }
            Ok(reply) => format!("status {}: {}", reply.status, text(&reply.body["message"])),
            Err(error) => error.to_string(),
        };
        Evidence::unknown(self.kind, self.of, &why)
    }
}

/// The logs of a pod: of each container that began, and of the one before its last restart.
fn logs_of(pod: &Json) -> Vec<Log> {
    let metadata = &pod["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let path = PODS.object_path(Some(namespace), name);
    let mut logs = Vec::new();
    for container in containers(pod) {
        let container_name = text(&container["name"]);
        let of = format!("Pod {namespace}/{name}, container {container_name}");
        let query = format!(
            "container={}&tailLines={TAIL}&limitBytes={LOG}",
            encode(container_name)
        );
        let ended = !container["lastState"]["terminated"].is_null();
        let began = ended
            || !container["state"]["running"].is_null()
            || !container["state"]["terminated"].is_null();
        if ended {
            logs.push(Log {
                kind: EvidenceKind::PreviousLog,
                of: of.clone(),
                path: format!("{path}/log?{query}&previous=true"),
            });
        }
        if began {
            logs.push(Log {
                kind: EvidenceKind::Log,
                of,
                path: format!("{path}/log?{query}"),
            });
        }
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::super::journal::tests::of_run;
    use super::*;
    use crate::cluster::fake::Fake;
    use serde_json::json;
    use tokio::time::Instant;
    use winconform_core::facts::PoolName;
    use winconform_core::method::ErrorKind;

    const POD: &str = "/api/v1/namespaces/winconform-r1/pods/linux-server-linux";
    const LOG: &str = "/api/v1/namespaces/winconform-r1/pods/linux-server-linux/log";

    fn key() -> FixtureKey {
        FixtureName::LINUX_SERVER.in_pool(Some(&PoolName::linux()))
    }

    /// A journal of a run, in which the fixture failed or not.
    fn journal(failed: bool) -> Journal {
        let journal = of_run();
        if failed {
            let error = ErrorKind::FixtureFailed.error("CrashLoopBackOff");
            let event = Event::Fixture {
                key: key(),
                outcome: FixtureOutcome::Failed(error),
                took_ms: 1,
            };
            journal.write(event).expect("written");
        }
        journal
    }

    fn put(fake: &Fake) {
        let container = json!({"name": "server", "restartCount": 2,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1}}});
        fake.put(
            POD,
            json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "winconform-r1", "name": "linux-server-linux", "labels": {
                labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: "r1",
                labels::FIXTURE: key().name.as_str(), labels::POOL: "linux"}},
            "status": {"phase": "Running", "containerStatuses": [container]}}),
        );
    }

    async fn diagnosed(fake: &Fake, failed: bool) -> BTreeMap<FixtureKey, Diagnosis> {
        let journal = journal(failed);
        let (_alive, signals) = watch::channel(0);
        diagnose(
            &fake.api(),
            "r1",
            &journal,
            &Dependencies::default(),
            signals,
        )
        .await;
        journal.view().expect("a record").diagnoses
    }

    #[tokio::test(start_paused = true)]
    async fn a_healthy_run_asks_nothing() {
        let fake = Fake::default();
        put(&fake);
        assert!(diagnosed(&fake, false).await.is_empty());
        assert!(fake.log().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_before_the_restart_is_on_record_without_secrets() {
        let fake = Fake::default();
        put(&fake);
        let log = json!("begin\npassword=hunter2\nfatal: no such file\n");
        fake.script(&format!("GET {LOG}"), 200, log);
        let diagnoses = diagnosed(&fake, true).await;
        let evidence = &diagnoses[&key()].evidence;
        let of = |kind| evidence.iter().find(|one| one.kind == kind);
        let log = of(EvidenceKind::PreviousLog);
        assert!(log.is_some(), "{evidence:?}");
        let status = of(EvidenceKind::Status).expect("a status");
        assert!(status.lines.concat().contains("2 restarts"), "{status:?}");
        let text = format!("{evidence:?}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_nodes_in_question_are_asked_for() {
        let fake = Fake::default();
        put(&fake);
        let mut pod = fake.get(POD).expect("it was put");
        pod["spec"]["nodeName"] = json!("a");
        fake.put(POD, pod);
        fake.put("/api/v1/nodes/a", json!({"metadata": {"name": "a"}}));
        let diagnoses = diagnosed(&fake, true).await;
        let evidence = &diagnoses[&key()].evidence;
        assert!(evidence.iter().any(|one| one.kind == EvidenceKind::Node));
        let mut log = fake.log();
        log.retain(|line| line.contains("/nodes") || line.contains("/kube-system"));
        assert_eq!(log, ["GET /api/v1/nodes/a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_of_kube_proxy_is_named_after_its_node() {
        let fake = Fake::default();
        let pod = "/api/v1/namespaces/kube-system/pods/kube-proxy-x";
        let container = json!({"name": "kube-proxy", "state": {"running": {"startedAt": "now"}}});
        fake.put(
            pod,
            json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "kube-system", "name": "kube-proxy-x"},
            "spec": {"nodeName": "a"}, "status": {"containerStatuses": [container]}}),
        );
        fake.script(&format!("GET {pod}/log"), 200, json!("began\n"));
        let evidence = proxies_on(&fake.api(), "a").await;
        let said: Vec<_> = evidence.iter().map(|one| one.of.as_str()).collect();
        let of = "kube-proxy on a, Pod kube-system/kube-proxy-x, container kube-proxy";
        assert_eq!(said, [of]);
        assert_eq!(evidence[0].lines, ["began"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_not_be_read_is_on_record_and_no_more() {
        let fake = Fake::default();
        let forbidden = json!({"kind": "Status", "message": "pods is forbidden"});
        fake.script("GET", 403, forbidden);
        let diagnoses = diagnosed(&fake, true).await;
        let evidence = &diagnoses[&key()].evidence;
        let said: Vec<_> = evidence.iter().map(|one| one.unknown.as_deref()).collect();
        assert_eq!(said, [Some("pods is forbidden")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_delays_it_no_longer_than_its_limit() {
        let fake = Fake::default();
        fake.script("GET", 503, json!({"kind": "Status", "message": "later"}));
        let (begun, limit) = (Instant::now(), fake.api().durations().diagnose);
        assert!(diagnosed(&fake, true).await.is_empty());
        assert!(begun.elapsed() <= limit * 2, "{:?}", begun.elapsed());
    }
}
