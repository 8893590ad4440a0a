//! An answer that those who ask together share, unless one of them needs a newer one.

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The last answer, and when it was begun to be asked for.
#[derive(Debug)]
pub(crate) struct FreshAnswer<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for FreshAnswer<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> FreshAnswer<T> {
    /// The last answer, where it was asked for at `since` or later or is one that `lasts`; otherwise that of
    /// `ask`, for which whoever comes meanwhile waits.
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
