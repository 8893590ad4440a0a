//! Test methods: each asks a query, reads the reply and compares the observation with the expectation.
//!
//! Each method is one file without I/O: [`Method::prepare`] returns the request for a transport and the
//! reader of its reply; [`Method::compare`] compares the observation with the expectation, or returns an
//! error where the observation does not decide. Nothing here decides pass or fail.

mod api;
mod compare;
mod container;
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
    Cause, Change, ContainerKind, Workload, is_blank,
};
pub use api::denied::{Denied, lacks_namespace};
pub use api::disruption::is_disrupted;
pub use api::endpoints::{ObservedEndpoint, has_ready_endpoint, slices_of};
pub use api::path::ApiPath;
pub use api::placement::{
    AIMED_AT, Ground, KeptOff, NEVER_RAN, NO_IMAGE, NOT_CREATED, PREPARING, PlacedPod, Placement,
    PlacementExpectation, PlacementObservation, Said, Start, Whereabouts,
};
pub use api::preemption::{Preemption, PreemptionExpectation, PreemptionObservation};
pub use api::state::{ObservedPod, State, StateExpectation, StateObservation, StateQuery};
pub use compare::{Comparison, Difference};
pub use container::ending::Ending;
pub(crate) use container::ending::read_words;
pub use container::log::{Log, LogExpectation, LogObservation};
pub use container::program::{Program, ProgramExpectation, ProgramObservation, ProgramQuery};
pub use container::scenario::{
    Act, Condition, LEADS_NOWHERE, Moment, OverTime, Scenario, ScenarioQuery, Seen, Step, Unfolds,
};
pub use container::status::{Status, StatusExpectation, StatusKind, StatusQuery};
pub use container::{ContainerOf, PodOf};
pub use error::{AS_CREATED, ErrorKind, ObservationError, Result};
pub use exchange::{
    ApiReply, ApiRequest, ExecReply, ExecRequest, ExitStatus, Host, HttpGet, HttpReply, PingReply,
    Play, PodRef, Reply, Request, Verb,
};
pub use fact::{Fact, FactExpectation, FactObservation, Quantity, Topic};
pub use failure::{FailureClass, Hindrance, Signature, StartFailure};
pub use network::http::{
    AT_LEAST, Http, HttpAnswer, HttpExpectation, HttpObservation, HttpQuery, ObservedTarget, Target,
};
pub use network::ping::{Ping, PingQuery};
pub use network::reach::{ReachAnswer, ReachExpectation, ReachObservation, ReachedTarget};
pub use network::udp::Udp;
pub use network::{curl, ping};
pub use place::{Balancer, Bound, PoolNode, ReadyFixture, ReadyFixtures, ReadyPod, Served};
pub use prepared::Prepared;
pub use vantage::{SourceKind, VantageKey};

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Image;
use crate::fixture::{FixtureName, Need};

/// A test method, without I/O.
pub trait Method: Sized {
    type Query: Clone + Sync;
    type Expectation: Display + Sync;
    type Observation: Serialize + DeserializeOwned;

    /// The variant of [`Test`] for this method.
    const TEST: fn(Assertion<Self>) -> Test;

    /// Returns the request and the reader of its reply, with targets bound to ready fixtures.
    fn prepare<'a>(
        query: &'a Self::Query,
        at: &Bound<'a>,
    ) -> Result<Prepared<'a, Self::Observation>>;
    /// Compares the observation with the expectation; returns an error where the result depends on something
    /// that the observation lacks.
    fn compare(expectation: &Self::Expectation, seen: &Self::Observation) -> Result<Comparison>;
    /// Returns what the record keeps of a compared observation: bounded, however long the answers.
    fn kept(seen: Self::Observation) -> Self::Observation {
        seen
    }
    /// The fixtures that the query depends on, each with the state that it must be in.
    fn needs(query: &Self::Query) -> Vec<(FixtureName, Need)>;
    /// What other modules need to know of an assertion.
    fn traits(query: &Self::Query, expectation: &Self::Expectation) -> Traits;
    /// The expectation of the failure that a known limitation shows; `None` where this method has no such
    /// signature.
    fn failing(_: &Self::Expectation, _: &Signature) -> Option<Self::Expectation> {
        None
    }
}

/// A query with its expectation.
#[derive(Clone, Debug)]
pub struct Assertion<M: Method> {
    pub query: M::Query,
    pub expectation: M::Expectation,
}

/// An assertion of any method.
trait AnyAssertion {
    fn prepare<'a>(&'a self, at: &Bound<'a>) -> Result<Prepared<'a, Evaluated>>;
    fn needs(&self) -> Vec<(FixtureName, Need)>;
    fn traits(&self) -> Traits;
    fn expectation(&self) -> String;
    fn expecting(&self, signature: &Signature) -> Option<Test>;
}

