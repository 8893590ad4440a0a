//! The report for programs: versioned, and apart from the record's own schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::facts::Known;
use crate::fixture::FixtureKey;
use crate::record::{CheckView, FixtureOutcome, RunView, Tally, critical_path, exit};
use crate::report::causes::{Cause, causes};
use crate::report::findings::blame::Blame;
use crate::report::findings::finding::{Finding, word};
use crate::report::findings::outcomes::Outcomes;
use crate::report::findings::places::{Pools, observed_from, point, pools};
use crate::report::findings::suspects::{suspects, unoffered};
use crate::report::text::ending::reservations;
use crate::report::text::summary::took_ms;
use crate::text::{bound, is_hostile};
use crate::verdict::Verdict;

/// The version of this report's schema; a field may be added within a version, not changed.
pub const SCHEMA: u32 = 1;

/// The most bytes of one piece of foreign text.
const KEPT: usize = 16 << 10;

/// The exit code of the process, and what it means.
pub(crate) fn ending(view: &RunView) -> (u8, &'static str) {
    match (view.process, exit(view)) {
        (Some(1), _) => (1, "internal error"),
        (code, exit) => (code.unwrap_or(exit.code()), exit.as_str()),
    }
}

/// Renders a run as JSON, ending in a newline. Characters a terminal would act on are escaped.
pub fn render(view: &RunView) -> String {
    let (blame, tally) = (Blame::from_view(view), Tally::from_view(view));
    let (code, meaning) = ending(view);
    let places = pools(view);
    let reservations = reservations(view).into_iter();
    let waivers = view.waivers().into_iter().map(|(waiver, state)| {
        let mut waiver = json!(waiver);
        waiver["state"] = json!(<&str>::from(state));
        waiver
    });
    let (checks, outcomes) = (view.checks.values(), Outcomes::from_view(view));
    let fixtures = view.fixtures.iter();
    let mut report = json!({
        "schema": SCHEMA,
        "run": run(view),
        "server": view.facts.as_ref().map(|facts| match &facts.server {
            Known::Fact { value, .. } => json!({"version": value}),
            Known::Unknown { reason } => json!({"unknown": reason}),
        }),
        "pools": places.iter().map(|(name, pool)| json!({
            "name": name,
            "build": pool.build.map(|build| build.to_string()),
            "nodes": pool.nodes.len(),
            "unusable": pool.unusable.len(),
            "excluded": pool.excluded.len(),
            "spared": pool.spared.len(),
        })).collect::<Vec<_>>(),
        "observed-from": observed_from(view),
        "curls": view.curls.iter().map(|curl| json!({
            "from": curl.from.to_string(),
            "program": curl.program,
            "version": curl.version,
        })).collect::<Vec<_>>(),
        "exit": {"code": code, "meaning": meaning},
        "tally": counts(&tally),
        "flaky": tally.flaky,
        "against": tally.against,
        "waived": tally.waived,
        "untested": tally.untested,
        "reservations": reservations
            .map(|one| json!({"word": one.word, "sentence": one.sentence}))
            .collect::<Vec<_>>(),
        "waivers": waivers.collect::<Vec<_>>(),
        "causes": causes(view).0.iter().map(cause).collect::<Vec<_>>(),
        "checks": checks.map(|one| check(view, &outcomes, &places, one)).collect::<Vec<_>>(),
        "fixtures": fixtures.map(|(key, how)| fixture(view, key, how, &blame)).collect::<Vec<_>>(),
        "tear-down": tear_down(view),
    });
    bound_texts(&mut report);
    pretty(&report)
}

fn cause(cause: &Cause<'_>) -> Value {
    json!({
        "component": <&str>::from(cause.component),
        "scope": <&str>::from(cause.scope),
        "says": cause.says,
        "works": cause.beside,
        "certainty": cause.certainty(),
        "likely": cause.likely,
        "evidence": cause.evidence,
        "look": cause.look,
        "link": cause.link,
        "checks": cause.checks.iter().map(|check| &check.planned.id).collect::<Vec<_>>(),
    })
}

/// A value as indented JSON with every hostile character escaped, ending in a newline.
pub fn pretty<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_string_pretty(value).expect("structs with text keys serialise");
    let mut text = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        // Outside strings the only hostile character is the newline; within strings it is escaped already
        if character != '\n' && is_hostile(character) {
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text.push('\n');
    text
}

