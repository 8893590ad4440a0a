//! Applies one object server-side, and distinguishes refusals from errors.

use serde_json::Value as Json;
use winconform_core::method::{ApiReply, ApiRequest, ObservationError, Verb};
use winconform_core::text::printable;

use super::kinds::{Kind, Scope};
use super::status::items;
use crate::transport::Api;

/// The most fields that are named behind the message of a refusal.
const CAUSES: usize = 3;

/// Why an object was not applied.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApplyError {
    /// It is not of a kind in the table, or has no name.
    #[error("cannot apply an object of {what}")]
    Unsuitable {
        /// What the object is.
        what: String,
    },
    /// The server refused it: a quota, `PodSecurity`, a webhook, RBAC.
    #[error("`{object}` was refused with {status}: {message}")]
    Refused {
        /// Kind, namespace and name.
        object: String,
        status: u16,
        /// The server's message, bounded.
        message: String,
    },
    /// The server gave no usable answer.
    #[error("`{object}` could not be applied")]
    ObservationError {
        /// Kind, namespace and name.
        object: String,
        source: ObservationError,
    },
}

/// Applies one object and returns its new state.
pub async fn apply(api: &Api, object: &Json) -> Result<Json, ApplyError> {
    let (Some(kind), Some(name)) = (Kind::find(object), object["metadata"]["name"].as_str()) else {
        let what = format!("{} {}", object["apiVersion"], object["kind"]);
        return Err(ApplyError::Unsuitable {
            what: printable(&what),
        });
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let shown = match (kind.scope, namespace) {
        (Scope::Cluster, _) => format!("{} {}", kind.kind, printable(name)),
        (Scope::Namespaced, Some(namespace)) => {
            format!("{} {}/{}", kind.kind, printable(namespace), printable(name))
        }
        (Scope::Namespaced, None) => {
            let what = format!("{} {} without a namespace", kind.kind, printable(name));
            return Err(ApplyError::Unsuitable { what });
        }
    };
    let path = format!(
        "{}?fieldValidation=Strict",
        kind.object_path(namespace, name)
    );
    let request = ApiRequest {
        verb: Verb::Apply,
        path,
        body: Some(object.clone()),
    };
    match api.send(&request).await {
        Ok(reply) if matches!(reply.status, 200..=201) && reply.body["kind"] == kind.kind => {
            Ok(reply.body)
        }
        Ok(reply) => Err(ApplyError::Refused {
            object: shown,
            status: reply.status,
            message: refusal(&reply),
        }),
        Err(source) => Err(ApplyError::ObservationError {
            object: shown,
            source,
        }),
    }
}

/// The server's message, and the fields in `details.causes` that it does not show: a message is bounded.
fn refusal(reply: &ApiReply) -> String {
    let mut said = reply.message();
    let causes = items(&reply.body["details"]["causes"]);
    let fields = causes.filter_map(|cause| {
        let field = printable(cause["field"].as_str()?);
        let why = printable(cause["message"].as_str()?);
        Some((field, why))
    });
    let unsaid: Vec<_> = fields
        .filter(|(field, _)| !field.is_empty() && !said.contains(field.as_str()))
        .take(CAUSES)
        .collect();
    for (field, why) in unsaid {
        said.push_str(&format!("; {field}: {why}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use serde_json::json;

    fn pod() -> Json {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}})
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_applied_comes_back() {
        let fake = Fake::default();
        let applied = apply(&fake.api(), &pod()).await.expect("applied");
        assert!(applied["metadata"]["uid"].is_string());
        assert_eq!(fake.log(), ["PATCH /api/v1/namespaces/b/pods/a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_quoted_and_told_from_trouble() {
        let fake = Fake::default();
        fake.script(
            "PATCH",
            403,
            json!({"message": "violates PodSecurity \"baseline\""}),
        );
        let said = apply(&fake.api(), &pod())
            .await
            .expect_err("refused")
            .to_string();
        assert_eq!(
            said,
            "`Pod b/a` was refused with 403: violates PodSecurity \"baseline\""
        );
        let fake = Fake::default();
        fake.script("PATCH", 503, json!({}));
        let error = apply(&fake.api(), &pod()).await.expect_err("an error");
        assert!(matches!(error, ApplyError::ObservationError { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_names_the_fields_that_its_message_does_not() {
        let fake = Fake::default();
        let causes = json!([
            {"reason": "FieldValueInvalid", "field": "spec.os", "message": "Invalid value"},
            {"reason": "FieldValueForbidden", "field": "spec.hostPID", "message": "Forbidden: \u{1b}[2J"},
            {"message": "no field"},
            {"field": "spec.a", "message": "Required value"},
            {"field": "spec.b", "message": "Required value"},
            {"field": "spec.c", "message": "Required value"},
        ]);
        let message = "Pod \"a\" is invalid: spec.os: Invalid value";
        fake.script(
            "PATCH",
            422,
            json!({"message": message, "details": {"causes": causes}}),
        );
        let said = apply(&fake.api(), &pod()).await.expect_err("refused");
        assert_eq!(
            said.to_string(),
            "`Pod b/a` was refused with 422: Pod \"a\" is invalid: spec.os: Invalid value; \
             spec.hostPID: Forbidden: \\u{1b}[2J; spec.a: Required value; spec.b: Required value"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_in_the_table_is_not_sent() {
        let fake = Fake::default();
        let mut homeless = pod();
        homeless["metadata"]["namespace"].take();
        for object in [
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            json!([]),
            homeless,
        ] {
            let error = apply(&fake.api(), &object).await.expect_err("unsuitable");
            assert!(matches!(error, ApplyError::Unsuitable { .. }));
        }
        assert!(fake.log().is_empty());
    }
}
