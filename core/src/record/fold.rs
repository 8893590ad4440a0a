//! A record read back: the state of its run.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::diagnosis::Diagnosis;
use super::event::{
    Attempted, Ended, Event, FixtureOutcome, FoundCurl, Line, ObjectName, PlannedCheck, SCHEMA,
    Started, TornDown, Tried,
};
use super::read::malformed;
use super::span::Span;
use crate::facts::Facts;
use crate::fixture::FixtureKey;
use crate::plan::{CheckId, Unoffered};
use crate::verdict::{Conclusion, Reason, Verdict};

/// Why a record cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RecordError {
    /// It has no whole line.
    #[error("it has no whole line: it is empty, or no record")]
    Empty,
    /// A line is not an event of a record.
    #[error("line {line} is not a record's: {problem}")]
    Malformed {
        /// From 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// Lines are missing or out of order.
    #[error(
        "line {line} has number {found} where {expected} was due: lines are missing or out of order"
    )]
    Gap {
        /// From 1.
        line: usize,
        /// The number that was due.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// The first line does not start a run.
    #[error("the first line does not start a run")]
    NoStart,
    /// Another version of the tool wrote it.
    #[error("its schema is {found}, and this winconform reads {SCHEMA}: use the one that wrote it")]
    OtherSchema {
        /// The schema found.
        found: u32,
    },
}

/// One check of a run, as far as the record goes.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckView {
    /// As planned.
    pub planned: PlannedCheck,
    /// Its attempts, in order: of those that are alike no more than the first and the last few.
    pub attempts: Vec<Attempted>,
    /// How many attempts between them are left out.
    pub unkept: usize,
    /// How long these took, in milliseconds.
    pub unkept_ms: u64,
    /// Its conclusion; `None` when the run was killed before it.
    pub conclusion: Option<Conclusion>,
}

/// How many of the first attempts that are alike are kept, and how many of the last.
const KEPT: usize = 4;

impl CheckView {
    /// Adds an attempt. A run that repeats for days has many that came to the same: they say no more.
    fn keep(&mut self, attempt: Attempted) {
        let kind = |one: &Attempted| (one.verdict, one.came_apart.is_empty());
        let new = kind(&attempt);
        self.attempts.push(attempt);
        let alike = self.attempts.iter().enumerate();
        let mut alike = alike.filter(|(_, one)| kind(one) == new);
        let (middle, rest) = (alike.nth(KEPT), alike.count());
        if let Some((middle, _)) = middle.filter(|_| rest >= KEPT) {
            let left_out = self.attempts.remove(middle).tried;
            self.unkept += 1;
            self.unkept_ms += left_out.map_or(0, |tried| tried.took_ms);
        }
    }

    /// How many attempts its record has.
    pub fn attempted(&self) -> usize {
        self.attempts.len() + self.unkept
    }

    /// Its verdict.
    pub fn verdict(&self) -> Option<Verdict> {
        self.conclusion.as_ref().map(|it| it.verdict)
    }

    /// The reason for its verdict.
    pub fn reason(&self) -> Option<&Reason> {
        self.conclusion.as_ref().map(|it| &it.reason)
    }

    /// When its first attempt on record began, and how long all of them took; `None` if there is none.
    pub fn tried(&self) -> Option<Tried> {
        let tried = self.attempts.iter().filter_map(|attempt| attempt.tried);
        let began = tried.clone().next()?.began;
        let times = tried.map(|one| one.took_ms).chain([self.unkept_ms]);
        let took_ms = times.fold(0, u64::saturating_add);
        Some(Tried { began, took_ms })
    }

    /// Whether its attempts or repetitions disagreed.
    pub fn is_flaky(&self) -> bool {
        self.conclusion.as_ref().is_some_and(|it| it.flaky)
    }
}

/// The state of a run, as its record gives it.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether one thing happened"
)]
pub struct RunView {
    /// How it began.
    pub started: Started,
    /// When it began.
    pub began: Timestamp,
    /// When the last line was written.
    pub last: Timestamp,
    /// The facts of the cluster.
    pub facts: Option<Facts>,
    /// Whether it has a plan, even one without checks.
    pub planned: bool,
    /// The checks, by their place in the plan.
    pub checks: BTreeMap<usize, CheckView>,
    /// The outcome of each fixture, with the milliseconds that it took.
    pub fixtures: BTreeMap<FixtureKey, (FixtureOutcome, u64)>,
    /// The curl of each vantage point, in the order in which they were found.
    pub curls: Vec<FoundCurl>,
    /// The spans, in the order in which they ended.
    pub spans: Vec<Span>,
    /// The evidence about fixtures that failed, and about those that failed checks depend on.
    pub diagnoses: BTreeMap<FixtureKey, Diagnosis>,
    /// Images that registries do not have for the nodes that were to run them.
    pub unoffered: Vec<Unoffered>,
    /// Objects whose creation was announced.
    pub intents: BTreeSet<ObjectName>,
    /// How many checks were left out by the selection, by area.
    pub left_out: BTreeMap<String, usize>,
    /// What ended the run early.
    pub interrupted: Option<String>,
    /// The run's deadline in milliseconds, if it passed before the run ended.
    pub deadline: Option<u64>,
    /// The run that it resumes, and how many of that run's settled checks it keeps.
    pub resumed: Option<(String, usize)>,
    /// The number of repetitions that began.
    pub repetitions: u32,
    /// Whether the run leaves what it created.
    pub kept: bool,
    /// What tear-down did.
    pub torn_down: Option<TornDown>,
    /// How it ended; `None` when it was killed.
    pub ended: Option<Ended>,
    /// Whether the last line was cut off, as a kill may leave it.
    pub cut: bool,
    /// The exit code of the process, where the reporting ends it with another one than the run's.
    pub process: Option<u8>,
    /// Whether the record has no file, so that findings cannot point to it.
    pub unwritten: bool,
    /// The `report.json` of an older run, if the reports are to tell what changed since.
    pub baseline: Option<String>,
}

