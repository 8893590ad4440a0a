//! Ways of looking: what to ask, how to read what came back, how it compares.
//!
//! One file per way, sans I/O: [`Way::request`] says what a transport should do, [`Way::read`]
//! makes an observation of the reply or says why it cannot, [`Way::compare`] holds it against the
//! expectation or says what of it nobody could tell. Nothing here decides pass or fail.

mod admission;
mod compare;
pub mod curl;
mod denied;
mod disruption;
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
mod trouble;
mod udp;
mod vantage;

pub use admission::{
    About, Admission, AdmissionAsk, AdmissionExpect, AdmissionSeen, Alterations, Cause, Change,
    ContainerKind, Workload,
};
pub use compare::{Comparison, Difference};
pub use denied::{Denied, lacks_namespace};
pub use disruption::is_disrupted;
pub use exchange::{
    ApiReply, ApiRequest, ExecReply, ExecRequest, ExitStatus, Host, HttpGet, HttpReply, PingReply,
    Reply, Request, Verb,
};
pub use fact::{Fact, FactExpect, FactSeen, Topic};
pub use failure::{FailureClass, Signature, StartFailure};
pub use fixture::{FixtureKey, FixtureName, Need, SchedFixture};
pub use http::{AT_LEAST, Http, HttpAnswer, HttpAsk, HttpExpect, HttpSeen, Target, TargetSeen};
pub use path::ApiPath;
pub use ping::{Ping, PingAsk};
pub use place::{Balancer, Bound, Served, Standing, StandingFixture, StandingNode, StandingPod};
pub use placement::{
    AIMED_AT, Ground, Hindrance, KeptOff, NO_IMAGE, NOT_CREATED, PREPARING, PlacedPod, Placement,
    PlacementAsk, PlacementExpect, PlacementSeen, Said, Start, Whereabouts,
};
pub use preemption::{Preemption, PreemptionAsk, PreemptionExpect, PreemptionSeen};
pub use reach::{ReachAnswer, ReachExpect, ReachSeen, ReachedTarget};
pub use state::{EndpointSeen, PodSeen, State, StateAsk, StateExpect, StateSeen};
pub use trouble::{Trouble, TroubleKind};
pub use udp::{Udp, UdpAsk};
pub use vantage::{SourceKind, VantageKey};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A way of looking, without I/O.
pub trait Way {
    type Ask;
    type Expect;
    type Seen: Serialize + DeserializeOwned;

    /// What a transport should do, with targets bound to what stands.
    fn request(ask: &Self::Ask, at: &Bound<'_>) -> Result<Request, Trouble>;
    /// The observation in a reply; unrecognised output is trouble, never a default.
    fn read(ask: &Self::Ask, at: &Bound<'_>, reply: &Reply) -> Result<Self::Seen, Trouble>;
    /// The observation held against the expectation; trouble where it depends on something that
    /// was not told.
    fn compare(expect: &Self::Expect, seen: &Self::Seen) -> Result<Comparison, Trouble>;
    /// What is put on record of an observation, once it was compared: bounded, whatever others said.
    fn kept(seen: Self::Seen) -> Self::Seen {
        seen
    }
}

/// A question with its expectation.
#[derive(Debug)]
pub struct Look<W: Way> {
    pub ask: W::Ask,
    pub expect: W::Expect,
}

impl<W: Way> Clone for Look<W>
where
    W::Ask: Clone,
    W::Expect: Clone,
{
    fn clone(&self) -> Self {
        Self {
            ask: self.ask.clone(),
            expect: self.expect.clone(),
        }
    }
}

impl<W: Way> Look<W> {
    fn take(&self, at: &Bound<'_>, reply: &Reply) -> Result<Taken, Trouble> {
        let seen = W::read(&self.ask, at, reply)?;
        // Of all that was said: what is cut off may be the very marker
        let comparison = W::compare(&self.expect, &seen)?;
        let observation = serde_json::to_value(W::kept(seen)).map_err(|error| {
            Trouble::new(
                TroubleKind::UnrecognisedOutput,
                format!("cannot be recorded: {error}"),
            )
        })?;
        Ok(Taken {
            observation,
            comparison,
        })
    }
}

/// An observation and how it compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// What was seen, as recorded.
    pub observation: serde_json::Value,
    pub comparison: Comparison,
}

/// What holds of a look by its way; of most ways nothing of it does.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub struct Traits {
    /// Whether it looks from a vantage, so that a [`SourceKind`] is needed. What is expected of it may then
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
    /// What outside the cluster it looks at.
    pub(crate) outside: Option<Target>,
    /// Whether what it looks at has addresses of each of the cluster's families.
    pub(crate) has_families: bool,
}

/// The closed set of tests; the only registry of ways.
#[derive(Clone, Debug)]
pub enum Test {
    /// A dry-run creation.
    Admission(Look<Admission>),
    /// What the cluster says of itself.
    Fact(Look<Fact>),
    /// An HTTP request from a vantage.
    Http(Look<Http>),
    /// A ping from a vantage.
    Ping(Look<Ping>),
    /// Where a pod is put, and whether it starts there.
    Placement(Look<Placement>),
    /// Whether one pod is removed for another.
    Preemption(Look<Preemption>),
    /// The state of objects.
    State(Look<State>),
    /// A datagram from a vantage.
    Udp(Look<Udp>),
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
    pub fn request(&self, at: &Bound<'_>) -> Result<Request, Trouble> {
        match self {
            Self::Admission(look) => Admission::request(&look.ask, at),
            Self::Fact(look) => Fact::request(&look.ask, at),
            Self::Http(look) => Http::request(&look.ask, at),
            Self::Ping(look) => Ping::request(&look.ask, at),
            Self::Udp(look) => Udp::request(&look.ask, at),
            Self::Placement(look) => Placement::request(&look.ask, at),
            Self::Preemption(look) => Preemption::request(&look.ask, at),
            Self::State(look) => State::request(&look.ask, at),
        }
    }

