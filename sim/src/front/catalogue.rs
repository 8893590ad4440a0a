//! Every fault of the front as a usage text shows it.

use super::trouble::Trouble;

/// A line of [`FrontFault::catalogue`](super::FrontFault::catalogue).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultEntry {
    /// How it is written.
    pub name: &'static str,
    /// What may follow the name, as in a usage text.
    pub parameter: &'static str,
    /// What it does.
    pub does: &'static str,
}

pub(super) const ALLOWS: &str = "admission-allows";
pub(super) const DROPS: &str = "admission-drops";
pub(super) const INJECTS: &str = "admission-injects";
pub(super) const ALLOWS_RESIZE: &str = "admission-allows-resize";
pub(super) const POLICY_REFUSES: &str = "admission-refuses";
pub(super) const WEBHOOK_REFUSES: &str = "webhook-refuses";
pub(super) const WEBHOOK_TIMES_OUT: &str = "webhook-times-out";
pub(super) const WEBHOOK_NO_DRY_RUN: &str = "webhook-no-dry-run";
pub(super) const ANSWERS_403: &str = "answers-403";
pub(super) const TOKEN_EXPIRES: &str = "token-expires";
pub(super) const SERVER_RESTARTS: &str = "server-restarts";
pub(super) const AGGREGATED_DOWN: &str = "aggregated-down";
pub(super) const HOSTILE_TEXTS: &str = "hostile-texts";

const SHARE: &str = "[=SHARE]";

pub(super) const CATALOGUE: &[FaultEntry] = &[
    entry(
        Trouble::TooManyRequests.name(),
        SHARE,
        "answers 429 with Retry-After: 1, with a Status or with plain text",
    ),
    entry(
        Trouble::InternalError.name(),
        SHARE,
        "answers 500 with a Status",
    ),
    entry(
        Trouble::Gone.name(),
        SHARE,
        "ends a watch with an ERROR event 410 Expired; answers 410 to a list that names a \
         resourceVersion or a continue token",
    ),
    entry(
        Trouble::Hang.name(),
        SHARE,
        "takes the request and never answers until the client leaves",
    ),
    entry(
        Trouble::Reset.name(),
        SHARE,
        "resets the connection before the answer, before or after the server has acted",
    ),
    entry(
        Trouble::CutExec.name(),
        SHARE,
        "ends the connection of an exec session without a close frame, before or after the first \
         output",
    ),
    entry(
        Trouble::LoseExitFrame.name(),
        SHARE,
        "loses the exit status of an exec session, then closes it normally",
    ),
    entry(
        Trouble::Html502.name(),
        SHARE,
        "answers 502 with a page of HTML",
    ),
    entry(
        Trouble::Slow.name(),
        SHARE,
        "answers a quarter of a second late, or in small pieces with pauses between them",
    ),
    entry(
        Trouble::TruncateBody.name(),
        SHARE,
        "resets the connection in the middle of an answer's body",
    ),
    entry(
        Trouble::StaleList.name(),
        SHARE,
        "answers a list with what the same list gave before, as a cache that lags behind does",
    ),
    entry(
        Trouble::SilentWatch.name(),
        SHARE,
        "keeps a watch open and says nothing in it, or nothing after its first words",
    ),
    entry(
        Trouble::DeleteCreated.name(),
        SHARE,
        "deletes what was just created, as another client would: pods and what makes them, \
         Services, ConfigMaps",
    ),
    entry(
        ALLOWS,
        "=FIELD",
        "validation forgets a field of pods: what the server refuses for it is accepted and \
         returned. FIELD is as seen from a pod (spec.hostPID, \
         spec.initContainers[*].securityContext.privileged) and found below templates; \
         container.X is X of all three kinds of containers. Holds for POST and for \
         pods/ephemeralcontainers and pods/resize, never for server-side apply",
    ),
    entry(
        DROPS,
        "=FIELD",
        "the same, but the field is not in what is returned",
    ),
    entry(
        INJECTS,
        "=FIELD:VALUE",
        "sets a field in every pod and template before the server validates it, as a mutating \
         webhook does; VALUE is JSON",
    ),
    entry(
        ALLOWS_RESIZE,
        "",
        "accepts the resize of a Windows pod, which the server refuses without naming a field",
    ),
    entry(
        POLICY_REFUSES,
        "=RESOURCE[:REASON]",
        "a ValidatingAdmissionPolicy refuses what is created or changed of a resource, once it is \
         valid; * is all of them; REASON is Invalid (422, the default), Forbidden (403), \
         Unauthorized (401) or RequestEntityTooLarge (413)",
    ),
    entry(
        WEBHOOK_REFUSES,
        "=RESOURCE[:CODE]",
        "a validating webhook does; CODE is 400 (the default) or 403",
    ),
    entry(
        WEBHOOK_TIMES_OUT,
        "[=RESOURCE]",
        "a mutating webhook does not answer in time: 500 for what is created or changed of a \
         resource, by default pods, before it is validated",
    ),
    entry(
        WEBHOOK_NO_DRY_RUN,
        "[=RESOURCE]",
        "a mutating webhook has side effects: 400 for every dry run of a resource, by default pods",
    ),
    entry(
        ANSWERS_403,
        "=RESOURCE",
        "answers as RBAC does to who may do nothing with a resource (pods, pods/exec) or path \
         (/metrics)",
    ),
    entry(
        TOKEN_EXPIRES,
        "=N",
        "answers 401 to every request after the first N",
    ),
    entry(
        SERVER_RESTARTS,
        "=N",
        "after N requests resets every connection, resets the next 5 as well, answers 503 to 3 \
         requests, and is well again",
    ),
    entry(
        AGGREGATED_DOWN,
        "",
        "metrics.k8s.io is registered and down: 503 as the aggregator answers, and stale in \
         discovery",
    ),
    entry(
        HOSTILE_TEXTS,
        "",
        "puts control characters, escape sequences, right-to-left text, markup and very long \
         strings into labels, annotations, messages, logs and the names of cluster-scoped objects \
         other than nodes, namespaces, priority and runtime classes",
    ),
];

const fn entry(name: &'static str, parameter: &'static str, does: &'static str) -> FaultEntry {
    FaultEntry {
        name,
        parameter,
        does,
    }
}
