//! What can be wrong between a client and its API server, and how that is written: `NAME` or
//! `NAME=PARAMETER`.

use std::str::FromStr;

use strum::VariantNames;

use super::field::{FieldError, FieldPath};
use crate::interference::kinds::trouble::Trouble;

/// One thing that is wrong on the way to a server, written `NAME` or `NAME=PARAMETER`.
#[derive(Debug, Clone, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Fault {
    /// Trouble between harness and server, which says nothing about the cluster; and the share of the
    /// requests it applies to that it hits, from 0 to 1.
    Harness(Trouble, f64),
    /// Validation forgets a field of pods: what is refused for it is accepted and returned.
    AdmissionAllows(FieldPath),
    /// A field of pods is dropped without a word: what is refused for it is accepted, and the
    /// field is not returned.
    AdmissionDrops(FieldPath),
    /// A mutating webhook sets a field in pods to a value before they are validated.
    AdmissionInjects(FieldPath, serde_json::Value),
    /// Validation forgets that a Windows pod cannot be resized.
    AdmissionAllowsResize,
    /// A `ValidatingAdmissionPolicy` refuses whatever is created or changed of a resource; and whether its
    /// validation gives `Forbidden` as its reason, which makes 403, or none, which makes 422 and `Invalid`
    /// (k8s.io/api 0.37.0, admissionregistration/v1, `Validation.Reason`).
    #[strum(serialize = "admission-refuses")]
    PolicyRefuses(Resources, bool),
    /// A validating webhook refuses whatever is created or changed of a resource; and whether it states
    /// 403, as those of controller-runtime do, or no code, which becomes 400.
    WebhookRefuses(Resources, bool),
    /// A mutating webhook that is called for a resource does not answer in time.
    WebhookTimesOut(Resources),
    /// A mutating webhook that is called for a resource has side effects, and so no dry run gets past it.
    WebhookNoDryRun(Resources),
    /// RBAC allows nothing on a resource.
    #[strum(serialize = "answers-403")]
    Answers403(Resources),
    /// The client's token expires after so many requests.
    TokenExpires(u64),
    /// The server goes away after so many requests and comes back, once.
    ServerRestarts(u64),
    /// The server behind `metrics.k8s.io` is down.
    AggregatedDown,
    /// Texts that objects and messages may hold are made hostile.
    HostileTexts,
}

/// Which resource a fault concerns: `*`, a resource, one of its subresources such as `pods/exec`, or the
/// first segment of a path that is no resource, such as `/metrics`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resources(String);

impl Resources {
    /// Whether a resource, written `pods` or `pods/exec`, is meant.
    pub(crate) fn hold(&self, resource: &str) -> bool {
        match self.0.as_str() {
            "*" => !resource.starts_with('/'),
            only => only == resource,
        }
    }
}

/// Why a fault cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// There is no such fault.
    #[error("unknown fault `{0}`")]
    Unknown(String),
    /// What stands behind its name is missing, is too much, or cannot be read.
    #[error("`{0}` cannot be `{1}`")]
    Parameter(String, String),
    /// The field of an admission fault cannot be read.
    #[error(transparent)]
    Field(#[from] FieldError),
}

impl Fault {
    /// The names of those that are trouble alone.
    pub fn troubles() -> &'static [&'static str] {
        Trouble::VARIANTS
    }

    /// The names of all others.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS[1..].iter().copied()
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, parameter) = match text.split_once('=') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let wrong = || {
            let parameter = parameter.unwrap_or_default();
            FaultError::Parameter(name.to_owned(), parameter.to_owned())
        };
        let needed = || parameter.filter(|text| !text.is_empty()).ok_or_else(wrong);
        let number = || needed()?.parse().map_err(|_| wrong());
        let resource_or_pods = || Resources(parameter.unwrap_or("pods").to_owned());
        // `RESOURCE` or `RESOURCE:WORD`
        let resource_and = |word: &str| {
            let (resource, said) = match needed()?.split_once(':') {
                Some((_, said)) if said != word => return Err(wrong()),
                Some((resource, _)) => (resource, true),
                None => (needed()?, false),
            };
            Ok((Resources(resource.to_owned()), said))
        };
        if let Ok(trouble) = name.parse() {
            let share = parameter.map_or(Ok(1.0), |text| text.parse().map_err(|_| wrong()))?;
            let is_share = (0.0..=1.0).contains(&share);
            let fault = Self::Harness(trouble, share);
            return is_share.then_some(fault).ok_or_else(wrong);
        }
        Ok(match name {
            "admission-allows" => Self::AdmissionAllows(needed()?.parse()?),
            "admission-drops" => Self::AdmissionDrops(needed()?.parse()?),
            "admission-injects" => {
                let (field, value) = needed()?.split_once(':').ok_or_else(wrong)?;
                let value = serde_json::from_str(value).map_err(|_| wrong())?;
                Self::AdmissionInjects(field.parse()?, value)
            }
            "admission-refuses" => {
                let (resource, forbidden) = resource_and("Forbidden")?;
                Self::PolicyRefuses(resource, forbidden)
            }
            "webhook-refuses" => {
                let (resource, forbidden) = resource_and("403")?;
                Self::WebhookRefuses(resource, forbidden)
            }
            "webhook-times-out" => Self::WebhookTimesOut(resource_or_pods()),
            "webhook-no-dry-run" => Self::WebhookNoDryRun(resource_or_pods()),
            "answers-403" => Self::Answers403(Resources(needed()?.to_owned())),
            "token-expires" => Self::TokenExpires(number()?),
            "server-restarts" => Self::ServerRestarts(number()?),
            "admission-allows-resize" | "aggregated-down" | "hostile-texts"
                if parameter.is_some() =>
            {
                return Err(wrong());
            }
            "admission-allows-resize" => Self::AdmissionAllowsResize,
            "aggregated-down" => Self::AggregatedDown,
            "hostile-texts" => Self::HostileTexts,
            unknown => return Err(FaultError::Unknown(unknown.to_owned())),
        })
    }
}
