//! An object, as a value and as JSON.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use super::controllers::{Load, Room, Standing};

thread_local! {
    /// Where JSON grows, so that none of it is copied for want of room.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An object as it is at a version: a value, its JSON, or both, each made of the other when somebody
/// first asks. As JSON alone it takes a tenth of the memory.
#[derive(Debug)]
pub(super) struct Object {
    value: OnceLock<Value>,
    encoded: OnceLock<Bytes>,
    standing: OnceLock<Standing>,
    load: OnceLock<Option<Load>>,
    room: OnceLock<Room>,
    node: OnceLock<Box<str>>,
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl Object {
    pub(super) fn new(value: Value) -> Arc<Self> {
        Arc::new(Self {
            value: value.into(),
            encoded: OnceLock::new(),
            standing: OnceLock::new(),
            load: OnceLock::new(),
            room: OnceLock::new(),
            node: OnceLock::new(),
        })
    }

    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let encoded = self.encoded.get().expect("one of both is there");
            serde_json::from_slice(encoded).expect("it was encoded here")
        })
    }

    /// The value for one look: one that rests goes on doing so.
    pub(super) fn read(&self) -> Cow<'_, Value> {
        match (self.value.get(), self.encoded.get()) {
            (None, Some(encoded)) => {
                Cow::Owned(serde_json::from_slice(encoded).expect("it was encoded here"))
            }
            _ => Cow::Borrowed(self.value()),
        }
    }

    /// As JSON, shared by all who send it.
    pub(super) fn encoded(&self) -> Bytes {
        let encode = || {
            SCRATCH.with_borrow_mut(|scratch| {
                scratch.clear();
                serde_json::to_writer(&mut *scratch, self.value()).expect("a value is JSON");
                Bytes::copy_from_slice(scratch)
            })
        };
        self.encoded.get_or_init(encode).clone()
    }

    /// How a pod counts for who owns it.
    pub(super) fn standing(&self) -> Standing {
        *self.standing.get_or_init(|| Standing::of(self.value()))
    }

    /// What a pod takes of its node, if it is not over.
    pub(super) fn load(&self) -> Option<&Load> {
        self.load.get_or_init(|| Load::of(self.value())).as_ref()
    }

    /// What a node has for pods.
    pub(super) fn room(&self) -> &Room {
        self.room.get_or_init(|| Room::of(self.value()))
    }

    /// The node of a pod; empty where it has none.
    pub(super) fn node(&self) -> &str {
        self.node.get_or_init(|| {
            let node = self.value()["spec"]["nodeName"].as_str();
            node.unwrap_or_default().into()
        })
    }

    /// Whether it is JSON alone.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        self.value.get().is_none()
    }

    /// The same as JSON alone, with what watches select by most.
    pub(super) fn at_rest(&self) -> Arc<Self> {
        Arc::new(Self {
            value: OnceLock::new(),
            encoded: self.encoded().into(),
            standing: OnceLock::new(),
            load: OnceLock::new(),
            room: OnceLock::new(),
            node: OnceLock::from(Box::from(self.node())),
        })
    }
}
