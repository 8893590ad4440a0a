//! One exec session: the requests of many assertions from one vantage point, and the replies to each.

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
            Ok(Request::Get(wanted)) => {
                places.push((place_of(&mut gets, wanted), observer, prepared));
            }
            Ok(Request::Ping(wanted)) if from.kind.shell().is_some() => {
                pinged.push((place_of(&mut pings, wanted), observer, prepared));
            }
            Ok(
                Request::Api(_)
                | Request::Text(_)
                | Request::Exec(..)
                | Request::Facts
                | Request::Play(_)
                | Request::Ping(_),
            )
            | Err(_) => {
                outcomes.push((observer, observer.outcome(prepared, Err(misdirected()))));
            }
        }
    }
    let session = match gets.is_empty() && pings.is_empty() {
        true => Ok((Vec::new(), Vec::new())),
        false => vantages.exec_session(from, &gets, &pings).await,
    };
    let (got, answered) = match session {
        Ok((got, answered)) => (Ok(got), Ok(answered)),
        Err(error) => (Err(error.clone()), Err(error)),
    };
    let by_get = places.into_iter().map(|(place, observer, prepared)| {
        let got = own(&got, place.clone()).and_then(|got| got.into_iter().collect());
        let outcome = observer.outcome(prepared, got.map(Reply::Get));
        (&gets[place], observer, outcome)
    });
    let mut by_get: Vec<_> = by_get.collect();
    let by_us = from.kind == SourceKind::Outside;
    for (gets, observer, outcome) in by_get.iter().filter(|_| by_us) {
        for get in observer.answered(gets, outcome) {
            vantages.answers(observer.is_at_node(get), get.clone());
        }
    }
    for (gets, observer, outcome) in &mut by_get {
        if outcome.evaluated.is_err() || outcome.holds() {
            continue;
        }
        let at_node = gets.iter().any(|get| observer.is_at_node(get));
        let replies = match &outcome.reply {
            Some(Reply::Get(replies)) => replies.as_slice(),
            _ => &[],
        };
        if let Some(error) = vantages.captive(from, at_node, replies).await {
            outcome.evaluated = Err(error);
        }
    }
    let by_get = by_get.into_iter();
    outcomes.extend(by_get.map(|(_, observer, outcome)| (observer, outcome)));
    for (place, observer, prepared) in pinged {
        let reply = own(&answered, place).map(Reply::Ping);
        outcomes.push((observer, observer.outcome(prepared, reply)));
    }
    outcomes
}

/// Returns where the session has these requests, and adds them unless it has them already: controls are the same
/// for each pool, and each may take as long as its time-out.
fn place_of<T: Clone + PartialEq>(requests: &mut Vec<T>, wanted: &[T]) -> Range<usize> {
    let known = (requests.windows(wanted.len().max(1))).position(|part| part == wanted);
    let from = known.unwrap_or(requests.len());
    if known.is_none() {
        requests.extend_from_slice(wanted);
    }
    from..from + wanted.len()
}

/// The replies of a session that belong to one assertion.
fn own<T: Clone>(replies: &Result<Vec<T>>, place: Range<usize>) -> Result<Vec<T>> {
    match replies {
        Ok(replies) => {
            let part = replies.get(place).map(<[_]>::to_vec);
            part.ok_or_else(|| {
                ErrorKind::UnrecognisedOutput.error("the exec session has no result for it")
            })
        }
        // An assertion without requests needs no replies
        Err(_) if place.is_empty() => Ok(Vec::new()),
        Err(error) => Err(error.clone()),
    }
}

/// The error of an assertion that reached the wrong transport: its request does not fit its vantage point.
pub(crate) fn misdirected() -> ObservationError {
    ErrorKind::UnrecognisedOutput.error("the assertion was given to the wrong transport")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_assertions_ask_alike_is_asked_once() {
        let mut requests = Vec::new();
        let of_each = [&[1, 2][..], &[3], &[], &[1, 2], &[2, 3], &[3, 4]];
        let places = of_each.map(|wanted| place_of(&mut requests, wanted));
        assert_eq!(requests, [1, 2, 3, 3, 4]);
        let said = places.map(|place| requests[place].to_vec());
        assert_eq!(said, of_each.map(<[_]>::to_vec));
    }
}
