//! What can be wrong between a client and its API server, and how that is written.
//!
//! A fault is written `NAME` or `NAME=PARAMETER`, as the catalogue says.

use std::fmt;

use super::catalogue::{
    AGGREGATED_DOWN, ALLOWS, ALLOWS_RESIZE, ANSWERS_403, CATALOGUE, DROPS, FaultEntry,
    HOSTILE_TEXTS, INJECTS, POLICY_REFUSES, SERVER_RESTARTS, TOKEN_EXPIRES, WEBHOOK_NO_DRY_RUN,
    WEBHOOK_REFUSES, WEBHOOK_TIMES_OUT,
};
use super::field::FieldPath;
use super::resources::Resources;
use super::trouble::Trouble;

/// One thing the front does wrong.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FrontFault {
    /// Trouble between harness and server, which says nothing about the cluster.
    Harness {
        /// What happens.
        trouble: Trouble,
        /// The share of the requests it applies to that it hits, from 0 to 1.
        share: f64,
    },
    /// Validation forgets a field of pods: what is refused for it is accepted and returned.
    AdmissionAllows {
        /// The field, as seen from a pod.
        field: FieldPath,
    },
    /// A field of pods is dropped without a word: what is refused for it is accepted, and the
    /// field is not returned.
    AdmissionDrops {
        /// The field, as seen from a pod.
        field: FieldPath,
    },
    /// A mutating webhook sets a field in pods before they are validated.
    AdmissionInjects {
        /// The field, as seen from a pod.
        field: FieldPath,
        /// What it is set to.
        value: serde_json::Value,
    },
    /// Validation forgets that a Windows pod cannot be resized.
    AdmissionAllowsResize,
    /// A `ValidatingAdmissionPolicy` refuses whatever is created or changed.
    PolicyRefuses {
        /// Of which resource.
        resource: Resources,
        /// What the policy's validation gives as its reason.
        reason: PolicyReason,
    },
    /// A validating webhook refuses whatever is created or changed.
    WebhookRefuses {
        /// Of which resource.
        resource: Resources,
        /// The code of the webhook's own status.
        code: WebhookCode,
    },
    /// A mutating webhook does not answer in time.
    WebhookTimesOut {
        /// For which resource it is called.
        resource: Resources,
    },
    /// A mutating webhook has side effects, and so no dry run gets past it.
    WebhookNoDryRun {
        /// For which resource it is called.
        resource: Resources,
    },
    /// RBAC allows nothing.
    Answers403 {
        /// On which resource.
        resource: Resources,
    },
    /// The client's token expires.
    TokenExpires {
        /// How many requests it is good for.
        after: u64,
    },
    /// The server goes away and comes back, once.
    ServerRestarts {
        /// How many requests come before.
        after: u64,
    },
    /// The server behind `metrics.k8s.io` is down.
    AggregatedDown,
    /// Texts that objects and messages may hold are made hostile.
    HostileTexts,
}

/// The reasons that a validation of a policy may give
/// (k8s.io/api 0.37.0, admissionregistration/v1, `Validation.Reason`), with their codes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PolicyReason {
    /// 422, which is also what a validation gives that states none.
    #[default]
    Invalid,
    /// 403.
    Forbidden,
    /// 401.
    Unauthorized,
    /// 413.
    RequestEntityTooLarge,
}

/// The code that a refusing webhook states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum WebhookCode {
    /// None stated, which becomes 400.
    #[default]
    BadRequest,
    /// 403, as the webhooks of controller-runtime state it.
    Forbidden,
}

impl PolicyReason {
    pub(super) const ALL: [(&'static str, Self); 4] = [
        ("Invalid", Self::Invalid),
        ("Forbidden", Self::Forbidden),
        ("Unauthorized", Self::Unauthorized),
        ("RequestEntityTooLarge", Self::RequestEntityTooLarge),
    ];

    /// The word of the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::Forbidden => "Forbidden",
            Self::Unauthorized => "Unauthorized",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
        }
    }
}

impl WebhookCode {
    pub(super) const ALL: [(&'static str, Self); 2] =
        [("400", Self::BadRequest), ("403", Self::Forbidden)];

    fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "400",
            Self::Forbidden => "403",
        }
    }
}

impl FrontFault {
    /// Every fault there is.
    pub fn catalogue() -> &'static [FaultEntry] {
        CATALOGUE
    }

    /// Whether answers to lists have to be remembered for it.
    pub(super) fn remembers_lists(&self) -> bool {
        let Self::Harness { trouble, .. } = self else {
            return false;
        };
        *trouble == Trouble::StaleList
    }

    /// How it is written, without its parameter.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Harness { trouble, .. } => trouble.name(),
            Self::AdmissionAllows { .. } => ALLOWS,
            Self::AdmissionDrops { .. } => DROPS,
            Self::AdmissionInjects { .. } => INJECTS,
            Self::AdmissionAllowsResize => ALLOWS_RESIZE,
            Self::PolicyRefuses { .. } => POLICY_REFUSES,
            Self::WebhookRefuses { .. } => WEBHOOK_REFUSES,
            Self::WebhookTimesOut { .. } => WEBHOOK_TIMES_OUT,
            Self::WebhookNoDryRun { .. } => WEBHOOK_NO_DRY_RUN,
            Self::Answers403 { .. } => ANSWERS_403,
            Self::TokenExpires { .. } => TOKEN_EXPIRES,
            Self::ServerRestarts { .. } => SERVER_RESTARTS,
            Self::AggregatedDown => AGGREGATED_DOWN,
            Self::HostileTexts => HOSTILE_TEXTS,
        }
    }
}

impl fmt::Display for FrontFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())?;
        match self {
            Self::Harness { share, .. } if *share >= 1.0 => Ok(()),
            Self::Harness { share, .. } => write!(out, "={share}"),
            Self::AdmissionAllows { field } | Self::AdmissionDrops { field } => {
                write!(out, "={field}")
            }
            Self::AdmissionInjects { field, value } => write!(out, "={field}:{value}"),
            Self::PolicyRefuses { resource, reason } => match reason {
                PolicyReason::Invalid => write!(out, "={resource}"),
                reason => write!(out, "={resource}:{}", reason.name()),
            },
            Self::WebhookRefuses { resource, code } => match code {
                WebhookCode::BadRequest => write!(out, "={resource}"),
                code @ WebhookCode::Forbidden => write!(out, "={resource}:{}", code.name()),
            },
            Self::WebhookTimesOut { resource } | Self::WebhookNoDryRun { resource }
                if *resource == Resources::default() =>
            {
                Ok(())
            }
            Self::WebhookTimesOut { resource }
            | Self::WebhookNoDryRun { resource }
            | Self::Answers403 { resource } => write!(out, "={resource}"),
            Self::TokenExpires { after } | Self::ServerRestarts { after } => {
                write!(out, "={after}")
            }
            Self::AdmissionAllowsResize | Self::AggregatedDown | Self::HostileTexts => Ok(()),
        }
    }
}
