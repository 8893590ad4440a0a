//! Server-side apply of one object, refusals told from trouble.

use serde_json::Value as Json;
use winconform_core::text::printable;
use winconform_core::way::{ApiRequest, Trouble, Verb};

use super::kinds::{Kind, Scope};
use crate::transport::Api;

/// Why an object does not stand.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApplyError {
    /// It is not of a kind in the table, or has no name.
    #[error("cannot apply an object of {what}")]
    Unsuitable {
        /// What it is instead.
        what: String,
    },
    /// The server refused it: a quota, PodSecurity, a webhook, RBAC.
    #[error("`{object}` was refused with {status}: {message}")]
    Refused {
        /// Kind, namespace and name.
        object: String,
        /// HTTP status.
        status: u16,
        /// The server's words, bounded.
        message: String,
    },
    /// The server could not be asked.
    #[error("`{object}` could not be applied")]
    Trouble {
        /// Kind, namespace and name.
        object: String,
        /// Why.
        source: Trouble,
    },
}

/// Applies one object and returns it as it then stands.
pub async fn apply(api: &Api, object: &Json) -> Result<Json, ApplyError> {
    let (Some(kind), Some(name)) = (Kind::of(object), object["metadata"]["name"].as_str()) else {
        let what = format!("{} {}", object["apiVersion"], object["kind"]);
        return Err(ApplyError::Unsuitable { what: printable(&what) });
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
    let path = format!("{}?fieldValidation=Strict", kind.object_path(namespace, name));
    let request = ApiRequest { verb: Verb::Apply, path, body: Some(object.clone()) };
    match api.send(&request).await {
        Ok(reply) if matches!(reply.status, 200..=201) && reply.body["kind"] == kind.kind => {
            Ok(reply.body)
        }
        Ok(reply) => {
            let message = reply.body["message"].as_str().unwrap_or("no message");
            let message = printable(message);
            Err(ApplyError::Refused { object: shown, status: reply.status, message })
        }
        Err(source) => Err(ApplyError::Trouble { object: shown, source }),
    }
}
