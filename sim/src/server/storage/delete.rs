//! How objects go: at once, after their grace, or when nobody holds them any more.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::state::State;
use super::store::Object;
use crate::base::fields::Fields;
use crate::server::checks::refusal::Refusal;
use crate::server::controllers::pods::{is_bound, is_going, is_over};
use crate::server::kinds::Kind;
use crate::world::Key;

/// What a client says of a deletion: `DeleteOptions`, from the body or the query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    pub(crate) grace: Option<i64>,
    /// Of what `uid` and `resourceVersion` it must be, if that is said.
    pub(crate) preconditions: Value,
    pub(crate) dry: bool,
}

/// What becomes of what was to be deleted.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is there until its grace is over or its finalizers are gone.
    Goes(Object),
    Gone(Object),
}

/// Namespaces that stay (apiserver, plugin `NamespaceLifecycle`).
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

    /// Removes what is to go and nobody holds any more.
    pub(crate) fn finalized(&mut self, kind: &'static Kind, key: &Key) -> Option<Object> {
        let value = self.store.get(kind.plural, key)?;
        let is_due = value["metadata"]["deletionGracePeriodSeconds"].number() == 0;
        let goes = is_going(value) && is_due && !is_held(kind, value);
        goes.then(|| self.remove(kind, key)).flatten()
    }

    /// As controllers delete: in the background, if it is there.
    pub(crate) fn discard(&mut self, plural: &str, key: &Key) {
        let kind = Kind::named(plural);
        // That it is gone is what was wanted
        let _ = self.delete(kind, key, &Deletion::default());
    }

    /// As controllers delete what nobody is left to end.
    pub(crate) fn discard_now(&mut self, plural: &str, key: &Key) {
        let now = Deletion {
            grace: Some(0),
            ..Deletion::default()
        };
        let _ = self.delete(Kind::named(plural), key, &now);
    }
}

/// How long a pod has that a node runs; everything else has nothing to end (kubernetes 1.37.0,
/// `pkg/registry/core/pod/strategy.go`, `CheckGracefulDelete`).
fn grace(kind: &Kind, value: &Value, asked: Option<i64>) -> i64 {
    if kind.plural != "pods" {
        return 0;
    }
    let own = || value["spec"]["terminationGracePeriodSeconds"].as_i64();
    match asked.or_else(own) {
        _ if is_over(value) || !is_bound(value) => 0,
        // One second at least, as a negative one is read
        Some(grace) if grace < 0 => 1,
        Some(grace) => grace,
        None => 30,
    }
}

/// Whether anybody has still to do something before it goes; namespaces name those in their spec.
fn is_held(kind: &Kind, value: &Value) -> bool {
    let names = |of: &Value| of["finalizers"].items().len() > 0;
    names(&value["metadata"]) || (kind.plural == "namespaces" && names(&value["spec"]))
}
