//! Every time limit of a run, named.

use std::time::Duration;

/// Every time limit on requests to a connected cluster. The limits of connecting, and of registries, for
/// which no run waits, are beside their code.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    /// From sending an API request to the head of its answer.
    pub api_answer: Duration,
    /// The same for a dry run, which waits for webhooks: 30 s is the longest one may take
    /// (`timeoutSeconds`, admissionregistration.k8s.io/v1).
    pub dry_run_answer: Duration,
    /// The same for a request that creates or changes something: a server gives up after 60 s
    /// (`--request-timeout`), and a slow server has done nothing for a client that gives up before.
    pub write_answer: Duration,
    /// From the head of an API answer to its end.
    pub api_body: Duration,
    /// All attempts of one API request together: six times `api_answer`.
    pub api_in_all: Duration,
    /// How long a server may not answer at all, or only answer that it is unavailable: two minutes, and the
    /// time it takes to notice that it is back.
    pub outage: Duration,
    /// How long a server may refuse a credential that it has accepted before: authenticators that it calls
    /// over the network fail for a moment.
    pub refused: Duration,
    /// First pause before a request is sent again; it doubles.
    pub transport_pause: Duration,
    /// From requesting an exec to its open WebSocket.
    pub exec_connect: Duration,
    /// How long an exec may be silent before it is given up: more than one target's `http_total`.
    pub exec_idle: Duration,
    /// curl's connect time-out. A refusal takes 2 s on Windows, which itself gives up after 21 s: the value
    /// must lie between 3 and 20 s (curl#14144).
    pub http_connect: Duration,
    /// curl's limit for one transfer.
    pub http_total: Duration,
    /// How long a watch lasts before it is begun anew, in whole seconds; a silent watch is given up soon
    /// after.
    pub watch: Duration,
    /// From applying a fixture until it is ready; a Windows image takes minutes to pull.
    pub fixture: Duration,
    /// How long a workload without a readiness probe must stay Ready before its fixture is ready.
    pub settle: Duration,
    /// How long a program in a Windows pod that is Ready may take to listen, before its fixture is ready anyway:
    /// PowerShell takes long to start on a busy node.
    pub listens: Duration,
    /// How long the slow starter must stay Ready before its fixture is ready. It is Ready 30 s after its
    /// start at the earliest; the kubelet calls its liveness probe from 60 s on, every 15 s, and restarts it
    /// at the third failure (`manifests/slow-starter.yaml`).
    pub outlasts_liveness: Duration,
    /// How long pods without a readiness probe must be seen Ready, and others Pending, for their check to
    /// pass.
    pub stays_ready: Duration,
    /// How long the scheduler may find no node for a pod before that is final; `failing`, where nodes lack what
    /// other pods have on them.
    pub unscheduled: Duration,
    /// How long a pull, a start or a search for room may keep failing for a reason that may be temporary, such
    /// as the rate limit of a registry.
    pub failing: Duration,
    /// How long a pod may go without a sandbox or its volumes: hcs took 3 min 46 s to start one that then ran
    /// (kubernetes#107561).
    pub sandbox: Duration,
    /// How long a vantage point that could observe something waits until everything that it will observe is
    /// ready: a session costs more than its assertions.
    pub gather: Duration,
    /// The same for a vantage point that each node of a pool has: they have many sessions.
    pub gather_per_node: Duration,
    /// How long an assertion over the network may take to hold, from when its fixtures are ready.
    pub converge: Duration,
    /// How long a load balancer may take to give a Service an address, and then to answer there: those of AWS
    /// take minutes.
    pub balancer: Duration,
    /// The pause between two requests for a node's sign of life.
    pub sign_of_life: Duration,
    /// How long a pod or a Service of ours that is being deleted may still exist.
    pub leaving: Duration,
    /// The pause between two assertions of one check; one about placement is repeated after `stays_ready`.
    pub observe_again: Duration,
    /// The whole diagnosis of what failed, before tear-down.
    pub diagnose: Duration,
    /// The whole tear-down.
    pub tear_down: Duration,
    /// How much more of it each Windows pod adds, on the node with most of them; nothing if the configuration says
    /// how long a tear-down may take. Windows nodes end pods slowly, one after the other (Azure/AKS#1461,
    /// Azure/aks-engine#3632).
    pub tear_down_of_pod: Duration,
    /// The duration of a run's Lease, after which another run may call it dead.
    pub lease: Duration,
    /// How often the Lease is renewed.
    pub lease_renewal: Duration,
    /// How long a pod of ours lives at most if nothing removes it, beyond the time of a soak.
    pub pod_deadline: Duration,
}

/// How many unanswered attempts of a request `api_in_all` allows.
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
            exec_idle: seconds(60),
            http_connect: seconds(4),
            http_total: seconds(8),
            watch: seconds(60),
            fixture: seconds(20 * 60),
            settle: seconds(2),
            listens: seconds(5 * 60),
            outlasts_liveness: seconds(70),
            stays_ready: seconds(5),
            unscheduled: seconds(30),
            failing: seconds(3 * 60),
            sandbox: seconds(5 * 60),
            gather: seconds(30),
            gather_per_node: seconds(120),
            converge: seconds(60),
            balancer: seconds(5 * 60),
            sign_of_life: seconds(2),
            leaving: seconds(120),
            observe_again: Duration::from_millis(500),
            diagnose: seconds(20),
            tear_down: seconds(120),
            tear_down_of_pod: seconds(5),
            lease: seconds(12),
            lease_renewal: seconds(3),
            pod_deadline: seconds(4 * 3600),
        }
    }
}
