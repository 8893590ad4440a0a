//! Ways of observing: what to ask, how to read what came back, how it compares.
//!
//! One file per way, sans I/O: [`Way::request`] says what a transport should do, [`Way::read`]
//! makes an observation of the reply or says why it cannot, [`Way::compare`] holds it against the
//! expectation or says what of it nobody could tell. Nothing here decides pass or fail.

mod admission;
mod compare;
pub mod curl;
mod denied;
mod disruption;
mod error;
mod exchange;
pub mod fact;
mod failure;
mod fixture;
mod http;
mod path;
pub mod ping;
mod place;
mod placement;
mod preemption;
mod reach;
mod state;
mod udp;
mod vantage;

pub use admission::{
    About, Admission, AdmissionExpectation, AdmissionObservation, AdmissionQuery, Alterations,
    Cause, Change, ContainerKind, Workload,
};
pub use compare::{Comparison, Difference};
pub use denied::{Denied, lacks_namespace};
pub use disruption::is_disrupted;
pub use error::{ErrorKind, ObservationError};
pub use exchange::{
    ApiReply, ApiRequest, ExecReply, ExecRequest, ExitStatus, Host, HttpGet, HttpReply, PingReply,
    Reply, Request, Verb,
};
pub use fact::{Fact, FactExpectation, FactObservation, Topic};
pub use failure::{FailureClass, Signature, StartFailure};
pub use fixture::{FixtureKey, FixtureName, Need, SchedFixture};
pub use http::{
    AT_LEAST, Http, HttpAnswer, HttpExpectation, HttpObservation, HttpQuery, ObservedTarget, Target,
};
pub use path::ApiPath;
pub use ping::{Ping, PingQuery};
pub use place::{Balancer, Bound, PoolNode, ReadyFixture, ReadyFixtures, ReadyPod, Served};
pub use placement::{
    AIMED_AT, Ground, Hindrance, KeptOff, NO_IMAGE, NOT_CREATED, PREPARING, PlacedPod, Placement,
    PlacementExpectation, PlacementObservation, PlacementQuery, Said, Start, Whereabouts,
};
pub use preemption::{Preemption, PreemptionExpectation, PreemptionObservation, PreemptionQuery};
pub use reach::{ReachAnswer, ReachExpectation, ReachObservation, ReachedTarget};
pub use state::{
    ObservedEndpoint, ObservedPod, State, StateExpectation, StateObservation, StateQuery,
};
pub use udp::{Udp, UdpQuery};
pub use vantage::{SourceKind, VantageKey};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A test method, without I/O.
pub trait Method {
    type Query;
    type Expectation;
    type Observation: Serialize + DeserializeOwned;

    /// What a transport should do, with targets bound to what stands.
    fn request(query: &Self::Query, at: &Bound<'_>) -> Result<Request, ObservationError>;
    /// The observation in a reply; unrecognised output is an error, never a default.
    fn read(
        query: &Self::Query,
        at: &Bound<'_>,
        reply: &Reply,
    ) -> Result<Self::Observation, ObservationError>;
    /// The observation held against the expectation; error where it depends on something that
    /// was not told.
    fn compare(
        expectation: &Self::Expectation,
        seen: &Self::Observation,
    ) -> Result<Comparison, ObservationError>;
    /// What is put on record of an observation, once it was compared: bounded, whatever others said.
    fn kept(seen: Self::Observation) -> Self::Observation {
        seen
    }
}

/// A question with its expectation.
#[derive(Debug)]
pub struct Assertion<W: Method> {
    pub query: W::Query,
    pub expectation: W::Expectation,
}

impl<W: Method> Clone for Assertion<W>
where
    W::Query: Clone,
    W::Expectation: Clone,
{
    fn clone(&self) -> Self {
        Self {
            query: self.query.clone(),
            expectation: self.expectation.clone(),
        }
    }
}

impl<W: Method> Assertion<W> {
    fn take(&self, at: &Bound<'_>, reply: &Reply) -> Result<Evaluated, ObservationError> {
        let seen = W::read(&self.query, at, reply)?;
        // Of all that was said: what is cut off may be the very marker
        let comparison = W::compare(&self.expectation, &seen)?;
        let observation = serde_json::to_value(W::kept(seen)).map_err(|error| {
            ObservationError::new(
                ErrorKind::UnrecognisedOutput,
                format!("cannot be recorded: {error}"),
            )
        })?;
        Ok(Evaluated {
            observation,
            comparison,
        })
    }
}

/// An observation and how it compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// What was seen, as recorded.
    pub observation: serde_json::Value,
    pub comparison: Comparison,
}