    /// The observation in a reply and how it compares.
    pub fn take(&self, at: &Bound<'_>, reply: &Reply) -> Result<Taken, Trouble> {
        match self {
            Self::Admission(look) => look.take(at, reply),
            Self::Fact(look) => look.take(at, reply),
            Self::Http(look) => look.take(at, reply),
            Self::Ping(look) => look.take(at, reply),
            Self::Udp(look) => look.take(at, reply),
            Self::Placement(look) => look.take(at, reply),
            Self::Preemption(look) => look.take(at, reply),
            Self::State(look) => look.take(at, reply),
        }
    }

    /// What must have happened to which fixtures before the look.
    pub fn needs(&self) -> Vec<(FixtureName, Need)> {
        let namespaces = (FixtureName::Namespaces, Need::Stands);
        match self {
            Self::Admission(look) if look.ask.needs_pod() => {
                vec![namespaces, (FixtureName::UnboundPods, Need::Stands)]
            }
            Self::Admission(_) => vec![namespaces],
            Self::Fact(_) => Vec::new(),
            Self::Http(look) => {
                let beside = look.ask.target.needs().iter().copied();
                let needs = look.ask.of.into_iter().chain(beside);
                needs.map(|name| (name, Need::Stands)).collect()
            }
            Self::Ping(look) => {
                let needs = look.ask.of.into_iter();
                needs.map(|name| (name, Need::Stands)).collect()
            }
            Self::Udp(look) => vec![(look.ask.of, Need::Stands)],
            Self::Placement(look) => {
                let fixture = FixtureName::Sched(look.ask.pod.fixture());
                vec![namespaces, (fixture, Need::Stands)]
            }
            Self::Preemption(_) => {
                let fixture = FixtureName::Sched(SchedFixture::Preemption);
                vec![namespaces, (fixture, Need::Stands)]
            }
            Self::State(look) => vec![namespaces, (look.ask.fixture(), Need::Settled)],
        }
    }

    /// The same where so many nodes of a pool are looked from.
    #[must_use]
    pub fn on_nodes(mut self, nodes: u16) -> Self {
        if let Self::State(look) = &mut self
            && look.expect == StateExpect::ReadyOnEachNode
        {
            look.expect = StateExpect::Ready { pods: nodes };
        }
        self
    }

    /// What holds of it by its way.
    pub fn traits(&self) -> Traits {
        match self {
            Self::Http(look) => {
                let fails = matches!(look.expect, HttpExpect::Fails { .. });
                Traits {
                    needs_source: true,
                    converges: true,
                    tells_who_answers: !fails,
                    expects_no_answer: fails,
                    outside: Some(look.ask.target).filter(|target| target.is_outside()),
                    has_families: look.ask.target.has_families(),
                    ..Traits::default()
                }
            }
            Self::Ping(look) => Traits {
                needs_source: true,
                converges: true,
                expects_no_answer: matches!(look.expect, ReachExpect::Fails(_)),
                outside: Some(look.ask.target).filter(|target| target.is_outside()),
                has_families: look.ask.target.has_families(),
                ..Traits::default()
            },
            Self::Udp(look) => Traits {
                needs_source: true,
                converges: true,
                tells_who_answers: look.expect == ReachExpect::Answers,
                expects_no_answer: matches!(look.expect, ReachExpect::Fails(_)),
                has_families: true,
                ..Traits::default()
            },
            Self::Placement(look) => Traits {
                converges: true,
                // What one scheduler finds no node for another may bind
                must_last: matches!(look.expect, PlacementExpect::Pending(_)),
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

    /// The fixture whose Service is looked at from this kind of source.
    pub(crate) fn service_of(&self, source: SourceKind) -> Option<FixtureName> {
        let Self::Http(look) = self else {
            return None;
        };
        match look.ask.target {
            Target::ItselfByService => source.prober(),
            target if target.is_of_a_service() => look.ask.of,
            _ => None,
        }
    }

    /// Whether it sends many requests to one target, once somebody has answered there.
    pub fn asks_many(&self) -> bool {
        matches!(self, Self::Http(look) if look.ask.target == Target::EveryPodBehindServiceIp)
    }

    /// The same look, expecting the failure a known limitation shows; `None` where this way has
    /// no such signature.
    pub fn expecting(&self, signature: &Signature) -> Option<Self> {
        let mut test = self.clone();
        match (&mut test, signature) {
            (Self::Http(look), Signature::Failure(classes)) => {
                let HttpExpect::Answers { status, body } = &look.expect else {
                    return None;
                };
                look.expect = HttpExpect::Fails {
                    classes: classes.clone(),
                    status: *status,
                    instead_of: body.clone(),
                };
            }
            (
                Self::Ping(Look { expect, .. }) | Self::Udp(Look { expect, .. }),
                Signature::Failure(classes),
            ) if *expect == ReachExpect::Answers => *expect = ReachExpect::Fails(classes.clone()),
            (Self::Placement(look), Signature::NotStarted(classes))
                if look.expect == PlacementExpect::Starts =>
            {
                look.expect = PlacementExpect::NotStarted(classes.clone());
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
