//! A run's Lease: which run is at work on this cluster, and whether it still lives.
//!
//! Another run's Lease is dead only if it has not changed for its duration on our own monotonic clock; the
//! times written in it come from clocks that may differ.
//!
//! Our own Lease may have expired once its duration has passed since a renewal was sent. From then on the run
//! writes nothing ([`Hold`]) until a renewal succeeds, which it cannot once another run took the Lease.

pub(crate) mod orphaned;
mod renewal;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use ordered_watch as watch;
use serde_json::{Value as Json, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use winconform_core::config::Durations;
use winconform_core::method::{ApiReply, ApiRequest, ObservationError, Result, Verb};
use winconform_core::text::printable;

use crate::cluster::objects::kinds::{LEASE_NAMESPACE, LEASES};
use crate::cluster::objects::labels;
use crate::cluster::objects::wait::{Condition, poll_until};
use crate::transport::{Api, Env, Hold, encode};
use orphaned::delete_lease;

/// The name of the Lease for runs without an id of their own.
pub const LEASE_NAME: &str = "winconform";

/// The longest duration of another run's Lease that is accepted, in durations of our own.
const BELIEVED: u32 = 10;
/// How often a run tries to acquire a Lease while others create and delete it.
const TRIES: usize = 3;

#[derive(Clone, Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another live run holds it.
    #[error(
        "the Lease `{name}` is held by `{holder}`\n(wait for it to end, or see what it is with `kubectl -n default get lease {name}`)"
    )]
    Held { name: String, holder: String },
    /// A Lease of this name exists that this tool did not create.
    #[error("there is a Lease `{name}` that was not made by winconform")]
    Foreign { name: String },
    /// The server refused it.
    #[error("the Lease `{name}` was refused with {status}: {message}")]
    Refused {
        name: String,
        status: u16,
        message: String,
    },
    /// The server gave no usable answer.
    #[error("the Lease `{name}` could not be taken")]
    ObservationError {
        name: String,
        source: ObservationError,
    },
}

impl LeaseError {
    /// The exit code of the process: 20 if going on could disturb another run, 11 if the server refuses, as
    /// for any other missing permission, 21 if the server does not answer or does not accept the credential.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Held { .. } | Self::Foreign { .. } => 20,
            Self::Refused { status: 401, .. } | Self::ObservationError { .. } => 21,
            Self::Refused { .. } => 11,
        }
    }
}

/// The names of the existing Leases of one run, or of all runs.
pub async fn lease_names(api: &Api, run: Option<&str>) -> Result<BTreeSet<String>, LeaseError> {
    let selector = encode(&labels::selector(run));
    let path = LEASES.collection_path(Some(LEASE_NAMESPACE));
    let request = ApiRequest::get(format!("{path}?labelSelector={selector}"));
    let subject = "of all runs";
    let sent = api.send(&request).await;
    let reply = sent.map_err(|source| error(subject, source))?;
    let Some(items) = reply.body["items"].as_array() else {
        return Err(refused(subject, &reply));
    };
    let name = |lease: &Json| lease["metadata"]["name"].as_str().map(str::to_owned);
    let ours = items.iter().filter(|lease| is_managed(lease));
    Ok(ours.filter_map(name).collect())
}

/// A held Lease. A background task renews it until this value is dropped or released.
#[derive(Debug)]
pub struct LeaseHeld {
    keeper: Keeper,
    lost: watch::Receiver<Option<String>>,
    stop: DropGuard,
    renewing: JoinHandle<()>,
}

/// Our Lease at one version.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Mark {
    uid: String,
    version: String,
}

#[derive(Clone, Debug)]
struct Keeper {
    api: Api,
    name: String,
    run: String,
    holder: String,
    /// The `acquireTime` in the Lease; with the holder it distinguishes our Lease from any other.
    acquired: String,
    lease: Duration,
    renewal: Duration,
}

