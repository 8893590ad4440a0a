//! Product faults: what can be wrong in the cluster, named after it.
//!
//! Faults of the way to the API server are not here: they are the fault proxy's.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::watch;

use crate::topology::{Pool, UnknownPool};

/// One thing that is wrong in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProductFault {
    /// Service virtual IPs time out from the pool's nodes and pods; `NodePorts` on its nodes are
    /// dead.
    KubeProxyDead(Pool),
    /// The pool's nodes carry a `node.kubernetes.io/windows-build` that is not theirs.
    NodeLabelWrong(Pool),
    /// `servercore` containers of the pool die at start: 0xC0000142, `STATUS_DLL_INIT_FAILED`.
    ServercoreCrashes(Pool),
    /// The pool's Windows nodes do reach Service virtual IPs.
    NodeServiceIpAnswers(Pool),
    /// A connection from the pool's Windows nodes to a Service virtual IP is reset.
    NodeServiceIpResets(Pool),
    /// Every Service virtual IP answers 200 with a foreign body.
    ServiceAnswersWrong,
    /// Images of the `servercore` family cannot be pulled on the pool's nodes.
    ImageMissing(Pool),
    /// The pool's nodes lack the labels of their system and architecture.
    NodeLabelsMissing(Pool),
    /// The pool's kubelets are four minor versions behind the API server.
    KubeletSkewed(Pool),
    /// The pool's nodes report Docker as their runtime.
    RuntimeDocker(Pool),
    /// The pool's nodes leave all they have to pods.
    NothingReserved(Pool),
    /// The pool's Windows nodes carry no taint.
    Untainted(Pool),
    /// The pool's nodes are not Ready, for want of a network.
    NodeNotReady(Pool),
}

/// A line of the catalogue of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultInfo {
    /// The fault's name.
    pub name: &'static str,
    /// What stands behind `=`, if anything.
    pub param: Option<&'static str>,
    /// What is wrong in the cluster.
    pub what: &'static str,
}

const CATALOGUE: &[FaultInfo] = &[
    of_pool(
        "kube-proxy-dead",
        "Service IPs and NodePorts time out on the pool's nodes and from their pods",
    ),
    of_pool(
        "node-label-wrong",
        "the pool's nodes carry the windows-build label of another build",
    ),
    of_pool(
        "servercore-crashes",
        "servercore containers die at start with 0xC0000142 (STATUS_DLL_INIT_FAILED)",
    ),
    of_pool(
        "node-service-ip-answers",
        "the pool's Windows nodes reach Service IPs, which is documented not to work",
    ),
    of_pool(
        "node-service-ip-resets",
        "a Windows node's connection to a Service IP is reset instead of timing out",
    ),
    FaultInfo {
        name: "service-answers-wrong",
        param: None,
        what: "something captive answers every Service IP with 200 and a foreign page",
    },
    of_pool(
        "image-missing",
        "servercore images have no variant that the pool's nodes can pull",
    ),
    of_pool(
        "node-labels-missing",
        "the pool's nodes lack kubernetes.io/os and kubernetes.io/arch",
    ),
    of_pool(
        "kubelet-skewed",
        "the pool's kubelets are four minor versions behind the API server",
    ),
    of_pool(
        "runtime-docker",
        "the pool's nodes report a Docker of dockershim's time as their container runtime",
    ),
    of_pool(
        "nothing-reserved",
        "the pool's nodes leave all they have to pods: allocatable is capacity",
    ),
    of_pool(
        "untainted",
        "the pool's Windows nodes lack the taint os=windows:NoSchedule",
    ),
    of_pool(
        "node-not-ready",
        "the pool's nodes are not Ready: their network plugin is not initialised",
    ),
];

const fn of_pool(name: &'static str, what: &'static str) -> FaultInfo {
    FaultInfo {
        name,
        param: Some("POOL"),
        what,
    }
}

