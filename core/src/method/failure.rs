//! How a connection or a start fails, what keeps a pod off nodes, and how a known limitation fails.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use strum::{IntoStaticStr, VariantArray};

use super::container::ending::Ending;

/// How a connection or its answer failed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum FailureClass {
    /// The name did not resolve.
    Dns,
    Refused,
    /// Nothing answered in time.
    Timeout,
    NoRoute,
    /// No connection, and the tool does not say whether it was refused or had no route.
    NotConnected,
    /// Connected, but no answer came in time.
    NoAnswer,
    Reset,
    /// An answer began and broke off.
    BrokenAnswer,
    /// TLS could not be established.
    Tls,
    /// An HTTP status other than 200.
    HttpStatus,
    /// Something else answered.
    WrongAnswer,
}

crate::text::words!(FailureClass);

/// How a container fails to start, as a known limitation predicts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum StartFailure {
    /// The image has no variant for the node's operating system and build.
    WrongPlatform,
    /// The image was pulled, but the host does not run its build.
    WrongBuild,
}

crate::text::words!(StartFailure);

impl StartFailure {
    /// The cause in words.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            Self::WrongPlatform => "its image has no variant for this node",
            Self::WrongBuild => "its image is of a build that this node does not run",
        }
    }

    /// Reads the failure from the words of a runtime or kubelet: of containerd (`core/images/image.go`; older
    /// versions say `no matching manifest`), of CRI-O (cri-o#6457) and of hcsshim
    /// (`ErrVmcomputeOperationInvalidState…`, 0xc0370101).
    pub fn from_words(words: &str) -> Option<Self> {
        const PLATFORM: [&str; 4] = [
            "no match for platform in manifest",
            "no matching manifest for",
            "no image found in manifest list for",
            "no image found in image index for",
        ];
        const BUILD: [&str; 3] = [
            "The container operating system does not match the host operating system",
            "The operating system of the container does not match the operating system of the host",
            "0xc0370101",
        ];
        let any = |known: &[&str]| known.iter().any(|known| words.contains(known));
        if any(&BUILD) {
            Some(Self::WrongBuild)
        } else if any(&PLATFORM) {
            Some(Self::WrongPlatform)
        } else {
            None
        }
    }
}

/// What keeps a pod off nodes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Hindrance {
    /// A taint that the pod does not tolerate.
    UntoleratedTaint,
    /// The pod's selector or affinity.
    Selector,
    /// Too little CPU left.
    InsufficientCpu,
    /// Too little memory left.
    InsufficientMemory,
    /// No huge page of 2 MiB left.
    InsufficientHugePages,
    /// Anything else.
    Other,
}

crate::text::words!(Hindrance);

impl Hindrance {
    /// Those that a case may expect.
    pub const EXPECTED: [Self; 4] = [
        Self::UntoleratedTaint,
        Self::InsufficientCpu,
        Self::InsufficientMemory,
        Self::InsufficientHugePages,
    ];
}

/// How a known limitation fails.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signature {
    /// The connection fails in one of these ways.
    Failure(BTreeSet<FailureClass>),
    /// A container does not start in one of these ways.
    NotStarted(BTreeSet<StartFailure>),
    /// The scheduler finds no node for a pod, for this reason.
    Pending(Hindrance),
    /// A program ends so, as if the field that is tested were not there.
    Ends(Ending),
    /// An object has these fields, as if the field that is tested were not there.
    Has(Json),
    /// The last step of a scenario does not come.
    LacksStep(String),
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(classes) => write!(f, "failure by {}", one_of(classes)),
            Self::NotStarted(classes) => {
                write!(f, "a container that does not start: {}", one_of(classes))
            }
            Self::Pending(by) => write!(f, "a pod that stays Pending: {}", by.as_str()),
            Self::Has(fields) => write!(f, "an object with {fields}"),
            Self::Ends(ending) => write!(f, "a program that ends with {ending}"),
            Self::LacksStep(step) => write!(f, "a scenario without its last step: {step}"),
        }
    }
}

/// The words of classes, one of which is meant.
pub(super) fn one_of<T: Copy + Into<&'static str>>(classes: &BTreeSet<T>) -> String {
    let words: Vec<&str> = classes.iter().map(|&class| class.into()).collect();
    words.join(" or ")
}
