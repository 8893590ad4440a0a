//! Detects lists older than an earlier answer of the same list: something between this tool and the server
//! caches them, and their content is out of date.
//!
//! A server whose store was restored from a backup counts on from the backup's version. So a list that stays
//! older, but advances, is accepted in the end.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use super::attempt::Failure;
use super::locked::locked;

/// How long a list must stay older before it is accepted; shorter than the time for which one request is
/// repeated.
const PUT_BACK: Duration = Duration::from_secs(30);

/// The resourceVersions of each list, by path. Versions of one kind are comparable (KEP-5504), and a list
/// request that names no version reads the newest.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    told: Mutex<HashMap<String, Told>>,
}

/// The resourceVersions of one list.
#[derive(Debug, Default)]
struct Told {
    /// Its newest resourceVersion.
    newest: u64,
    /// Since when every answer has been older, and the version of the first of them.
    older: Option<(Instant, u64)>,
}

impl Fresh {
    /// The resourceVersion that a list requested from now on must have reached.
    pub(crate) fn floor(&self, path: &str) -> u64 {
        locked(&self.told).get(path).map_or(0, |list| list.newest)
    }

    /// Notes the version of a list. A list older than `floor` is a failure, unless it has stayed older for
    /// `PUT_BACK` and has advanced since.
    pub(crate) fn check(&self, path: &str, floor: u64, body: &Json) -> Result<(), Failure> {
        // A further page has the version of the first page
        let first = !path.contains("continue=");
        let list = first && body["kind"].as_str().is_some_and(|it| it.ends_with("List"));
        let version = body["metadata"]["resourceVersion"].as_str();
        let Some(told) = version.and_then(|it| it.parse().ok()).filter(|_| list) else {
            return Ok(());
        };
        let mut lists = locked(&self.told);
        let known = lists.entry(path.to_owned()).or_default();
        // A list accepted as restored while this request was under way has a lower floor
        let floor = floor.min(known.newest);
        if told < floor {
            let (since, first) = *known.older.get_or_insert((Instant::now(), told));
            if since.elapsed() < PUT_BACK || told <= first {
                return Err(Failure::Stale { told, floor });
            }
            lists.clear();
        }
        let known = lists.entry(path.to_owned()).or_default();
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
        // This request was sent before the newer list arrived
        assert!(check(before, &list("8")));
        assert_eq!((fresh.floor("/pods"), fresh.floor("/nodes")), (9, 0));
        // Versions compare as numbers; a list without one, such as an aggregated API's, is never stale
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
        // A cache repeats one version for ever; a restored store counts on from its own
        for (steps, believed) in [([0; 30], false), ([1; 30], true)] {
            let mut version = 500;
            for step in steps {
                pause(Duration::from_secs(2)).await;
                version += step;
                // This floor dates from before the list was accepted
                check(1_000, version);
            }
            assert_eq!(fresh.floor("/pods"), if believed { version } else { 1_000 });
            assert!(check(1_000, 1_000));
        }
    }
}