/// Takes the Lease `name` for a run: creates it, or takes it over when its holder is dead, and calls `waits`
/// with that holder before it waits. A run that is refused meanwhile shows `holder`.
pub async fn acquire(
    api: &Api,
    name: &str,
    (run, holder): (&str, &str),
    durations: &Durations,
    waits: impl Fn(String),
) -> Result<LeaseHeld, LeaseError> {
    let keeper = Keeper {
        api: api.of_lease(),
        name: name.to_owned(),
        run: run.to_owned(),
        holder: holder.to_owned(),
        acquired: micro_time(api.env()),
        lease: durations.lease,
        renewal: durations.lease_renewal,
    };
    let (mark, since) = keeper.acquire(waits).await?;
    api.outage.hold(Hold::Until(since + keeper.lease));
    let (send, lost) = watch::channel(None);
    let stop = CancellationToken::new();
    let renewing = tokio::spawn(keeper.clone().keep(mark, send, stop.clone()));
    let stop = stop.drop_guard();
    Ok(LeaseHeld {
        keeper,
        lost,
        stop,
        renewing,
    })
}

impl LeaseHeld {
    /// Receives the reason why the Lease is no longer ours, once it is lost.
    pub fn lost(&self) -> watch::Receiver<Option<String>> {
        self.lost.clone()
    }

    /// Stops renewing and deletes the Lease if it is still ours.
    pub async fn release(self) -> Result<()> {
        drop(self.stop);
        // After a panic in the renewal the Lease expires by itself
        if self.renewing.await.is_err() || self.lost.borrow().is_some() {
            return Ok(());
        }
        let keeper = &self.keeper;
        delete_lease(&keeper.api, &keeper.name, &keeper.holder).await
    }
}

impl Keeper {
    /// The acquired Lease, and when the request for it was sent.
    async fn acquire(&self, waits: impl Fn(String)) -> Result<(Mark, Instant), LeaseError> {
        for _ in 0..TRIES {
            let since = Instant::now();
            let path = LEASES.collection_path(Some(LEASE_NAMESPACE));
            let reply = self.ask(Verb::Create, path, Some(self.body(None))).await?;
            match reply.status {
                201 => return Ok((self.mark(&reply)?, since)),
                409 => {}
                _ => return Err(refused(&self.name, &reply)),
            }
            let current = self.ask(Verb::Get, self.path(), None).await?;
            match current.status {
                200 => {}
                // Deleted between the two requests
                404 => continue,
                _ => return Err(refused(&self.name, &current)),
            }
            if !is_managed(&current.body) {
                return Err(LeaseError::Foreign {
                    name: self.name.clone(),
                });
            }
            // Our own creation was sent twice, so the Lease is ours
            if self.is_ours(&current) {
                return Ok((self.mark(&current)?, since));
            }
            waits(holder(&current));
            let Some(dead) = self.watch_die(&current).await? else {
                continue;
            };
            let since = Instant::now();
            let taken = self
                .ask(Verb::Replace, self.path(), Some(self.body(Some(&dead))))
                .await?;
            match taken.status {
                200 => return Ok((self.mark(&taken)?, since)),
                // Another run was quicker, or the holder renewed it
                404 | 409 => {}
                _ => return Err(refused(&self.name, &taken)),
            }
        }
        Err(LeaseError::Held {
            name: self.name.clone(),
            holder: "another".to_owned(),
        })
    }