fn run(view: &RunView) -> Value {
    let started = &view.started;
    json!({
        "id": started.run,
        "context": started.context,
        "version": started.version,
        "suites": started.suites,
        "began": view.began.to_string(),
        "last": view.last.to_string(),
        "took-ms": took_ms(view),
        "critical-path-ms": critical_path(view).map(|path| path.took_ms),
        "ended": view.ended.is_some(),
        "repetitions": view.repetitions,
        // The run that this one resumed, and how many checks that run had settled
        "resumed": view.resumed.as_ref().map(|(run, checks)| json!({"run": run, "checks": checks})),
        "interrupted": view.interrupted,
        "deadline-ms": view.deadline,
        "profile": started.profile.as_str(),
        "config": started.config,
        "selection": started.selection,
        // Whether the server's certificate was not verified
        "unverified": started.unverified,
        "left-out": view.left_out,
        // Selected checks of an earlier run that this cluster no longer has
        "gone": view.gone(),
    })
}

/// Every verdict with its count, also those that did not occur.
fn counts(tally: &Tally) -> BTreeMap<&'static str, usize> {
    let verdicts = Verdict::ALL
        .iter()
        .map(|&verdict| (verdict.as_str(), tally.count(verdict)));
    verdicts.chain([(word(None), tally.unfinished)]).collect()
}

fn check(view: &RunView, run: &Outcomes<'_>, places: &Pools, check: &CheckView) -> Value {
    let planned = &check.planned;
    let finding = Finding::of_check(check, Some(run));
    let tried = check.tried();
    json!({
        "id": planned.id,
        "claim": planned.claim,
        "type": planned.claim_type.as_str(),
        "title": planned.title,
        "point": point(places, &planned.point),
        "verdict": word(finding.verdict),
        "flaky": check.is_flaky(),
        "repeated": check.conclusion.iter().flat_map(|it| &it.repeated).collect::<BTreeMap<_, _>>(),
        "weight": view.weight(check).map(<&str>::from),
        "waived": view.waiver(check),
        "sentence": finding.sentence,
        "reason": {"expected": finding.expected, "seen": finding.seen, "cause": finding.cause},
        "suspect": suspects(view, check),
        "hint": finding.hint,
        "began": tried.map(|tried| tried.began),
        "took-ms": tried.map(|tried| tried.took_ms),
        "attempts": check.attempted(),
        "attempted": check.attempts.iter().map(|attempt| json!({
            "number": attempt.number,
            "verdict": attempt.verdict,
            "began": attempt.tried.map(|tried| tried.began),
            "took-ms": attempt.tried.map(|tried| tried.took_ms),
        })).collect::<Vec<_>>(),
    })
}

fn fixture(
    view: &RunView,
    key: &FixtureKey,
    (outcome, took_ms): &(FixtureOutcome, u64),
    blame: &Blame<'_>,
) -> Value {
    let failed = match outcome {
        FixtureOutcome::Ready(_) => None,
        FixtureOutcome::Failed(error) => Some(error),
    };
    let broke = blame
        .roots
        .get(key)
        .into_iter()
        .flat_map(|broke| &broke.checks);
    json!({
        "name": key.name.as_str(),
        "pool": key.pool,
        "ready": failed.is_none(),
        "cause": failed.map(ToString::to_string),
        "suspect": failed.and_then(|error| unoffered(view, key, error)),
        "took-ms": took_ms,
        "broke": broke.map(|(_, check)| &check.planned.id).collect::<Vec<_>>(),
    })
}

fn tear_down(view: &RunView) -> Value {
    let torn = view.torn_down.as_ref();
    json!({
        "done": torn.is_some_and(|torn| !torn.unlisted),
        // Whether the user asked to keep what is left
        "kept": view.kept,
        "removed": torn.map_or(0, |torn| torn.removed.len()),
        "left": view.left(),
        "errors": torn.map(|torn| torn.errors.as_slice()).unwrap_or_default(),
    })
}

/// Bounds each text, wherever it comes from; a cut text ends with its length.
fn bound_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            let all = text.len();
            if bound(text, KEPT) {
                let _ = write!(text, "… ({all} bytes in all)");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(bound_texts),
        Value::Object(members) => members.values_mut().for_each(bound_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
