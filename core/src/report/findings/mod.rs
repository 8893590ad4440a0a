//! What reports say of a check, whatever their format.

pub(super) mod blame;
pub(super) mod excerpt;
pub(super) mod finding;
pub(super) mod places;
pub(super) mod suspects;
pub(super) mod waivers;
