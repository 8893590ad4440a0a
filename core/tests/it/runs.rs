//! Runs for reports, each from its record in `records/`, and the events that tests add to one.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use winconform_core::claims::{ClaimId, ClaimType, Pattern};
use winconform_core::config::{Profile, Waiver};
use winconform_core::facts::{Facts, PoolName, WindowsBuild};
use winconform_core::fixture::{FixtureKey, FixtureName};
use winconform_core::method::{Difference, ObservationError, SourceKind};
use winconform_core::plan::{CheckId, Disposition, Point, Unoffered};
use winconform_core::record::{
    Ended, Event, Exit, FixtureOutcome, Line, PlannedCheck, RunView, SCHEMA, Started, read, to_line,
};
use winconform_core::verdict::{Conclusion, Reason, Verdict};

/// The time between two lines.
const STEP: SignedDuration = SignedDuration::from_millis(500);

/// A record that a test writes.
pub(crate) struct Recorder {
    text: String,
    seq: u64,
    at: Timestamp,
}

impl Recorder {
    /// A record without any line.
    pub(crate) fn empty() -> Self {
        let at = "2026-03-01T02:00:00Z".parse().expect("a timestamp");
        Self {
            text: String::new(),
            seq: 0,
            at,
        }
    }

    /// A record of a run that has started.
    pub(crate) fn started() -> Self {
        let mut recorder = Self::empty();
        recorder.push(Event::RunStarted(started()));
        recorder
    }

    /// The record of that name in `records/`, to which a test can add events.
    fn recorded(name: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/records");
        let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).expect("a record");
        let lines = text.lines().map(serde_json::from_str::<Line>);
        let last = lines
            .filter_map(Result::ok)
            .next_back()
            .expect("it has begun");
        Self {
            text,
            seq: last.seq + 1,
            at: last.at + STEP,
        }
    }

    /// The line an event becomes, half a second after the one before.
    pub(crate) fn line(&mut self, event: Event) -> Line {
        let line = Line {
            seq: self.seq,
            at: self.at,
            event,
        };
        self.seq += 1;
        self.at += STEP;
        line
    }

    /// Writes an event.
    pub(crate) fn push(&mut self, event: Event) -> &mut Self {
        let line = self.line(event);
        self.text
            .push_str(&to_line(&line).expect("an event is JSON"));
        self
    }

    /// The record's text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The record read back.
    pub(crate) fn view(&self) -> RunView {
        read(self.text.as_bytes()).expect("a record")
    }
}

/// The run of that name in `records/`.
pub(crate) fn recorded(name: &str) -> Recorder {
    Recorder::recorded(name)
}

/// The run with one of its checks alone, so many times, each time with an id of its own and without attempts.
pub(crate) fn many(mut view: RunView, id: &str, count: usize) -> RunView {
    let mut checks = std::mem::take(&mut view.checks).into_values();
    let one = checks.find(|check| check.planned.id.as_str() == id);
    let mut one = one.expect("it has this check");
    one.attempts.clear();
    let copy = |place: usize| {
        let mut check = one.clone();
        let planned = &mut check.planned;
        planned.point.value = Some(format!("v{place}"));
        planned.id = CheckId::new(&planned.claim, None, &planned.point);
        (place, check)
    };
    view.checks = (0..count).map(copy).collect();
    view
}

/// The start event of a run.
pub(crate) fn started() -> Started {
    Started {
        schema: SCHEMA,
        version: "0.1.0".to_owned(),
        run: "k3x9".to_owned(),
        context: "kind-hybrid".to_owned(),
        unverified: false,
        suites: "5f".repeat(32),
        profile: Profile::default(),
        config: None,
        selection: Vec::new(),
        again: BTreeSet::new(),
        unchecked: Vec::new(),
        waivers: Vec::new(),
        boots: None,
    }
}

/// A waiver whose reason and owner are this text.
pub(crate) fn waiver(check: &str, text: &str, expires: &str) -> Waiver {
    Waiver {
        check: Pattern::parse(check).expect("a pattern"),
        reason: text.to_owned(),
        owner: text.to_owned(),
        expires: expires.parse().expect("a date"),
    }
}

