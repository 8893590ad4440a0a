//! Validation, defaults and admission of objects, authentication, and refusals.

pub(crate) mod administrator;
pub(crate) mod admission;
pub(crate) mod admit;
pub(crate) mod defaults;
pub(crate) mod families;
pub(crate) mod given;
pub(crate) mod quota;
pub(crate) mod refusal;
pub(crate) mod services;
pub(crate) mod shape;
pub(crate) mod valid;
mod webhooks;
