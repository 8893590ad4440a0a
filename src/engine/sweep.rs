//! One sweep: the requests of many looks from one vantage in one session, and what each is told.

use std::net::IpAddr;
use std::ops::Range;

use winconform_core::way::{HttpGet, Reply, Request, SourceKind, Trouble, TroubleKind, VantageKey};

use super::command::LookOutcome;
use super::looker::Looker;
use super::vantage::Vantages;

/// Looks, all in one session.
pub(super) async fn sweep(
    vantages: &Vantages,
    from: &VantageKey,
    lookers: Vec<Looker>,
) -> Vec<(Looker, LookOutcome)> {
    let (mut gets, mut pings) = (Vec::<HttpGet>::new(), Vec::<IpAddr>::new());
    let mut places = Vec::new();
    let mut pinged = Vec::new();
    let mut outcomes = Vec::with_capacity(lookers.len());
    for looker in lookers {
        match looker.request() {
            Ok(Request::Get(own)) => {
                let from = gets.len();
                gets.extend(own);
                places.push((from..gets.len(), looker));
            }
            Ok(Request::Ping(own)) if from.kind.shell().is_some() => {
                let from = pings.len();
                pings.extend(own);
                pinged.push((from..pings.len(), looker));
            }
            Ok(Request::Api(_) | Request::Facts | Request::Ping(_)) => {
                let outcome = looker.outcome(Err(misdirected()));
                outcomes.push((looker, outcome));
            }
            Err(trouble) => {
                let outcome = looker.outcome(Err(trouble));
                outcomes.push((looker, outcome));
            }
        }
    }
    let swept = match gets.is_empty() && pings.is_empty() {
        true => Ok((Vec::new(), Vec::new())),
        false => vantages.sweep(from, &gets, &pings).await,
    };
    let (got, answered) = match swept {
        Ok((got, answered)) => (Ok(got), Ok(answered)),
        Err(trouble) => (Err(trouble.clone()), Err(trouble)),
    };
    let mut brought: Vec<_> = places
        .into_iter()
        .map(|(place, looker)| {
            let got = own(&got, place).and_then(|got| got.into_iter().collect());
            let outcome = looker.outcome(got.map(Reply::Get));
            (looker, outcome)
        })
        .collect();
    let by_us = from.kind == SourceKind::Outside;
    for (looker, outcome) in brought.iter().filter(|_| by_us) {
        for get in looker.answered(outcome) {
            vantages.answers(looker.is_at_node(&get), get);
        }
    }
    let failed = |outcome: &LookOutcome| outcome.taken.is_ok() && !outcome.holds();
    for (looker, outcome) in brought.iter_mut().filter(|(_, outcome)| failed(outcome)) {
        let Ok(Request::Get(gets)) = looker.request() else {
            continue;
        };
        let at_node = gets.iter().any(|get| looker.is_at_node(get));
        let replies = match &outcome.reply {
            Some(Reply::Get(replies)) => replies.as_slice(),
            _ => &[],
        };
        if let Some(trouble) = vantages.captive(from, at_node, replies).await {
            outcome.taken = Err(trouble);
        }
    }
    outcomes.extend(brought);
    for (place, looker) in pinged {
        let outcome = looker.outcome(own(&answered, place).map(Reply::Ping));
        outcomes.push((looker, outcome));
    }
    outcomes
}

/// What of a session's results is of one look.
fn own<T: Clone>(
    replies: &Result<Vec<T>, Trouble>,
    place: Range<usize>,
) -> Result<Vec<T>, Trouble> {
    match replies {
        Ok(replies) => {
            let own = replies.get(place).map(<[_]>::to_vec);
            own.ok_or_else(|| {
                Trouble::new(
                    TroubleKind::UnrecognisedOutput,
                    "the sweep has no result for it",
                )
            })
        }
        // What asks nothing is told without an answer
        Err(_) if place.is_empty() => Ok(Vec::new()),
        Err(trouble) => Err(trouble.clone()),
    }
}

/// A look that reached the wrong transport: the plan and the way disagree.
pub(super) fn misdirected() -> Trouble {
    Trouble::new(
        TroubleKind::UnrecognisedOutput,
        "the look was given to the wrong transport",
    )
}
