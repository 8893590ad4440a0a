//! Every time limit of a run, named.

use std::time::Duration;

/// Every time limit of what is asked of a cluster once the way to it stands. How that is reached, and
/// how long registries may take, which no run waits for, is written where it is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    /// From sending an API request to the head of its answer.
    pub api_answer: Duration,
    /// The same for a dry run, which waits for webhooks: 30 s is the longest one may take
    /// (`timeoutSeconds`, admissionregistration.k8s.io/v1).
    pub dry_run_answer: Duration,
    /// The same for what is created or changed: a server gives up after 60 s (`--request-timeout`), and
    /// one that is slow has done nothing for a client that leaves before.
    pub write_answer: Duration,
    /// From the head of an API answer to its end.
    pub api_body: Duration,
    /// All attempts of one API request together: six times `api_answer`.
    pub api_in_all: Duration,
    /// How long a server may answer nothing at all, or only that it is not there: two minutes, and the
    /// time it takes to notice that it is back.
    pub outage: Duration,
    /// How long it may refuse a credential that it has accepted: authenticators that are asked over the
    /// network fail for a moment.
    pub refused: Duration,
    /// First pause before a request is sent again; it doubles.
    pub transport_pause: Duration,
    /// From asking for an exec to its WebSocket standing.
    pub exec_connect: Duration,
    /// An exec's silence after which it is given up: more than one target's `http_total`.
    pub exec_idle: Duration,
    /// curl's connect time-out. A refusal takes 2 s on Windows, its system gives up after 21 s:
    /// it must lie between 3 and 20 s (curl#14144).
    pub http_connect: Duration,
    /// curl's limit for one transfer.
    pub http_total: Duration,
    /// The longest a watch goes on before it is begun anew, in whole seconds; a silent one is given
    /// up soon after.
    pub watch: Duration,
    /// From applying a fixture to its standing; a Windows image takes minutes to pull.
    pub fixture: Duration,
    /// How long a workload without a readiness probe must stay Ready before it stands.
    pub settle: Duration,
    /// How long the slow starter must stay Ready before it stands. It is Ready 30 s after its start
    /// at the earliest; its liveness probe is asked from 60 s on, every 15 s, and the third failure
    /// has it restarted (`manifests/slow-starter.yaml`).
    pub outlasts_liveness: Duration,
    /// How long pods without a readiness probe must be seen Ready, and others Pending, for their check to
    /// pass.
    pub stays_ready: Duration,
    /// How long the scheduler may find no node for a pod before that is final.
    pub unscheduled: Duration,
    /// How long a pull or a start may go on failing with words that may pass, such as of a registry
    /// that limits its rate.
    pub failing: Duration,
    /// How long a pod may go without a sandbox: hcs took 3 min 46 s to start one that then ran
    /// (kubernetes#107561).
    pub sandbox: Duration,
    /// How long a vantage point waits, once it could observe something, for all that it will observe
    /// to be ready: each session costs more than its assertions.
    pub gather: Duration,
    /// The same of a place of which each node of a pool has one: their sessions are many.
    pub gather_per_node: Duration,
    /// How long an assertion over the network may take to come right, from its fixtures' standing.
    pub converge: Duration,
    /// How long a load balancer may take to give a Service an address, and then to answer there:
    /// AWS' take minutes.
    pub balancer: Duration,
    /// The pause between two requests for a node's sign of life.
    pub sign_of_life: Duration,
    /// How long a pod of ours that is being deleted may still be there.
    pub leaving: Duration,
    /// The pause between two assertions of one check; one about where pods are placed is made again after
    /// `stays_ready`.
    pub observe_again: Duration,
    /// All of observing what failed, before tear-down.
    pub diagnose: Duration,
    /// All of tear-down.
    pub tear_down: Duration,
    /// A run's Lease, after which another may call it dead.
    pub lease: Duration,
    /// How often the Lease is renewed.
    pub lease_renewal: Duration,
    /// How long a pod of ours lives at most, should nobody ever remove it; beyond a soak's own time.
    pub pod_deadline: Duration,
}

/// How many answers that never come a request is sent again for.
const ATTEMPTS: u32 = 6;

impl Durations {
    /// The same with another `api_answer`, and what follows from it.
    #[must_use]
    pub fn answered_within(self, api_answer: Duration) -> Self {
        Self {
            api_answer,
            api_in_all: api_answer * ATTEMPTS,
            ..self
        }
    }
}

impl Default for Durations {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let api_answer = seconds(10);
        Self {
            api_answer,
            dry_run_answer: seconds(35),
            write_answer: seconds(65),
            api_body: seconds(20),
            api_in_all: api_answer * ATTEMPTS,
            outage: seconds(150),
            refused: seconds(30),
            transport_pause: Duration::from_millis(100),
            exec_connect: seconds(15),
            exec_idle: seconds(30),
            http_connect: seconds(4),
            http_total: seconds(8),
            watch: seconds(60),
            fixture: seconds(20 * 60),
            settle: seconds(2),
            outlasts_liveness: seconds(70),
            stays_ready: seconds(5),
            unscheduled: seconds(30),
            failing: seconds(3 * 60),
            sandbox: seconds(5 * 60),
            gather: seconds(60),
            gather_per_node: seconds(90),
            converge: seconds(60),
            balancer: seconds(5 * 60),
            sign_of_life: seconds(2),
            leaving: seconds(120),
            observe_again: Duration::from_millis(500),
            diagnose: seconds(20),
            tear_down: seconds(120),
            lease: seconds(12),
            lease_renewal: seconds(3),
            pod_deadline: seconds(4 * 3600),
        }
    }
}
