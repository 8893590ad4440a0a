//! When faults begin and when they end.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;

use super::parse::{ProductFault, UnknownFault};
use super::set::FaultSet;

/// A fault with the moments at which it begins and ends, in simulated time since the nodes joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedFault {
    /// What is wrong.
    pub fault: ProductFault,
    /// When it begins.
    pub from: Duration,
    /// When it ends, if ever.
    pub until: Option<Duration>,
}

impl From<ProductFault> for TimedFault {
    fn from(fault: ProductFault) -> Self {
        Self {
            fault,
            from: Duration::ZERO,
            until: None,
        }
    }
}

impl FromStr for TimedFault {
    type Err = UnknownFault;

    /// `FAULT`, `FAULT@FROM`, `FAULT@FROM..UNTIL` or `FAULT@..UNTIL`: `node-vanishes=linux@30s..2m`.
    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let Some((fault, time)) = text.rsplit_once('@') else {
            return text.parse::<ProductFault>().map(Self::from);
        };
        let fault = fault.parse()?;
        let part = |why: &str| UnknownFault::Part(format!("`{time}` {why}"));
        let wrong = || part("is no time; write `@30s`, `@30s..2m` or `@..2m`");
        let moment = |text: &str| {
            let read: SignedDuration = text.parse().map_err(|_| wrong())?;
            Duration::try_from(read).map_err(|_| wrong())
        };
        let (from, until) = match time.split_once("..") {
            None => (moment(time)?, None),
            Some(("", until)) => (Duration::ZERO, Some(moment(until)?)),
            Some((from, until)) => (moment(from)?, Some(moment(until)?)),
        };
        match until.map(|until| until.cmp(&from)) {
            Some(Ordering::Less) => return Err(part("ends before it begins")),
            Some(Ordering::Equal) => return Err(part("ends when it begins")),
            Some(Ordering::Greater) | None => {}
        }
        Ok(Self { fault, from, until })
    }
}

impl fmt::Display for TimedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |duration: Duration| match SignedDuration::try_from(duration) {
            Ok(duration) => format!("{duration:#}"),
            Err(_) => "never".to_owned(),
        };
        write!(f, "{}", self.fault)?;
        match (self.from.is_zero(), self.until) {
            (true, None) => Ok(()),
            (true, Some(until)) => write!(f, "@..{}", moment(until)),
            (false, None) => write!(f, "@{}", moment(self.from)),
            (false, Some(until)) => write!(f, "@{}..{}", moment(self.from), moment(until)),
        }
    }
}

/// All faults of a simulation, with their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    faults: Vec<TimedFault>,
}

impl FaultPlan {
    /// The faults that hold from the start.
    pub(crate) fn at_start(&self) -> FaultSet {
        let whole = self.whole().into_iter();
        whole
            .filter(|timed| timed.from.is_zero())
            .map(|timed| timed.fault)
            .collect()
    }

    /// The later changes in order: when, which fault, and whether it begins.
    pub(crate) fn later(&self) -> Vec<(Duration, ProductFault, bool)> {
        let mut changes = Vec::new();
        for timed in self.whole() {
            if let Some(until) = timed.until {
                changes.push((until, timed.fault.clone(), false));
            }
            if !timed.from.is_zero() {
                changes.push((timed.from, timed.fault, true));
            }
        }
        changes.sort_by_key(|(moment, ..)| *moment);
        changes
    }

    /// The faults, where those that overlap or touch are merged into one: when one ends, another may still
    /// hold.
    fn whole(&self) -> Vec<TimedFault> {
        let mut sorted = self.faults.clone();
        sorted.sort_by(|a, b| (&a.fault, a.from).cmp(&(&b.fault, b.from)));
        let mut whole: Vec<TimedFault> = Vec::new();
        for timed in sorted {
            match whole.last_mut() {
                Some(last)
                    if last.fault == timed.fault
                        && last.until.is_none_or(|until| timed.from <= until) =>
                {
                    let both = last.until.zip(timed.until);
                    last.until = both.map(|(one, other)| one.max(other));
                }
                _ => whole.push(timed),
            }
        }
        whole
    }

    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &TimedFault> {
        self.faults.iter()
    }
}

impl<F: Into<TimedFault>> FromIterator<F> for FaultPlan {
    fn from_iter<I: IntoIterator<Item = F>>(faults: I) -> Self {
        Self {
            faults: faults.into_iter().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_they_print() {
        for text in [
            "dns-down",
            "dns-down@30s",
            "dns-down@..2m",
            "traffic-cut=linux:windows@1m30s..2m",
        ] {
            let timed: TimedFault = text.parse().expect(text);
            let again = timed.to_string().replace(' ', "");
            assert_eq!(again.parse::<TimedFault>(), Ok(timed), "{again}");
        }
    }

    #[test]
    fn moments_that_make_no_sense_are_refused() {
        let error = |text: &str| text.parse::<TimedFault>().expect_err(text).to_string();
        assert_eq!(
            error("dns-down@soon"),
            "`soon` is no time; write `@30s`, `@30s..2m` or `@..2m`"
        );
        assert_eq!(error("dns-down@2m..1m"), "`2m..1m` ends before it begins");
        assert_eq!(error("dns-down@1m..60s"), "`1m..60s` ends when it begins");
        assert!(error("dns-down@-3s").contains("no time"));
    }

    #[test]
    fn a_plan_goes_by_in_order() {
        let plan: FaultPlan = ["dns-down@10s..20s", "udp-dropped=linux@..15s"]
            .map(|text| text.parse::<TimedFault>().expect(text))
            .into_iter()
            .collect();
        assert_eq!(
            plan.at_start()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            ["udp-dropped=linux"]
        );
        let later: Vec<_> = plan
            .later()
            .into_iter()
            .map(|(when, fault, sets)| (when.as_secs(), fault.to_string(), sets))
            .collect();
        assert_eq!(
            later,
            [
                (10, "dns-down".to_owned(), true),
                (15, "udp-dropped=linux".to_owned(), false),
                (20, "dns-down".to_owned(), false)
            ]
        );
    }

    #[test]
    fn what_overlaps_ends_once() {
        let later = |faults: &[&str]| {
            let timed = faults.iter().map(|text| text.parse().expect(text));
            let plan: FaultPlan = timed.collect::<Vec<TimedFault>>().into_iter().collect();
            let later = plan.later().into_iter();
            let later = later.map(|(when, fault, sets)| (when.as_secs(), fault.to_string(), sets));
            (plan.at_start().iter().count(), later.collect::<Vec<_>>())
        };
        let down = |when, sets| (when, "dns-down".to_owned(), sets);
        let overlapping = ["dns-down@30s..2m", "dns-down@..1m", "dns-down@10s..20s"];
        assert_eq!(later(&overlapping), (1, vec![down(120, false)]));
        let touching = ["dns-down@10s..20s", "dns-down@20s..30s"];
        assert_eq!(later(&touching), (0, vec![down(10, true), down(30, false)]));
        assert_eq!(later(&["dns-down", "dns-down@5s..10s"]), (1, vec![]));
        assert_eq!(
            later(&["dns-down@5s..10s", "dns-down@7s"]),
            (0, vec![down(5, true)])
        );
        let apart = ["dns-down@5s..10s", "dns-down@11s"];
        let ends = vec![down(5, true), down(10, false), down(11, true)];
        assert_eq!(later(&apart), (0, ends));
        let other = ["dns-down@..10s", "udp-dropped@5s..20s"];
        assert_eq!(later(&other).1.len(), 3);
    }
}
