//! The test method `scenario`: a claim that unfolds over time on one pod of a fixture. A scenario is a list of
//! steps; the executor takes one after the other, and what it saw, with the times, is the observation.
//!
//! An attempt after the first begins with a new pod, and so does a run that is resumed.

mod condition;
pub(in crate::method) mod moment;
mod service;
pub(in crate::method) mod steps;

use std::fmt;

pub use condition::{Condition, Seen};
pub use moment::Moment;
pub use steps::{Act, LEADS_NOWHERE, Scenario, Step};

use super::ContainerOf;
use crate::facts::Os;
use crate::fixture::{FixtureName, Need};
use crate::method::compare::{Comparison, Difference};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{Play, Reply, Request, another_kind};
use crate::method::failure::Signature;
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Method, Test, Traits};

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScenarioQuery {
    pub within: ContainerOf,
    pub scenario: Scenario,
}

/// Each step ends as it should.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unfolds {
    pub scenario: Scenario,
    /// Whether all but the last do, as a known limitation has it.
    pub but_the_last: bool,
}

/// The test method `scenario`. An observation is the steps that were taken.
#[derive(Clone, Debug)]
pub enum OverTime {}

impl Method for OverTime {
    type Query = ScenarioQuery;
    type Expectation = Unfolds;
    type Observation = Vec<Moment>;

    const TEST: fn(Assertion<Self>) -> Test = Test::Scenario;

    fn prepare<'a>(query: &'a ScenarioQuery, at: &Bound<'a>) -> Result<Prepared<'a, Vec<Moment>>> {
        let of = query.within.pod.of.in_pool(at.to.or(at.pool)).on(at.node);
        let ready = at.ready.fixtures.get(&of);
        let play = Play {
            scenario: query.scenario,
            container: query.within.place(at),
            service: ready.and_then(|ready| ready.service),
            of,
        };
        Ok(Prepared::new(Request::Play(play), |reply| match reply {
            Reply::Played(moments) => Ok(moments.clone()),
            _ => Err(another_kind()),
        }))
    }

    fn needs(query: &ScenarioQuery) -> Vec<(FixtureName, Need)> {
        super::needs(query.within.pod.of)
    }

    fn traits(_: &ScenarioQuery, _: &Unfolds) -> Traits {
        Traits {
            stays: true,
            ..Traits::default()
        }
    }

    fn failing(expectation: &Unfolds, signature: &Signature) -> Option<Unfolds> {
        let Signature::LacksStep(words) = signature else {
            return None;
        };
        let steps = expectation.scenario.steps(Os::Windows);
        let is_last = steps.last().is_some_and(|step| step.words == words);
        is_last.then_some(Unfolds {
            but_the_last: true,
            ..*expectation
        })
    }

    fn compare(expectation: &Unfolds, seen: &Vec<Moment>) -> Result<Comparison> {
        let Some((last, before)) = seen.split_last() else {
            return Err(ErrorKind::UnrecognisedOutput.error("a scenario without a step"));
        };
        let mut words = last.to_string();
        if !before.is_empty() {
            let before: Vec<_> = before.iter().map(Moment::to_string).collect();
            words += &format!("; before that {}", before.join("; "));
        }
        let difference = Difference::between(expectation, words);
        let steps = length(expectation.scenario, seen);
        let has_last = seen.len() == steps;
        match &last.instead {
            Some(_) if expectation.but_the_last && !has_last => {
                Ok(Comparison::Unexpected(difference))
            }
            None if !has_last => {
                let detail = format!("{} of {steps} steps were taken", seen.len());
                Err(ErrorKind::UnrecognisedOutput.error(detail))
            }
            instead if instead.is_none() != expectation.but_the_last => {
                Ok(Comparison::Met(difference))
            }
            _ => Ok(Comparison::NotMet(difference)),
        }
    }
}

/// How many moments a scenario has that came to its end.
fn length(scenario: Scenario, seen: &[Moment]) -> usize {
    let steps = scenario.steps(Os::Windows);
    let ask = |step: &&Step| matches!(step.act, Act::AwaitService(..));
    match seen.iter().any(|moment| moment.step == LEADS_NOWHERE) {
        true => steps.len() + 1 - steps.iter().filter(ask).count(),
        false => steps.len(),
    }
}

impl fmt::Display for Unfolds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.scenario.steps(Os::Windows);
        let mut words: Vec<_> = steps.iter().map(|step| step.words.to_owned()).collect();
        if let (Some(last), true) = (words.last_mut(), self.but_the_last) {
            last.insert_str(0, "not: ");
        }
        f.write_str(&words.join("; "))
    }
}

impl fmt::Display for ScenarioQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scenario {} in {}", self.scenario.as_str(), self.within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(instead: Option<&str>) -> Moment {
        Moment {
            step: "the container is restarted".to_owned(),
            after_ms: 14_200,
            instead: instead.map(str::to_owned),
        }
    }

    fn whole(scenario: Scenario) -> Unfolds {
        Unfolds {
            scenario,
            but_the_last: false,
        }
    }

    #[test]
    fn a_known_limitation_lacks_the_last_step_alone() {
        let of = |step: &str| {
            let signature = Signature::LacksStep(step.to_owned());
            OverTime::failing(&whole(Scenario::SubPathRelease), &signature)
        };
        assert_eq!(of("the pod is deleted"), None);
        let lacking = of("the pod is gone").expect("it is the last step");
        assert_eq!(
            lacking.to_string(),
            "the container runs for 3 s; the pod is deleted; not: the pod is gone"
        );
        let compare = |seen: &[Moment]| OverTime::compare(&lacking, &seen.to_vec());
        let (done, held) = (moment(None), moment(Some("it is still there")));
        let stuck = compare(&[done.clone(), done.clone(), held.clone()]);
        assert!(matches!(stuck, Ok(Comparison::Met(_))), "{stuck:?}");
        let gone = compare(&[done.clone(), done.clone(), done.clone()]);
        assert!(matches!(gone, Ok(Comparison::NotMet(_))), "{gone:?}");
        let earlier = compare(&[done.clone(), held]);
        assert!(
            matches!(earlier, Ok(Comparison::Unexpected(_))),
            "{earlier:?}"
        );
        assert!(compare(&[done]).is_err());
    }

    #[test]
    fn a_step_that_came_to_something_else_decides() {
        let expectation = whole(Scenario::WorkloadSignals);
        let compare = |seen: &[Moment]| OverTime::compare(&expectation, &seen.to_vec());
        let all = vec![moment(None); expectation.scenario.steps(Os::Windows).len()];
        assert!(matches!(compare(&all), Ok(Comparison::Met(_))));
        let Ok(Comparison::NotMet(difference)) = compare(&[moment(Some("it runs"))]) else {
            panic!("it is not met")
        };
        assert_eq!(
            difference.seen,
            "after 14 s not: the container is restarted, but it runs"
        );
        assert!(compare(&[]).is_err() && compare(&all[1..]).is_err());
    }

    #[test]
    fn a_service_that_leads_nowhere_is_asked_once() {
        let expectation = Unfolds {
            scenario: Scenario::ReadinessProbe,
            but_the_last: false,
        };
        let holds = |seen: &[Moment]| OverTime::compare(&expectation, &seen.to_vec());
        let nowhere = Moment {
            step: LEADS_NOWHERE.to_owned(),
            ..moment(None)
        };
        let mut seen = vec![moment(None); 9];
        seen.push(nowhere);
        assert!(matches!(holds(&seen), Ok(Comparison::Met(_))));
        seen[9] = moment(None);
        assert!(holds(&seen).is_err(), "two steps are missing");
    }
}
