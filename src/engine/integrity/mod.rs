//! Whether what was observed counts: what we applied is as it was, and nodes were alive.
//!
//! What is seen after an observation decides whether it counts:
//!
//! | seen after it | asked | the observation |
//! |---|---|---|
//! | a node on the way has fallen silent, was booted or is not Ready | first, before a failure counts | is an error |
//! | an object that it depends on was deleted, replaced, ended or moved | unless that cannot have changed it | is an error, and the fixture is made anew |
//! | one of its pods was, or a container of one was restarted | where nobody who was meant answered | the same |
//! | a Service in the second family was deleted or replaced | where that family is observed | is an error |
//! | an object could not be asked for | with the objects | is an error |
//! | an object is not ready | where it has to be | is an error |
//! | a node that it is aimed at is gone or not Ready | after a failure | is an error |
//! | none of these | | counts |
//!
//! An error of the observation itself stays, unless an object was changed: that is its cause. What the executor
//! sees by itself comes before: that something captive answers for everybody, and that a check is not as presumed.

pub(crate) mod applied;
pub(crate) mod fresh_answer;
pub(crate) mod node_liveness;
pub(crate) mod node_readiness;