/// What holds of an assertion by its way; of most ways nothing of it does.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub struct Traits {
    /// Whether it observes from a vantage point, so that a [`SourceKind`] is needed. What is expected of it may then
    /// be seen without what was made for it: a time-out of what is gone, or the page of whoever has its
    /// address now.
    pub needs_source: bool,
    /// Whether it may take time to come right: what crosses the network converges, an answer of the API
    /// server about itself does not.
    pub converges: bool,
    /// Whether it must hold for a while.
    pub must_last: bool,
    /// Whether what is expected can be seen of the very pods alone that it was bound to; not where whoever has
    /// the address answers.
    pub tells_who_answers: bool,
    /// Whether it holds where nobody answers.
    pub expects_no_answer: bool,
    /// What outside the cluster it observes.
    pub(crate) outside: Option<Target>,
    /// Whether what it observes has addresses of each of the cluster's families.
    pub(crate) has_families: bool,
}

/// The closed set of tests; the only registry of ways.
#[derive(Clone, Debug)]
pub enum Test {
    /// A dry-run creation.
    Admission(Assertion<Admission>),
    /// What the cluster says of itself.
    Fact(Assertion<Fact>),
    /// An HTTP request from a vantage point.
    Http(Assertion<Http>),
    /// A ping from a vantage point.
    Ping(Assertion<Ping>),
    /// Where a pod is put, and whether it starts there.
    Placement(Assertion<Placement>),
    /// Whether one pod is removed for another.
    Preemption(Assertion<Preemption>),
    /// The state of objects.
    State(Assertion<State>),
    /// A datagram from a vantage point.
    Udp(Assertion<Udp>),
}

impl Test {
    /// The keys of a test in a suite.
    pub const NAMES: [&'static str; 8] = [
        "admission",
        "fact",
        "http",
        "ping",
        "placement",
        "preemption",
        "state",
        "udp",
    ];

    /// What a transport should do.
    pub fn request(&self, at: &Bound<'_>) -> Result<Request, ObservationError> {
        match self {
            Self::Admission(assertion) => Admission::request(&assertion.query, at),
            Self::Fact(assertion) => Fact::request(&assertion.query, at),
            Self::Http(assertion) => Http::request(&assertion.query, at),
            Self::Ping(assertion) => Ping::request(&assertion.query, at),
            Self::Udp(assertion) => Udp::request(&assertion.query, at),
            Self::Placement(assertion) => Placement::request(&assertion.query, at),
            Self::Preemption(assertion) => Preemption::request(&assertion.query, at),
            Self::State(assertion) => State::request(&assertion.query, at),
        }
    }

    /// The observation in a reply and how it compares.
    pub fn take(&self, at: &Bound<'_>, reply: &Reply) -> Result<Evaluated, ObservationError> {
        match self {
            Self::Admission(assertion) => assertion.take(at, reply),
            Self::Fact(assertion) => assertion.take(at, reply),
            Self::Http(assertion) => assertion.take(at, reply),
            Self::Ping(assertion) => assertion.take(at, reply),
            Self::Udp(assertion) => assertion.take(at, reply),
            Self::Placement(assertion) => assertion.take(at, reply),
            Self::Preemption(assertion) => assertion.take(at, reply),
            Self::State(assertion) => assertion.take(at, reply),
        }
    }

    /// What must have happened to which fixtures before the assertion.
    pub fn needs(&self) -> Vec<(FixtureName, Need)> {
        let namespaces = (FixtureName::Namespaces, Need::Ready);
        match self {
            Self::Admission(assertion) if assertion.query.needs_pod() => {
                vec![namespaces, (FixtureName::UnboundPods, Need::Ready)]
            }
            Self::Admission(_) => vec![namespaces],
            Self::Fact(_) => Vec::new(),
            Self::Http(assertion) => {
                let beside = assertion.query.target.needs().iter().copied();
                let needs = assertion.query.of.into_iter().chain(beside);
                needs.map(|name| (name, Need::Ready)).collect()
            }
            Self::Ping(assertion) => {
                let needs = assertion.query.of.into_iter();
                needs.map(|name| (name, Need::Ready)).collect()
            }
            Self::Udp(assertion) => vec![(assertion.query.of, Need::Ready)],
            Self::Placement(assertion) => {
                let fixture = FixtureName::Sched(assertion.query.pod.fixture());
                vec![namespaces, (fixture, Need::Ready)]
            }
            Self::Preemption(_) => {
                let fixture = FixtureName::Sched(SchedFixture::Preemption);
                vec![namespaces, (fixture, Need::Ready)]
            }
            Self::State(assertion) => vec![namespaces, (assertion.query.fixture(), Need::Settled)],
        }
    }

