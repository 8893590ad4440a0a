//! The server's state, and the work that is left for controllers.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::store::{Change, Object, Store};
use crate::base::clock::{self, Wall};
use crate::base::fields::Fields;
use crate::fault::{FaultKind, FaultSet, FaultSwitch};
use crate::server::checks::administrator::Token;
use crate::server::checks::admission::Recorded;
use crate::server::checks::given::Given;
use crate::server::controllers::{self, Work};
use crate::server::kinds::Kind;
use crate::topology::{Effect, IpFamilies};
use crate::world::Key;

/// The letters of generated names: no vowels, so that they form no words (apimachinery, `pkg/util/rand`).
pub(crate) const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// All state, behind one lock: a request is one step, controllers included.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) recorded: Recorded,
    /// The last applied configurations, by UID.
    pub(crate) applied: HashMap<String, Value>,
    pub(crate) given: Given,
    /// The families of the addresses of Services.
    pub(crate) families: IpFamilies,
    /// The vendor's part of the server's version.
    pub(crate) suffix: String,
    /// The API groups without any object.
    pub(crate) groups: Vec<String>,
    /// What webhooks do to new pods.
    pub(crate) effects: Vec<Effect>,
    /// What is wrong with controllers.
    pub(crate) faults: FaultSwitch,
    pub(crate) wall: Wall,
    pub(crate) work: BTreeSet<Work>,
    /// The work that is due later.
    pub(crate) due: BTreeSet<(Instant, Work)>,
    /// How often `due` has each piece of work.
    awaited: HashMap<Work, usize>,
    /// When each node last renewed its lease or reported, by the server's own clock.
    pub(crate) renewed: HashMap<String, Instant>,
    /// Since when each deleted node that still has pods is gone.
    pub(crate) gone_nodes: BTreeMap<String, Instant>,
    /// How many pods controllers have created in this step for owners that want a number of them.
    pub(crate) made: usize,
    /// When a daemon set last replaced a failed or lost pod, and how long it waits before the next: by the
    /// set's UID and the node.
    pub(crate) replaced: HashMap<(String, String), (Instant, Duration)>,
    /// The events, by their object, reason and message.
    told: HashMap<[String; 3], Key>,
    /// The certificate by which clients trust the server, as PEM.
    pub(crate) authority: String,
    /// The administrator's token.
    pub(crate) token: Token,
    chance: ChaCha8Rng,
}

impl State {
    pub(crate) fn new(recorded: Recorded, seed: u64, authority: String) -> Self {
        Self {
            store: Store::default(),
            recorded,
            applied: HashMap::new(),
            given: Given::default(),
            families: IpFamilies::default(),
            suffix: String::new(),
            groups: Vec::new(),
            effects: Vec::new(),
            faults: FaultSwitch::new(FaultSet::default()),
            wall: Wall::default(),
            work: BTreeSet::new(),
            due: BTreeSet::new(),
            awaited: HashMap::new(),
            renewed: HashMap::new(),
            gone_nodes: BTreeMap::new(),
            made: 0,
            replaced: HashMap::new(),
            told: HashMap::new(),
            authority,
            token: Token::new(),
            chance: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Whether a kind of fault holds.
    pub(crate) fn suffers(&self, kind: FaultKind) -> bool {
        self.faults.current().any(kind)
    }

    /// Stores an object, and queues the work that follows.
    pub(crate) fn put(&mut self, kind: &'static Kind, key: &Key, value: Value) -> Object {
        let change = self.store.put(kind, key, value);
        self.note(&change);
        change.object
    }

    /// Removes an object, and queues the work that follows.
    pub(crate) fn remove(&mut self, kind: &'static Kind, key: &Key) -> Option<Object> {
        let change = self.store.remove(kind, key)?;
        let object = &change.object;
        self.applied.remove(object["metadata"]["uid"].text());
        if change.plural == "events" {
            let about = object["involvedObject"]["uid"].text();
            let words = [about, object["reason"].text(), object["message"].text()];
            self.told.remove(&words.map(str::to_owned));
        }
        self.note(&change);
        Some(change.object)
    }

    fn note(&mut self, change: &Change) {
        let renews = match change.plural {
            "leases" => change.key.namespace == "kube-node-lease",
            "nodes" => controllers::is_heard(change),
            _ => false,
        };
        if renews {
            let node = change.key.name.clone();
            self.renewed.insert(node, clock::moment());
        }
        let work = controllers::affected(&self.store, change);
        self.work.extend(work);
    }

    /// Queues work that is due after a while.
    pub(crate) fn later(&mut self, after: Duration, work: Work) {
        if self.due.insert((clock::after(after), work.clone())) {
            *self.awaited.entry(work).or_default() += 1;
        }
    }

    /// Queues work that is due after a while, unless it is queued already.
    pub(crate) fn later_once(&mut self, after: Duration, work: Work) {
        if !self.awaited.contains_key(&work) {
            self.later(after, work);
        }
    }

    /// Moves work that is due to the work to do now. Returns the moment at which the next work is due.
    pub(crate) fn take_due(&mut self) -> Option<Instant> {
        while let Some((moment, work)) = self.due.pop_first() {
            if moment > clock::moment() {
                self.due.insert((moment, work));
                return Some(moment);
            }
            if let Entry::Occupied(mut times) = self.awaited.entry(work.clone()) {
                *times.get_mut() -= 1;
                if *times.get() == 0 {
                    times.remove();
                }
            }
            self.work.insert(work);
        }
        None
    }

    pub(crate) fn letters(&mut self, count: usize) -> String {
        let mut letter = || char::from(LETTERS[self.chance.random_range(0..LETTERS.len())]);
        (0..count).map(|_| letter()).collect()
    }

    /// A UUID of version 4.
    pub(crate) fn uid(&mut self) -> String {
        let bits: u128 = self.chance.random();
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let digits = format!("{bits:032x}");
        [0..8, 8..12, 12..16, 16..20, 20..32]
            .map(|part| &digits[part])
            .join("-")
    }

    /// Sends an event about an object as a component does: severity, reason and message. A repeated
    /// event increments its count.
    pub(crate) fn tell(&mut self, component: &str, object: &Value, event: (&str, &str, &str)) {
        let (severity, reason, message) = event;
        let (meta, events) = (&object["metadata"], Kind::named("events"));
        let now = json!(self.wall.now());
        let words = [meta["uid"].text(), reason, message].map(str::to_owned);
        let before = self.told.get(&words).cloned();
        if let Some(key) = before.filter(|key| self.store.get("events", key).is_some()) {
            self.edit("events", &key, |event| {
                event["count"] = json!(event["count"].number().max(1) + 1);
                event["lastTimestamp"] = now;
            });
            return;
        }
        let given = meta["namespace"].text();
        let namespace = if given.is_empty() { "default" } else { given };
        let involved = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"], "name": meta["name"],
            "namespace": given, "uid": meta["uid"], "resourceVersion": meta["resourceVersion"],
        });
        // The moment, as in clients' names of events, plus the version, since moments are whole seconds
        let moment = self.wall.now().as_nanosecond() + i128::from(self.store.version());
        let named = format!("{}.{moment:x}", meta["name"].text());
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
