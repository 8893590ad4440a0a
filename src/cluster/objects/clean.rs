//! Removes the objects of a run, which it finds by label for every kind in the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use serde_json::{Value as Json, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use winconform_core::method::{ApiRequest, ErrorKind, ObservationError, Result};
use winconform_core::text::{is_label_value, printable};

use super::kinds::{ALL, Kind, LEASES, NETWORK_POLICIES, PODS, SERVICES, WORKLOADS};
use super::labels;
use super::status::items;
use super::wait::{Condition, poll_until};
use crate::cluster::objects::unlabelled::listed;
use crate::transport::{Api, encode};

/// The number of objects in one page.
const PAGE: usize = 500;
/// The most pages of one list.
const PAGES: usize = 100;

/// The run label of Leases that a clean-up holds; every other Lease belongs to a live run.
pub(crate) const CLEANUP: &str = "cleanup";

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ObjectRef {
    pub kind: &'static Kind,
    pub namespace: Option<String>,
    pub name: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{}/", printable(namespace))?;
        }
        f.write_str(&printable(&self.name))
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Left {
    pub object: ObjectRef,
    pub why: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.why)
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Removed {
    pub removed: Vec<ObjectRef>,
    pub left: Vec<Left>,
    /// Kinds that could not be listed, and why; some of their objects may be left.
    pub unlisted: Vec<(&'static Kind, ObservationError)>,
}

impl Removed {
    /// Whether no object of ours can be left.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty() && self.unlisted.is_empty()
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CleanError {
    /// The text is no valid run id.
    #[error("`{}` is not the id of a run", printable(run))]
    NotARun { run: String },
    /// No kind could be listed.
    #[error("winconform could list no kind of object that it creates")]
    Unlistable(#[source] ObservationError),
}

/// How long pods of controllers have to disappear with them, after the last workload of ours is gone: the
/// garbage collector takes two steps, and until the first a ReplicaSet creates new pods.
const GOES_WITH: Duration = Duration::from_secs(3);

/// The kinds that are deleted before the namespaces they are in, beside workloads.
const FIRST: [&Kind; 3] = [&SERVICES, &PODS, &NETWORK_POLICIES];

/// Refuses a text that is no label value, since it would widen the selector.
pub(crate) fn check_run(run: Option<&str>) -> Result<(), CleanError> {
    let wrong = run.filter(|run| !is_label_value(run)).map(str::to_owned);
    wrong.map_or(Ok(()), |run| Err(CleanError::NotARun { run }))
}

/// Removes all objects of one run, or of all runs without a Lease, within `budget`. First workloads,
/// Services, pods and network policies: a controller's pods only if they outlive it, pods by force once half
/// the budget is spent. Then every other kind in the table, and Leases at the end.
pub async fn remove_run(
    api: &Api,
    run: Option<&str>,
    budget: Duration,
) -> Result<Removed, CleanError> {
    check_run(run)?;
    let removal = Removal::new(api, run, budget);
    let pods = removal.labelled(&PODS).await.unwrap_or_default();
    let more = api.durations().tear_down_of_pod * busiest(&pods);
    let budget = budget + more.min(MOST_FOR_PODS);
    let mut removal = Removal { budget, ..removal };
    let first = [&WORKLOADS[..], &FIRST].concat();
    removal.remove_all(&first, budget * 3 / 4).await;
    let mut then = ALL.to_vec();
    then.retain(|kind| !first.contains(kind) && **kind != LEASES);
    removal.remove_all(&then, budget * 7 / 8).await;
    // Last, so that no other run begins meanwhile
    removal.remove_all(&[&LEASES], budget).await;
    removal.finish()
}

/// The most time that pods add to a removal.
const MOST_FOR_PODS: Duration = Duration::from_mins(10);

/// How many pods are on the Windows node that has most of these.
fn busiest(pods: &[(ObjectRef, ListedObject)]) -> u32 {
    let mut nodes = BTreeMap::<&str, u32>::new();
    for node in pods
        .iter()
        .filter_map(|(_, pod)| pod.windows_node.as_deref())
    {
        *nodes.entry(node).or_default() += 1;
    }
    nodes.into_values().max().unwrap_or_default()
}

#[derive(Clone)]
pub(crate) struct Removal<'a> {
    api: &'a Api,
    selector: String,
    run: Option<&'a str>,
    begun: Instant,
    budget: Duration,
    /// Every object ever listed with its last state; `None` once it is gone.
    found: BTreeMap<ObjectRef, Option<ListedObject>>,
    /// Since when no workload of ours exists, by kind.
    uncontrolled: Arc<Mutex<BTreeMap<&'static Kind, Instant>>>,
    /// The deletions of objects of one kind that the server accepted, by uid.
    requested: BTreeMap<String, Deleting>,
    refused: BTreeMap<ObjectRef, String>,
    unlisted: BTreeMap<&'static Kind, ObservationError>,
}

/// The state of a listed object.
#[derive(Clone, Debug)]
pub(crate) struct ListedObject {
    uid: String,
    pub(crate) run: String,
    /// Whether a controller created it, and would create another in its place.
    controlled: bool,
    /// The node of a pod for Windows.
    windows_node: Option<String>,
    deleting: Deleting,
    why: String,
}

/// How far an object's deletion is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Deleting {
    No,
    Gracefully,
    Forced,
}

impl<'a> Removal<'a> {
    pub(crate) fn new(api: &'a Api, run: Option<&'a str>, budget: Duration) -> Self {
        Self {
            api,
            selector: labels::selector(run),
            run,
            begun: Instant::now(),
            budget,
            found: BTreeMap::new(),
            uncontrolled: Arc::default(),
            requested: BTreeMap::new(),
            refused: BTreeMap::new(),
            unlisted: BTreeMap::new(),
        }
    }

    /// Deletes all objects of these kinds and waits until they are gone, at most until `until` after the
    /// removal's begin. No kind waits for the list of another.
    async fn remove_all(&mut self, kinds: &[&'static Kind], until: Duration) {
        let each = kinds.iter().map(|kind| self.clone().remove(kind, until));
        for one in join_all(each).await {
            self.found.extend(one.found);
            self.refused.extend(one.refused);
            self.unlisted.extend(one.unlisted);
        }
    }

    /// Deletes all objects of a kind, and again what a controller creates meanwhile.
    async fn remove(mut self, kind: &'static Kind, until: Duration) -> Self {
        let limit = (self.begun + until).saturating_duration_since(Instant::now());
        let first = self.api.durations().transport_pause;
        let unknown = ErrorKind::ApiUnavailable.error("no list came");
        self.unlisted.insert(kind, unknown);
        let this = Mutex::new(&mut self);
        // The report takes what is still there at the end from `found`
        let _ = poll_until(first, limit, "removal", async || {
            this.lock().await.check_and_delete(kind).await
        })
        .await;
        self
    }

    async fn check_and_delete(&mut self, kind: &'static Kind) -> Condition<()> {
        match self.list(kind).await {
            Ok(state) => {
                self.unlisted.remove(kind);
                let before = self
                    .found
                    .iter_mut()
                    .filter(|(object, _)| object.kind == kind);
                before.for_each(|(_, state)| *state = None);
                self.found
                    .extend(state.into_iter().map(|(o, s)| (o, Some(s))));
            }
            Err(error) => {
                self.unlisted.insert(kind, error);
            }
        }
        let elapsed = self.begun.elapsed();
        let want = match elapsed >= self.budget / 2 && *kind == PODS {
            true => Deleting::Forced,
            false => Deleting::Gracefully,
        };
        let uncontrolled = self.uncontrolled(kind).await;
        let have_stayed = uncontrolled.is_some_and(|since| since.elapsed() >= GOES_WITH);
        let by_themselves = have_stayed || elapsed >= self.budget / 4;
        let mut wanted = Vec::new();
        let mut left = 0;
        for (object, state) in &self.found {
            let Some(state) = state.as_ref().filter(|_| object.kind == kind) else {
                continue;
            };
            left += 1;
            let so_far = self.requested.get(&state.uid).copied();
            let so_far = so_far.unwrap_or(state.deleting);
            if so_far < want && (by_themselves || !state.controlled) {
                wanted.push((object.clone(), state.uid.clone()));
            }
        }
        let this = &*self;
        let deleting = wanted.into_iter().map(|(object, uid)| async move {
            let done = this.delete(&object, &uid, want).await;
            (object, uid, done)
        });
        let many = self.api.limits().api_in_flight.max(1);
        let done: Vec<_> = futures::stream::iter(deleting)
            .buffer_unordered(many)
            .collect()
            .await;
        for (object, uid, done) in done {
            match done {
                Ok(()) => {
                    self.requested.insert(uid, want);
                    self.refused.remove(&object);
                }
                Err(why) => {
                    self.refused.insert(object, why);
                }
            }
        }
        let unlisted = self.unlisted.get(kind);
        match left {
            // Another list does not help after a 403, but the server may accept a credential again
            0 if unlisted.is_some_and(|error| error.kind != ErrorKind::Forbidden) => {
                Condition::NotYet("what is left is not known".to_owned())
            }
            0 if *kind != PODS || uncontrolled.is_some() => Condition::Done(()),
            left => Condition::NotYet(format!("{left} objects are left")),
        }
    }

    /// Since when no workload of ours exists that could create new pods; its pods disappear with it.
    async fn uncontrolled(&self, kind: &'static Kind) -> Option<Instant> {
        let mut since = self.uncontrolled.lock().await;
        if WORKLOADS.contains(&kind) {
            let mut of_kind = self.found.iter().filter(|(object, _)| object.kind == kind);
            if of_kind.any(|(_, state)| state.is_some()) {
                since.remove(kind);
            } else {
                since.entry(kind).or_insert_with(Instant::now);
            }
        }
        let is_each = since.len() == WORKLOADS.len();
        since.values().max().copied().filter(|_| is_each)
    }

    async fn list(&self, kind: &'static Kind) -> Result<Vec<(ObjectRef, ListedObject)>> {
        let mut objects = self.labelled(kind).await?;
        if self.run.is_none() {
            // A run had its Lease before its objects were listed, and still has it if it lives
            let leases = self.labelled(&LEASES).await?;
            let runs = leases.iter().map(|(_, lease)| &lease.run);
            let live: BTreeSet<_> = runs.filter(|run| *run != CLEANUP).collect();
            objects.retain(|(_, object)| !live.contains(&object.run));
        }
        Ok(objects)
    }

    pub(crate) async fn labelled(
        &self,
        kind: &'static Kind,
    ) -> Result<Vec<(ObjectRef, ListedObject)>> {
        let base = format!("{}&limit={PAGE}", kind.list_path(&self.selector));
        let mut objects = Vec::new();
        let mut path = base.clone();
        for _ in 0..PAGES {
            let request = ApiRequest::get(&path);
            let list = listed(self.api.send_within(&request, self.patience()).await?)?;
            objects.extend(items(&list["items"]).filter_map(|item| self.read(kind, item)));
            match list["metadata"]["continue"].as_str() {
                None | Some("") => return Ok(objects),
                Some(token) => path = format!("{base}&continue={}", encode(token)),
            }
        }
        let why = format!(
            "the list of {} did not end within {PAGES} pages",
            kind.plural
        );
        Err(ErrorKind::ApiUnavailable.error(why))
    }

    /// Reads an item of a list; `None` if it lacks our labels, whatever the selector let through.
    fn read(&self, kind: &'static Kind, item: &Json) -> Option<(ObjectRef, ListedObject)> {
        let metadata = &item["metadata"];
        let label = |name: &str| metadata["labels"][name].as_str();
        let ours = label(labels::MANAGED_BY) == Some(labels::WINCONFORM)
            && self.run.is_none_or(|run| label(labels::RUN) == Some(run));
        if !ours {
            return None;
        }
        let object = ObjectRef {
            kind,
            namespace: metadata["namespace"].as_str().map(str::to_owned),
            name: metadata["name"].as_str()?.to_owned(),
        };
        let (deleting, mut why) = match metadata["deletionTimestamp"].as_str() {
            None => (Deleting::No, "it was not deleted".to_owned()),
            Some(since) => {
                let how = match metadata["deletionGracePeriodSeconds"] == 0 {
                    true => Deleting::Forced,
                    false => Deleting::Gracefully,
                };
                (
                    how,
                    format!("it is being deleted since {}", printable(since)),
                )
            }
        };
        let finalizers = [&metadata["finalizers"], &item["spec"]["finalizers"]];
        let finalizers = finalizers.into_iter().flat_map(items);
        let finalizers: Vec<_> = finalizers.filter_map(Json::as_str).map(printable).collect();
        if !finalizers.is_empty() {
            why = format!("{why}, held by {}", finalizers.join(", "));
        }
        let state = ListedObject {
            uid: metadata["uid"].as_str()?.to_owned(),
            run: label(labels::RUN).unwrap_or_default().to_owned(),
            controlled: items(&metadata["ownerReferences"])
                .any(|owner| owner["controller"] == true),
            deleting,
            windows_node: windows_node(&item["spec"]),
            why,
        };
        Some((object, state))
    }

    async fn delete(&self, object: &ObjectRef, uid: &str, how: Deleting) -> Result<(), String> {
        let namespace = object.namespace.as_deref();
        let expected = json!({"uid": uid});
        let mut request = object.kind.deletion(namespace, &object.name, &expected);
        if let Some(body) = &mut request.body
            && how == Deleting::Forced
        {
            body["gracePeriodSeconds"] = json!(0);
        }
        match self.api.send_within(&request, self.patience()).await {
            Ok(reply) if matches!(reply.status, 200..=202 | 404 | 409) => Ok(()),
            Ok(reply) => Err(format!(
                "its deletion was refused with {}: {}",
                reply.status,
                reply.message()
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The time left for one request, never quite zero.
    fn patience(&self) -> Duration {
        let left = self.budget.saturating_sub(self.begun.elapsed());
        left.clamp(
            self.api.durations().transport_pause,
            self.api.durations().api_in_all,
        )
    }

    fn finish(mut self) -> Result<Removed, CleanError> {
        if self.found.is_empty()
            && self.unlisted.len() == ALL.len()
            && let Some((_, error)) = self.unlisted.pop_first()
        {
            return Err(CleanError::Unlistable(error));
        }
        let mut removed = Removed::default();
        for (object, state) in self.found {
            match state {
                None => removed.removed.push(object),
                Some(state) => {
                    let why = self.refused.remove(&object).unwrap_or(state.why);
                    removed.left.push(Left { object, why });
                }
            }
        }
        removed.unlisted = self.unlisted.into_iter().collect();
        Ok(removed)
    }
}

/// The node of a pod that selects Windows, or says that it is for Windows.
fn windows_node(spec: &Json) -> Option<String> {
    let selects = &spec["nodeSelector"]["kubernetes.io/os"];
    let is_windows = *selects == "windows" || spec["os"]["name"] == "windows";
    let node = spec["nodeName"].as_str().filter(|_| is_windows)?;
    Some(node.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::cleanup::{CleanupError, cleanup};
    use super::*;
    use crate::cluster::fake::Fake;
    use crate::cluster::objects::kinds::DEPLOYMENTS;
    use crate::transport::pause;
    use tokio::time::timeout;

    const BUDGET: Duration = Duration::from_mins(2);
    const POD: &str = "/api/v1/namespaces/w-r1/pods/prober";

    fn object(name: &str, namespace: Option<&str>, run: Option<&str>) -> Json {
        let mut object = json!({"metadata": {"name": name}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if let Some(run) = run {
            object["metadata"]["labels"] =
                json!({labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: run});
        }
        object
    }

    /// Two runs, each with one object per kind, and a user's pod.
    fn fake() -> Fake {
        let fake = Fake::default();
        for run in ["r1", "r2"] {
            let namespace = format!("w-{run}");
            let inside = Some(namespace.as_str());
            let path = format!("/api/v1/namespaces/{namespace}");
            fake.put(&path, object(&namespace, None, Some(run)));
            for (kind, name) in [(&PODS, "prober"), (&SERVICES, "web"), (&DEPLOYMENTS, "web")] {
                let path = kind.object_path(inside, name);
                fake.put(&path, object(name, inside, Some(run)));
            }
            let lease = format!("winconform-{run}");
            let path = LEASES.object_path(Some("default"), &lease);
            fake.put(&path, object(&lease, Some("default"), Some(run)));
        }
        let users = PODS.object_path(Some("default"), "users");
        fake.put(&users, object("users", Some("default"), None));
        fake
    }

    async fn cleaned(fake: &Fake, run: Option<&str>) -> Removed {
        let removed = remove_run(&fake.api(), run, BUDGET).await;
        removed.expect("something was listed")
    }

    #[tokio::test(start_paused = true)]
    async fn every_kind_of_the_table_is_removed() {
        let fake = Fake::default();
        let paths = ALL.map(|kind| kind.object_path(Some("default"), "ours"));
        for path in &paths {
            fake.put(path, object("ours", Some("default"), Some("r1")));
        }
        let removed = remove_run(&fake.api(), Some("r1"), BUDGET).await;
        assert!(removed.expect("listed").is_clean());
        for path in &paths {
            assert!(fake.get(path).is_none(), "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_run_is_removed_and_nothing_else() {
        let fake = fake();
        let begun = Instant::now();
        let removed = cleaned(&fake, Some("r1")).await;
        assert!(removed.is_clean());
        let names: Vec<_> = removed.removed.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 5, "{names:?}");
        assert!(names.contains(&"Pod w-r1/prober".to_owned()));
        assert!(begun.elapsed() < Duration::from_secs(1));
        for (run, left) in [("r1", false), ("r2", true)] {
            let namespace = fake.get(&format!("/api/v1/namespaces/w-{run}"));
            assert_eq!(namespace.is_some(), left);
        }
        assert!(fake.get("/api/v1/namespaces/default/pods/users").is_some());
        let mut deletions = fake.log();
        deletions.retain(|line| line.starts_with("DELETE"));
        assert!(deletions[4].contains("/leases/") && deletions[3].contains("/namespaces/w-r1"));
    }

    #[tokio::test(start_paused = true)]
    async fn all_runs_but_those_with_a_lease_are_removed_and_a_users_pod_is_not() {
        let fake = fake();
        // A clean-up holds this Lease
        let (path, lease) = (LEASES.object_path(Some("default"), "r2"), "winconform-r2");
        fake.remove(&path.replace("r2", lease));
        fake.put(&path, object("r2", Some("default"), Some(CLEANUP)));
        let removed = cleaned(&fake, None).await;
        assert_eq!((removed.removed.len(), removed.is_clean()), (5, true));
        assert!(fake.get(POD).is_some(), "its run has a Lease");
        assert!(fake.get("/api/v1/namespaces/default/pods/users").is_some());
        let again = cleaned(&fake, None).await;
        assert_eq!(again, Removed::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_does_not_go_is_forced_after_half_the_budget() {
        let fake = fake();
        fake.stick(POD);
        let begun = Instant::now();
        let removed = cleaned(&fake, Some("r1")).await;
        assert!(removed.is_clean());
        let took = begun.elapsed();
        assert!((BUDGET / 2..BUDGET * 3 / 4).contains(&took), "{took:?}");
        let mut tries = fake.log();
        tries.retain(|line| *line == format!("DELETE {POD}"));
        assert_eq!(tries.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn many_pods_on_a_windows_node_have_more_time_to_go() {
        let fake = fake();
        for number in 0..24 {
            let name = format!("win-{number}");
            let mut pod = object(&name, Some("w-r1"), Some("r1"));
            pod["spec"] = json!({"nodeName": "win-a", "os": {"name": "windows"}});
            fake.put(&PODS.object_path(Some("w-r1"), &name), pod);
        }
        fake.stick("/api/v1/namespaces/w-r1/pods/win-7");
        let begun = Instant::now();
        assert!(cleaned(&fake, Some("r1")).await.is_clean());
        // Each adds 5 s, and half of all has to pass before one is forced
        let took = begun.elapsed();
        assert!((BUDGET..BUDGET * 3 / 2).contains(&took), "{took:?}");
    }

    /// Adds a pod that a controller of run `r1` created.
    fn put_made(fake: &Fake) -> String {
        let mut made = object("web-1", Some("w-r1"), Some("r1"));
        made["metadata"]["ownerReferences"] = json!([{"kind": "ReplicaSet", "controller": true}]);
        let path = PODS.object_path(Some("w-r1"), "web-1");
        fake.put(&path, made);
        path
    }

    fn asked(fake: &Fake, of: &str) -> bool {
        fake.log().contains(&format!("DELETE {of}"))
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_controller_made_is_left_to_go_with_it_and_removed_where_it_does_not() {
        let deployment = DEPLOYMENTS.object_path(Some("w-r1"), "web");
        for goes in [true, false] {
            let fake = fake();
            let path = put_made(&fake);
            fake.stick(&deployment);
            let meanwhile = async {
                pause(GOES_WITH * 2).await;
                assert!(asked(&fake, &deployment) && asked(&fake, POD));
                assert!(!asked(&fake, &path), "its Deployment stands");
                fake.remove(&deployment);
                pause(GOES_WITH).await;
                assert!(!asked(&fake, &path), "it has its time");
                if goes {
                    fake.remove(&path);
                }
            };
            let api = fake.api();
            let (removed, ()) = tokio::join!(remove_run(&api, Some("r1"), BUDGET), meanwhile);
            assert!(removed.expect("removed").is_clean());
            assert_eq!(asked(&fake, &path), !goes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn where_a_controller_stays_what_it_made_is_removed_nevertheless() {
        let fake = fake();
        let path = put_made(&fake);
        let deployments = "DELETE /apis/apps/v1/namespaces/w-r1/deployments";
        fake.script(deployments, 403, json!({"message": "rbac"}));
        let meanwhile = async {
            pause(BUDGET / 5).await;
            assert!(!asked(&fake, &path));
            pause(BUDGET / 5).await;
            assert!(asked(&fake, &path));
        };
        let api = fake.api();
        let (removed, ()) = tokio::join!(remove_run(&api, Some("r1"), BUDGET), meanwhile);
        let removed = removed.expect("reported");
        let left: Vec<_> = removed.left.iter().map(ToString::to_string).collect();
        let refused = "Deployment w-r1/web: its deletion was refused with 403: rbac";
        assert_eq!(left, [refused]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_told_with_its_reason() {
        let fake = fake();
        fake.stick("/api/v1/namespaces/w-r1");
        let mut namespace = object("w-r1", None, Some("r1"));
        namespace["spec"]["finalizers"] = json!(["kubernetes"]);
        fake.put("/api/v1/namespaces/w-r1", namespace);
        let rbac = json!({"message": "rbac"});
        fake.script("DELETE /api/v1/namespaces/w-r1/services", 403, rbac);
        let begun = Instant::now();
        let removed = cleaned(&fake, Some("r1")).await;
        let left: Vec<_> = removed.left.iter().map(ToString::to_string).collect();
        assert_eq!(
            left,
            [
                "Namespace w-r1: it is being deleted since 2026-01-01T00:00:00Z, held by kubernetes",
                "Service w-r1/web: its deletion was refused with 403: rbac",
            ]
        );
        assert!(begun.elapsed() <= BUDGET + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_cannot_be_listed_does_not_stop_the_others() {
        let fake = fake();
        let rbac = json!({"message": "rbac"});
        fake.script("GET /apis/apps/v1/deployments", 403, rbac);
        let begun = Instant::now();
        let removed = cleaned(&fake, Some("r1")).await;
        assert_eq!(removed.removed.len(), 4);
        let [(kind, error)] = removed.unlisted.as_slice() else {
            panic!("{removed:?}")
        };
        let forbidden = ErrorKind::Forbidden;
        assert_eq!((kind.plural, error.kind), ("deployments", forbidden));
        assert!(begun.elapsed() < Duration::from_secs(1));
        fake.script("GET", 403, json!({"message": "rbac"}));
        let removed = remove_run(&fake.api(), None, BUDGET).await;
        assert!(matches!(removed, Err(CleanError::Unlistable(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_credential_that_is_refused_for_a_while_leaves_nothing() {
        let fake = fake();
        fake.script_for(Duration::from_mins(1), "GET", 401);
        let removed = remove_run(&fake.api(), Some("r1"), Duration::from_mins(2)).await;
        assert!(removed.is_ok_and(|removed| removed.is_clean()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_list_or_never_ends_is_not_empty_and_holds_up_no_other_kind() {
        let endless = json!({"kind": "PodList", "metadata": {"continue": "on"}, "items": []});
        for answer in [json!({"error": "log in first"}), endless] {
            let fake = fake();
            fake.script("GET /api/v1/pods", 200, answer);
            let removed = cleaned(&fake, Some("r1")).await;
            let [(kind, error)] = removed.unlisted.as_slice() else {
                panic!("{removed:?}")
            };
            let unavailable = ErrorKind::ApiUnavailable;
            assert_eq!((kind.plural, error.kind), ("pods", unavailable));
            assert_eq!(removed.removed.len(), 4);
        }
        let fake = fake();
        let api = fake.api();
        fake.script("GET /api/v1/services", 0, json!({}));
        let removal = remove_run(&api, Some("r1"), BUDGET);
        let _ = timeout(Duration::from_secs(1), removal).await;
        assert!(fake.get(POD).is_none(), "it waits for the Services' list");
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_would_widen_the_selector_is_refused() {
        for run in ["", "a,b", "a=b", "a b", "-a", "!", "*"] {
            let removed = remove_run(&fake().api(), Some(run), BUDGET).await;
            assert!(matches!(removed, Err(CleanError::NotARun { .. })), "{run}");
            let cleaned = cleanup(&fake().api(), Some(run), "h", |_| {}).await;
            let Err(CleanupError::Clean(CleanError::NotARun { .. })) = cleaned else {
                panic!("{run}: {cleaned:?}");
            };
        }
    }
}
