//! The applied objects of a fixture, and whether they are still as they were applied.
//!
//! Others may delete the run's objects at any time. An assertion counts only if the objects that it depends
//! on are unchanged, so these are read after it; assertions that end together share the answer.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::join_all;
use ordered_watch as watch;
use serde_json::Value as Json;
use tokio::time::Instant;
use winconform_core::fixture::{FixtureKey, Need, Until};
use winconform_core::method::{
    ApiRequest, ErrorKind, Fields, ObservationError, ReadyPod, is_disrupted,
};
use winconform_core::text::printable;

use super::alterations::Altered;
use super::fresh_answer::FreshAnswer;
use crate::cluster::objects::kinds::{
    DEPLOYMENTS, Kind, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Scope,
};
use crate::cluster::objects::labels;
use crate::cluster::objects::pods::readiness;
use crate::cluster::{Condition, Watched, poll_until, wait_for_objects};
use crate::engine::fixtures::manifest::pod_template;
use crate::engine::fixtures::readiness::{addresses, is_of_second, restarts};
use crate::transport::{Api, pause};

/// What happened to an object that is no longer there.
const DELETED: &str = "was deleted by somebody else";

/// The objects of one application of a fixture.
#[derive(Debug, Default)]
pub(crate) struct AppliedObjects {
    own: ObjectSet,
    /// Its Services in the second family, where it has any; nothing in the first depends on them.
    pub(crate) second: ObjectSet,
    /// The pods that its controllers created and assertions are bound to, once it is ready.
    pods: OnceLock<ObjectSet>,
    /// Its own pods that are stored otherwise than they were sent, so that what they do tells nothing of what was sent.
    altered: Vec<Altered>,
    /// The templates of the pods that controllers create, as they were sent.
    templates: Vec<Json>,
    reported: AtomicBool,
}

/// Objects that are read together.
#[derive(Debug, Default)]
pub(crate) struct ObjectSet {
    objects: Vec<Object>,
    last: FreshAnswer<Health>,
}

#[derive(Debug)]
struct Object {
    /// Kind, namespace and name.
    shown: String,
    path: String,
    /// Its key in a watch: `namespace/name`.
    at: String,
    uid: Json,
    wanted: Wanted,
    /// A pod that assertions are bound to, as it was when it became ready.
    when_ready: OnceLock<ReadyPod>,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    There,
    PodReady,
    PodsReady(u64),
}

/// The health of a fixture's objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// An object was deleted, replaced, ended for good or moved, which is never undone.
    pub(crate) changed: Option<ObservationError>,
    /// A container of a pod was restarted since: it is there, and was not for a while.
    pub(crate) restarted: Option<ObservationError>,
    /// An object is there and not ready.
    pub(crate) unready: Option<ObservationError>,
    /// An object could not be read.
    pub(crate) unknown: Option<ObservationError>,
}

/// A fixture that an assertion depends on.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) key: FixtureKey,
    pub(crate) need: Need,
    /// The applied objects that the assertion was bound to.
    pub(crate) objects: Arc<AppliedObjects>,
}

