//! What sort of statement a claim is, and where it was made.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// What sort of statement a claim is; it decides how a comparison becomes a verdict.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ClaimType {
    /// Works on Windows.
    Capability,
    /// The API server must refuse it, with the right reason and field.
    Rejection,
    /// Known not to work on Windows.
    Limitation,
    /// The cluster must be so.
    Requirement,
    /// Recommended.
    Advice,
    /// Recorded, judged by a person.
    Informational,
}

crate::text::words!(ClaimType);

/// A document that makes a claim.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Document {
    /// Windows containers in Kubernetes, 1.24.
    #[strum(serialize = "concept-124")]
    Concept124,
    /// The same page and the user guide, 1.27.
    #[strum(serialize = "concept-127")]
    Concept127,
    /// Intro to Windows support in Kubernetes, 1.14.
    #[strum(serialize = "intro-114")]
    Intro114,
    /// Guide for running Windows containers in Kubernetes.
    Guide,
    /// Hybrid cluster guide.
    Hybrid,
    /// Current documentation, upstream tests and reports: a claim has the address itself.
    Docs,
}

crate::text::words!(Document);

impl Document {
    pub fn title(self) -> &'static str {
        match self {
            Self::Concept124 => "Windows containers in Kubernetes (concept page, 1.24)",
            Self::Concept127 => "Windows containers in Kubernetes (concept page and guide, 1.27)",
            Self::Intro114 => "Intro to Windows support in Kubernetes (1.14)",
            Self::Guide => "Guide for running Windows containers in Kubernetes",
            Self::Hybrid => "Hybrid cluster guide",
            Self::Docs => "current documentation, upstream tests and reports",
        }
    }

    /// Where it is, if it is one public page.
    pub fn link(self) -> Option<&'static str> {
        Some(match self {
            Self::Concept124 => {
                "https://github.com/kubernetes/website/blob/release-1.24/content/en/docs/concepts/windows/intro.md"
            }
            Self::Concept127 => {
                "https://github.com/kubernetes/website/blob/release-1.27/content/en/docs/concepts/windows/intro.md"
            }
            Self::Intro114 => {
                "https://github.com/kubernetes/website/blob/release-1.14/content/en/docs/setup/windows/intro-windows-in-kubernetes.md"
            }
            Self::Guide => "https://kubernetes.io/docs/concepts/windows/user-guide/",
            Self::Docs | Self::Hybrid => return None,
        })
    }
}
