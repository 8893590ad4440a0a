//! The report for programs: versioned, and apart from the record's own schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::blame::Blame;
use super::ending::reservations;
use super::finding::{Finding, word};
use super::places::{Point, Pools};
use super::summary::took_ms;
use super::suspects::{suspects, unoffered};
use super::waivers::state_word;
use crate::config;
use crate::facts::{Facts, Known};
use crate::method::FixtureKey;
use crate::record::{CheckView, FixtureOutcome, ObjectName, RunView, Tally, critical_path, exit};
use crate::text::{bound, is_hostile};
use crate::verdict::{Verdict, Weight};

/// The version of this report's schema; a field may be added within a version, not changed.
pub const SCHEMA: u32 = 1;

/// The most bytes of one piece of foreign text.
const KEPT: usize = 16 << 10;

/// What the process ends with, and what that means.
pub(super) fn ending(view: &RunView) -> (u8, &'static str) {
    match (view.process, exit(view)) {
        (Some(1), _) => (1, "internal error"),
        (code, exit) => (code.unwrap_or(exit.code()), exit.as_str()),
    }
}

/// Renders a run as JSON, ending in a newline. Characters a terminal would act on are escaped.
pub fn render(view: &RunView) -> String {
    let blame = Blame::of(view);
    let tally = Tally::of(view);
    let (code, meaning) = ending(view);
    let places = super::places::pools(view);
    let report = Report {
        schema: SCHEMA,
        run: Run::of(view),
        server: view.facts.as_ref().map(|facts| Server::of(&facts.server)),
        pools: view.facts.as_ref().map(pools).unwrap_or_default(),
        observed_from: super::places::observed_from(view),
        exit: ExitCode { code, meaning },
        tally: counts(&tally),
        flaky: tally.flaky,
        against: tally.against,
        waived: tally.waived,
        untested: tally.untested.iter().map(ToString::to_string).collect(),
        reservations: reservations(view)
            .into_iter()
            .map(|reservation| Reserved {
                word: reservation.word,
                sentence: reservation.sentence,
            })
            .collect(),
        waivers: Waiver::all(view),
        checks: view
            .checks
            .values()
            .map(|check| Check::of(view, &places, check))
            .collect(),
        fixtures: view
            .fixtures
            .iter()
            .map(|(key, how)| Fixture::of(view, key, how, &blame))
            .collect(),
        tear_down: TearDown::of(view),
    };
    pretty(&report)
}