impl AppliedObjects {
    /// The applied objects, as they were sent and as the server returned them. Namespaces are not read: what is in
    /// them goes with them.
    pub(crate) fn from_applied(key: &FixtureKey, sent: &[Json], applied: &[Json]) -> Self {
        let ours = applied
            .iter()
            .filter(|object| object["metadata"]["labels"][labels::MAY_GO].is_null());
        let (second, first): (Vec<_>, Vec<_>) = ours.partition(|object| is_of_second(object));
        let object = |object: &Json| {
            let is_read = |kind: &&Kind| kind.scope == Scope::Namespaced && kind.is_listed();
            let kind = Kind::find(object).filter(is_read)?;
            let metadata = &object["metadata"];
            let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str()?);
            let in_namespace = printable(namespace.unwrap_or_default());
            let replicas = [
                &DEPLOYMENTS,
                &REPLICA_SETS,
                &STATEFUL_SETS,
                &REPLICATION_CONTROLLERS,
            ];
            let wanted = if replicas.contains(&kind) {
                Wanted::PodsReady(object["spec"]["replicas"].as_u64().unwrap_or(1))
            } else if *kind == PODS && key.name.until() == Until::Ready {
                Wanted::PodReady
            } else {
                Wanted::There
            };
            Some(Object {
                shown: format!("{} {in_namespace}/{}", kind.kind, printable(name)),
                path: kind.object_path(namespace, name),
                at: format!("{}/{name}", namespace.unwrap_or_default()),
                uid: metadata["uid"].clone(),
                wanted,
                when_ready: OnceLock::new(),
            })
        };
        let [own, second] = [first, second]
            .map(|part| ObjectSet::from_objects(part.into_iter().filter_map(object).collect()));
        let pods = applied.iter().filter(|object| object["kind"] == PODS.kind);
        let altered = pods.filter_map(|pod| {
            let same = |one: &&Json| {
                one["kind"] == PODS.kind && one["metadata"]["name"] == pod["metadata"]["name"]
            };
            Altered::between(pod, sent.iter().find(same)?)
        });
        Self {
            own,
            second,
            altered: altered.collect(),
            templates: sent.iter().filter_map(template).collect(),
            ..Self::default()
        }
    }

    /// That one of its pods is stored otherwise than it was sent, in a field that decides; `pods` are those of the run.
    pub(crate) fn alteration(&self, pods: &Watched, deciding: Fields) -> Option<ObservationError> {
        let of_controllers = self.templates.iter().flat_map(|template| {
            let created = pods.objects.values().filter(|pod| is_from(pod, template));
            created.filter_map(|pod| Altered::between(pod, template))
        });
        let mut altered = self.altered.iter().cloned().chain(of_controllers);
        altered.find_map(|pod| pod.of(deciding))
    }

    /// The error of what failed or was bound to no node, with a field of one of its pods that decides that and is stored
    /// otherwise, if there is one.
    pub(crate) fn with_alteration(
        &self,
        mut error: ObservationError,
        pods: &Watched,
    ) -> ObservationError {
        let deciding = match error.kind {
            ErrorKind::FixtureFailed => Fields::Doings,
            ErrorKind::Unscheduled => Fields::Place,
            _ => return error,
        };
        if let Some(altered) = self.alteration(pods, deciding) {
            error.detail = format!("{}; {}", error.detail, altered.detail);
        }
        error
    }

    /// Whether one of its controllers has no pod; `pods` are those of the run.
    pub(crate) fn lacks_pods(&self, pods: &Watched) -> bool {
        let has_none = |template: &Json| !pods.objects.values().any(|pod| is_from(pod, template));
        self.templates.iter().any(has_none)
    }

    /// Takes note of the pods of the ready fixture.
    pub(crate) fn bind(&self, namespace: &str, pods: &[ReadyPod]) {
        let mut objects = Vec::new();
        for pod in pods {
            // Each application becomes ready once: another has other objects
            if let Some(applied) = self.own.objects.iter().find(|one| one.uid == *pod.uid) {
                let _ = applied.when_ready.set(pod.clone());
                continue;
            }
            let (space, name) = (printable(namespace), printable(&pod.name));
            objects.push(Object {
                shown: format!("{} {space}/{name}", PODS.kind),
                path: PODS.object_path(Some(namespace), &pod.name),
                at: format!("{namespace}/{}", pod.name),
                uid: Json::from(pod.uid.clone()),
                wanted: Wanted::PodReady,
                when_ready: pod.clone().into(),
            });
        }
        let _ = self.pods.set(ObjectSet::from_objects(objects));
    }

    /// The health of the pods that assertions are bound to, at `since` or later: a pod that does not answer
    /// may be gone, one that answers is not.
    pub(crate) async fn health_of_pods(&self, api: &Api, since: Instant) -> Health {
        match self.pods.get() {
            Some(pods) => pods.health(api, since).await,
            None => Health::default(),
        }
    }

    /// The health of the objects at `since` or later.
    pub(crate) async fn health(&self, api: &Api, since: Instant) -> Health {
        self.own.health(api, since).await
    }

    /// Whether all of its objects are pods.
    pub(crate) fn is_of_pods_alone(&self) -> bool {
        let objects = &self.own.objects;
        !objects.is_empty()
            && objects
                .iter()
                .all(|object| matches!(object.wanted, Wanted::PodReady))
    }

    /// Whether all of its objects are pods, and each is one of these.
    pub(crate) fn is(&self, pods: &[ReadyPod]) -> bool {
        let is_listed = |object: &Object| pods.iter().any(|pod| object.uid == *pod.uid);
        self.is_of_pods_alone() && self.own.objects.iter().all(is_listed)
    }

    /// Returns when an object was deleted or replaced; never otherwise. Where all of its objects are pods,
    /// their watch shows that.
    pub(crate) async fn changed(
        &self,
        api: &Api,
        pods: &mut watch::Receiver<Watched>,
    ) -> ObservationError {
        let durations = api.durations();
        if self.is_of_pods_alone() {
            // No watch shows a pod that was gone before the watch began
            let unseen = async {
                pause(durations.unscheduled).await;
                match self.health(api, Instant::now()).await.changed {
                    Some(error) => error,
                    None => std::future::pending().await,
                }
            };
            return tokio::select! {
                biased;
                error = self.changed_as_watched(api, pods) => error,
                error = unseen => error,
            };
        }
        let query = async || match self.health(api, Instant::now()).await.changed {
            Some(error) => Condition::<Infallible>::Never(error),
            None => Condition::NotYet("as it was made".to_owned()),
        };
        let never = std::future::pending;
        if self.own.objects.is_empty() {
            return never().await;
        }
        let (first, limit) = (durations.observe_again, durations.fixture);
        match poll_until(first, limit, "a change of a fixture", query).await {
            Err(error) if error.kind == ErrorKind::FixtureChanged => error,
            Ok(_) | Err(_) => never().await,
        }
    }

    async fn changed_as_watched(
        &self,
        api: &Api,
        pods: &mut watch::Receiver<Watched>,
    ) -> ObservationError {
        let mut seen = BTreeSet::new();
        let (what, limit) = ("a change of a fixture", api.durations().fixture);
        let changed = wait_for_objects(pods, limit, what, |pods| {
            for object in &self.own.objects {
                let health = match pods.get(&object.at) {
                    Some(pod)
                        if seen.contains(&object.at) || pod["metadata"]["uid"] == object.uid =>
                    {
                        seen.insert(object.at.clone());
                        object.read(pod)
                    }
                    None if seen.contains(&object.at) => object.changed(DELETED),
                    // An earlier one of its name, or none yet
                    Some(_) | None => Health::default(),
                };
                if let Some(error) = health.changed {
                    return Condition::<Infallible>::Never(error);
                }
            }
            Condition::NotYet("as it was made".to_owned())
        });
        match changed.await {
            Err(error) if error.kind == ErrorKind::FixtureChanged => error,
            Ok(_) | Err(_) => std::future::pending().await,
        }
    }

    /// Whether its change was not reported before.
    pub(crate) fn is_news(&self) -> bool {
        !self.reported.swap(true, Ordering::Relaxed)
    }
}

