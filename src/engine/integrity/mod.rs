//! Whether an observation counts: the applied objects are unchanged, and the nodes were alive.
//!
//! What is found after an observation decides whether it counts:
//!
//! | found after it | asked for | the observation |
//! |---|---|---|
//! | a node on the way has fallen silent, was booted or is not Ready | first, before a failure counts | is an error |
//! | an object that it depends on was deleted, replaced, ended or moved | unless that cannot have changed it | is an error, and the fixture is applied again |
//! | one of its pods was, or a container of one was restarted | where the intended target did not answer | the same |
//! | a Service in the second family was deleted or replaced | where that family is observed | is an error |
//! | an object could not be read | with the objects | is an error |
//! | an object is not ready | where it has to be | is an error |
//! | a node that it is aimed at is gone or not Ready | after a failure | is an error |
//! | a pod that it observes, and no controller made, is stored otherwise than it was sent | after a failure | is an error |
//! | none of these | | counts |
//!
//! An error of the observation itself stays, unless an object was changed, which is its cause. The executor
//! finds two errors before: a captive proxy answered, and the result contradicts what the check presumes.

pub(crate) mod alterations;
pub(crate) mod applied;
pub(crate) mod fresh_answer;
pub(crate) mod node_liveness;
pub(crate) mod node_readiness;