/// A cluster of two Linux and three Windows nodes, one of them not usable.
pub(crate) fn facts() -> Facts {
    recorded("healthy")
        .view()
        .facts
        .expect("they are on record")
}

/// A planned check.
pub(crate) fn planned(claim: &str, kind: ClaimType, point: Point, title: &str) -> PlannedCheck {
    let claim = ClaimId::parse(claim).expect("a claim id");
    PlannedCheck {
        id: CheckId::new(&claim, None, &point),
        claim,
        claim_type: kind,
        title: title.to_owned(),
        hint: format!("Look at what `{title}` rests on."),
        when: Vec::new(),
        point,
        disposition: Disposition::Observe,
        limitation: None,
    }
}

/// A point at the Windows Server 2022 pool.
pub(crate) fn point_at(source: Option<SourceKind>) -> Point {
    Point {
        pool: Some(PoolName::windows(WindowsBuild::SERVER_2022)),
        source,
        ..Point::default()
    }
}

/// A conclusion without disagreement.
pub(crate) fn conclusion(verdict: Verdict, reason: Reason) -> Conclusion {
    Conclusion {
        verdict,
        reason,
        flaky: false,
        repeated: BTreeMap::new(),
    }
}

/// A conclusion from what a check saw.
pub(crate) fn saw(verdict: Verdict, expected: &str, seen: &str) -> Conclusion {
    let difference = Difference {
        expected: expected.to_owned(),
        seen: seen.to_owned(),
    };
    conclusion(verdict, Reason::Seen(difference))
}

/// The fixture of the Windows Server 2022 pool, or of the cluster.
pub(crate) fn fixture(name: FixtureName) -> FixtureKey {
    let pool = name
        .per_pool()
        .then(|| PoolName::windows(WindowsBuild::SERVER_2022));
    FixtureKey {
        name,
        pool,
        node: None,
    }
}

/// A fixture that failed.
pub(crate) fn failed(name: FixtureName, error: ObservationError, took_ms: u64) -> Event {
    Event::Fixture {
        key: fixture(name),
        outcome: FixtureOutcome::Failed(error),
        took_ms,
    }
}

/// The last line of a record.
pub(crate) fn ended(exit: Exit) -> Event {
    Event::RunEnded(Ended {
        exit,
        requests: vec![("get nodes".to_owned(), 1)],
        took_ms: None,
    })
}

/// The event of a registry that has the sample's image only for other nodes, one with a hostile name.
pub(crate) fn unoffered() -> Event {
    let fixture = fixture(FixtureName::WIN_WEBSERVER);
    Event::Unoffered(Unoffered {
        image: "mcr.microsoft.com/windows/servercore:ltsc2022".to_owned(),
        pool: fixture.pool.expect("it stands in one"),
        build: Some(WindowsBuild::SERVER_2022),
        fixtures: [fixture.name].into(),
        has: vec!["linux\u{1b}[2J".to_owned(), "windows 10.0.17763".to_owned()],
    })
}

/// Text that may not reach a terminal or a report unescaped.
pub(crate) const HOSTILE: &str = "\u{1b}[31mred\u{1b}]0;title\u{7} nul \0 tab\t c1 \u{9b}31m del \
    \u{7f} bidi \u{202e}evil\u{2066} zero\u{200b}width ]]> <script>alert('&amp;\")</script> \r\n\
    10 checks: 10 pass \u{ffff} end \u{1b}[";

/// A run in which everything that comes from outside is hostile, and two texts are huge.
pub(crate) fn hostile() -> RunView {
    let json = serde_json::to_string(HOSTILE).expect("text is JSON");
    let inner = json.trim_matches('"');
    // Pools and check ids consist of builds and claims; a record may hold any text
    let text = recorded("hostile")
        .text()
        .replace("HUGE", &"y\\u001b".repeat(1 << 19))
        .replace("MARK", inner)
        .replace("windows-2022", &format!("windows-2022{inner}"));
    read(text.as_bytes()).expect("a record")
}
