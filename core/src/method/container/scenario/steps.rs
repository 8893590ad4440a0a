//! The scenarios and their steps.

use std::time::Duration;

use strum::{IntoStaticStr, VariantArray};

use super::condition::Condition;
use crate::command::{Command, FilePath, Token, VariableName};
use crate::facts::Os;

/// A claim that unfolds over time.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Scenario {
    LivenessProbe,
    MemoryOverUse,
    NetworkAfterRestart,
    PreStop,
    ReadinessProbe,
    StartupProbe,
    SubPathRelease,
    TerminationGrace,
    WorkloadSignals,
}

crate::text::words!(Scenario);

/// One step, with the words by which a finding names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub words: &'static str,
    pub act: Act,
    /// Whether nothing is observed unless it ends as it should.
    pub presumed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Run a command in the container; if it ends with another code than 0, that is an error.
    Run(Command),
    /// Run a command in the container that ends with 0 if what the step claims is so, and with 1 if it is not.
    Ask(Command),
    /// Delete the pod.
    Delete,
    /// Wait for a condition, at most so long.
    Await(Condition, Duration),
    /// A condition has to go on holding for so long.
    Keep(Condition, Duration),
    /// Wait until the Service of the pod's fixture has the pod as a ready endpoint, or has it no more, at most so
    /// long.
    AwaitEndpoint(bool, Duration),
    /// Wait until the Service of the pod's fixture leads another pod of it to the pod, or no longer does, at most so
    /// long. Where the first of these steps fails, the scenario goes on without them: other claims are about Services.
    AwaitService(bool, Duration),
}

/// In place of the words of the first step that waits for a Service, where that does not lead to the pod.
pub const LEADS_NOWHERE: &str = "the run stops asking its Service, which does not lead to the pod,";

/// A probe with a period of 3 s and a threshold of 2 has this long; an exec alone may take seconds on Windows.
const PROBED: Duration = Duration::from_mins(1);
/// A restart takes the grace of the container besides.
const RESTARTED: Duration = Duration::from_mins(2);
/// A program that crashes does so by then.
const CRASHES: Duration = Duration::from_secs(3);
/// The endpoints of a Service follow the status of a pod within seconds, but for a busy controller.
const FOLLOWS: Duration = Duration::from_mins(1);
/// kube-proxy sets its rules anew every 30 s where it has missed a change (`syncPeriod`).
const LEADS: Duration = Duration::from_secs(90);
/// For a pod to go whose containers have ended.
const LEAVES: Duration = Duration::from_mins(2);

impl Scenario {
    /// Whether a step runs a command in the container.
    pub fn execs(self) -> bool {
        let mut steps = self.steps(Os::Windows).into_iter();
        steps.any(|step| matches!(step.act, Act::Run(_) | Act::Ask(_)))
    }

    /// Whether a step asks for endpoints.
    pub fn asks_for_endpoints(self) -> bool {
        let mut steps = self.steps(Os::Windows).into_iter();
        steps.any(|step| matches!(step.act, Act::AwaitEndpoint(..)))
    }

    pub fn steps(self, os: Os) -> Vec<Step> {
        let deleted = step("the pod is deleted", Act::Delete);
        let runs = presumed(
            "the container runs for 3 s",
            Act::Keep(Condition::Runs, CRASHES),
        );
        let is_ready = presumed(
            "the container is ready",
            Act::Await(Condition::Ready(true), PROBED),
        );
        // A program that serves has set up how it ends
        let ends = |words| {
            let by_itself = Condition::Ended {
                other: None,
                code: Some(0),
                message: None,
            };
            let serves = is_ready.clone();
            vec![
                serves,
                deleted.clone(),
                step(words, Act::Await(by_itself, LEAVES)),
            ]
        };
        // On a slow node the probe may be there before the file
        let probed_once = presumed(
            "the container runs without a restart for 10 s",
            Act::Keep(Condition::Runs, Duration::from_secs(10)),
        );
        let taken_away = step("what its probe looks for is taken away", take_away(os));
        let restarted = step(
            "the container is restarted",
            Act::Await(Condition::Restarted, RESTARTED),
        );
        match self {
            Self::ReadinessProbe => readiness(is_ready, taken_away, os),
            Self::LivenessProbe => vec![probed_twice(), taken_away, restarted],
            Self::MemoryOverUse => vec![refused_memory(), runs_on(), refused_once_more()],
            Self::NetworkAfterRestart => vec![
                presumed("the container has the address of its pod", look()),
                probed_once,
                taken_away,
                Step {
                    presumed: true,
                    ..restarted
                },
                is_ready,
                step("the restarted container has the address of its pod", look()),
            ],
            Self::StartupProbe => vec![
                step(
                    "the container has not started, and no liveness probe restarts it, for 20 s",
                    Act::Keep(Condition::Started(false), Duration::from_secs(20)),
                ),
                step("what its probes look for is there", put(os)),
                step(
                    "the container has started",
                    Act::Await(Condition::Started(true), PROBED),
                ),
            ],
            Self::PreStop => {
                let ended = |other, message| Condition::Ended {
                    other,
                    code: None,
                    message: Some(message),
                };
                vec![
                    runs,
                    deleted,
                    presumed(
                        "the kubelet reads the last messages of the pod",
                        Act::Await(ended(Some("control"), "control"), LEAVES),
                    ),
                    step(
                        "the container ends with the message of its preStop hook",
                        Act::Await(ended(None, "hook"), LEAVES),
                    ),
                ]
            }
            Self::SubPathRelease => vec![
                runs,
                deleted,
                step("the pod is gone", Act::Await(Condition::Gone, LEAVES)),
            ],
            Self::TerminationGrace => {
                ends("the program, which takes 15 s to end, ends by itself with exit code 0")
            }
            Self::WorkloadSignals => {
                ends("the program gets the signal to end, and ends with exit code 0")
            }
        }
    }
}

