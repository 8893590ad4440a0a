//! Which lists are older than what the same list told before: something between us and the server kept
//! them, and what they tell is not so any more.
//!
//! After its store was put back from a backup a server counts from where that was: what stays older and
//! goes on nevertheless is believed in the end.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use super::attempt::Failure;
use super::locked::locked;

/// How long a list stays older, each time it is asked for, until it is believed; less than one request is
/// sent again for.
const PUT_BACK: Duration = Duration::from_secs(30);

/// What each list said, by its path. The versions of one kind can be compared (KEP-5504), and a list that
/// names none is read at the newest.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    told: Mutex<HashMap<String, Told>>,
}

/// What one list said.
#[derive(Debug, Default)]
struct Told {
    /// Its newest resourceVersion.
    newest: u64,
    /// Since when it has only said older ones, and the first of these.
    older: Option<(Instant, u64)>,
}

impl Fresh {
    /// What a list that is asked for from now on has to have reached.
    pub(crate) fn floor(&self, path: &str) -> u64 {
        locked(&self.told).get(path).map_or(0, |told| told.newest)
    }

    /// Takes note of a list; that it is older than `floor` is a failure, unless that has lasted and
    /// it goes on from there.
    pub(crate) fn check(&self, path: &str, floor: u64, body: &Json) -> Result<(), Failure> {
        // A page that another leads to is of the first one's version
        let first = !path.contains("continue=");
        let list = first && body["kind"].as_str().is_some_and(|it| it.ends_with("List"));
        let version = body["metadata"]["resourceVersion"].as_str();
        let Some(told) = version.and_then(|it| it.parse().ok()).filter(|_| list) else {
            return Ok(());
        };
        let mut all = locked(&self.told);
        let known = all.entry(path.to_owned()).or_default();
        // What was put back since it was asked for has no floor any more
        let floor = floor.min(known.newest);
        if told < floor {
            let (since, first) = *known.older.get_or_insert((Instant::now(), told));
            if since.elapsed() < PUT_BACK || told <= first {
                return Err(Failure::Stale { told, floor });
            }
            all.clear();
        }
        let known = all.entry(path.to_owned()).or_default();
        *known = Told {
            newest: told.max(known.newest),
            older: None,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use super::super::pace::pause;

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

    #[tokio::test(start_paused = true)]
    async fn a_store_that_was_put_back_is_believed_in_the_end() {
        let fresh = Fresh::default();
        let check = |floor, version: u64| {
            let version = json!({"resourceVersion": version.to_string()});
            let list = json!({"kind": "PodList", "metadata": version});
            fresh.check("/pods", floor, &list).is_ok()
        };
        assert!(check(0, 1_000));
        // What keeps answers gives the same one for ever; the store goes on from where it was
        for (steps, believed) in [([0; 30], false), ([1; 30], true)] {
            let mut version = 500;
            for step in steps {
                pause(Duration::from_secs(2)).await;
                version += step;
                // Asked for before it was believed, too
                check(1_000, version);
            }
            assert_eq!(fresh.floor("/pods"), if believed { version } else { 1_000 });
            assert!(check(1_000, 1_000));
        }
    }
}
