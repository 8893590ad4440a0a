//! The catalogue of causes, `causes.yaml`: what failed checks may have in common, and the part of the cluster that is
//! then at fault.

use std::sync::LazyLock;

use serde::Deserialize;
use strum::{IntoStaticStr, VariantArray};

use super::read::read;
use crate::claims::Pattern;

/// A part of a cluster that can be at fault.
#[derive(Clone, Copy, Debug, Deserialize, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Component {
    Admission,
    ApiServer,
    Application,
    Authorization,
    Cni,
    ContainerRuntime,
    ControllerManager,
    Dns,
    Egress,
    HostFirewall,
    ImageRegistry,
    KubeProxy,
    Kubelet,
    LoadBalancer,
    NodeLabels,
    NodeOs,
    Scheduler,
    ServiceNetwork,
}

/// The side of a check that a cause is on.
#[derive(Clone, Copy, Debug, Default, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Side {
    /// Where it observes from, or what it is about.
    #[default]
    From,
    /// The pods or nodes that it observes.
    To,
    /// The way between both: a pool or a node where all ways from and to it fail.
    Way,
    /// The same, for what carries everything: from a node that reaches pods on others all the same, it is the way alone.
    Reach,
    /// The pool that it is about, or whose fixture failed.
    About,
    /// The nodes or the operating system named by what was seen, or else as `about`.
    Named,
    /// The nodes whose pods observe it, where no check observes from the other nodes of the pool.
    Observer,
    /// Nothing less than the cluster.
    Cluster,
}

/// One cause that a run may have met.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) component: Component,
    /// What does not work, as the start of a sentence that the place ends.
    pub(super) says: String,
    /// The part that is probably at fault, for people.
    pub(super) likely: String,
    pub(super) side: Side,
    /// The checks that show it, if they fail or cannot be told; each as a pattern of ids.
    pub(super) shown_by: Vec<Pattern>,
    /// Words of which what was seen, or the observation error, has one, in lower case. Without them any check that
    /// observed something will do.
    pub(super) words: Vec<String>,
    /// Words of which a line of the evidence about these checks may have one, in lower case, the most telling first.
    /// They decide nothing: the line is shown from its word on.
    pub(super) evidence: Vec<String>,
    /// Whether only checks from Windows show it.
    pub(super) from_windows: bool,
    /// Checks that also fail because of it, and do not show it.
    pub(super) explains: Vec<Pattern>,
    /// The same, if they observe from there.
    pub(super) explains_from: Vec<Pattern>,
    /// Of checks that fail, those that it explains, where these are not all of them.
    pub(super) explains_failed: Option<Vec<Pattern>>,
    /// Whether it is what is left where nothing else fits: it names the claims, and each has a place of its own.
    pub(super) guess: bool,
    /// Checks that contradict it if they fail in the same place.
    pub(super) unless: Vec<Pattern>,
    /// What holds beside it, for each pattern of checks of which some pass in the same place, and none fails.
    pub(super) beside: Vec<Beside>,
    /// The command to look with; `{node}` is a node of the place.
    pub(super) look: String,
    /// Where it is documented or was reported.
    pub(super) link: Option<String>,
}

/// Something that works.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) checks: Pattern,
    pub(super) says: String,
}

impl Rule {
    /// Whether it shows by every check by which another shows, so that nothing is left for one behind it.
    pub(super) fn leaves_nothing_to(&self, other: &Self) -> bool {
        let words = match other.words.is_empty() {
            true => self.words.is_empty(),
            false => {
                let has = |word: &String| self.words.iter().any(|own| word.contains(own));
                other.words.iter().all(has)
            }
        };
        words
            && (other.from_windows || !self.from_windows)
            && other.shown_by.iter().all(|one| self.shown_by.contains(one))
            && self.unless.iter().all(|one| other.unless.contains(one))
    }
}

/// The catalogue's file, and its text.
pub(super) const FILE: (&str, &str) = (
    "core/src/report/causes/causes.yaml",
    include_str!("causes.yaml"),
);

/// All causes; the first that fits a check counts.
pub(super) static CATALOGUE: LazyLock<Vec<Rule>> =
    LazyLock::new(|| read(FILE.0, FILE.1).expect("a catalogue, which a test reads"));
