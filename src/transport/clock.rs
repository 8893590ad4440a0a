//! How far the server's clock is from ours, by the `Date` of its answers.

use std::sync::Mutex;

use http::header::{DATE, HeaderMap};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

use super::locked::locked;

/// The best estimate of the server's clock from the answers so far.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    best: Mutex<Option<Estimate>>,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// From sending the request to the head of its answer; a shorter one gives a better estimate.
    round_trip: SignedDuration,
    ahead: SignedDuration,
}

impl ServerClock {
    /// Reads the `Date` of an answer to a request that was sent at `sent` and answered at `answered`.
    pub(crate) fn note(&self, headers: &HeaderMap, sent: Timestamp, answered: Timestamp) {
        let date = headers.get(DATE).and_then(|value| value.to_str().ok());
        let Some(date) = date.and_then(|text| DateTimeParser::new().parse_timestamp(text).ok())
        else {
            return;
        };
        let round_trip = answered.duration_since(sent);
        // The header omits the fraction of the second
        let written = date.duration_since(sent) + SignedDuration::from_millis(500);
        let estimate = Estimate {
            round_trip,
            ahead: written - round_trip / 2,
        };
        let mut best = locked(&self.best);
        if best.is_none_or(|best| round_trip < best.round_trip) {
            *best = Some(estimate);
        }
    }

    /// How far the server's clock is ahead of ours, within about half a second and half a round
    /// trip; `None` when no answer had a date.
    pub(crate) fn ahead(&self) -> Option<SignedDuration> {
        let best = locked(&self.best);
        best.map(|best| best.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(answers: &[(&str, &str, &str)]) -> Option<f64> {
        let clock = ServerClock::default();
        for (date, sent, answered) in answers {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, date.parse().expect("a header"));
            let at = |time: &str| format!("2026-11-21T{time}Z").parse().expect("a time");
            clock.note(&headers, at(sent), at(answered));
        }
        clock.ahead().map(|ahead| ahead.as_secs_f64())
    }

    #[test]
    fn the_quickest_answer_tells_best() {
        let on_time = ("Sat, 21 Nov 2026 02:55:13 GMT", "02:55:13.4", "02:55:13.6");
        assert_eq!(ahead(&[on_time]), Some(0.0));
        let slow = ("Sat, 21 Nov 2026 02:55:13 GMT", "02:55:03", "02:55:13.6");
        assert_eq!(ahead(&[slow, on_time, slow]), Some(0.0));
        let early = ("Sat, 21 Nov 2026 02:54:13 GMT", "02:55:13.4", "02:55:13.6");
        assert_eq!(ahead(&[early]), Some(-60.0));
    }

    #[test]
    fn without_a_date_nothing_is_known() {
        assert_eq!(ahead(&[]), None);
        assert_eq!(ahead(&[("yesterday", "02:55:13", "02:55:13")]), None);
    }
}