/// The template of the pods that the controller of an object creates.
fn template(object: &Json) -> Option<Json> {
    pod_template(&mut object.clone()).map(Json::take)
}

/// Whether a controller created the pod from the template, of which it has all labels, and the pod is to stay.
fn is_from(pod: &Json, template: &Json) -> bool {
    let labels = template["metadata"]["labels"].as_object();
    let mut labels = labels.into_iter().flatten();
    !pod["metadata"]["ownerReferences"].is_null()
        && pod["metadata"]["deletionTimestamp"].is_null()
        && labels.all(|(key, value)| pod["metadata"]["labels"][key] == *value)
}

impl ObjectSet {
    fn from_objects(objects: Vec<Object>) -> Self {
        let last = FreshAnswer::default();
        Self { objects, last }
    }

    /// The health of the objects at `since` or later; a change is for good.
    pub(crate) async fn health(&self, api: &Api, since: Instant) -> Health {
        let ask = async {
            let each = join_all(self.objects.iter().map(|object| object.health(api))).await;
            each.into_iter().fold(Health::default(), Health::or)
        };
        let has_changed = |health: &Health| health.changed.is_some();
        self.last.since(since, has_changed, ask).await
    }
}

impl Health {
    /// What is amiss with either.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            changed: self.changed.or(other.changed),
            restarted: self.restarted.or(other.restarted),
            unready: self.unready.or(other.unready),
            unknown: self.unknown.or(other.unknown),
        }
    }
}