/// A value as indented JSON with every hostile character escaped, ending in a newline.
pub(super) fn pretty<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_string_pretty(value).expect("structs with text keys serialise");
    let mut text = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        // Outside of strings the only one is the newline, which inside is escaped already
        if character != '\n' && is_hostile(character) {
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text.push('\n');
    text
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    schema: u32,
    run: Run,
    server: Option<Server>,
    pools: Vec<Pool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    observed_from: Vec<String>,
    exit: ExitCode,
    tally: BTreeMap<&'static str, usize>,
    flaky: usize,
    against: usize,
    waived: usize,
    untested: Vec<String>,
    reservations: Vec<Reserved>,
    waivers: Vec<Waiver>,
    checks: Vec<Check>,
    fixtures: Vec<Fixture>,
    tear_down: TearDown,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Run {
    id: String,
    context: String,
    version: String,
    suites: String,
    began: String,
    last: String,
    took_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    critical_path_ms: Option<u64>,
    ended: bool,
    repetitions: u32,
    /// The run that this one went on with, and how many checks that one had settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<Value>,
    interrupted: Option<String>,
    deadline_ms: Option<u64>,
    profile: &'static str,
    config: Option<String>,
    selection: Vec<String>,
    /// Whether the server's certificate was not verified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unverified: bool,
    left_out: BTreeMap<String, usize>,
}

impl Run {
    fn of(view: &RunView) -> Self {
        let resumed = view.resumed.as_ref();
        Self {
            id: kept(&view.started.run),
            context: kept(&view.started.context),
            version: kept(&view.started.version),
            suites: kept(&view.started.suites),
            began: view.began.to_string(),
            last: view.last.to_string(),
            took_ms: took_ms(view),
            critical_path_ms: critical_path(view).map(|path| path.took_ms),
            ended: view.ended.is_some(),
            repetitions: view.repetitions,
            resumed: resumed.map(|(run, checks)| json!({"run": kept(run), "checks": checks})),
            interrupted: view.interrupted.as_deref().map(kept),
            deadline_ms: view.deadline,
            profile: view.started.profile.as_str(),
            config: view.started.config.as_deref().map(kept),
            selection: view.started.selection.iter().map(|one| kept(one)).collect(),
            unverified: view.started.unverified,
            left_out: view.left_out.clone(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Server {
    Version(String),
    Unknown(String),
}

impl Server {
    fn of(server: &Known<String>) -> Self {
        match server {
            Known::Fact { value, .. } => Self::Version(kept(value)),
            Known::Unknown { reason } => Self::Unknown(kept(reason)),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Pool {
    name: String,
    build: Option<String>,
    nodes: usize,
    unusable: usize,
}

fn pools(facts: &Facts) -> Vec<Pool> {
    let pools = facts.pools();
    let pools = pools.iter().map(|(name, pool)| Pool {
        name: kept(name.as_str()),
        build: pool.build.map(|build| build.to_string()),
        nodes: pool.nodes.len(),
        unusable: pool.unusable.len(),
    });
    pools.collect()
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ExitCode {
    code: u8,
    meaning: &'static str,
}

/// Every verdict with its count, also those that did not occur.
fn counts(tally: &Tally) -> BTreeMap<&'static str, usize> {
    let verdicts = Verdict::ALL
        .iter()
        .map(|&verdict| (verdict.as_str(), tally.count(verdict)));
    verdicts.chain([(word(None), tally.unfinished)]).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Reserved {
    word: &'static str,
    sentence: String,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Waiver {
    check: String,
    reason: String,
    owner: String,
    expires: String,
    state: &'static str,
}

impl Waiver {
    fn all(view: &RunView) -> Vec<Self> {
        let of = |(waiver, state): (&config::Waiver, _)| Self {
            check: kept(waiver.check.as_str()),
            reason: kept(&waiver.reason),
            owner: kept(&waiver.owner),
            expires: waiver.expires.to_string(),
            state: state_word(state),
        };
        view.waivers().into_iter().map(of).collect()
    }
}

/// The waiver that applies to a check.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Waived {
    reason: String,
    owner: String,
    expires: String,
}

impl Waived {
    fn of(waiver: &config::Waiver) -> Self {
        Self {
            reason: kept(&waiver.reason),
            owner: kept(&waiver.owner),
            expires: waiver.expires.to_string(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Check {
    id: String,
    claim: String,
    r#type: &'static str,
    title: String,
    point: Point,
    verdict: &'static str,
    flaky: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    repeated: BTreeMap<&'static str, u32>,
    weight: Option<&'static str>,
    waived: Option<Waived>,
    sentence: String,
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspect: Option<String>,
    hint: String,
    attempts: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Reason {
    expected: Option<String>,
    seen: Option<String>,
    cause: Option<String>,
}

impl Check {
    fn of(view: &RunView, places: &Pools, check: &CheckView) -> Self {
        let planned = &check.planned;
        let finding = Finding::of(planned, check.conclusion.as_ref());
        Self {
            id: kept(planned.id.as_str()),
            claim: planned.claim.to_string(),
            r#type: planned.claim_type.as_str(),
            title: kept(&planned.title),
            point: Point::of(places, &planned.point),
            verdict: word(finding.verdict),
            flaky: check.is_flaky(),
            repeated: check
                .conclusion
                .iter()
                .flat_map(|conclusion| &conclusion.repeated)
                .map(|(verdict, times)| (verdict.as_str(), *times))
                .collect(),
            weight: view.weight(check).map(|weight| match weight {
                Weight::For => "for",
                Weight::Against => "against",
                Weight::Nothing => "nothing",
            }),
            waived: view.waiver(check).map(Waived::of),
            sentence: finding.sentence,
            reason: Reason {
                expected: finding.expected.as_deref().map(kept),
                seen: finding.seen.as_deref().map(kept),
                cause: finding.cause.as_deref().map(kept),
            },
            suspect: suspects(view, check).as_deref().map(kept),
            hint: kept(&finding.hint),
            attempts: check.attempts.len(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Fixture {
    name: &'static str,
    pool: Option<String>,
    stands: bool,
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspect: Option<String>,
    took_ms: u64,
    broke: Vec<String>,
}

impl Fixture {
    fn of(
        view: &RunView,
        key: &FixtureKey,
        how: &(FixtureOutcome, u64),
        blame: &Blame<'_>,
    ) -> Self {
        let (outcome, took_ms) = how;
        let failed = match outcome {
            FixtureOutcome::Ready(_) => None,
            FixtureOutcome::Failed(error) => Some(error),
        };
        let checks = blame.roots.get(key).map(|broke| broke.checks.as_slice());
        Self {
            name: key.name.as_str(),
            pool: key.pool.as_ref().map(|pool| kept(pool.as_str())),
            stands: failed.is_none(),
            cause: failed.map(|error| kept(&error.to_string())),
            suspect: failed
                .and_then(|error| unoffered(view, key, error))
                .as_deref()
                .map(kept),
            took_ms: *took_ms,
            broke: checks
                .unwrap_or_default()
                .iter()
                .map(|id| kept(id.as_str()))
                .collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TearDown {
    done: bool,
    /// Whether what is left was to stay.
    kept: bool,
    removed: usize,
    left: Vec<Object>,
    errors: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Object {
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl TearDown {
    fn of(view: &RunView) -> Self {
        let torn = view.torn_down.as_ref();
        let object = |object: &ObjectName| Object {
            kind: kept(&object.kind),
            namespace: object.namespace.as_deref().map(kept),
            name: kept(&object.name),
        };
        let errors = torn.map(|torn| torn.errors.as_slice()).unwrap_or_default();
        Self {
            done: torn.is_some_and(|torn| !torn.unlisted),
            kept: view.kept,
            removed: torn.map_or(0, |torn| torn.removed.len()),
            left: view.left().into_iter().map(object).collect(),
            errors: errors.iter().map(|error| kept(error)).collect(),
        }
    }
}

/// Text as recorded as far as it is kept; how long it was is said when it is cut.
pub(super) fn kept(text: &str) -> String {
    let mut kept = text.to_owned();
    if bound(&mut kept, KEPT) {
        let _ = write!(kept, "… ({} bytes in all)", text.len());
    }
    kept
}
