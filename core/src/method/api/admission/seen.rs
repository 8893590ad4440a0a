//! The observation of a dry run.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::AdmissionQuery;
use super::kept::{Alterations, holds, is_empty};
use super::object::{at_path, related, same_place};
use crate::method::error::{ErrorKind, Result};
use crate::text::printable;

/// One of `details.causes[]` of a Status.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: String,
    pub field: String,
    pub message: String,
    /// What the cause is about.
    pub about: About,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    Sent,
    /// A field that validation saw otherwise than it was sent.
    Altered,
    /// A field that was not sent and that validation forbids: something on the way sets it.
    Added,
    Else,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionObservation {
    Refused {
        /// HTTP status.
        code: u16,
        /// The field under test; `None` where it was not sent.
        field: Option<String>,
        causes: Vec<Cause>,
        message: String,
    },
    /// Accepted, the field as sent.
    Accepted(Alterations),
    /// Accepted; the field was sent empty and did not come back: the server may have kept it or dropped it.
    EmptyLeftOut {
        sent: Json,
        /// What else came back otherwise than sent.
        altered: Alterations,
    },
    /// Accepted, but the field did not come back.
    FieldDropped,
    /// The server has no such field.
    UnknownField { message: String },
    /// Refused, but not by validation.
    Denied {
        /// HTTP status.
        code: u16,
        /// Who refused, as far as the message names it.
        by: String,
        message: String,
    },
}

impl fmt::Display for AdmissionObservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted(_) => f.write_str("accepted"),
            Self::EmptyLeftOut { .. } => f.write_str("accepted, the empty field left out"),
            Self::FieldDropped => f.write_str("accepted with the field dropped"),
            Self::UnknownField { message } => write!(f, "unknown field: {}", printable(message)),
            Self::Denied { code, by, message } => {
                let (by, message) = (printable(by), printable(message));
                write!(
                    f,
                    "refused with {code} by {by}, not by validation: {message}"
                )
            }
            Self::Refused {
                code,
                causes,
                message,
                ..
            } => {
                write!(f, "refused with {code}: {}", printable(message))?;
                for (about, words) in [
                    (
                        About::Added,
                        "was not sent: something on the way to validation sets it",
                    ),
                    (
                        About::Altered,
                        "was sent otherwise: something on the way to validation alters it",
                    ),
                ] {
                    let fields = causes.iter().filter(|cause| cause.about == about);
                    let fields: Vec<_> = fields.map(|cause| cause.field.as_str()).collect();
                    if !fields.is_empty() {
                        write!(f, "; {} {words}", printable(&fields.join(", ")))?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Observes the field in an accepted object; an error where something changed the pod that was sent, or the
/// value of the field.
pub(super) fn accepted(query: &AdmissionQuery, object: &Json) -> Result<AdmissionObservation> {
    let sent = query.body().unwrap_or_default();
    let otherwise = |field: &str, kept: Option<&Json>| {
        let kept = kept.map_or_else(|| "nothing".to_owned(), |kept| printable(&kept.to_string()));
        Err(ErrorKind::Interfered.error(format!(
            "accepted, but {field} came back as {kept}: something on the way to validation \
                 alters it"
        )))
    };
    let os = query.workload.path("spec.os.name", query.container);
    let kept = at_path(object, object, &os);
    if query.os.is_some() && kept.and_then(Json::as_str) != query.os.as_deref() {
        return otherwise("spec.os.name", kept);
    }
    let altered = Alterations::between(query, &sent, object);
    let path = query.path();
    // What is sent beside the field is under test, too
    let is_bare = query.with.as_object().is_none_or(serde_json::Map::is_empty);
    let lost = altered.deciding(None);
    let other = lost
        .iter()
        .find(|lost| query.value.is_none() || !related(lost, &path));
    if let (Some(other), false) = (other, is_bare) {
        return otherwise(other, None);
    }
    let Some(value) = &query.value else {
        return Ok(AdmissionObservation::Accepted(altered));
    };
    match at_path(object, &sent, &path) {
        Some(kept) if holds(kept, value) => Ok(AdmissionObservation::Accepted(altered)),
        Some(kept) if !kept.is_null() => otherwise(&path, Some(kept)),
        // Go leaves out empty values
        _ if is_empty(value) => Ok(AdmissionObservation::EmptyLeftOut {
            sent: value.clone(),
            altered,
        }),
        _ => Ok(AdmissionObservation::FieldDropped),
    }
}

pub(super) fn refused(
    query: &AdmissionQuery,
    status: &Json,
    message: String,
) -> AdmissionObservation {
    let sent = query.body().unwrap_or_default();
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let causes = causes.map(|cause| {
        let [reason, field, message] = ["reason", "field", "message"].map(|key| text(&cause[key]));
        let about = about(query, &sent, [&reason, &field, &message]);
        Cause {
            reason,
            field,
            message,
            about,
        }
    });
    AdmissionObservation::Refused {
        code: 422,
        field: query.value.as_ref().map(|_| query.path()),
        causes: causes.collect(),
        message,
    }
}

/// What a cause is about.
///
/// The field under test counts as ours at any place in its list of containers: a container that is put before
/// ours moves it, and a refusal does not show the object as validated. The control without the field makes
/// that sound: where an added container has the field itself, the control is refused for it, too, and nothing
/// is proven; where the control is accepted, only our container has the field.
fn about(query: &AdmissionQuery, sent: &Json, [reason, field, message]: [&str; 3]) -> About {
    let of_another = ["linux", "windows"]
        .into_iter()
        .any(|os| query.os.as_deref() != Some(os) && message.contains(&format!("for a {os} pod")));
    let there = at_path(sent, sent, field);
    // Causes of stop signals, which require the system of any pod
    let without_os = query.os.is_some() && message.contains("with empty `spec.os.name`");
    let lost = reason == "FieldValueRequired" && there.is_some_and(|value| !is_empty(value));
    let ours = query.value.is_some() && same_place(field, &query.path());
    // The server's name for the whole object
    let whole = field == "[]";
    if of_another || without_os || lost {
        About::Altered
    } else if there.is_some() || ours || whole {
        About::Sent
    } else if reason == "FieldValueForbidden" && field.contains("spec") {
        About::Added
    } else {
        About::Else
    }
}
