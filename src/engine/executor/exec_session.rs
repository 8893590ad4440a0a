//! One exec session: the requests of many assertions from one vantage point in one session, and what each is told.

use std::net::IpAddr;
use std::ops::Range;

use winconform_core::method::{
    ErrorKind, HttpGet, ObservationError, Reply, Request, Result, SourceKind, VantageKey,
};

use super::observer::Observer;
use super::vantage::Vantages;
use crate::engine::scheduler::command::AssertionOutcome;

/// Makes these assertions, all in one session.
pub(crate) async fn exec_session<'o>(
    vantages: &Vantages,
    from: &VantageKey,
    observers: &'o [Observer],
) -> Vec<(&'o Observer, AssertionOutcome)> {
    let (mut gets, mut pings) = (Vec::<HttpGet>::new(), Vec::<IpAddr>::new());
    let mut places = Vec::new();
    let mut pinged = Vec::new();
    let mut outcomes = Vec::with_capacity(observers.len());
    for observer in observers {
        let prepared = observer.prepare();
        match prepared.as_ref().map(|prepared| &prepared.request) {
            Ok(Request::Get(own)) => {
                let from = gets.len();
                gets.extend_from_slice(own);
                places.push((from..gets.len(), observer, prepared));
            }
            Ok(Request::Ping(own)) if from.kind.shell().is_some() => {
                let from = pings.len();
                pings.extend_from_slice(own);
                pinged.push((from..pings.len(), observer, prepared));
            }
            Ok(Request::Api(_) | Request::Facts | Request::Ping(_)) | Err(_) => {
                outcomes.push((observer, observer.outcome(prepared, Err(misdirected()))));
            }
        }
    }
    let swept = match gets.is_empty() && pings.is_empty() {
        true => Ok((Vec::new(), Vec::new())),
        false => vantages.exec_session(from, &gets, &pings).await,
    };
    let (got, answered) = match swept {
        Ok((got, answered)) => (Ok(got), Ok(answered)),
        Err(error) => (Err(error.clone()), Err(error)),
    };
    let brought = places.into_iter().map(|(place, observer, prepared)| {
        let got = own(&got, place.clone()).and_then(|got| got.into_iter().collect());
        let outcome = observer.outcome(prepared, got.map(Reply::Get));
        (&gets[place], observer, outcome)
    });
    let mut brought: Vec<_> = brought.collect();
    let by_us = from.kind == SourceKind::Outside;
    for (gets, observer, outcome) in brought.iter().filter(|_| by_us) {
        for get in observer.answered(gets, outcome) {
            vantages.answers(observer.is_at_node(get), get.clone());
        }
    }
    for (gets, observer, outcome) in &mut brought {
        if outcome.taken.is_err() || outcome.holds() {
            continue;
        }
        let at_node = gets.iter().any(|get| observer.is_at_node(get));
        let replies = match &outcome.reply {
            Some(Reply::Get(replies)) => replies.as_slice(),
            _ => &[],
        };
        if let Some(error) = vantages.captive(from, at_node, replies).await {
            outcome.taken = Err(error);
        }
    }
    let brought = brought.into_iter();
    outcomes.extend(brought.map(|(_, observer, outcome)| (observer, outcome)));
    for (place, observer, prepared) in pinged {
        let reply = own(&answered, place).map(Reply::Ping);
        outcomes.push((observer, observer.outcome(prepared, reply)));
    }
    outcomes
}

/// What of a session's replies is of one assertion.
fn own<T: Clone>(replies: &Result<Vec<T>>, place: Range<usize>) -> Result<Vec<T>> {
    match replies {
        Ok(replies) => {
            let own = replies.get(place).map(<[_]>::to_vec);
            own.ok_or_else(|| {
                ErrorKind::UnrecognisedOutput.error("the exec session has no result for it")
            })
        }
        // What asks nothing is told without an answer
        Err(_) if place.is_empty() => Ok(Vec::new()),
        Err(error) => Err(error.clone()),
    }
}

/// An assertion that reached the wrong transport: the plan and the way disagree.
pub(crate) fn misdirected() -> ObservationError {
    ErrorKind::UnrecognisedOutput.error("the assertion was given to the wrong transport")
}
