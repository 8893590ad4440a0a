//! Whether what was observed counts: what we applied is as it was, and nodes were alive.
//!
//! What is seen afterwards decides, in this order; nothing else makes an observation no observation.
//!
//! | seen after it | asked for | what was observed |
//! |---|---|---|
//! | an object that it depends on was deleted, replaced, ended or moved | unless it could not have come of that | is an error, and the fixture is made anew |
//! | so was one of its pods, or a container of one was restarted | where nobody who was meant answered | the same |
//! | a Service in the second family was deleted or replaced | where that family is observed | is an error |
//! | one could not be asked for | | is an error |
//! | one is not ready | where it has to be | is an error |
//! | a node that it is aimed at is gone or not Ready | after a failure | is an error |
//! | a node on the way has fallen silent, was booted or is not Ready | before a failure counts | is an error |
//! | none of these | | counts |
//!
//! An error of the observation itself stays, unless an object was changed: that is why.

pub(crate) mod applied;
pub(crate) mod fresh_answer;
pub(crate) mod node_liveness;
pub(crate) mod node_readiness;