    /// Watches another run's Lease for its duration, not counting time without answers. Returns its mark if
    /// it did not change, or `None` if it was deleted.
    async fn watch_die(&self, current: &ApiReply) -> Result<Option<Mark>, LeaseError> {
        let first = self.mark(current)?;
        let duration = current.body["spec"]["leaseDurationSeconds"].as_u64();
        let duration = duration
            .map_or(self.lease, Duration::from_secs)
            .min(self.lease * BELIEVED)
            .max(self.renewal * 2);
        let begun = Cell::new(Instant::now());
        let query = async || {
            let since = Instant::now();
            let answer = self.ask(Verb::Get, self.path(), None).await;
            if since.elapsed() > self.renewal {
                begun.set(Instant::now());
            }
            match answer {
                Ok(reply) if reply.status == 404 => Condition::Done(Ok(None)),
                Ok(reply) if reply.status != 200 => {
                    Condition::Done(Err(refused(&self.name, &reply)))
                }
                Ok(reply) => match self.mark(&reply) {
                    Ok(mark) if mark != first => {
                        let (name, holder) = (self.name.clone(), holder(&reply));
                        Condition::Done(Err(LeaseError::Held { name, holder }))
                    }
                    Ok(mark) if begun.get().elapsed() >= duration => {
                        Condition::Done(Ok(Some(mark)))
                    }
                    Ok(_) => Condition::NotYet("it has not changed".to_owned()),
                    Err(error) => Condition::Done(Err(error)),
                },
                Err(error) => Condition::Done(Err(error)),
            }
        };
        let limit = duration * 2 + self.api.durations().outage;
        poll_until(self.renewal / 4, limit, "the Lease of another run", query)
            .await
            .unwrap_or_else(|source| Err(error(&self.name, source)))
    }

    fn is_ours(&self, reply: &ApiReply) -> bool {
        let spec = &reply.body["spec"];
        spec["holderIdentity"] == self.holder.as_str()
            && spec["acquireTime"] == self.acquired.as_str()
    }

    fn body(&self, over: Option<&Mark>) -> Json {
        let mut body = json!({
            "apiVersion": LEASES.api_version(),
            "kind": LEASES.kind,
            "metadata": {
                "name": self.name,
                "namespace": LEASE_NAMESPACE,
                "labels": {labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: self.run},
            },
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": self.lease.as_secs().max(1),
                "acquireTime": self.acquired,
                "renewTime": micro_time(self.api.env()),
            },
        });
        if let Some(mark) = over {
            body["metadata"]["uid"] = json!(mark.uid);
            body["metadata"]["resourceVersion"] = json!(mark.version);
        }
        body
    }

    fn path(&self) -> String {
        LEASES.object_path(Some(LEASE_NAMESPACE), &self.name)
    }

    async fn ask(
        &self,
        verb: Verb,
        path: String,
        body: Option<Json>,
    ) -> Result<ApiReply, LeaseError> {
        let sent = self.api.send(&ApiRequest { verb, path, body }).await;
        sent.map_err(|source| error(&self.name, source))
    }

    fn mark(&self, reply: &ApiReply) -> Result<Mark, LeaseError> {
        let metadata = &reply.body["metadata"];
        match ["uid", "resourceVersion"].map(|key| metadata[key].as_str()) {
            [Some(uid), Some(version)] => Ok(Mark {
                uid: uid.to_owned(),
                version: version.to_owned(),
            }),
            _ => Err(refused(&self.name, reply)),
        }
    }
}

fn refused(name: &str, reply: &ApiReply) -> LeaseError {
    LeaseError::Refused {
        name: name.to_owned(),
        status: reply.status,
        message: reply.message(),
    }
}

fn error(name: &str, source: ObservationError) -> LeaseError {
    let name = name.to_owned();
    LeaseError::ObservationError { name, source }
}

fn holder(reply: &ApiReply) -> String {
    let holder = reply.body["spec"]["holderIdentity"].as_str();
    printable(holder.unwrap_or("nobody"))
}

/// The current time as a `MicroTime`, with exactly six digits of the second.
fn micro_time(env: &Env) -> String {
    format!("{:.6}", env.now())
}