impl ProductFault {
    /// Every fault there is.
    pub fn catalogue() -> &'static [FaultInfo] {
        CATALOGUE
    }

    fn parts(self) -> (&'static str, Option<Pool>) {
        match self {
            Self::KubeProxyDead(pool) => ("kube-proxy-dead", Some(pool)),
            Self::NodeLabelWrong(pool) => ("node-label-wrong", Some(pool)),
            Self::ServercoreCrashes(pool) => ("servercore-crashes", Some(pool)),
            Self::NodeServiceIpAnswers(pool) => ("node-service-ip-answers", Some(pool)),
            Self::NodeServiceIpResets(pool) => ("node-service-ip-resets", Some(pool)),
            Self::ServiceAnswersWrong => ("service-answers-wrong", None),
            Self::ImageMissing(pool) => ("image-missing", Some(pool)),
            Self::NodeLabelsMissing(pool) => ("node-labels-missing", Some(pool)),
            Self::KubeletSkewed(pool) => ("kubelet-skewed", Some(pool)),
            Self::RuntimeDocker(pool) => ("runtime-docker", Some(pool)),
            Self::NothingReserved(pool) => ("nothing-reserved", Some(pool)),
            Self::Untainted(pool) => ("untainted", Some(pool)),
            Self::NodeNotReady(pool) => ("node-not-ready", Some(pool)),
        }
    }
}

impl fmt::Display for ProductFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (name, Some(pool)) => write!(f, "{name}={pool}"),
            (name, None) => f.write_str(name),
        }
    }
}

impl FromStr for ProductFault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let (name, param) = match text.split_once('=') {
            Some((name, param)) => (name, Some(param)),
            None => (text, None),
        };
        let Some(info) = CATALOGUE.iter().find(|info| info.name == name) else {
            return Err(UnknownFault::Name {
                name: name.to_owned(),
                nearest: nearest(name),
            });
        };
        let pool = match (info.param, param) {
            (Some(_), Some(pool)) => pool.parse::<Pool>()?,
            (Some(param), None) => {
                return Err(UnknownFault::ParamMissing {
                    name: info.name,
                    param,
                });
            }
            (None, Some(param)) => {
                return Err(UnknownFault::ParamUnused {
                    name: info.name,
                    param: param.to_owned(),
                });
            }
            (None, None) => return Ok(Self::ServiceAnswersWrong),
        };
        let fault = match info.name {
            "kube-proxy-dead" => Self::KubeProxyDead(pool),
            "node-label-wrong" => Self::NodeLabelWrong(pool),
            "servercore-crashes" => Self::ServercoreCrashes(pool),
            "node-service-ip-answers" => Self::NodeServiceIpAnswers(pool),
            "node-service-ip-resets" => Self::NodeServiceIpResets(pool),
            "image-missing" => Self::ImageMissing(pool),
            "node-labels-missing" => Self::NodeLabelsMissing(pool),
            "kubelet-skewed" => Self::KubeletSkewed(pool),
            "runtime-docker" => Self::RuntimeDocker(pool),
            "nothing-reserved" => Self::NothingReserved(pool),
            "untainted" => Self::Untainted(pool),
            _ => Self::NodeNotReady(pool),
        };
        match (fault, pool) {
            (
                Self::KubeProxyDead(_)
                | Self::NodeLabelsMissing(_)
                | Self::KubeletSkewed(_)
                | Self::RuntimeDocker(_)
                | Self::NothingReserved(_)
                | Self::NodeNotReady(_),
                _,
            )
            | (_, Pool::Windows(_)) => Ok(fault),
            (_, Pool::Linux) => Err(UnknownFault::NotOnLinux { name: info.name }),
        }
    }
}

/// Why a text names no fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownFault {
    /// No fault has this name.
    #[error("no fault is called `{name}`; the nearest is `{nearest}`")]
    Name {
        /// The name that was given.
        name: String,
        /// The known name that is most like it.
        nearest: &'static str,
    },
    /// The fault needs a parameter.
    #[error("the fault `{name}` needs a parameter: `{name}={param}`")]
    ParamMissing {
        /// The fault.
        name: &'static str,
        /// What its parameter is.
        param: &'static str,
    },
    /// The fault takes no parameter.
    #[error("the fault `{name}` takes no parameter, not even `{param}`")]
    ParamUnused {
        /// The fault.
        name: &'static str,
        /// The parameter that was given.
        param: String,
    },
    /// The parameter names no pool.
    #[error(transparent)]
    Pool(#[from] UnknownPool),
    /// The fault is one of Windows nodes.
    #[error("the fault `{name}` is one of Windows pools: `{name}=windows-2022`")]
    NotOnLinux {
        /// The fault.
        name: &'static str,
    },
}

