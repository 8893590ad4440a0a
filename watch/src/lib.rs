//! A channel of one value whose receivers see the newest, like `tokio::sync::watch`, and with its names.
//!
//! Receivers wake in the order in which they began to wait. Receivers of tokio wake in a random order, whose
//! seed only an unstable part of tokio accepts; two runs of one seed would then differ.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::Notify;

#[derive(Debug)]
struct Shared<T> {
    state: RwLock<State<T>>,
    /// Not behind the lock: the thread that drops the last sender may be reading the value.
    closed: AtomicBool,
    changed: Notify,
    receivers: AtomicUsize,
    /// Notified when the last receiver is dropped.
    dropped: Notify,
}

#[derive(Debug)]
struct State<T> {
    value: T,
    version: u64,
}

impl<T> Shared<T> {
    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value, and wakes the receivers if `change` returns true; returns the other result.
    fn write<R>(&self, change: impl FnOnce(&mut T) -> (R, bool)) -> R {
        let (result, changed) = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            let (result, changed) = change(&mut state.value);
            state.version += u64::from(changed);
            (result, changed)
        };
        if changed {
            self.changed.notify_waiters();
        }
        result
    }

    /// Once true, no later value comes.
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// A channel that holds this value.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// Changes the value. The channel is closed when the last clone is dropped.
#[derive(Debug)]
pub struct Sender<T>(Arc<Open<T>>);

#[derive(Debug)]
struct Open<T>(Arc<Shared<T>>);

impl<T> Drop for Open<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

impl<T> Sender<T> {
    pub fn new(value: T) -> Self {
        let state = State { value, version: 0 };
        let shared = Shared {
            state: RwLock::new(state),
            closed: AtomicBool::new(false),
            changed: Notify::new(),
            receivers: AtomicUsize::new(0),
            dropped: Notify::new(),
        };
        Self(Arc::new(Open(Arc::new(shared))))
    }

    /// A receiver that has seen the value as it is now.
    pub fn subscribe(&self) -> Receiver<T> {
        let shared = Arc::clone(&self.0.0);
        shared.receivers.fetch_add(1, Ordering::SeqCst);
        let seen = shared.read().version;
        Receiver { shared, seen }
    }

    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.0.0.read())
    }

    /// Sets the value, and returns the one before.
    pub fn send_replace(&self, value: T) -> T {
        let replace = |held: &mut T| (std::mem::replace(held, value), true);
        self.0.0.write(replace)
    }

    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.0.0.write(|value| (modify(value), true));
    }

    /// Modifies the value, and wakes the receivers if `modify` returns true; returns the same.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        self.0.0.write(|value| {
            let modified = modify(value);
            (modified, modified)
        })
    }

    /// Waits until there is no receiver.
    pub async fn closed(&self) {
        loop {
            let dropped = self.0.0.dropped.notified();
            if self.0.0.receivers.load(Ordering::SeqCst) == 0 {
                return;
            }
            dropped.await;
        }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Sees the newest value. A clone has seen what the original has seen.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

/// The error when all senders are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

impl<T> Receiver<T> {
    /// The value, which does not count as seen.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.shared.read())
    }

    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let state = self.shared.read();
        self.seen = state.version;
        Ref(state)
    }

    /// Marks the current value as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.read().version;
    }

    /// Waits for a value that this receiver has not seen, and marks it as seen.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            let changed = self.shared.changed.notified();
            let closed = self.shared.is_closed();
            let version = self.shared.read().version;
            if version != self.seen {
                self.seen = version;
                return Ok(());
            }
            if closed {
                return Err(Closed);
            }
            changed.await;
        }
    }

    /// Waits until `wanted` accepts the value, which it may do at once.
    pub async fn wait_for(
        &mut self,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, Closed> {
        loop {
            let changed = self.shared.changed.notified();
            let closed = self.shared.is_closed();
            {
                let state = self.shared.read();
                self.seen = state.version;
                if wanted(&state.value) {
                    return Ok(Ref(state));
                }
            }
            if closed {
                return Err(Closed);
            }
            changed.await;
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receivers.fetch_add(1, Ordering::SeqCst);
        Self {
            shared: Arc::clone(&self.shared),
            seen: self.seen,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.shared.receivers.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.shared.dropped.notify_waiters();
        }
    }
}

/// A read lock on the value, which no sender can change meanwhile.
#[derive(Debug)]
pub struct Ref<'a, T>(RwLockReadGuard<'a, State<T>>);

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::StreamExt;
    use futures::stream::FuturesUnordered;

    #[test]
    fn receivers_wake_in_the_order_in_which_they_wait() {
        let (sender, receiver) = channel(0);
        let mut waiting = FuturesUnordered::new();
        for name in 0..20 {
            let mut receiver = receiver.clone();
            waiting.push(async move {
                receiver.changed().await.expect("it changes");
                name
            });
        }
        assert_eq!(waiting.next().now_or_never(), None);
        sender.send_replace(1);
        let woken = waiting.collect::<Vec<_>>().now_or_never();
        assert_eq!(woken, Some((0..20).collect()));
    }

    #[test]
    fn what_was_not_seen_is_seen_also_after_the_end() {
        let (sender, mut receiver) = channel(1);
        assert_eq!(receiver.changed().now_or_never(), None);
        assert_eq!(sender.send_replace(2), 1);
        assert_eq!(*receiver.borrow(), 2);
        assert!(!sender.send_if_modified(|_| false));
        drop(sender);
        assert_eq!(receiver.changed().now_or_never(), Some(Ok(())));
        assert_eq!(receiver.changed().now_or_never(), Some(Err(Closed)));
        let two = receiver.wait_for(|value| *value == 2).now_or_never();
        assert_eq!(*two.expect("it is").expect("open or not"), 2);
        let three = receiver.wait_for(|value| *value == 3).now_or_never();
        assert_eq!(three.expect("it never is").err(), Some(Closed));
    }

    #[test]
    fn what_counts_as_seen_wakes_nobody() {
        let (sender, mut receiver) = channel(1);
        sender.send_modify(|value| *value += 1);
        receiver.mark_unchanged();
        assert_eq!(receiver.changed().now_or_never(), None);
        sender.send_replace(3);
        assert_eq!(*receiver.borrow_and_update(), 3);
        assert_eq!(receiver.changed().now_or_never(), None);
        assert_eq!(sender.subscribe().changed().now_or_never(), None);
    }

    #[test]
    fn a_sender_waits_until_all_receivers_are_gone() {
        let (sender, receiver) = channel(());
        let other = receiver.clone();
        let mut closed = Box::pin(sender.closed());
        drop(receiver);
        assert_eq!((&mut closed).now_or_never(), None);
        drop(other);
        assert_eq!(closed.now_or_never(), Some(()));
    }

    #[test]
    fn it_is_open_while_a_clone_of_the_sender_is_there() {
        let (sender, mut receiver) = channel(());
        let other = sender.clone();
        drop(sender);
        assert_eq!(receiver.changed().now_or_never(), None);
        let held = receiver.borrow();
        drop(other);
        drop(held);
        assert_eq!(receiver.changed().now_or_never(), Some(Err(Closed)));
    }
}
