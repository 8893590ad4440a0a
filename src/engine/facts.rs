//! Facts told to looks: of the start of the run, or fresh ones for what is looked at again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;
use winconform_core::facts::Facts;

use crate::cluster::collect;
use crate::transport::Api;

/// The facts of a run. Clones share them.
#[derive(Clone)]
pub(super) struct FactsTold {
    first: Arc<Facts>,
    fresh: Fresh<Facts>,
    api: Api,
}

impl FactsTold {
    /// The facts that the run began with.
    pub(super) fn new(first: Facts, api: Api) -> Self {
        Self {
            first: Arc::new(first),
            fresh: Fresh::default(),
            api,
        }
    }

    /// The facts; to who looks `again`, as they are now.
    pub(super) async fn tell(&self, again: bool) -> Arc<Facts> {
        match again {
            false => Arc::clone(&self.first),
            true => self.fresh.get(|| collect(&self.api)).await,
        }
    }
}

/// One value made for all who ask while the one before is being made. Nobody is given a value
/// whose making began before they asked: it may hold what they want to see changed.
struct Fresh<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    begun: AtomicU64,
    last: Mutex<Option<(u64, Arc<T>)>>,
}

impl<T> Fresh<T> {
    async fn get<M: Future<Output = T>>(&self, make: impl FnOnce() -> M) -> Arc<T> {
        let asked = self.inner.begun.load(Ordering::SeqCst);
        let mut last = self.inner.last.lock().await;
        if let Some((number, value)) = &*last
            && *number > asked
        {
            return Arc::clone(value);
        }
        // Only here, under the lock
        let number = self.inner.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let value = Arc::new(make().await);
        *last = Some((number, Arc::clone(&value)));
        value
    }
}

impl<T> Clone for Fresh<T> {
    fn clone(&self) -> Self {
        let inner = Arc::clone(&self.inner);
        Self { inner }
    }
}

impl<T> Default for Fresh<T> {
    fn default() -> Self {
        let inner = Inner {
            begun: AtomicU64::new(0),
            last: Mutex::new(None),
        };
        Self {
            inner: Arc::new(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    /// Asks, and counts how often what it gets was made.
    fn ask(
        fresh: &Fresh<u64>,
        made: &Arc<AtomicU64>,
        gate: Option<oneshot::Receiver<()>>,
    ) -> tokio::task::JoinHandle<u64> {
        let (fresh, made) = (fresh.clone(), Arc::clone(made));
        tokio::spawn(async move {
            let making = || async move {
                let number = made.fetch_add(1, Ordering::SeqCst) + 1;
                if let Some(gate) = gate {
                    gate.await.expect("opened");
                }
                number
            };
            *fresh.get(making).await
        })
    }

    #[tokio::test]
    async fn who_asks_while_one_is_made_shares_the_next() {
        let (fresh, made) = (Fresh::default(), Arc::default());
        let (open, gate) = oneshot::channel();
        let first = ask(&fresh, &made, Some(gate));
        while made.load(Ordering::SeqCst) == 0 {
            yield_now().await;
        }
        let others = [0; 5].map(|_| ask(&fresh, &made, None));
        yield_now().await;
        open.send(()).expect("awaited");
        assert_eq!(first.await.expect("told"), 1);
        for other in others {
            assert_eq!(other.await.expect("told"), 2);
        }
        assert_eq!(ask(&fresh, &made, None).await.expect("told"), 3);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_making_to_the_next() {
        let (fresh, made) = (Fresh::default(), Arc::default());
        let (_open, gate) = oneshot::channel();
        let first = ask(&fresh, &made, Some(gate));
        while made.load(Ordering::SeqCst) == 0 {
            yield_now().await;
        }
        let second = ask(&fresh, &made, None);
        yield_now().await;
        first.abort();
        assert_eq!(second.await.expect("told"), 2);
    }
}
