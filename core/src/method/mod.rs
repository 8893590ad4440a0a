//! Test methods: what to ask, how to read what came back, how it compares.
//!
//! One file per method, sans I/O: [`Method::prepare`] says what a transport should do, and how its reply
//! is read, [`Method::compare`] holds what was seen against the expectation or says what of it nobody
//! could tell. Nothing here decides pass or fail.

mod api;
mod compare;
mod error;
mod exchange;
pub mod fact;
mod failure;
mod network;
mod place;
mod prepared;
mod vantage;

pub use api::admission::{
    About, Admission, AdmissionExpectation, AdmissionObservation, AdmissionQuery, Alterations,
    Cause, Change, ContainerKind, Workload,
};
pub use api::denied::{Denied, lacks_namespace};
pub use api::disruption::is_disrupted;
pub use api::path::ApiPath;
pub use api::placement::{
    AIMED_AT, Ground, Hindrance, KeptOff, NO_IMAGE, NOT_CREATED, PREPARING, PlacedPod, Placement,
    PlacementExpectation, PlacementObservation, PlacementQuery, Said, Start, Whereabouts,
};
pub use api::preemption::{
    Preemption, PreemptionExpectation, PreemptionObservation, PreemptionQuery,
};
pub use api::state::{
    ObservedEndpoint, ObservedPod, State, StateExpectation, StateObservation, StateQuery,
};
pub use compare::{Comparison, Difference};
pub use error::{ErrorKind, ObservationError, Result};
pub use exchange::{
    ApiReply, ApiRequest, ExecReply, ExecRequest, ExitStatus, Host, HttpGet, HttpReply, PingReply,
    Reply, Request, Verb,
};
pub use fact::{Fact, FactExpectation, FactObservation, Quantity, Topic};
pub use failure::{FailureClass, Signature, StartFailure};
pub use network::http::{
    AT_LEAST, Http, HttpAnswer, HttpExpectation, HttpObservation, HttpQuery, ObservedTarget, Target,
};
pub use network::ping::{Ping, PingQuery};
pub use network::reach::{ReachAnswer, ReachExpectation, ReachObservation, ReachedTarget};
pub use network::udp::{Udp, UdpQuery};
pub use network::{curl, ping};
pub use place::{Balancer, Bound, PoolNode, ReadyFixture, ReadyFixtures, ReadyPod, Served};
pub use prepared::Prepared;
pub use vantage::{SourceKind, VantageKey};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Image;
use crate::fixture::{FixtureName, Need};

/// A test method, without I/O.
pub trait Method: Sized {
    type Query: Clone + Sync;
    type Expectation: Sync;
    type Observation: Serialize + DeserializeOwned;

    /// Its variant.
    const TEST: fn(Assertion<Self>) -> Test;

    /// What a transport should do, and what is made of its reply, with targets bound to what stands.
    fn prepare<'a>(
        query: &'a Self::Query,
        at: &Bound<'a>,
    ) -> Result<Prepared<'a, Self::Observation>>;
    /// The observation held against the expectation; an error where it depends on something that
    /// was not told.
    fn compare(expectation: &Self::Expectation, seen: &Self::Observation) -> Result<Comparison>;
    /// What is put on record of an observation, once it was compared: bounded, whatever others said.
    fn kept(seen: Self::Observation) -> Self::Observation {
        seen
    }
    /// What must have happened to which fixtures before.
    fn needs(query: &Self::Query) -> Vec<(FixtureName, Need)>;
    /// What else others need to know of an assertion.
    fn traits(query: &Self::Query, expectation: &Self::Expectation) -> Traits;
    /// The failure that a known limitation shows, instead of this expectation; `None` where this
    /// method has no such signature.
    fn failing(_: &Self::Expectation, _: &Signature) -> Option<Self::Expectation> {
        None
    }
}

/// A question with its expectation.
#[derive(Clone, Debug)]
pub struct Assertion<M: Method> {
    pub query: M::Query,
    pub expectation: M::Expectation,
}

/// An assertion, whatever its method.
trait AnyAssertion {
    fn prepare<'a>(&'a self, at: &Bound<'a>) -> Result<Prepared<'a, Evaluated>>;
    fn needs(&self) -> Vec<(FixtureName, Need)>;
    fn traits(&self) -> Traits;
    fn expecting(&self, signature: &Signature) -> Option<Test>;
}

impl<M: Method> AnyAssertion for Assertion<M> {
    fn prepare<'a>(&'a self, at: &Bound<'a>) -> Result<Prepared<'a, Evaluated>> {
        Ok(M::prepare(&self.query, at)?.and_then(|seen| {
            // Of all that was said: what is cut off may be the very marker
            let comparison = M::compare(&self.expectation, &seen)?;
            let observation = serde_json::to_value(M::kept(seen)).map_err(|error| {
                ErrorKind::UnrecognisedOutput.error(format!("cannot be recorded: {error}"))
            })?;
            Ok(Evaluated {
                observation,
                comparison,
            })
        }))
    }

    fn needs(&self) -> Vec<(FixtureName, Need)> {
        M::needs(&self.query)
    }

    fn traits(&self) -> Traits {
        M::traits(&self.query, &self.expectation)
    }

    fn expecting(&self, signature: &Signature) -> Option<Test> {
        Some(M::TEST(Self {
            query: self.query.clone(),
            expectation: M::failing(&self.expectation, signature)?,
        }))
    }
}

/// An observation and how it compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// What was seen, as recorded.
    pub observation: serde_json::Value,
    pub comparison: Comparison,
}

/// What holds of an assertion by its method; of most methods nothing of it does.
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
    /// Whether it sends many requests to one target, once somebody has answered there.
    pub asks_many: bool,
    /// Whether what holds of it stays so: there is no coming and going between two rounds.
    pub stays: bool,
    /// The facts it cannot be told without, as their fields are spelled in the record.
    pub(crate) facts: &'static [&'static str],
    /// The role of the image that the pods it asks for should run.
    pub(crate) image: Option<Image>,
    /// Whether agnhost sends for it where it observes from.
    pub(crate) agnhost_sends: bool,
    /// Whether agnhost serves what it observes.
    pub(crate) agnhost_serves: bool,
}

/// The closed set of tests, by their keys in a suite; the only registry of methods.
#[derive(Clone, Debug, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
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
    fn assertion(&self) -> &dyn AnyAssertion {
        match self {
            Self::Admission(assertion) => assertion,
            Self::Fact(assertion) => assertion,
            Self::Http(assertion) => assertion,
            Self::Ping(assertion) => assertion,
            Self::Placement(assertion) => assertion,
            Self::Preemption(assertion) => assertion,
            Self::State(assertion) => assertion,
            Self::Udp(assertion) => assertion,
        }
    }

    /// What a transport should do, and the observation in its reply with how it compares.
    pub fn prepare<'a>(&'a self, at: &Bound<'a>) -> Result<Prepared<'a, Evaluated>> {
        self.assertion().prepare(at)
    }

    /// What must have happened to which fixtures before the assertion.
    pub fn needs(&self) -> Vec<(FixtureName, Need)> {
        self.assertion().needs()
    }

    /// What holds of it by its method.
    pub fn traits(&self) -> Traits {
        self.assertion().traits()
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

    /// The same assertion, expecting the failure a known limitation shows; `None` where this method has
    /// no such signature.
    pub fn expecting(&self, signature: &Signature) -> Option<Self> {
        self.assertion().expecting(signature)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transcripts;
