//! The faults between a client and its API server, and their textual form: `NAME` or `NAME=PARAMETER`.

use std::str::FromStr;

use strum::VariantNames;

use crate::base::field_path::{FieldError, FieldPath};
use crate::interference::kinds::trouble::Trouble;

/// A fault on the way to a server, written `NAME` or `NAME=PARAMETER`.
#[derive(Debug, Clone, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Fault {
    /// Trouble between harness and server, which says nothing about the cluster; and the share, from 0 to 1,
    /// of the requests that it hits among those that it applies to.
    Harness(Trouble, f64),
    /// Validation forgets a field of pods: a pod refused for it is accepted, and returned with the field.
    AdmissionAllows(FieldPath),
    /// A field of pods is silently dropped: a pod refused for it is accepted, and returned without the field.
    AdmissionDrops(FieldPath),
    /// A mutating webhook sets a field of pods to a value before validation.
    AdmissionInjects(FieldPath, serde_json::Value),
    /// Validation forgets that Windows pods cannot be resized.
    AdmissionAllowsResize,
    /// No quota keeps a pod out.
    QuotaIgnored,
    /// The webhook of gMSA lets everything through.
    GmsaUnchecked,
    /// A `ValidatingAdmissionPolicy` refuses every creation and change of a resource; the flag tells whether
    /// its validation gives the reason `Forbidden`, which becomes 403, or none, which becomes 422 and
    /// `Invalid` (k8s.io/api 0.37.0, admissionregistration/v1, `Validation.Reason`).
    #[strum(serialize = "admission-refuses")]
    PolicyRefuses(Resources, bool),
    /// A validating webhook refuses every creation and change of a resource; the flag tells whether it sends
    /// 403, as those of controller-runtime do, or no code, which becomes 400.
    WebhookRefuses(Resources, bool),
    /// A mutating webhook for a resource does not answer in time.
    WebhookTimesOut(Resources),
    /// A mutating webhook for a resource has side effects, so that the server refuses dry runs.
    WebhookNoDryRun(Resources),
    /// RBAC allows no access to a resource.
    #[strum(serialize = "answers-403")]
    Answers403(Resources),
    /// The client's token expires after this many requests.
    TokenExpires(u64),
    /// The server restarts once, after this many requests.
    ServerRestarts(u64),
    /// The server of `metrics.k8s.io` is down.
    AggregatedDown,
    /// Objects and messages contain hostile texts.
    HostileTexts,
}

/// The resource of a fault: `*`, a resource, a subresource such as `pods/exec`, or the first segment of a
/// path that is no resource, such as `/metrics`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resources(String);

impl Resources {
    /// Whether it covers a resource, written `pods` or `pods/exec`.
    pub(crate) fn hold(&self, resource: &str) -> bool {
        match self.0.as_str() {
            "*" => !resource.starts_with('/'),
            only => only == resource,
        }
    }
}

/// Why a text is no fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// No fault has this name.
    #[error("unknown fault `{0}`")]
    Unknown(String),
    /// The parameter is missing, superfluous or malformed.
    #[error("`{0}` cannot be `{1}`")]
    Parameter(String, String),
    /// The field of an admission fault is malformed.
    #[error(transparent)]
    Field(#[from] FieldError),
}

impl Fault {
    /// The names of the faults that are plain trouble.
    pub fn troubles() -> &'static [&'static str] {
        Trouble::VARIANTS
    }

    /// The names of all other faults.
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
            "admission-allows-resize"
            | "aggregated-down"
            | "gmsa-unchecked"
            | "hostile-texts"
            | "quota-ignored"
                if parameter.is_some() =>
            {
                return Err(wrong());
            }
            "admission-allows-resize" => Self::AdmissionAllowsResize,
            "quota-ignored" => Self::QuotaIgnored,
            "gmsa-unchecked" => Self::GmsaUnchecked,
            "aggregated-down" => Self::AggregatedDown,
            "hostile-texts" => Self::HostileTexts,
            unknown => return Err(FaultError::Unknown(unknown.to_owned())),
        })
    }
}