fn is_managed(object: &Json) -> bool {
    object["metadata"]["labels"][labels::MANAGED_BY] == labels::WINCONFORM
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use crate::cluster::objects::cleanup::cleanup;
    use crate::transport::pause;

    const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/winconform";

    async fn acquire_as(fake: &Fake, holder: &str) -> Result<LeaseHeld, LeaseError> {
        let (api, durations) = (fake.api(), Durations::default());
        acquire(&api, "winconform", ("r1", holder), &durations, |_| ()).await
    }

    fn anothers(fake: &Fake, holder: &str) {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 20});
        let labels = json!({labels::MANAGED_BY: labels::WINCONFORM});
        let metadata = json!({"name": "winconform", "labels": labels});
        fake.put(PATH, json!({"metadata": metadata, "spec": spec}));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_renewed_while_held_and_gone_once_released() {
        let fake = Fake::default();
        let held = acquire_as(&fake, "a").await.expect("held");
        let first = fake.get(PATH).expect("there");
        pause(Durations::default().lease * 3).await;
        let later = fake.get(PATH).expect("there");
        assert_ne!(
            first["metadata"]["resourceVersion"],
            later["metadata"]["resourceVersion"]
        );
        assert_eq!(first["spec"]["acquireTime"], later["spec"]["acquireTime"]);
        assert_eq!(*held.lost().borrow(), None);
        held.release().await.expect("released");
        assert_eq!(fake.get(PATH), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_changes_is_held_whoever_holds_it() {
        let fake = Fake::default();
        let held = acquire_as(&fake, "a").await.expect("held");
        for holder in ["b", "a"] {
            let error = acquire_as(&fake, holder).await.expect_err("held");
            assert!(matches!(error, LeaseError::Held { holder, .. } if holder == "a"));
        }
        assert_eq!(*held.lost().borrow(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_change_for_its_duration_is_dead() {
        let fake = Fake::default();
        anothers(&fake, "dead");
        let begun = Instant::now();
        let held = acquire_as(&fake, "b").await.expect("taken over");
        assert!(
            begun.elapsed() >= Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(
            fake.get(PATH).expect("there")["spec"]["holderIdentity"],
            "b"
        );
        held.release().await.expect("released");
        assert_eq!(fake.get(PATH), None);
    }

    /// A clean-up ends because the creation of its Lease is never answered.
    #[tokio::test(start_paused = true)]
    async fn one_that_may_have_come_to_be_is_removed() {
        let fake = Fake::default();
        anothers(&fake, "b");
        fake.script("POST /apis/coordination.k8s.io", 503, json!({}));
        cleanup(&fake.api(), None, "b", |_| {})
            .await
            .expect_err("no answer");
        assert_eq!(fake.get(PATH), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cleanup_that_may_not_list_again_gives_back_what_it_took() {
        let fake = Fake::default();
        anothers(&fake, "dead");
        let api = fake.api();
        let all = cleanup(&api, None, "b", |_| {});
        let refuse = async {
            pause(Duration::from_secs(5)).await;
            let list = PATH.trim_end_matches("/winconform");
            fake.script(&format!("GET {list} "), 403, json!({}));
        };
        let (cleaned, ()) = tokio::join!(all, refuse);
        cleaned.expect_err("refused");
        assert_eq!(fake.get(PATH), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_nobody_can_ask_is_not_its_duration() {
        let fake = Fake::default();
        let held = acquire_as(&fake, "a").await.expect("held");
        let second = acquire_as(&fake, "b");
        let away = async {
            pause(Duration::from_secs(1)).await;
            for request in ["PUT", "GET"] {
                fake.script_for(Duration::from_secs(25), request, 0);
            }
        };
        let (second, ()) = tokio::join!(second, away);
        let error = second.expect_err("its holder lives");
        assert!(matches!(error, LeaseError::Held { holder, .. } if holder == "a"));
        assert_eq!(*held.lost().borrow(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_stood_still_has_the_whole_time_of_an_outage() {
        let fake = Fake::default();
        let held = acquire_as(&fake, "a").await.expect("held");
        fake.late([Duration::from_secs(99)]);
        tokio::time::advance(Duration::from_mins(10)).await;
        pause(Duration::from_mins(1)).await;
        assert_eq!(fake.late_still(), 0);
        assert_eq!(*held.lost().borrow(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_of_others_is_left_alone() {
        let fake = Fake::default();
        fake.put(
            PATH,
            json!({"metadata": {"name": "winconform"}, "spec": {}}),
        );
        let error = acquire_as(&fake, "b").await.expect_err("foreign");
        assert!(matches!(error, LeaseError::Foreign { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn losing_it_is_told_and_anothers_is_not_deleted() {
        let fake = Fake::default();
        let held = acquire_as(&fake, "a").await.expect("held");
        anothers(&fake, "thief");
        let mut state = held.lost();
        let lost = state.wait_for(Option::is_some).await.expect("told").clone();
        assert_eq!(lost, Some("it is held by `thief`".to_owned()));
        held.release().await.expect("nothing to release");
        assert_eq!(
            fake.get(PATH).expect("there")["spec"]["holderIdentity"],
            "thief"
        );
        let held = {
            fake.remove(PATH);
            acquire_as(&fake, "a").await.expect("held")
        };
        fake.remove(PATH);
        let mut state = held.lost();
        let lost = state.wait_for(Option::is_some).await.expect("told").clone();
        assert_eq!(lost, Some("it was deleted".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_refuses_to_renew_it_for_the_duration_loses_it() {
        let fake = Fake::default();
        let held = acquire_as(&fake, "a").await.expect("held");
        fake.script("PUT", 403, json!({}));
        let mut state = held.lost();
        let begun = Instant::now();
        let lost = state.wait_for(Option::is_some).await.expect("told").clone();
        assert!(matches!(lost, Some(why) if why.contains("renewed")));
        assert!(begun.elapsed() >= Durations::default().lease);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_while_it_may_have_expired() {
        let fake = Fake::default();
        let (api, durations) = (fake.api(), Durations::default());
        let held = acquire(&api, "winconform", ("r1", "a"), &durations, |_| ()).await;
        let held = held.expect("held");
        fake.late([Duration::from_secs(99); 20]);
        pause(durations.lease * 2).await;
        let request = |verb| ApiRequest {
            verb,
            path: "/api/v1/namespaces/a/pods/p".to_owned(),
            body: Some(json!({})),
        };
        let (begun, renewals) = (Instant::now(), fake.late_still());
        api.send(&request(Verb::Delete)).await.expect("an answer");
        assert_eq!(
            begun.elapsed(),
            Duration::ZERO,
            "it removes what is its own"
        );
        assert_ne!(renewals, 0, "none is answered");
        api.send(&request(Verb::Apply)).await.expect("an answer");
        assert_eq!(fake.late_still(), 0, "one is answered");
        assert_eq!(*held.lost().borrow(), None);
        // After the Lease is lost the run creates nothing more, and can still remove its objects
        anothers(&fake, "thief");
        let mut state = held.lost();
        let lost = state.wait_for(Option::is_some).await;
        assert!(lost.is_ok());
        api.send(&request(Verb::Delete)).await.expect("an answer");
        let error = api.send(&request(Verb::Apply)).await.expect_err("not sent");
        assert!(error.detail.contains("Lease"), "{error}");
    }

    /// Why the Lease is lost, if it is, a minute after renewals with these delays in seconds.
    async fn after(late: &[u64]) -> Option<String> {
        let fake = Fake::default();
        let held = acquire_as(&fake, "a").await.expect("held");
        fake.late(late.iter().map(|late| Duration::from_secs(*late)));
        pause(Duration::from_mins(1)).await;
        held.lost().borrow().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn neither_some_that_hang_nor_a_slow_server_loses_it() {
        assert_eq!(after(&[99, 99, 99]).await, None);
        let slow = [&[4][..], &[2; 40]].concat();
        assert_eq!(after(&slow).await, None);
        // The server executes each renewal and answers none
        assert_eq!(after(&[99; 40]).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_those_of_ours() {
        let fake = Fake::default();
        anothers(&fake, "a");
        fake.put(
            &PATH.replace("winconform", "other"),
            json!({"metadata": {"name": "other"}}),
        );
        let names = lease_names(&fake.api(), None).await.expect("names");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["winconform"]);
    }
}
