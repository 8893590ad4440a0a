//! The entries of a file that could not be read.

use std::collections::BTreeSet;

use super::tree::{Node, Value};

/// The names of a file whose entries could not be read. That such a name is unknown is not reported: that
/// would report one problem twice, the second time in the wrong place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unread {
    whole: bool,
    names: BTreeSet<String>,
}

impl Unread {
    /// Nothing of the file could be read.
    pub fn whole() -> Self {
        Self {
            whole: true,
            names: BTreeSet::new(),
        }
    }

    /// Notes an entry that could not be read, by the text under its key `name`.
    pub fn note(&mut self, entry: &Node, name: &str) {
        if let Value::Map(fields) = &entry.value
            && let Some(field) = fields.iter().find(|field| field.key == name)
            && let Value::Text(text) = &field.node.value
        {
            self.names.insert(text.clone());
        }
    }

    /// Whether an entry of this name may be where nothing could be read.
    pub fn may_hold(&self, name: &str) -> bool {
        self.whole || self.names.contains(name)
    }
}
