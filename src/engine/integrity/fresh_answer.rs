//! An answer that concurrent callers share, unless one of them needs a newer one.

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The last answer, and when its request began.
#[derive(Debug)]
pub(crate) struct FreshAnswer<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for FreshAnswer<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> FreshAnswer<T> {
    /// The last answer, if its request began at `since` or later or it `lasts`; otherwise that of `ask`, for
    /// which concurrent callers wait.
    pub(crate) async fn since(
        &self,
        since: Instant,
        lasts: impl FnOnce(&T) -> bool,
        ask: impl Future<Output = T>,
    ) -> T {
        let mut last = self.0.lock().await;
        if let Some((began, answer)) = &*last
            && (*began >= since || lasts(answer))
        {
            return answer.clone();
        }
        let began = Instant::now();
        let answer = ask.await;
        *last = Some((began, answer.clone()));
        answer
    }
}
