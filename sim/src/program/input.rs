//! What a program reads, all of which is there when it begins.

use std::sync::Arc;

/// The input of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input(Arc<[u8]>);

impl From<&[u8]> for Input {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl Input {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
