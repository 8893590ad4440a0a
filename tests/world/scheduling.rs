//! Which checks of the area `sched` each product fault turns, and to what.

use winconform_core::verdict::Verdict::{self, Broken, Fail, LimitationLifted, Skip};

/// A policy that makes a selector of `spec.os` in pods that select nothing.
pub(crate) const OS_SELECTS: &str = "os-selects";
/// A policy by which no class of priority preempts.
pub(crate) const NEVER_PREEMPTS: &str = "never-preempts";
/// Faults that are policies of admission.
pub(crate) const POLICIES: [&str; 2] = [OS_SELECTS, NEVER_PREEMPTS];

const BY_OS: &str = "sched.node-selector";
const BY_BUILD: &str = "sched.build-selector";
const TOLERANT: &str = "sched.toleration";
const INTOLERANT: &str = "sched.selector-needs-toleration";
const LINUX_AWAY: &str = "sched.taint-keeps-linux-away";
const RUNTIME_CLASS: &str = "sched.runtime-class";
const OS_FIELD: &str = "sched.os-field-no-effect";
const UNSELECTED: &str = "sched.missing-selector-pitfall";
const BUILDS: &str = "sched.build-mismatch";
const MIXED: &str = "sched.single-os-pod";
const CPU: &str = "sched.resource-requests/cpu";
const MEMORY: &str = "sched.resource-requests/memory";
const PREEMPTION: &str = "sched.preemption";

/// By fault.
const TURNS: &[(&str, &[(&str, Verdict)])] = &[
    ("node-label-wrong=windows-2022", &[(BY_BUILD, Fail)]),
    (
        "node-labels-missing=windows-2022",
        // Nothing that selects Windows finds the pool, nor does the control of what is kept off
        &[
            (BY_OS, Fail),
            (TOLERANT, Fail),
            (RUNTIME_CLASS, Fail),
            (INTOLERANT, Broken),
            (LINUX_AWAY, Broken),
            (PREEMPTION, Broken),
        ],
    ),
    (
        "untainted=windows-2022",
        &[(TOLERANT, Skip), (INTOLERANT, Skip), (LINUX_AWAY, Skip)],
    ),
    (
        "node-not-ready=windows-2022",
        &[
            (BY_OS, Skip),
            (BY_BUILD, Skip),
            (TOLERANT, Skip),
            (INTOLERANT, Skip),
            (LINUX_AWAY, Skip),
            (RUNTIME_CLASS, Skip),
            (OS_FIELD, Skip),
            (UNSELECTED, Skip),
            (BUILDS, Skip),
            (MIXED, Skip),
            (CPU, Skip),
            (MEMORY, Skip),
            (PREEMPTION, Skip),
        ],
    ),
    (
        "image-missing=windows-2022",
        // The control cannot start
        &[(UNSELECTED, Broken), (BUILDS, Broken), (MIXED, Broken)],
    ),
    // No handler of its is known
    ("runtime-docker=windows-2022", &[(RUNTIME_CLASS, Broken)]),
    (
        "sandbox-fails=windows-2022",
        &[(UNSELECTED, Broken), (BUILDS, Broken), (MIXED, Broken)],
    ),
    (
        "taint-ignored=windows-2022",
        &[(INTOLERANT, Fail), (LINUX_AWAY, Fail), (TOLERANT, Broken)],
    ),
    (
        "requests-ignored=windows-2022",
        &[(CPU, Fail), (MEMORY, Fail)],
    ),
    ("any-build-runs=windows-2022", &[(BUILDS, LimitationLifted)]),
    (
        "platform-unasked=linux",
        &[(UNSELECTED, Fail), (MIXED, Fail)],
    ),
    (NEVER_PREEMPTS, &[(PREEMPTION, Fail)]),
    (
        OS_SELECTS,
        // That Linux takes pods is shown by one that says it is for Windows
        &[
            (OS_FIELD, Fail),
            (BY_OS, Broken),
            (BY_BUILD, Broken),
            (RUNTIME_CLASS, Broken),
        ],
    ),
];

/// What a fault turns.
pub(crate) fn turns(fault: &str) -> &'static [(&'static str, Verdict)] {
    let of = TURNS.iter().find(|(known, _)| *known == fault);
    of.map_or(&[], |(_, turns)| turns)
}