/// The state of a run, folded from the lines read or written so far.
#[derive(Debug, Default)]
pub struct Fold {
    view: Option<RunView>,
    places: BTreeMap<CheckId, usize>,
    lines: usize,
}

impl Fold {
    /// Adds the next line. What an error leaves is no record: drop it.
    pub fn add(&mut self, line: Line) -> Result<(), RecordError> {
        let (number, expected) = (self.lines + 1, self.lines as u64);
        if line.seq != expected {
            return Err(RecordError::Gap {
                line: number,
                expected,
                found: line.seq,
            });
        }
        self.lines += 1;
        match (&mut self.view, line.event) {
            (None, Event::RunStarted(started)) if started.schema != SCHEMA => {
                return Err(RecordError::OtherSchema {
                    found: started.schema,
                });
            }
            (None, Event::RunStarted(started)) => {
                self.view = Some(RunView {
                    started,
                    began: line.at,
                    last: line.at,
                    repetitions: 1,
                    ..RunView::default()
                });
            }
            (None, _) => return Err(RecordError::NoStart),
            (Some(view), event) => {
                view.last = line.at;
                let folded = view.fold_event(event, &mut self.places);
                folded.map_err(|problem| malformed(number, problem))?;
            }
        }
        Ok(())
    }

    /// The run at the end of its record.
    pub(super) fn end(self, cut: bool) -> Result<RunView, RecordError> {
        let view = self.view.ok_or(RecordError::Empty)?;
        Ok(RunView { cut, ..view })
    }

    /// The run so far.
    pub fn view(&self) -> Result<&RunView, RecordError> {
        self.view.as_ref().ok_or(RecordError::Empty)
    }
}

impl RunView {
    /// How many checks the selection left out; 0 for a whole run.
    pub fn unselected(&self) -> usize {
        self.left_out.values().sum()
    }

    /// The selected checks of an earlier run that this one's plan does not have.
    pub fn gone(&self) -> BTreeSet<&CheckId> {
        let mut gone: BTreeSet<_> = self.started.again.iter().filter(|_| self.planned).collect();
        for check in self.checks.values() {
            gone.remove(&check.planned.id);
        }
        gone
    }

    /// What may still be in the cluster.
    pub fn left(&self) -> Vec<&ObjectName> {
        match &self.torn_down {
            None => self.intents.iter().collect(),
            Some(torn) if torn.unlisted => {
                let accounted = |object: &&ObjectName| {
                    torn.removed.contains(object) || torn.left.contains(object)
                };
                let rest = self.intents.iter().filter(|object| !accounted(object));
                torn.left.iter().chain(rest).collect()
            }
            Some(torn) => torn.left.iter().collect(),
        }
    }

    fn fold_event(
        &mut self,
        event: Event,
        places: &mut BTreeMap<CheckId, usize>,
    ) -> Result<(), String> {
        match event {
            Event::RunStarted(_) => return Err("a run started twice".to_owned()),
            Event::Facts(facts) => self.facts = Some(*facts),
            Event::Plan(checks) => {
                self.planned = true;
                for planned in checks {
                    let place = self.checks.len();
                    if places.insert(planned.id.clone(), place).is_some() {
                        return Err(format!("check `{}` is planned twice", planned.id));
                    }
                    let check = CheckView {
                        planned,
                        attempts: Vec::new(),
                        unkept: 0,
                        unkept_ms: 0,
                        conclusion: None,
                    };
                    self.checks.insert(place, check);
                }
            }
            Event::Unoffered(image) => self.unoffered.push(image),
            Event::Intent(object) => _ = self.intents.insert(object),
            Event::Fixture {
                key,
                outcome,
                took_ms,
            } => {
                self.fixtures.insert(key, (outcome, took_ms));
            }
            Event::Curl(curl) => self.curls.push(curl),
            Event::Span(span) => self.spans.push(span),
            Event::Diagnosis(diagnosis) => {
                self.diagnoses.insert(diagnosis.fixture.clone(), diagnosis);
            }
            Event::Attempt(attempt) => {
                self.check(&attempt.check, places)?.keep(attempt);
            }
            Event::Verdict { check, conclusion } => {
                let view = self.check(&check, places)?;
                if view.conclusion.replace(conclusion).is_some() {
                    return Err(format!("check `{check}` has two verdicts"));
                }
            }
            Event::Resumed { run, checks } => self.resumed = Some((run, checks)),
            Event::Repetition { number } => self.repetitions = number,
            Event::Kept => self.kept = true,
            Event::Waits { .. } => {}
            Event::LeftOut(counts) => self.left_out = counts,
            Event::Interrupted { by } => self.interrupted = Some(by),
            Event::Deadline { after_ms } => self.deadline = Some(after_ms),
            Event::TornDown(torn_down) => self.torn_down = Some(torn_down),
            Event::RunEnded(ended) => self.ended = Some(ended),
        }
        Ok(())
    }

    fn check(
        &mut self,
        id: &CheckId,
        places: &BTreeMap<CheckId, usize>,
    ) -> Result<&mut CheckView, String> {
        let check = places.get(id).and_then(|place| self.checks.get_mut(place));
        check.ok_or_else(|| format!("check `{id}` was not planned"))
    }
}
