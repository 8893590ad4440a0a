//! What a user or a profile may set: durations, limits and images.

mod durations;
mod images;
mod limits;

pub use durations::Durations;
pub use images::{Image, Images};
pub use limits::Limits;