impl<M: Method> AnyAssertion for Assertion<M> {
    fn prepare<'a>(&'a self, at: &Bound<'a>) -> Result<Prepared<'a, Evaluated>> {
        Ok(M::prepare(&self.query, at)?.and_then(|seen| {
            // Compares the whole observation: `kept` may cut off the expected marker
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

    fn expectation(&self) -> String {
        self.expectation.to_string()
    }

    fn expecting(&self, signature: &Signature) -> Option<Test> {
        Some(M::TEST(Self {
            query: self.query.clone(),
            expectation: M::failing(&self.expectation, signature)?,
        }))
    }
}

/// An observation and its comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The observation as the record keeps it.
    pub observation: serde_json::Value,
    pub comparison: Comparison,
}

/// The properties of an assertion that its method determines; most methods set few of them.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub struct Traits {
    /// Whether it observes from a vantage point and so needs a [`SourceKind`]. The expected result can then
    /// occur without its fixtures: a time-out since a target is gone, or a page from the new owner of its
    /// address.
    pub needs_source: bool,
    /// Whether it may take time until it holds: what crosses the network converges, an answer of the API
    /// server about itself does not.
    pub converges: bool,
    /// Whether what answers looks only now and then: it has `durations.failing` to converge.
    pub is_slow: bool,
    /// Whether it must keep holding for a while.
    pub must_last: bool,
    /// Whether only the pods that it was bound to can give the expected answer, rather than any owner of the
    /// address.
    pub tells_who_answers: bool,
    /// Whether it holds where nothing answers.
    pub expects_no_answer: bool,
    /// The target outside the cluster that it observes.
    pub(crate) outside: Option<Target>,
    /// Whether its target has addresses of each of the cluster's families.
    pub(crate) has_families: bool,
    /// Whether it sends many requests to one target after that target has answered one.
    pub asks_many: bool,
    /// Whether its result stays: it does not come and go between two rounds.
    pub stays: bool,
    /// The facts that it depends on, as the record spells their fields.
    pub(crate) facts: &'static [&'static str],
    /// The role of the image that its observed pods should run.
    pub(crate) image: Option<Image>,
    /// Whether it needs agnhost at its vantage point.
    pub(crate) agnhost_sends: bool,
    /// Whether agnhost serves its target.
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
    /// The log of a container.
    Log(Assertion<Log>),
    /// A ping from a vantage point.
    Ping(Assertion<Ping>),
    /// Where the scheduler binds a pod, and whether the pod starts there.
    Placement(Assertion<Placement>),
    /// Whether the scheduler removes one pod for another.
    Preemption(Assertion<Preemption>),
    /// A program in a container.
    Program(Assertion<Program>),
    /// What unfolds over time.
    Scenario(Assertion<OverTime>),
    /// The state of objects.
    State(Assertion<State>),
    /// Fields of an object.
    Status(Assertion<Status>),
    /// A datagram from a vantage point.
    Udp(Assertion<Udp>),
}

/// Fields of a pod that decide what is observed of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fields {
    /// All, also where it may run, and with how much.
    All,
    /// Those that say what it does.
    Doings,
    /// Those that say where it may run, and with how much.
    Place,
    /// Those that say which programs it runs.
    Programs,
}

impl Test {
    fn assertion(&self) -> &dyn AnyAssertion {
        match self {
            Self::Admission(assertion) => assertion,
            Self::Fact(assertion) => assertion,
            Self::Http(assertion) => assertion,
            Self::Log(assertion) => assertion,
            Self::Ping(assertion) => assertion,
            Self::Placement(assertion) => assertion,
            Self::Preemption(assertion) => assertion,
            Self::Program(assertion) => assertion,
            Self::Scenario(assertion) => assertion,
            Self::State(assertion) => assertion,
            Self::Status(assertion) => assertion,
            Self::Udp(assertion) => assertion,
        }
    }

    /// Returns the request for a transport and a reader that compares the observation in the reply.
    pub fn prepare<'a>(&'a self, at: &Bound<'a>) -> Result<Prepared<'a, Evaluated>> {
        self.assertion().prepare(at)
    }

    /// The fixtures that the assertion depends on, each with the state that it must be in.
    pub fn needs(&self) -> Vec<(FixtureName, Need)> {
        self.assertion().needs()
    }

    /// The fields of its fixtures' pods that decide what it observes; `None` where it observes how objects are stored.
    pub fn decided_by(&self) -> Option<Fields> {
        match self {
            Self::Placement(_) => Some(Fields::All),
            Self::Status(assertion) => match assertion.query.kind {
                StatusKind::Pod | StatusKind::Events => {
                    let has = &assertion.expectation.has;
                    has["spec"].is_null().then_some(Fields::All)
                }
                StatusKind::Job | StatusKind::CronJob => Some(Fields::Doings),
                _ => None,
            },
            Self::Log(_) | Self::Program(_) | Self::Scenario(_) | Self::State(_) => {
                Some(Fields::Doings)
            }
            Self::Http(_) | Self::Udp(_) => Some(Fields::Programs),
            _ => None,
        }
    }

    /// The properties that its method determines.
    pub fn traits(&self) -> Traits {
        self.assertion().traits()
    }

    /// What it expects, in words.
    pub(crate) fn expectation(&self) -> String {
        self.assertion().expectation()
    }

    /// The same test where a pool has this many nodes with vantage points.
    #[must_use]
    pub fn on_nodes(mut self, nodes: u16) -> Self {
        if let Self::State(assertion) = &mut self
            && assertion.expectation == StateExpectation::ReadyOnEachNode
        {
            assertion.expectation = StateExpectation::Ready { pods: nodes.max(1) };
        }
        self
    }

    /// The fixture whose Service it observes from this kind of source.
    pub(crate) fn service_of(&self, source: SourceKind) -> Option<FixtureName> {
        let Self::Http(assertion) = self else {
            return None;
        };
        match assertion.query.target {
            Target::ItselfByService => source.prober(),
            target if target.is_of_a_service() => assertion.query.through.or(assertion.query.of),
            _ => None,
        }
    }

    /// Whether it requests a cloud's metadata.
    pub(crate) fn asks_metadata(&self) -> bool {
        matches!(self, Self::Http(assertion) if assertion.query.target == Target::Metadata)
    }

    /// The same assertion, expecting the failure of a known limitation; `None` where this method has no such
    /// signature.
    pub fn expecting(&self, signature: &Signature) -> Option<Self> {
        self.assertion().expecting(signature)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transcripts;