impl Object {
    async fn health(&self, api: &Api) -> Health {
        match api.send(&ApiRequest::get(self.path.clone())).await {
            Ok(reply) if reply.status == 200 => self.read(&reply.body),
            Ok(reply) if reply.status == 404 => self.changed(DELETED),
            Ok(reply) => {
                let kind = reply.refusal(ErrorKind::ApiUnavailable);
                let said = format!("status {}: {}", reply.status, reply.message());
                self.unknown(kind, &said)
            }
            Err(error) => self.unknown(error.kind, &error.detail),
        }
    }

    fn read(&self, object: &Json) -> Health {
        let metadata = &object["metadata"];
        if metadata["uid"] != self.uid {
            return self.changed("was deleted and made anew by somebody else");
        }
        if !metadata["deletionTimestamp"].is_null() {
            return self.changed("is being deleted by somebody else");
        }
        let when_ready = self.when_ready.get();
        if let Some(how) = moved(object, when_ready) {
            return self.changed(&how);
        }
        let again = when_ready.is_some_and(|known| restarts(object) > known.restarts);
        let restarted = again
            .then(|| self.changed("was restarted").changed)
            .flatten();
        let unready = match self.wanted {
            Wanted::There => None,
            Wanted::PodsReady(wanted) => {
                let ready = object["status"]["readyReplicas"].as_u64().unwrap_or(0);
                (ready < wanted).then(|| format!("{ready} of {wanted} pods Ready"))
            }
            Wanted::PodReady => match readiness(object) {
                Condition::Done(()) => None,
                Condition::NotYet(status) => Some(status),
                Condition::Never(error) => Some(error.detail),
            },
        };
        let detail = |status| format!("{} is not ready: {status}", self.shown);
        Health {
            unready: unready.map(|s| ErrorKind::FixtureChanged.error(detail(s))),
            restarted,
            ..Health::default()
        }
    }

    fn changed(&self, how: &str) -> Health {
        let detail = format!("{} {how} during the run", self.shown);
        Health {
            changed: Some(ErrorKind::FixtureChanged.error(detail)),
            ..Health::default()
        }
    }

    fn unknown(&self, kind: ErrorKind, why: &str) -> Health {
        let detail = format!("whether {} is still there: {why}", self.shown);
        Health {
            unknown: Some(kind.error(detail)),
            ..Health::default()
        }
    }
}

