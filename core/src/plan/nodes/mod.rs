//! The nodes that the user names: those that a run keeps off, and the one that it may boot.

mod disrupt;
mod exclude;

pub use disrupt::disrupt;
pub use exclude::exclude;
