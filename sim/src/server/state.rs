//! What the server knows, and what controllers still have to look at.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::administrator::Token;
use super::admission::Recorded;
use super::controllers::{self, Work};
use super::kinds::Kind;
use super::store::{Change, Object, Store};
use crate::clock;
use crate::given::Given;
use crate::topology::IpFamilies;
use crate::world::Key;

/// The letters of generated names: those without which no word is made (apimachinery,
/// `pkg/util/rand`).
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Everything behind one lock: a request is one step of it, controllers included.
pub(super) struct State {
    pub(super) store: Store,
    pub(super) recorded: Recorded,
    /// What was applied last, by UID.
    pub(super) applied: HashMap<String, Value>,
    pub(super) given: Given,
    /// The families of the addresses of Services.
    pub(super) families: IpFamilies,
    pub(super) work: BTreeSet<Work>,
    /// What is to be looked at later.
    pub(super) due: BTreeSet<(Instant, Work)>,
    /// How often each is among that.
    awaited: HashMap<Work, usize>,
    /// When each node's lease was last renewed, by our own clock.
    pub(super) renewed: HashMap<String, Instant>,
    /// Since when nodes are not there that have pods.
    pub(super) gone_nodes: BTreeMap<String, Instant>,
    /// When a daemon set last replaced a failed pod, and how long it waits with the next: by the set's UID
    /// and the node.
    pub(super) replaced: HashMap<(String, String), (Instant, Duration)>,
    /// The events that were told, by what they are about and what they say.
    told: HashMap<(String, String, String), Key>,
    /// What clients trust the server by, as PEM.
    pub(super) authority: String,
    /// What the administrator shows.
    pub(super) token: Token,
    chance: ChaCha8Rng,
}

impl State {
    pub(super) fn new(recorded: Recorded, seed: u64, authority: String) -> Self {
        Self {
            store: Store::default(),
            recorded,
            applied: HashMap::new(),
            given: Given::default(),
            families: IpFamilies::default(),
            work: BTreeSet::new(),
            due: BTreeSet::new(),
            awaited: HashMap::new(),
            renewed: HashMap::new(),
            gone_nodes: BTreeMap::new(),
            replaced: HashMap::new(),
            told: HashMap::new(),
            authority,
            token: Token::new(),
            chance: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Stores an object and notes who has to look at it.
    pub(super) fn put(&mut self, kind: &'static Kind, key: &Key, value: Value) -> Object {
        let change = self.store.put(kind, key, value);
        self.note(&change);
        change.object
    }

    /// Removes an object and notes who has to look at that.
    pub(super) fn remove(&mut self, kind: &'static Kind, key: &Key) -> Option<Object> {
        let change = self.store.remove(kind, key)?;
        if let Some(uid) = change.object["metadata"]["uid"].as_str() {
            self.applied.remove(uid);
        }
        if change.plural == "events" {
            let event = &change.object;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let about = text(&event["involvedObject"]["uid"]);
            self.told
                .remove(&(about, text(&event["reason"]), text(&event["message"])));
        }
        self.note(&change);
        Some(change.object)
    }

    fn note(&mut self, change: &Change) {
        if change.plural == "leases" && change.key.namespace == "kube-node-lease" {
            self.renewed
                .insert(change.key.name.clone(), clock::moment());
        }
        if change.plural == "nodes" && controllers::is_heard(change) {
            self.renewed
                .insert(change.key.name.clone(), clock::moment());
        }
        let work = controllers::affected(&self.store, change);
        self.work.extend(work);
    }

    /// Has something looked at after a while.
    pub(super) fn later(&mut self, after: Duration, work: Work) {
        if self.due.insert((clock::after(after), work.clone())) {
            *self.awaited.entry(work).or_default() += 1;
        }
    }

    /// Whether something is looked at later in any case.
    pub(super) fn is_awaited(&self, work: &Work) -> bool {
        self.awaited.contains_key(work)
    }

    /// Moves what is due to what is to be looked at; gives the moment of what is due next.
    pub(super) fn take_due(&mut self) -> Option<Instant> {
        let now = clock::moment();
        while self.due.first().is_some_and(|(moment, _)| *moment <= now) {
            if let Some((_, work)) = self.due.pop_first() {
                if let Some(times) = self.awaited.get_mut(&work) {
                    *times -= 1;
                    if *times == 0 {
                        self.awaited.remove(&work);
                    }
                }
                self.work.insert(work);
            }
        }
        self.due.first().map(|(moment, _)| *moment)
    }

    pub(super) fn letters(&mut self, count: usize) -> String {
        let mut letter = || char::from(LETTERS[self.chance.random_range(0..LETTERS.len())]);
        (0..count).map(|_| letter()).collect()
    }

    /// A UUID of version 4.
    pub(super) fn uid(&mut self) -> String {
        let bits: u128 = self.chance.random();
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let digits = format!("{bits:032x}");
        [0..8, 8..12, 12..16, 16..20, 20..32]
            .map(|part| &digits[part])
            .join("-")
    }

    /// Tells of something, as a component does; what was told before is counted.
    pub(super) fn tell(
        &mut self,
        component: &str,
        about: (&Kind, &Value),
        event: (&str, &str, &str),
    ) {
        let (kind, object) = about;
        let (severity, reason, message) = event;
        let meta = &object["metadata"];
        let own = meta["namespace"].as_str().unwrap_or_default();
        let namespace = if own.is_empty() { "default" } else { own };
        let name = meta["name"].as_str().unwrap_or_default();
        let events = Kind::named("events");
        let now = json!(clock::now());
        let uid = meta["uid"].as_str().unwrap_or_default();
        let words = (uid.to_owned(), reason.to_owned(), message.to_owned());
        if let Some(key) = self.told.get(&words).cloned()
            && let Some(event) = self.store.get("events", &key)
        {
            let mut event = Value::clone(event);
            event["count"] = json!(event["count"].as_i64().unwrap_or(1) + 1);
            event["lastTimestamp"] = now;
            self.put(events, &key, event);
            return;
        }
        let involved = json!({
            "apiVersion": kind.api_version(), "kind": kind.name, "name": name, "namespace": own,
            "uid": meta["uid"], "resourceVersion": meta["resourceVersion"],
        });
        // The moment, as clients name their events, and the version, since moments are whole seconds
        let moment = clock::now().as_nanosecond() + i128::from(self.store.version());
        let named = format!("{name}.{moment:x}");
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": named, "namespace": namespace, "uid": self.uid(),
                "creationTimestamp": now},
            "involvedObject": involved, "reason": reason, "message": message, "type": severity,
            "source": {"component": component}, "reportingComponent": component,
            "reportingInstance": "", "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        });
        let key = Key::new(namespace, &named);
        self.told.insert(words, key.clone());
        self.put(events, &key, event);
    }
}
