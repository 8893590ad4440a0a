//! What reports say of a check, whatever their format.

pub(crate) mod blame;
pub(crate) mod excerpt;
pub(crate) mod finding;
pub(crate) mod outcomes;
pub(crate) mod places;
pub(crate) mod signs;
pub(crate) mod suspects;
pub(crate) mod waivers;