/// What its probe looks for is put there, taken away and put back; the endpoints of the Service follow the container,
/// and the Service follows its endpoints.
fn readiness(is_ready: Step, taken_away: Step, os: Os) -> Vec<Step> {
    let ready = |words, wanted| step(words, Act::Await(Condition::Ready(wanted), PROBED));
    let endpoint = |wanted| Act::AwaitEndpoint(wanted, FOLLOWS);
    let service = |words, wanted| step(words, Act::AwaitService(wanted, LEADS));
    vec![
        step("what its probe looks for is there", put(os)),
        is_ready,
        presumed(
            "its Service has the pod as a ready endpoint",
            endpoint(true),
        ),
        service("its Service leads to the pod", true),
        taken_away,
        ready("the container is no longer ready", false),
        step(
            "its Service no longer has the pod as a ready endpoint",
            endpoint(false),
        ),
        service("its Service no longer leads to the pod", false),
        step("what its probe looks for is there again", put(os)),
        ready("the container is ready again", true),
        step(
            "its Service has the pod as a ready endpoint again",
            endpoint(true),
        ),
        service("its Service leads to the pod again", true),
    ]
}

fn step(words: &'static str, act: Act) -> Step {
    Step {
        words,
        act,
        presumed: false,
    }
}

fn presumed(words: &'static str, act: Act) -> Step {
    Step {
        presumed: true,
        ..step(words, act)
    }
}

/// Its probe begins after 10 s, when a slow node has the file. Where a container crashes, the other one of its pod does,
/// too: if it ends alone, the probe is why.
fn probed_twice() -> Step {
    step(
        "the container, whose probe passes, runs without a restart for 20 s",
        Act::Keep(Condition::Runs, Duration::from_secs(20)),
    )
}

/// The file that the probes of manifests look for.
fn probed(os: Os) -> FilePath {
    let text = match os {
        Os::Linux => "/tmp/probed",
        Os::Windows => r"C:\probed",
    };
    FilePath::parse(os, text).expect("a path that is built in is valid")
}

/// Whether the container has the address of its pod, which manifests give it in a variable.
fn look() -> Act {
    let variable = VariableName::parse("wc_address");
    Act::Ask(Command::HasAddress(
        variable.expect("a name that is built in is valid"),
    ))
}

/// More memory than the limit of the container, which its manifest gives it.
fn refused_memory() -> Step {
    presumed(
        "a program in the container is refused more memory than its limit",
        Act::Run(Command::MemoryLimited(640)),
    )
}

fn runs_on() -> Step {
    step(
        "the container runs on for 5 s",
        Act::Keep(Condition::Runs, Duration::from_secs(5)),
    )
}

/// A node that falls silent meanwhile reports no end of the container; only a program that runs there tells.
fn refused_once_more() -> Step {
    presumed(
        "a program in it is refused as much once more",
        Act::Ask(Command::MemoryLimited(640)),
    )
}

fn take_away(os: Os) -> Act {
    Act::Run(Command::DeleteFile(probed(os)))
}

fn put(os: Os) -> Act {
    Act::Run(Command::WriteFile {
        path: probed(os),
        line: Token::parse("probed").expect("a word that is built in is valid"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scenario_waits_in_the_end_for_what_it_claims() {
        for scenario in Scenario::VARIANTS {
            for os in [Os::Linux, Os::Windows] {
                let steps = scenario.steps(os);
                let last = steps.last().map(|step| &step.act);
                assert!(
                    matches!(
                        last,
                        Some(
                            Act::Await(..)
                                | Act::AwaitEndpoint(..)
                                | Act::AwaitService(..)
                                | Act::Ask(_)
                                | Act::Keep(..)
                        )
                    ),
                    "{scenario:?}"
                );
                for step in &steps {
                    match &step.act {
                        Act::Run(command) if *scenario != Scenario::MemoryOverUse => {
                            assert!(command.on(os).is_ok());
                        }
                        Act::Run(command) | Act::Ask(command) => {
                            assert!(command.on(Os::Windows).is_ok());
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
