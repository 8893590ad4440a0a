//! The test method `http`: GETs from a vantage point to the targets of ready fixtures.
//!
//! It checks what answered, not only that something did: the body must hold a marker and show which pod it
//! comes from. One assertion may have several targets; it holds where all do.

mod aims;
mod binding;
mod compare;
mod sample;
mod target;

pub use aims::AT_LEAST;
pub use target::Target;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fixture::{FixtureName, Need};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::HttpReply;
use crate::method::failure::{FailureClass, Signature, one_of};
use crate::method::network::curl;
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Comparison, Method, Test, Traits};
use crate::text::bound;
use aims::{Aim, Aims};

/// How many bytes of bodies an observation keeps, all together.
const BODIES_KEPT: usize = 2 << 10;

#[derive(Clone, Debug, PartialEq)]
pub struct HttpQuery {
    /// The fixture that should answer; `None` where the target belongs to none.
    pub of: Option<FixtureName>,
    /// The fixture whose Service leads to it; `None` for its own Service.
    pub through: Option<FixtureName>,
    /// The kind of address or name by which to reach it.
    pub target: Target,
}

/// The expectation of each target.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpExpectation {
    /// This status and a body of the right pod with this marker.
    Answers {
        status: u16,
        /// The marker; empty where the body holds only the pod's name.
        body: String,
    },
    /// An answer of the right pod or server, as far as the answer identifies it.
    Reached,
    /// A name that resolves, whatever comes after that.
    Resolved,
    /// A name that does not resolve; anything else would mean that the limitation is lifted.
    Unresolved,
    /// A failure of one of these classes; the marker would mean that the limitation is lifted.
    Fails {
        classes: BTreeSet<FailureClass>,
        /// The status of the answer that should not come.
        status: u16,
        /// The marker of the answer that should not come.
        instead_of: String,
    },
}

impl HttpExpectation {
    /// Whether it is that of a limitation: a failure.
    fn is_failure(&self) -> bool {
        matches!(self, Self::Fails { .. } | Self::Unresolved)
    }
}

impl fmt::Display for HttpExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers { status, body } if body.is_empty() => {
                write!(f, "{status} with a body that names the pod")
            }
            Self::Answers { status, body } => write!(f, "{status} with `{body}`"),
            Self::Reached => f.write_str("an answer from the intended target"),
            Self::Resolved => f.write_str("a name that resolves"),
            Self::Unresolved => f.write_str("a name that does not resolve"),
            Self::Fails { classes, .. } => write!(f, "failure by {}", one_of(classes)),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HttpObservation {
    /// The result of each request, in their order.
    pub targets: Vec<ObservedTarget>,
    /// The pods that should each have answered at least once, and did not.
    pub unmet: Vec<String>,
    /// Whether one pod should have answered all.
    #[serde(default)]
    pub one: bool,
    pub absent: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedTarget {
    pub target: String,
    /// The pod that answered, among those that may.
    pub by: Option<String>,
    /// Whether the answer names none of these, or lacks the text that identifies its server.
    pub foreign: bool,
    pub answer: HttpAnswer,
}

/// The result of one request.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpAnswer {
    Answered {
        status: u16,
        /// Its body; the record bounds it.
        body: String,
    },
    Failed {
        class: FailureClass,
        /// The tool's words.
        text: String,
    },
}

/// The test method `http`.
#[derive(Clone, Debug)]
pub enum Http {}

impl Method for Http {
    type Query = HttpQuery;
    type Expectation = HttpExpectation;
    type Observation = HttpObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Http;

    fn prepare<'a>(query: &'a HttpQuery, at: &Bound<'a>) -> Result<Prepared<'a, HttpObservation>> {
        let aims = query.target.aims(query.of, query.through, at)?;
        let asks_cluster = query.target.name_of_the_cluster(at).is_some();
        let gets = aims.each.iter().map(|aim| aim.get.clone()).collect();
        Ok(Prepared::gets(gets, move |replies| {
            read(query.target, aims, asks_cluster, replies)
        }))
    }

    fn needs(query: &HttpQuery) -> Vec<(FixtureName, Need)> {
        let beside = query.target.needs().iter().copied();
        let names = query.of.into_iter().chain(query.through).chain(beside);
        names.map(|name| (name, Need::Ready)).collect()
    }

