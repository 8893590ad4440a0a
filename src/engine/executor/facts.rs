//! The facts that assertions get: those of the start of the run, or fresh ones for a further attempt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;
use winconform_core::facts::Facts;

use super::shared::Attempt;
use crate::cluster::collect;
use crate::transport::{Api, locked};

type Collected = Arc<OnceCell<Arc<Facts>>>;

/// The facts of a run. Clones share them.
///
/// They are collected again once for each further attempt, for all of its checks: on a large cluster that
/// takes long, and every check of the attempt before saw older ones.
#[derive(Clone)]
pub(crate) struct RunFacts {
    first: Arc<Facts>,
    again: Arc<Mutex<BTreeMap<Attempt, Collected>>>,
    api: Api,
}

impl RunFacts {
    /// The facts that the run began with.
    pub(crate) fn new(first: Arc<Facts>, api: Api) -> Self {
        Self {
            first,
            again: Arc::default(),
            api,
        }
    }

    /// The facts for an attempt: the first gets those that the run began with.
    pub(crate) async fn get(&self, attempt: Attempt) -> Arc<Facts> {
        if attempt == 0 {
            return Arc::clone(&self.first);
        }
        let again = Arc::clone(locked(&self.again).entry(attempt).or_default());
        let collecting = again.get_or_init(|| async { Arc::new(collect(&self.api).await) });
        Arc::clone(collecting.await)
    }

    /// Drops all but the first, once no check needs them any more.
    pub(crate) fn forget(&self) {
        locked(&self.again).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use futures::FutureExt;

    fn lists_of_nodes(fake: &Fake) -> usize {
        let log = fake.log();
        log.iter()
            .filter(|line| *line == "GET /api/v1/nodes")
            .count()
    }

    #[tokio::test(start_paused = true)]
    async fn facts_are_collected_once_for_each_further_attempt() {
        let fake = Fake::default();
        let facts = RunFacts::new(Arc::default(), fake.api());
        assert_eq!(*facts.get(0).await, Facts::default());
        assert_eq!(lists_of_nodes(&fake), 0);
        let (one, other) = tokio::join!(facts.get(1), facts.get(1));
        let late = facts.clone().get(1).await;
        assert!(Arc::ptr_eq(&one, &other) && Arc::ptr_eq(&one, &late));
        assert!(one.nodes.value().is_some());
        assert_eq!(lists_of_nodes(&fake), 1);
        assert!(!Arc::ptr_eq(&one, &facts.get(2).await));
        assert_eq!(lists_of_nodes(&fake), 2);
        facts.forget();
        assert_eq!(facts.again.lock().expect("not poisoned").len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_leaves_the_collecting_to_the_others() {
        let fake = Fake::default();
        let facts = RunFacts::new(Arc::default(), fake.api());
        let mut first = facts.get(1).boxed();
        assert!(first.as_mut().now_or_never().is_none(), "it takes a while");
        drop(first);
        let (one, other) = tokio::join!(facts.get(1), facts.get(1));
        assert!(one.nodes.value().is_some() && Arc::ptr_eq(&one, &other));
        assert_eq!(lists_of_nodes(&fake), 1);
    }
}
