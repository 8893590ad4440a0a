//! Compares an HTTP observation with its expectation, target by target.

use std::collections::{BTreeMap, BTreeSet};

use super::{HttpAnswer, HttpExpectation, HttpObservation, ObservedTarget};
use crate::method::compare::Each;
use crate::method::failure::FailureClass;
use crate::method::{Comparison, Difference};
use crate::text::printable;

/// How many targets that are not as expected are named.
const NAMED: usize = 4;
/// How many bytes of an answer are shown.
const BODY_SHOWN: usize = 512;

/// Compares all targets together; each pod that should answer must have answered.
pub(super) fn compare(expectation: &HttpExpectation, seen: &HttpObservation) -> Comparison {
    if let Some(absent) = &seen.absent {
        return Comparison::NotApplicable(absent.clone());
    }
    let targets = seen.targets.iter();
    let met: BTreeSet<_> = targets.clone().filter_map(|it| it.by.as_ref()).collect();
    // Which of several pods is the wrong one, nothing says
    let is_split = seen.one && met.len() > 1;
    let each = targets.map(|target| one(expectation, &target.answer, target.foreign || is_split));
    let each: Vec<_> = each.collect();
    let difference = Difference {
        expected: expected(expectation, seen),
        seen: describe(seen, &each),
    };
    match Each::together(&each, expectation.is_failure(), difference) {
        Comparison::Met(difference) if !seen.unmet.is_empty() => Comparison::Unexpected(difference),
        together => together,
    }
}

fn one(expectation: &HttpExpectation, answer: &HttpAnswer, foreign: bool) -> Each {
    match expectation {
        HttpExpectation::Answers { status, body } => {
            match failure(answer, foreign, *status, body) {
                None => Each::Met,
                Some(FailureClass::WrongAnswer | FailureClass::HttpStatus) => Each::Unexpected,
                Some(_) => Each::NotMet,
            }
        }
        HttpExpectation::Reached => match answer {
            HttpAnswer::Answered { .. } if foreign => Each::Unexpected,
            HttpAnswer::Answered { .. } => Each::Met,
            HttpAnswer::Failed { .. } => Each::NotMet,
        },
        HttpExpectation::Resolved | HttpExpectation::Unresolved => {
            let resolved = !matches!(
                answer,
                HttpAnswer::Failed { class, .. } if *class == FailureClass::Dns
            );
            match resolved == (*expectation == HttpExpectation::Resolved) {
                true => Each::Met,
                false => Each::NotMet,
            }
        }
        HttpExpectation::Fails {
            classes,
            status,
            instead_of,
        } => match failure(answer, foreign, *status, instead_of) {
            None => Each::NotMet,
            Some(class) if classes.contains(&class) => Each::Met,
            Some(_) => Each::Unexpected,
        },
    }
}

/// How an observation falls short of an answer of the right pod with `marker`; `None` when it
/// does not.
fn failure(answer: &HttpAnswer, foreign: bool, wanted: u16, marker: &str) -> Option<FailureClass> {
    match answer {
        HttpAnswer::Answered { status, body } if *status == wanted => {
            let right = !foreign && body.contains(marker);
            (!right).then_some(FailureClass::WrongAnswer)
        }
        // A page in place of an expected refusal comes from another server
        HttpAnswer::Answered { status: 200, .. } => Some(FailureClass::WrongAnswer),
        HttpAnswer::Answered { .. } => Some(FailureClass::HttpStatus),
        HttpAnswer::Failed { class, .. } => Some(*class),
    }
}

fn expected(expectation: &HttpExpectation, seen: &HttpObservation) -> String {
    let by = match seen.targets.as_slice() {
        // Equal targets are requests to one target
        [first, .., last] if first.target == last.target => {
            let met = if seen.one {
                "from one pod"
            } else {
                "and every pod met"
            };
            format!(" to each of {} requests, {met}", seen.targets.len())
        }
        [_, _, ..] => format!(" from each of {}", seen.targets.len()),
        [_] | [] => String::new(),
    };
    format!("{expectation}{by}")
}

fn describe(seen: &HttpObservation, each: &[Each]) -> String {
    if let [target] = seen.targets.as_slice() {
        return said(target);
    }
    // Equal lines of several targets are shown once
    let mut amiss: BTreeMap<String, usize> = BTreeMap::new();
    for (target, _) in seen
        .targets
        .iter()
        .zip(each)
        .filter(|(_, one)| **one != Each::Met)
    {
        let line = format!("{}: {}", printable(&target.target), said(target));
        *amiss.entry(line).or_default() += 1;
    }
    let count: usize = amiss.values().sum();
    let mut parts = match count {
        0 => vec![so_it_was(seen)],
        count => vec![format!("{count} of {} otherwise", each.len())],
    };
    let lines = amiss.len();
    parts.extend(
        amiss
            .into_iter()
            .take(NAMED)
            .map(|(line, times)| match times {
                1 => line,
                times => format!("{line} ({times} times)"),
            }),
    );
    if lines > NAMED {
        parts.push(format!("and {} more", lines - NAMED));
    }
    if !seen.unmet.is_empty() {
        let unmet: Vec<_> = seen.unmet.iter().map(|pod| printable(pod)).collect();
        parts.push(format!("none was answered by {}", unmet.join(", ")));
    }
    parts.join("; ")
}

/// The words where every target is as expected, with the ways in which targets failed as expected.
fn so_it_was(seen: &HttpObservation) -> String {
    let count = seen.targets.len();
    let mut ways = BTreeMap::new();
    for target in &seen.targets {
        if let HttpAnswer::Failed { class, .. } = &target.answer {
            ways.entry(class.as_str()).or_insert_with(|| said(target));
        }
    }
    let ways = ways
        .into_values()
        .chain([format!("so it was, {count} of {count}")]);
    ways.collect::<Vec<_>>().join("; ")
}

fn said(seen: &ObservedTarget) -> String {
    match &seen.answer {
        HttpAnswer::Answered { status, body } => {
            let shown = &body[..body.floor_char_boundary(BODY_SHOWN)];
            format!("{status} with `{}`", printable(shown))
        }
        HttpAnswer::Failed { class, text } => format!("{}: {}", class.as_str(), printable(text)),
    }
}
