//! A YAML document with the place of every value, and the diagnostics found in it.
//!
//! Reading goes in two steps: [`parse`] gives a located tree or the one syntax error; a
//! [`Decoder`] turns parts of the tree into checked types and collects *all* problems.
//! It knows nothing of claims or cases.

mod decode;
mod diagnostic;
mod place;
mod tree;
mod unread;

pub use decode::{Decoder, Fields, did_you_mean, read_list};
pub use diagnostic::{Diagnostic, Diagnostics, nearest};
pub use place::{Place, Placed, hexadecimal};
pub use tree::{Entry, Node, Value, parse};
pub use unread::Unread;
