//! The `Status` with which a server refuses a request.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::base::fields::Fields;
use crate::server::kinds::Kind;
use crate::world::Key;

/// One error in an object (apimachinery, `field.Error`).
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[error("{field}: {message}")]
pub(crate) struct Cause {
    reason: &'static str,
    field: String,
    message: String,
}

impl Cause {
    fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self {
            reason,
            field: field.to_owned(),
            message,
        }
    }

    /// A required field is missing; an empty `why` adds nothing.
    pub(crate) fn required(field: &str, why: &str) -> Self {
        let message = match why {
            "" => "Required value".to_owned(),
            why => format!("Required value: {why}"),
        };
        Self::new("FieldValueRequired", field, message)
    }

    pub(crate) fn invalid(field: &str, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self::new("FieldValueInvalid", field, message)
    }

    pub(crate) fn forbidden(field: &str, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    pub(crate) fn unsupported(field: &str, value: &str, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|one| format!("{one:?}")).collect();
        let known = known.join(", ");
        let message = format!("Unsupported value: {value:?}: supported values: {known}");
        Self::new("FieldValueNotSupported", field, message)
    }
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: &'static str,
    pub(crate) message: String,
    details: Value,
}

impl Refusal {
    pub(crate) fn new(code: u16, message: impl Into<String>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            413 => "RequestEntityTooLarge",
            415 => "UnsupportedMediaType",
            422 => "Invalid",
            501 => "NotImplemented",
            _ => "InternalError",
        };
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
        }
    }

    fn because(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }

    /// A refusal about an object: `pods "x" …`.
    fn about_object(code: u16, kind: &Kind, name: &str, words: &str) -> Self {
        let message = format!("{} \"{name}\" {words}", kind.resource());
        Self::new(code, message).with(kind, name)
    }

    fn with(mut self, kind: &Kind, name: &str) -> Self {
        self.details = details(kind, name);
        self
    }

    pub(crate) fn bad(message: impl fmt::Display) -> Self {
        Self::new(400, message.to_string())
    }

    /// The body cannot be read as the kind.
    pub(crate) fn undecodable(kind: &Kind, why: &dyn fmt::Display) -> Self {
        let Kind { name, version, .. } = kind;
        Self::bad(format_args!(
            "{name} in version \"{version}\" cannot be handled as a {name}: {why}"
        ))
    }

    /// An applied object has a field that the kind lacks (structured-merge-diff).
    pub(crate) fn undeclared(kind: &Kind, meta: &Value, field: &str) -> Self {
        let Kind { group, version, .. } = kind;
        let meta = [&meta["namespace"], &meta["name"]].map(Fields::text);
        let message = format!(
            "failed to create typed patch object ({}; {group}/{version}, Kind={}): .{field}: field not \
             declared in schema",
            meta.join("/"),
            kind.name,
        );
        Self::new(500, message).because("")
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        Self::about_object(403, kind, name, &format!("is forbidden: {why}"))
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::about_object(404, kind, name, "not found")
    }

    /// The metrics server knows no use of a pod.
    pub(crate) fn no_metrics(pod: &Key) -> Self {
        let name = pod.to_string();
        let message = format!("podmetrics.metrics.k8s.io \"{name}\" not found");
        Self {
            details: json!({"name": name, "group": "metrics.k8s.io", "kind": "podmetrics"}),
            ..Self::new(404, message)
        }
    }

    /// No server has a resource at this path.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(404, "the server could not find the requested resource")
    }

    pub(crate) fn exists(kind: &Kind, name: &str) -> Self {
        Self::about_object(409, kind, name, "already exists").because("AlreadyExists")
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let what = kind.resource();
        let message = format!("Operation cannot be fulfilled on {what} \"{name}\": {why}");
        Self::new(409, message).with(kind, name)
    }

    /// The object's UID or version differs from the precondition. A deletion says what may have
    /// `happened`, and names the kind, not its plural.
    pub(crate) fn precondition(
        kind: &Kind,
        name: &str,
        what: &str,
        (given, is): (&str, &str),
        happened: Option<&str>,
    ) -> Self {
        let Some(happened) = happened else {
            let why = format!(
                "Precondition failed: {what} in precondition: {given}, {what} in object meta: {is}"
            );
            return Self::conflict(kind, name, &why);
        };
        let of = of_group(kind.name, kind.group);
        let message = format!(
            "Operation cannot be fulfilled on {of} \"{name}\": the {what} in the precondition ({given}) does \
             not match the {what} in record ({is}). The object might have been {happened}"
        );
        let mut refusal = Self::new(409, message).with(kind, name);
        refusal.details["kind"] = json!(kind.name);
        refusal
    }

    pub(crate) fn media_type(kind: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, and patches as JSON, merge, strategic merge and apply in JSON; not {kind:?}"
        );
        Self::new(415, message)
    }

    /// The object is invalid.
    pub(crate) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_of(kind.group, kind.name, name, causes)
    }

    pub(crate) fn invalid_of(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let of = of_group(kind, group);
        let errors = match &*causes.iter().map(ToString::to_string).collect::<Vec<_>>() {
            [one] => one.clone(),
            errors => format!("[{}]", errors.join(", ")),
        };
        let message = format!("{of} \"{name}\" is invalid: {errors}");
        let mut refusal = Self::new(422, message);
        refusal.details = json!({"causes": causes});
        for (field, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                refusal.details[field] = json!(value);
            }
        }
        refusal
    }

    /// A JSON patch does not apply: a real server never says more about the cause (apimachinery,
    /// `NewGenericServerResponse`).
    pub(crate) fn inapplicable(error: impl fmt::Display) -> Self {
        tracing::debug!(%error, "a patch does not apply");
        let message = "the server rejected our request due to an error in our request";
        let mut refusal = Self::new(422, message);
        refusal.details = json!({});
        refusal
    }

    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        Self::new(500, message)
    }

    /// A real server serves the request and this one does not.
    pub(crate) fn unserved(what: impl fmt::Display) -> Self {
        let message = format!("the embedded API server of the simulation does not serve {what}");
        Self::new(501, message)
    }

    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

/// The details of a status about an object.
pub(crate) fn details(kind: &Kind, name: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind.plural});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    details
}

/// Such as `pods` or `deployments.apps`.
pub(crate) fn of_group(what: &str, group: &str) -> String {
    match group {
        "" => what.to_owned(),
        group => format!("{what}.{group}"),
    }
}
