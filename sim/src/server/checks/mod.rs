//! What an object must be and gets, who may ask, and how it is refused.

pub(super) mod administrator;
pub(super) mod admission;
pub(super) mod admit;
pub(super) mod defaults;
pub(super) mod refusal;
pub(super) mod services;
pub(super) mod shape;
pub(super) mod valid;
