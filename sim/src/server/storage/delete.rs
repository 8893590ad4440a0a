//! How objects are deleted: at once, after their grace, or when their last finalizer is gone.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::state::State;
use super::store::Object;
use crate::base::fields::Fields;
use crate::server::checks::refusal::Refusal;
use crate::server::controllers::pods::{is_bound, is_going, is_over};
use crate::server::kinds::Kind;
use crate::world::Key;

/// The options of a deletion: `DeleteOptions`, from the body or the query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    pub(crate) grace: Option<i64>,
    /// The `uid` and `resourceVersion` that the object must have, if the client names them.
    pub(crate) preconditions: Value,
    pub(crate) dry: bool,
}

/// The result of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object stays until its grace is over or its finalizers are gone.
    Goes(Object),
    Gone(Object),
}

/// Namespaces that no client can delete (apiserver, plugin `NamespaceLifecycle`).
const PERMANENT: [&str; 3] = ["default", "kube-system", "kube-public"];

impl State {
    pub(crate) fn delete(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        deletion: &Deletion,
    ) -> Result<Deleted, Refusal> {
        let live = self.live(kind, key)?;
        let meta = &live["metadata"];
        let is_namespace = kind.plural == "namespaces";
        for (what, field, happened) in [
            ("UID", "uid", "deleted and then recreated"),
            ("ResourceVersion", "resourceVersion", "modified"),
        ] {
            let (given, is) = (deletion.preconditions[field].as_str(), meta[field].text());
            let Some(given) = given.filter(|given| *given != is) else {
                continue;
            };
            let (is, happened) = ((given, is), (!is_namespace).then_some(happened));
            return Err(Refusal::precondition(kind, &key.name, what, is, happened));
        }
        if is_namespace && PERMANENT.contains(&key.name.as_str()) {
            let why = "this namespace may not be deleted";
            return Err(Refusal::forbidden(kind, &key.name, why));
        }
        if deletion.dry {
            return Ok(Deleted::Gone(live));
        }
        let grace = grace(kind, &live, deletion.grace);
        let mut value = Value::clone(&live);
        if is_namespace {
            value["status"]["phase"] = json!("Terminating");
        }
        if grace == 0 && !is_held(kind, &value) {
            let gone = self.remove(kind, key);
            return Ok(Deleted::Gone(gone.unwrap_or(live)));
        }
        let before = meta["deletionGracePeriodSeconds"].as_i64();
        if is_going(&live) && before.is_some_and(|before| grace >= before) {
            return Ok(Deleted::Goes(live));
        }
        let lasts = SignedDuration::from_secs(grace);
        let at = self.wall.now().saturating_add(lasts);
        value["metadata"]["deletionTimestamp"] = json!(at.unwrap_or(Timestamp::MAX));
        value["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        if let Some(generation) = meta["generation"].as_i64() {
            value["metadata"]["generation"] = json!(generation.saturating_add(1));
        }
        Ok(Deleted::Goes(self.put(kind, key, value)))
    }

    /// Removes an object that is being deleted, if its grace is 0 and no finalizer is left.
    pub(crate) fn finalized(&mut self, kind: &'static Kind, key: &Key) -> Option<Object> {
        let value = self.store.get(kind.plural, key)?;
        let is_due = value["metadata"]["deletionGracePeriodSeconds"].number() == 0;
        let goes = is_going(value) && is_due && !is_held(kind, value);
        goes.then(|| self.remove(kind, key)).flatten()
    }

    /// Deletes an object as controllers do: in the background, if it exists.
    pub(crate) fn discard(&mut self, plural: &str, key: &Key) {
        let kind = Kind::named(plural);
        // An object that is gone already needs no deletion
        let _ = self.delete(kind, key, &Deletion::default());
    }

    /// Deletes an object at once, as controllers do when no kubelet is left to end it.
    pub(crate) fn discard_now(&mut self, plural: &str, key: &Key) {
        let now = Deletion {
            grace: Some(0),
            ..Deletion::default()
        };
        let _ = self.delete(Kind::named(plural), key, &now);
    }
}

/// The grace of a pod that a node runs; every other object has none (kubernetes 1.37.0,
/// `pkg/registry/core/pod/strategy.go`, `CheckGracefulDelete`).
fn grace(kind: &Kind, value: &Value, requested: Option<i64>) -> i64 {
    if kind.plural != "pods" {
        return 0;
    }
    let default = || value["spec"]["terminationGracePeriodSeconds"].as_i64();
    match requested.or_else(default) {
        _ if is_over(value) || !is_bound(value) => 0,
        // A negative grace counts as one second
        Some(grace) if grace < 0 => 1,
        Some(grace) => grace,
        None => 30,
    }
}

/// Whether finalizers hold the object; namespaces have some in their spec, too.
fn is_held(kind: &Kind, value: &Value) -> bool {
    let names = |of: &Value| of["finalizers"].items().len() > 0;
    names(&value["metadata"]) || (kind.plural == "namespaces" && names(&value["spec"]))
}