fn nearest(name: &str) -> &'static str {
    CATALOGUE
        .iter()
        .map(|info| info.name)
        .min_by_key(|known| distance(known, name))
        .expect("the catalogue is not empty")
}

/// How many letters must be added, removed or changed to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The faults that hold at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSet {
    faults: BTreeSet<ProductFault>,
}

impl FaultSet {
    /// Whether a fault holds.
    pub fn has(&self, fault: ProductFault) -> bool {
        self.faults.contains(&fault)
    }

    /// The faults, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = ProductFault> {
        self.faults.iter().copied()
    }
}

impl FromIterator<ProductFault> for FaultSet {
    fn from_iter<I: IntoIterator<Item = ProductFault>>(faults: I) -> Self {
        Self {
            faults: faults.into_iter().collect(),
        }
    }
}

/// Sets and lifts faults while the simulator runs; every node sees it at once.
#[derive(Clone, Debug)]
pub struct FaultSwitch {
    faults: Arc<watch::Sender<FaultSet>>,
}

impl FaultSwitch {
    pub(crate) fn new(faults: FaultSet) -> Self {
        Self {
            faults: Arc::new(watch::Sender::new(faults)),
        }
    }

    /// Breaks something.
    pub fn set(&self, fault: ProductFault) {
        self.faults
            .send_if_modified(|faults| faults.faults.insert(fault));
    }

    /// Mends it again.
    pub fn lift(&self, fault: ProductFault) {
        self.faults
            .send_if_modified(|faults| faults.faults.remove(&fault));
    }

    /// What is broken now.
    pub fn current(&self) -> FaultSet {
        self.faults.borrow().clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<FaultSet> {
        self.faults.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Build;

    #[test]
    fn every_fault_of_the_catalogue_reads_as_it_prints() {
        for info in ProductFault::catalogue() {
            let text = match info.param {
                Some(_) => format!("{}=windows-2022", info.name),
                None => info.name.to_owned(),
            };
            let fault: ProductFault = text.parse().expect("in the catalogue");
            assert_eq!(fault.to_string(), text);
            assert_eq!(fault.parts().0, info.name);
        }
    }

    #[test]
    fn errors_say_what_to_write_instead() {
        let error = |text: &str| text.parse::<ProductFault>().expect_err(text).to_string();
        assert_eq!(
            error("kubeproxy-dead=linux"),
            "no fault is called `kubeproxy-dead`; the nearest is `kube-proxy-dead`"
        );
        assert_eq!(
            error("kube-proxy-dead"),
            "the fault `kube-proxy-dead` needs a parameter: `kube-proxy-dead=POOL`"
        );
        assert_eq!(
            error("service-answers-wrong=linux"),
            "the fault `service-answers-wrong` takes no parameter, not even `linux`"
        );
        assert_eq!(
            error("image-missing=linux"),
            "the fault `image-missing` is one of Windows pools: `image-missing=windows-2022`"
        );
        assert_eq!(
            error("untainted=linux"),
            "the fault `untainted` is one of Windows pools: `untainted=windows-2022`"
        );
        assert_eq!(
            error("nodes-not-ready=linux"),
            "no fault is called `nodes-not-ready`; the nearest is `node-not-ready`"
        );
        assert!(error("image-missing=win").starts_with("no pool is called `win`"));
    }

    #[test]
    fn a_switch_sets_and_lifts() {
        let fault = ProductFault::KubeProxyDead(Pool::Windows(Build::Ws2022));
        let switch = FaultSwitch::new(FaultSet::default());
        switch.set(fault);
        assert!(switch.current().has(fault));
        switch.lift(fault);
        assert_eq!(switch.current(), FaultSet::default());
    }
}