    /// The same where so many nodes of a pool are observed from.
    #[must_use]
    pub fn on_nodes(mut self, nodes: u16) -> Self {
        if let Self::State(assertion) = &mut self
            && assertion.expectation == StateExpectation::ReadyOnEachNode
        {
            assertion.expectation = StateExpectation::Ready { pods: nodes };
        }
        self
    }

    /// What holds of it by its way.
    pub fn traits(&self) -> Traits {
        match self {
            Self::Http(assertion) => {
                let fails = matches!(assertion.expectation, HttpExpectation::Fails { .. });
                Traits {
                    needs_source: true,
                    converges: true,
                    tells_who_answers: !fails,
                    expects_no_answer: fails,
                    outside: Some(assertion.query.target).filter(|target| target.is_outside()),
                    has_families: assertion.query.target.has_families(),
                    ..Traits::default()
                }
            }
            Self::Ping(assertion) => Traits {
                needs_source: true,
                converges: true,
                expects_no_answer: matches!(assertion.expectation, ReachExpectation::Fails(_)),
                outside: Some(assertion.query.target).filter(|target| target.is_outside()),
                has_families: assertion.query.target.has_families(),
                ..Traits::default()
            },
            Self::Udp(assertion) => Traits {
                needs_source: true,
                converges: true,
                tells_who_answers: assertion.expectation == ReachExpectation::Answers,
                expects_no_answer: matches!(assertion.expectation, ReachExpectation::Fails(_)),
                has_families: true,
                ..Traits::default()
            },
            Self::Placement(assertion) => Traits {
                converges: true,
                // What one scheduler finds no node for another may bind
                must_last: matches!(assertion.expectation, PlacementExpectation::Pending(_)),
                ..Traits::default()
            },
            Self::Preemption(_) => Traits {
                converges: true,
                ..Traits::default()
            },
            Self::State(_) => Traits {
                converges: true,
                // Pods without a readiness probe are Ready when they start
                must_last: true,
                ..Traits::default()
            },
            Self::Admission(_) | Self::Fact(_) => Traits::default(),
        }
    }

    /// The fixture whose Service is observed from this kind of source.
    pub(crate) fn service_of(&self, source: SourceKind) -> Option<FixtureName> {
        let Self::Http(assertion) = self else {
            return None;
        };
        match assertion.query.target {
            Target::ItselfByService => source.prober(),
            target if target.is_of_a_service() => assertion.query.of,
            _ => None,
        }
    }

    /// Whether it sends many requests to one target, once somebody has answered there.
    pub fn asks_many(&self) -> bool {
        matches!(self, Self::Http(assertion) if assertion.query.target == Target::EveryPodBehindServiceIp)
    }

    /// The same assertion, expecting the failure a known limitation shows; `None` where this way has
    /// no such signature.
    pub fn expecting(&self, signature: &Signature) -> Option<Self> {
        let mut test = self.clone();
        match (&mut test, signature) {
            (Self::Http(assertion), Signature::Failure(classes)) => {
                let HttpExpectation::Answers { status, body } = &assertion.expectation else {
                    return None;
                };
                assertion.expectation = HttpExpectation::Fails {
                    classes: classes.clone(),
                    status: *status,
                    instead_of: body.clone(),
                };
            }
            (
                Self::Ping(Assertion { expectation, .. })
                | Self::Udp(Assertion { expectation, .. }),
                Signature::Failure(classes),
            ) if *expectation == ReachExpectation::Answers => {
                *expectation = ReachExpectation::Fails(classes.clone())
            }
            (Self::Placement(assertion), Signature::NotStarted(classes))
                if assertion.expectation == PlacementExpectation::Starts =>
            {
                assertion.expectation = PlacementExpectation::NotStarted(classes.clone());
            }
            _ => return None,
        }
        Some(test)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transcripts;