    fn traits(query: &HttpQuery, expectation: &HttpExpectation) -> Traits {
        let answers = matches!(
            expectation,
            HttpExpectation::Answers { .. } | HttpExpectation::Reached
        );
        let target = query.target;
        Traits {
            needs_source: true,
            converges: true,
            tells_who_answers: answers,
            expects_no_answer: expectation.is_failure(),
            outside: Some(target).filter(|target| target.is_outside()),
            has_families: target.has_families(),
            asks_many: matches!(
                target,
                Target::EveryPodBehindServiceIp | Target::OnePodBehindServiceIp
            ),
            agnhost_sends: matches!(target, Target::Itself | Target::ItselfByService),
            agnhost_serves: query.of.is_some_and(FixtureName::is_pod_prober),
            ..Traits::default()
        }
    }

    fn failing(expectation: &HttpExpectation, signature: &Signature) -> Option<HttpExpectation> {
        match (expectation, signature) {
            (HttpExpectation::Answers { status, body }, Signature::Failure(classes)) => {
                Some(HttpExpectation::Fails {
                    classes: classes.clone(),
                    status: *status,
                    instead_of: body.clone(),
                })
            }
            (HttpExpectation::Resolved, Signature::Failure(classes)) => {
                (*classes == [FailureClass::Dns].into()).then_some(HttpExpectation::Unresolved)
            }
            _ => None,
        }
    }

    fn compare(expectation: &HttpExpectation, seen: &HttpObservation) -> Result<Comparison> {
        Ok(compare::compare(expectation, seen))
    }

    fn kept(mut seen: HttpObservation) -> HttpObservation {
        let each = BODIES_KEPT / seen.targets.len().max(1);
        for target in &mut seen.targets {
            if let HttpAnswer::Answered { body, .. } = &mut target.answer {
                bound(body, each);
            }
        }
        seen
    }
}

/// Reads the observation from the replies; with `asks_cluster` the last is that of the cluster's own name.
fn read(
    target: Target,
    aims: Aims<'_>,
    asks_cluster: bool,
    replies: &[HttpReply],
) -> Result<HttpObservation> {
    let targets = aims.each.iter().zip(replies);
    let mut targets: Vec<_> = targets
        .map(|(aim, reply)| target_seen(aim, reply))
        .collect::<Result<_, _>>()?;
    if asks_cluster
        && let Some(cluster) = targets.pop()
        && let HttpAnswer::Failed { class, text } = &cluster.answer
        && *class == FailureClass::Dns
    {
        let detail = format!(
            "the cluster's DNS does not resolve its own name {}, so nothing is known of names \
             outside: {text}",
            cluster.target
        );
        return Err(ErrorKind::NoView.error(detail));
    }
    // If the pods' own port is closed, too, the failure is not about port 80
    let of_others = |(aim, seen): (&Aim<'_>, &ObservedTarget)| {
        aim.get.port != aims::PORT_80 && seen.by.is_none()
    };
    let is_closed =
        target == Target::Port80OnOtherNodes && aims.each.iter().zip(&targets).any(of_others);
    let closed = || "pods on other nodes answer on no port".to_owned();
    let met: BTreeSet<_> = targets.iter().filter_map(|seen| seen.by.as_ref()).collect();
    let pods = aims.all.into_iter();
    Ok(HttpObservation {
        one: target == Target::OnePodBehindServiceIp,
        unmet: pods.filter(|pod| !met.contains(pod)).collect(),
        absent: aims.absent.or_else(|| is_closed.then(closed)),
        targets,
    })
}

fn target_seen(aim: &Aim<'_>, reply: &HttpReply) -> Result<ObservedTarget> {
    let failed = |class, text| (None, false, HttpAnswer::Failed { class, text });
    let (by, foreign, answer) = match reply {
        HttpReply::Answered { status, body } => {
            let by = aim.by.iter().find(|pod| aims::is_of(body, pod));
            let says = aim.says.as_ref();
            let unsaid = says.is_some_and(|says| !body.contains(&**says));
            let foreign = by.is_none() && !aim.by.is_empty() || unsaid;
            let (status, body) = (*status, body.clone());
            (by, foreign, HttpAnswer::Answered { status, body })
        }
        HttpReply::Failed { code, text } => {
            let text = format!("curl: ({code}) {text}");
            let class = curl::classify(*code, &text)
                .ok_or_else(|| ErrorKind::UnrecognisedOutput.error(text.clone()))?;
            failed(class, text)
        }
        HttpReply::Unreached { class, text } => failed(*class, text.clone()),
    };
    Ok(ObservedTarget {
        foreign,
        target: aim.shown.clone(),
        by: by.map(|pod| pod.name.clone()),
        answer,
    })
}

#[cfg(test)]
mod tests;
