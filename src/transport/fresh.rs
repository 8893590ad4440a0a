//! Which lists are older than what the same list told before: something between us and the server kept
//! them, and what they tell is not so any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use super::attempt::Failure;

/// The newest resourceVersion that each list told, by its path. Those of one kind can be compared
/// (KEP-5504), and a list that names none is read at the newest.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    newest: Mutex<HashMap<String, u64>>,
}

impl Fresh {
    /// What a list that is asked for from now on has to have reached.
    pub(super) fn floor(&self, path: &str) -> u64 {
        self.newest().get(path).copied().unwrap_or_default()
    }

    /// Takes note of what was told; that it is older than `floor` is a failure.
    pub(super) fn check(&self, path: &str, floor: u64, body: &Json) -> Result<(), Failure> {
        let list = body["kind"].as_str().is_some_and(|it| it.ends_with("List"));
        let version = body["metadata"]["resourceVersion"].as_str();
        let Some(told) = version.and_then(|it| it.parse().ok()).filter(|_| list) else {
            return Ok(());
        };
        if told < floor {
            return Err(Failure::Stale { told, floor });
        }
        let mut newest = self.newest();
        let newest = newest.entry(path.to_owned()).or_default();
        *newest = told.max(*newest);
        Ok(())
    }

    fn newest(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        // What a poisoned map holds is true nevertheless
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_older_than_was_told_before_it_was_asked_for_is_stale() {
        let fresh = Fresh::default();
        let list =
            |version: &str| json!({"kind": "PodList", "metadata": {"resourceVersion": version}});
        let check = |floor, body: &Json| fresh.check("/pods", floor, body).is_ok();
        let before = fresh.floor("/pods");
        assert!(check(before, &list("9")));
        assert_eq!(fresh.floor("/pods"), 9);
        assert!(!check(9, &list("8")));
        // Asked for before the other had answered
        assert!(check(before, &list("8")));
        assert_eq!((fresh.floor("/pods"), fresh.floor("/nodes")), (9, 0));
        // Numbers, not words; and who says nothing, such as an aggregated API, says nothing old
        assert!(check(9, &list("10")));
        assert!(check(10, &list("")));
        assert!(check(
            10,
            &json!({"kind": "Pod", "metadata": {"resourceVersion": "3"}})
        ));
    }
}