/// Why a pod is no longer as assertions are bound to it: it was ended for good, as by an eviction, or has
/// other addresses than `when_ready`, as after its node's reboot. What a kubelet refuses was never ready.
fn moved(pod: &Json, when_ready: Option<&ReadyPod>) -> Option<String> {
    let status = &pod["status"];
    if is_disrupted(pod) || when_ready.is_some() && status["phase"] == "Failed" {
        let reason = status["reason"].as_str().unwrap_or("no reason given");
        return Some(format!("was ended ({})", printable(reason)));
    }
    let known = &when_ready?.addresses;
    let now = addresses(pod).filter(|now| !now.is_empty() && now != known)?;
    Some(format!(
        "was given other addresses ({now:?}, not {known:?})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::{Fake, watched};
    use serde_json::json;
    use winconform_core::facts::{PoolName, WindowsBuild};
    use winconform_core::fixture::FixtureName;

    const SERVICE: &str = "/api/v1/namespaces/a/services/s";
    const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/a/deployments/d";

    fn key() -> FixtureKey {
        FixtureName::WIN_WEBSERVER.in_pool(Some(&PoolName::windows(WindowsBuild::SERVER_2022)))
    }

    /// A Service, and a Deployment of which so many pods are Ready.
    fn put(fake: &Fake, ready: u64) {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "a", "name": "s"}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "a", "name": "d"},
            "spec": {"replicas": 2}, "status": {"readyReplicas": ready}});
        fake.put(SERVICE, service);
        fake.put(DEPLOYMENT, deployment);
    }

    /// A pod as it is sent, and as it is stored without this field.
    fn without(field: &str) -> AppliedObjects {
        let mut sent = pod("own");
        sent["spec"] = json!({"nodeSelector": {"a": "b"}, "hostname": "h",
            "tolerations": [{"key": "a"}], "containers": [{"name": "main"}]});
        let mut stored = sent.clone();
        stored["spec"][field] = Json::Null;
        AppliedObjects::from_applied(&key(), &[sent], &[stored])
    }

    #[test]
    fn what_decides_where_a_pod_runs_is_named_where_it_runs_nowhere() {
        let unscheduled = ErrorKind::Unscheduled.error("no node");
        for (field, said) in [
            (
                "nodeSelector",
                "no node; something in the cluster changed spec.nodeSelector of pod p as it was created",
            ),
            (
                "tolerations",
                "no node; something in the cluster changed spec.tolerations of pod p as it was created",
            ),
            ("hostname", "no node"),
        ] {
            let told = without(field).with_alteration(unscheduled.clone(), &Watched::default());
            assert_eq!(told.detail, said);
        }
        let other = ErrorKind::ImagePull.error("no image");
        let told = without("nodeSelector").with_alteration(other, &Watched::default());
        assert_eq!(told.detail, "no image");
    }

    #[test]
    fn a_controller_has_the_pods_of_its_template() {
        let labels = json!({"app": "d"});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "a", "name": "d"},
            "spec": {"template": {"metadata": {"labels": labels}, "spec": {}}}});
        let objects = AppliedObjects::from_applied(&key(), &[deployment], &[]);
        let mut of_it = pod("own");
        of_it["metadata"]["labels"] = labels;
        of_it["metadata"]["ownerReferences"] = json!([{"kind": "ReplicaSet"}]);
        let shown = |pod: &Json| watched([("a/p".to_owned(), pod.clone())]);
        assert!(objects.lacks_pods(&shown(&pod("own"))));
        assert!(!objects.lacks_pods(&shown(&of_it)));
        assert!(!without("hostname").lacks_pods(&Watched::default()));
    }

    fn objects(fake: &Fake) -> AppliedObjects {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
        let applied = [SERVICE, DEPLOYMENT].map(|path| fake.get(path).expect("it was put"));
        AppliedObjects::from_applied(&key(), &[], &[&[namespace], applied.as_slice()].concat())
    }

    fn pod(uid: &str) -> Json {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "a", "name": "p", "uid": uid}})
    }

    fn detail(error: Option<ObservationError>) -> String {
        let error = error.expect("something is amiss");
        assert_eq!(error.kind, ErrorKind::FixtureChanged);
        error.detail
    }

    #[tokio::test(start_paused = true)]
    async fn looks_that_end_together_share_one_answer_until_there_is_a_change() {
        let fake = Fake::default();
        put(&fake, 2);
        let (objects, api) = (objects(&fake), fake.api());
        let since = Instant::now();
        let (one, other) = tokio::join!(objects.health(&api, since), objects.health(&api, since));
        for health in [one, other] {
            let amiss = health.changed.or(health.unready).or(health.unknown);
            assert_eq!(amiss, None);
        }
        assert_eq!(fake.log().len(), 2);
        let later = since + api.durations().observe_again;
        fake.remove(SERVICE);
        let health = objects.health(&api, later).await;
        let said = "Service a/s was deleted by somebody else during the run";
        assert_eq!(detail(health.changed), said);
        assert_eq!(fake.log().len(), 4);
        // What is gone does not come back
        put(&fake, 2);
        let health = objects
            .health(&api, later + api.durations().observe_again)
            .await;
        assert_eq!(detail(health.changed), said);
        assert_eq!(fake.log().len(), 4);
        assert!(objects.is_news() && !objects.is_news());
    }

    #[tokio::test(start_paused = true)]
    async fn replaced_going_and_unready_objects_are_named() {
        let fake = Fake::default();
        put(&fake, 2);
        let api = fake.api();
        let replaced = objects(&fake);
        fake.remove(DEPLOYMENT);
        put(&fake, 1);
        let health = replaced.health(&api, Instant::now()).await;
        let said = "Deployment a/d was deleted and made anew by somebody else during the run";
        assert_eq!(detail(health.changed), said);

        let fewer = objects(&fake).health(&api, Instant::now()).await;
        assert!(fewer.changed.is_none() && fewer.unknown.is_none());
        let said = "Deployment a/d is not ready: 1 of 2 pods Ready";
        assert_eq!(detail(fewer.unready), said);

        let going = objects(&fake);
        let mut service = fake.get(SERVICE).expect("it was put");
        service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        fake.put(SERVICE, service);
        let health = going.health(&api, Instant::now()).await;
        let said = "Service a/s is being deleted by somebody else during the run";
        assert_eq!(detail(health.changed), said);
    }

    #[tokio::test(start_paused = true)]
    async fn services_in_the_second_family_are_apart_where_there_are_any() {
        let fake = Fake::default();
        put(&fake, 2);
        assert!(objects(&fake).second.objects.is_empty());

        let mut service = fake.get(SERVICE).expect("it was put");
        service["metadata"]["labels"][labels::FAMILY] = json!("ipv6");
        fake.put(SERVICE, service);
        let (objects, api) = (objects(&fake), fake.api());
        fake.remove(SERVICE);
        let second = objects.second.health(&api, Instant::now()).await;
        let said = "Service a/s was deleted by somebody else during the run";
        assert_eq!(detail(second.changed), said);
        let first = objects.health(&api, Instant::now()).await;
        assert!(first.changed.is_none() && first.unready.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_not_be_asked_is_unknown_and_no_change() {
        let fake = Fake::default();
        put(&fake, 2);
        let objects = objects(&fake);
        fake.script(&format!("GET {SERVICE}"), 403, json!({"message": "no"}));
        let health = objects.health(&fake.api(), Instant::now()).await;
        assert!(health.changed.is_none() && health.unready.is_none());
        let error = health.unknown.expect("nobody can tell");
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(error.detail.contains("Service a/s"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_noticed_while_nothing_else_happens() {
        let fake = Fake::default();
        put(&fake, 0);
        let (objects, api) = (objects(&fake), fake.api());
        let begun = Instant::now();
        let after = api.durations().converge;
        let (_send, mut pods) = watch::channel(Watched::default());
        let (error, ()) = tokio::join!(objects.changed(&api, &mut pods), async {
            pause(after).await;
            fake.remove(DEPLOYMENT);
        });
        let said = "Deployment a/d was deleted";
        assert!(error.detail.contains(said), "{error}");
        assert!(begun.elapsed() < after * 2, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn of_pods_alone_their_watch_tells_and_nobody_is_asked() {
        let fake = Fake::default();
        let objects =
            AppliedObjects::from_applied(&FixtureName::RING.in_pool(None), &[], &[pod("own")]);
        for (others, said) in [
            (vec![], "was deleted by somebody else"),
            (vec![pod("another")], "was deleted and made anew"),
        ] {
            let watched =
                |pods: &[Json]| watched(pods.iter().map(|pod| ("a/p".to_owned(), pod.clone())));
            // A pod of an earlier application, none, its own, and then what happened to that
            let (send, mut pods) = watch::channel(watched(&[pod("earlier")]));
            let api = fake.api();
            let (error, ()) = tokio::join!(objects.changed(&api, &mut pods), async {
                for now in [&[][..], &[pod("own")], &others] {
                    pause(api.durations().observe_again).await;
                    send.send_replace(watched(now));
                }
            });
            assert!(error.detail.contains(said), "{error}");
        }
        assert_eq!(fake.log(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_no_watch_has_shown_is_asked_for_in_time() {
        let (fake, begun) = (Fake::default(), Instant::now());
        let objects =
            AppliedObjects::from_applied(&FixtureName::RING.in_pool(None), &[], &[pod("own")]);
        let (_send, mut pods) = watch::channel(Watched::default());
        let api = fake.api();
        let error = objects.changed(&api, &mut pods).await;
        assert!(error.detail.contains(DELETED), "{error}");
        let limit = api.durations().unscheduled * 2;
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    }

    /// The health of a pod that was ready at an address, once its status is this.
    async fn of_pod(now: Json) -> Health {
        const POD: &str = "/api/v1/namespaces/a/pods/p";
        let fake = Fake::default();
        put(&fake, 2);
        let ready = |status: Json| {
            let mut pod = pod("own");
            pod["status"] = status;
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            pod
        };
        fake.put(POD, ready(json!({"podIPs": [{"ip": "10.0.0.7"}]})));
        let own = fake.get(POD).expect("it was put");
        let running = crate::engine::fixtures::readiness::ready_pod(&json!({
            "metadata": own["metadata"], "spec": {"nodeName": "n"}, "status": own["status"]}));
        let objects = objects(&fake);
        objects.bind("a", &[running.expect("it runs")]);
        fake.put(POD, ready(now));
        objects.health_of_pods(&fake.api(), Instant::now()).await
    }

    #[test]
    fn a_pod_that_never_stood_is_another_once_the_cluster_ended_it() {
        for (reason, ended) in [
            ("Evicted", true),
            ("DeadlineExceeded", true),
            ("Terminated", true),
            ("PodOSNotSupported", false),
            ("OutOfcpu", false),
        ] {
            let mut pod = pod("own");
            pod["status"] = json!({"phase": "Failed", "reason": reason});
            let objects = AppliedObjects::from_applied(
                &FixtureName::RING.in_pool(None),
                &[],
                std::slice::from_ref(&pod),
            );
            let changed = objects.own.objects[0].read(&pod).changed;
            let said = format!("Pod a/p was ended ({reason}) during the run");
            assert_eq!(changed.map(|one| one.detail), ended.then_some(said));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_moved_or_was_ended_is_another() {
        let same = of_pod(json!({"podIPs": [{"ip": "10.0.0.7"}]})).await;
        assert!(same.changed.is_none() && same.unready.is_none());
        let untold = of_pod(json!({})).await;
        assert!(untold.changed.is_none());
        let moved = of_pod(json!({"podIPs": [{"ip": "10.0.0.8"}]})).await;
        let said = "Pod a/p was given other addresses ([10.0.0.8], not [10.0.0.7]) during the run";
        assert_eq!(detail(moved.changed), said);
        let again =
            json!({"podIPs": [{"ip": "10.0.0.7"}], "containerStatuses": [{"restartCount": 1}]});
        let again = of_pod(again).await;
        assert!(again.changed.is_none() && again.unready.is_none());
        let said = "Pod a/p was restarted during the run";
        assert_eq!(detail(again.restarted), said);
        assert!(same.restarted.is_none());
        let ended = of_pod(json!({"phase": "Failed", "reason": "Evicted"})).await;
        let said = "Pod a/p was ended (Evicted) during the run";
        assert_eq!(detail(ended.changed), said);
    }
}
