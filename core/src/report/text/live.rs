//! The lines that show on a terminal how far a run is and what it waits for.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::layout::{columns, pad};
use crate::fixture::FixtureKey;
use crate::record::{Activity, Event, Line};
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// The most lines: the count, and the longest waits.
const MOST: usize = 10;
/// Columns of a time, such as `12h34m`, and of the gap after it.
const TIME: usize = 8;

/// What goes on between the events of a record, which has only what is over.
#[derive(Clone, Debug)]
pub enum Doing {
    /// It began; an exec session with so many transfers.
    Begins(Activity, usize),
    /// A fixture is not ready yet, for this reason.
    Waits(FixtureKey, String),
    /// It is over.
    Ends(Activity),
}

/// How far a run is, from the lines of its record and from what it is doing.
#[derive(Debug, Default)]
pub struct Live {
    began: Option<Timestamp>,
    planned: usize,
    concluded: BTreeMap<Verdict, usize>,
    /// What is under way, in the order in which it began.
    waits: Vec<Wait>,
}

#[derive(Debug)]
struct Wait {
    what: Activity,
    since: Timestamp,
    why: String,
}

impl Live {
    /// Takes note of a line of the record.
    pub fn line(&mut self, line: &Line) {
        self.began.get_or_insert(line.at);
        match &line.event {
            Event::Plan(checks) => self.planned = checks.len(),
            Event::Verdict { conclusion, .. } => {
                *self.concluded.entry(conclusion.verdict).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Takes note of what begins, goes on or ends.
    pub fn doing(&mut self, at: Timestamp, doing: Doing) {
        self.began.get_or_insert(at);
        match doing {
            Doing::Begins(what, transfers) => {
                let why = match transfers {
                    0 => String::new(),
                    transfers => counted(transfers, "transfer"),
                };
                let since = at;
                if what == Activity::TearDown {
                    // Nothing else is waited for any more
                    self.waits.clear();
                }
                self.waits.push(Wait { what, since, why });
            }
            Doing::Waits(key, why) => {
                let what = Activity::Fixture(key);
                if let Some(wait) = self.waits.iter_mut().find(|wait| wait.what == what) {
                    wait.why = why;
                }
            }
            Doing::Ends(what) => {
                let place = self.waits.iter().position(|wait| wait.what == what);
                place.map(|place| self.waits.remove(place));
            }
        }
    }

    /// At most ten lines of at most `width` columns: the count of checks by verdict, and the longest waits with
    /// their reasons. A word that does not fit is left out whole.
    pub fn lines(&self, now: Timestamp, width: usize) -> Vec<String> {
        let Some(began) = self.began else {
            return Vec::new();
        };
        let done: usize = self.concluded.values().sum();
        let verdicts = self
            .concluded
            .iter()
            .map(|(verdict, count)| format!("{count} {verdict}"));
        let verdicts = verdicts.collect::<Vec<_>>().join(", ");
        let mut first = match self.planned {
            0 => String::from("no plan yet"),
            planned => format!("{done} of {} done", counted(planned, "check")),
        };
        first.push_str(&format!(", {} elapsed", time(began, now)));
        if !verdicts.is_empty() {
            first.push_str(&format!(": {verdicts}"));
        }
        let mut waits: Vec<_> = self.waits.iter().collect();
        waits.sort_by_key(|wait| wait.since);
        let most = match waits.len() < MOST {
            true => waits.len(),
            // The last line counts the others
            false => MOST - 2,
        };
        let others = waits.len() - most;
        let waits = waits.into_iter().take(most).map(|wait| {
            let why = match wait.why.as_str() {
                "" => String::new(),
                why => format!(": {}", printable(why)),
            };
            let what = printable(&wait.what.to_string());
            format!("{}{what}{why}", pad(&time(wait.since, now), TIME))
        });
        let mut lines: Vec<_> = std::iter::once(first).chain(waits).collect();
        if others > 0 {
            lines.push(format!("{}and {others} more", pad("", TIME)));
        }
        lines.into_iter().map(|line| cut(line, width)).collect()
    }
}

/// The line when it fits, else the words of it that fit, and `…`.
fn cut(mut line: String, width: usize) -> String {
    if columns(&line) <= width {
        return line;
    }
    while let Some(at) = line.trim_end().rfind(' ') {
        line.truncate(at);
        if columns(line.trim_end()) + 2 <= width {
            line.truncate(line.trim_end().len());
            return line + " …";
        }
    }
    "…".to_owned()
}

/// The time between two clock values, such as `2m10s`; a clock that was set back took none.
fn time(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FixtureName;
    use crate::method::{SourceKind, VantageKey};
    use crate::text::is_hostile;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn fixture(pool: &str) -> FixtureKey {
        let pool = serde_json::from_value(pool.into()).expect("a pool");
        FixtureName::WIN_WEBSERVER.in_pool(Some(&pool))
    }

    fn session(node: u16) -> Activity {
        Activity::ExecSession(VantageKey {
            kind: SourceKind::LinuxPod,
            pool: None,
            node: Some(node),
        })
    }

    /// A run that waits for a pod of this pool, for this reason, and for exec sessions.
    fn live(pool: &str, why: &str, sessions: u16) -> Live {
        let mut live = Live::default();
        let key = fixture(pool);
        live.doing(at(0), Doing::Begins(Activity::Plan, 0));
        live.doing(at(1), Doing::Ends(Activity::Plan));
        live.doing(at(10), Doing::Begins(Activity::Fixture(key.clone()), 0));
        for node in 0..sessions {
            live.doing(at(60), Doing::Begins(session(node), 40));
        }
        live.doing(at(70), Doing::Waits(key, why.to_owned()));
        live
    }

    #[test]
    fn what_is_waited_for_longest_comes_first_with_its_reason() {
        let mut live = live("win", "pod a on node win-2: pulling image", 1);
        assert_eq!(
            live.lines(at(140), 100),
            [
                "no plan yet, 2m20s elapsed",
                "2m10s   win-webserver in win: pod a on node win-2: pulling image",
                "1m20s   exec session from linux-pod, node 0: 40 transfers",
            ]
        );
        live.doing(at(141), Doing::Ends(Activity::Fixture(fixture("win"))));
        live.doing(at(142), Doing::Waits(fixture("win"), "late".to_owned()));
        assert_eq!(live.lines(at(3660), 100).len(), 2);
        assert!(live.lines(at(3660), 100)[0].ends_with("1h01m elapsed"));
        assert!(live.lines(at(-5), 100)[0].ends_with("0s elapsed"));
    }

    #[test]
    fn tear_down_waits_for_nothing_that_was_given_up() {
        let mut live = live("win", "why", 1);
        live.doing(at(80), Doing::Begins(Activity::TearDown, 0));
        assert_eq!(live.lines(at(81), 100)[1..], ["1s      tear-down"]);
    }

    #[test]
    fn many_waits_take_ten_lines() {
        for (sessions, last) in [(8, "40 transfers"), (9, "and 2 more"), (99, "and 92 more")] {
            let lines = live("win", "why", sessions).lines(at(140), 100);
            assert!(
                lines.len() == MOST && lines[9].ends_with(last),
                "{lines:#?}"
            );
        }
    }

    #[test]
    fn no_line_is_too_wide_or_hostile_and_no_word_is_cut() {
        let pool = "windows-2022-with-a-very-long-name-that-fits-nowhere-at-all-in-60";
        let why =
            "0 of 2 Ready; \u{1b}[2J日本語日本語 winserver-6f7c8d9b5-abcde: ContainerCreating";
        for pool in ["win", pool] {
            let live = live(pool, why, 20);
            let whole = live.lines(at(140), usize::MAX).join(" ");
            let words: Vec<_> = whole.split(' ').collect();
            for width in 1..=200 {
                for line in live.lines(at(140), width) {
                    assert!(
                        columns(&line) <= width && !line.contains(is_hostile),
                        "{line}"
                    );
                    let cut = line.strip_suffix('…').unwrap_or(&line);
                    let words = cut.split_whitespace().all(|word| words.contains(&word));
                    assert!(words, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_said_of_a_run_that_has_not_begun() {
        assert!(Live::default().lines(at(0), 80).is_empty());
    }
}
