//! The test method `admission`: a server-side dry run of an object, in raw JSON with strict validation.

mod kept;
mod object;
mod refuser;
mod seen;

use serde_json::{Value as Json, json};

use super::denied::{Denied, lacks_namespace};
use crate::fixture::{FixtureName, Need};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{ApiReply, ApiRequest, Request, Verb};
use crate::method::place::Bound;
use crate::method::prepared::Prepared;
use crate::method::{Assertion, Comparison, Difference, Method, Test, Traits};
use crate::text::printable;

pub use kept::{Alterations, is_blank};
pub use object::{ContainerKind, Workload};
use object::{merge, put, same_place};
pub use seen::{About, AdmissionObservation, Cause};

/// The query: would the API server accept this object?
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionQuery {
    /// `spec.os.name`, if it is set; any text, since cases also expect refusals of other names.
    pub os: Option<String>,
    /// The kind of the object that is sent.
    pub workload: Workload,
    /// The list of containers that `container.` in the field means.
    pub container: ContainerKind,
    /// What the request does with the object.
    pub change: Change,
    /// Merged into the pod (RFC 7386).
    pub with: Json,
    /// The field under test, as in a pod, `spec.hostPID`, or in a container,
    /// `container.securityContext.privileged`.
    pub field: String,
    /// Its value; `None` leaves the field out.
    pub value: Option<Json>,
}

/// What the request does with the object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// Creates it, or adds an ephemeral container to an unbound pod.
    Create,
    /// Resizes the container of an unbound pod.
    Resize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AdmissionExpectation {
    /// Refused, for this cause among others.
    Refused {
        /// `causes[].reason`, such as `FieldValueForbidden`.
        reason: String,
        /// `causes[].field`, as in a pod or a container; `None` for the field of the query.
        field: Option<String>,
    },
    /// Accepted, and the field came back as sent.
    Accepted,
    /// Accepted, and the field did not come back.
    Dropped,
    /// Refused after validation, by this, such as `ResourceQuota NAME`.
    Denied { by: String },
}

/// The test method `admission`.
#[derive(Clone, Debug)]
pub enum Admission {}

impl Method for Admission {
    type Query = AdmissionQuery;
    type Expectation = AdmissionExpectation;
    type Observation = AdmissionObservation;

    const TEST: fn(Assertion<Self>) -> Test = Test::Admission;

    fn prepare<'a>(
        query: &'a AdmissionQuery,
        at: &Bound<'a>,
    ) -> Result<Prepared<'a, AdmissionObservation>> {
        at.fixture(FixtureName::NAMESPACES)?;
        // The privileged namespace, so that PodSecurity does not answer before validation
        let namespace = &at.ready.host_namespace;
        let unbound = |subresource: &str| {
            let pod = query.unbound_pod();
            format!("/api/v1/namespaces/{namespace}/pods/{pod}/{subresource}")
        };
        let (verb, path) = match (query.change, query.is_ephemeral()) {
            (Change::Resize, _) => (Verb::Patch, unbound("resize")),
            (Change::Create, true) => (Verb::Patch, unbound("ephemeralcontainers")),
            (Change::Create, false) => (Verb::Create, query.workload.collection(namespace)),
        };
        let body = query.body().ok_or_else(|| {
            let detail = format!("{} has no place in the object", query.path());
            ErrorKind::NotApplied.error(detail)
        })?;
        let request = Request::Api(ApiRequest {
            verb,
            path: format!("{path}?dryRun=All&fieldValidation=Strict"),
            body: Some(body),
        });
        Ok(Prepared::new(request, |reply| read(query, reply.api()?)))
    }

    fn needs(query: &AdmissionQuery) -> Vec<(FixtureName, Need)> {
        let pods = query.needs_pod().then_some(FixtureName::UNBOUND_PODS);
        let names = [FixtureName::NAMESPACES].into_iter().chain(pods);
        names.map(|name| (name, Need::Ready)).collect()
    }

    fn traits(_: &AdmissionQuery, expectation: &AdmissionExpectation) -> Traits {
        Traits {
            // The server learns of a new quota only after a while
            converges: matches!(expectation, AdmissionExpectation::Denied { .. }),
            ..Traits::default()
        }
    }

    /// A claim fails only where validation accepted a field that came back, or refused what was sent in
    /// another way than documented. What anything else on the way did proves nothing.
    fn compare(
        expectation: &AdmissionExpectation,
        seen: &AdmissionObservation,
    ) -> Result<Comparison> {
        use AdmissionExpectation::{Accepted, Denied, Dropped, Refused};
        use AdmissionObservation as Seen;
        let difference = |seen: &Seen| Difference::between(expectation, seen.to_string());
        let interfered = |what: String| {
            let detail = format!("{what}; expected: {expectation}");
            Err(ErrorKind::Interfered.error(detail))
        };
        Ok(match (expectation, seen) {
            (Accepted, Seen::Accepted(_) | Seen::EmptyLeftOut { .. }) => {
                Comparison::Met(difference(seen))
            }
            // An empty value that was left out counts as dropped, too
            (Dropped, Seen::FieldDropped | Seen::EmptyLeftOut { .. }) => {
                Comparison::Met(difference(&Seen::FieldDropped))
            }
            (Refused { field, .. }, Seen::Accepted(altered)) => {
                let by = altered.deciding(field.as_deref()).join(", ");
                if by.is_empty() {
                    return Ok(Comparison::NotMet(difference(seen)));
                }
                let by = printable(&by);
                return interfered(format!(
                    "{seen}, but something on the way to validation alters {by}"
                ));
            }
            // Go omits several empty values; of these validation distinguishes only lists from missing ones
            (
                Refused { field, .. },
                Seen::EmptyLeftOut {
                    sent: Json::Array(_),
                    altered,
                },
            ) => {
                let field = field.as_deref().unwrap_or("the field");
                let lost = format!("value-lost-on-the-way: {field}, sent empty, did not come back");
                let paths = altered.all();
                if paths.is_empty() {
                    return interfered(format!(
                        "{lost}: validation let it pass, or something that alters pods lost it"
                    ));
                }
                Comparison::NotApplicable(format!(
                    "{lost}: something on the way to validation alters {}, and what is empty is lost \
                     with that",
                    printable(&paths)
                ))
            }
            // Contains, not equals: other fields may add their own causes
            (Refused { reason, field }, Seen::Refused { causes, .. })
                if causes.iter().any(|cause| {
                    cause.about != About::Altered
                        && cause.reason == *reason
                        && field.as_ref().is_none_or(|f| same_place(&cause.field, f))
                }) =>
            {
                Comparison::Met(difference(seen))
            }
            (_, Seen::Refused { causes, field, .. }) => {
                let any = |about| causes.iter().any(|cause| cause.about == about);
                match expectation {
                    Refused { .. } if any(About::Sent) => Comparison::Unexpected(difference(seen)),
                    Accepted | Dropped if any(About::Sent) => Comparison::NotMet(difference(seen)),
                    // The question is whether a plain pod is refused, whatever added the field
                    Accepted if field.is_none() && any(About::Added) && !any(About::Altered) => {
                        Comparison::NotMet(difference(seen))
                    }
                    _ => return interfered(seen.to_string()),
                }
            }
            (Denied { by }, Seen::Denied { by: who, .. }) if by == who => {
                Comparison::Met(difference(seen))
            }
            (Denied { .. }, Seen::Accepted(altered)) if altered.deciding(None).is_empty() => {
                Comparison::NotMet(difference(seen))
            }
            // With an unknown field an older server may have answered, or something that is no API server
            (_, Seen::Denied { .. } | Seen::UnknownField { .. }) | (Denied { .. }, _) => {
                return interfered(seen.to_string());
            }
            (Dropped, Seen::Accepted(_)) => Comparison::Unexpected(difference(seen)),
            (Accepted, Seen::FieldDropped)
            | (Refused { .. }, Seen::FieldDropped | Seen::EmptyLeftOut { .. }) => {
                let dropped = Seen::FieldDropped;
                return interfered(format!(
                    "{dropped}: by something on the way to validation, or by the server"
                ));
            }
        })
    }
}

fn read(query: &AdmissionQuery, reply: &ApiReply) -> Result<AdmissionObservation> {
    let message = message(reply);
    let refused_by = |by: String| {
        Ok(AdmissionObservation::Denied {
            code: reply.status,
            by,
            message: message.clone(),
        })
    };
    let kind = query.workload.kind();
    let is_status = reply.body["kind"] == "Status";
    // Checked first: the words of a webhook or a policy may imitate anything
    let named = refuser::named(&message).filter(|_| is_status && reply.status >= 400);
    if let Some(who) = named {
        return refused_by(who);
    }
    match reply.status {
        200..=202 if reply.body["kind"] == kind => seen::accepted(query, &reply.body),
        // A lack of the harness's permissions is no answer of admission; both come as 403
        401 => Err(ErrorKind::Unauthenticated.error(message)),
        403 if Denied::from_status(&reply.body).is_some() => {
            Err(ErrorKind::Forbidden.error(message))
        }
        400 if message.contains("does not support dry run") => {
            Err(ErrorKind::Forbidden.error(message))
        }
        // Our namespace is terminating: the refusal is not for what was sent
        status if lacks_namespace(status, &message) => {
            Err(ErrorKind::FixtureChanged.error(message))
        }
        // A webhook that could not be called has not refused
        500 if message.contains("failed calling webhook") => {
            Err(ErrorKind::ApiUnavailable.error(message))
        }
        400 if is_status && message.contains("unknown field") => {
            Ok(AdmissionObservation::UnknownField { message })
        }
        422 if is_status && refuser::is_validation(kind, &message) => {
            Ok(seen::refused(query, &reply.body, message))
        }
        400 | 403 | 422 if is_status => {
            refused_by("something that does not say its name".to_owned())
        }
        status => {
            let detail = format!("status {status}: {message}");
            Err(ErrorKind::UnrecognisedOutput.error(detail))
        }
    }
}

impl std::fmt::Display for AdmissionExpectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted, the field as sent"),
            Self::Dropped => f.write_str("accepted with the field dropped"),
            Self::Denied { by } => write!(f, "refused by {by}"),
            Self::Refused { reason, field } => match field {
                Some(field) => write!(f, "refused for {field} ({reason})"),
                None => write!(f, "refused ({reason})"),
            },
        }
    }
}

impl AdmissionQuery {
    /// The pod in `manifests/unbound-pods.yaml`, which no scheduler ever binds, for a query that needs an existing pod.
    fn unbound_pod(&self) -> &'static str {
        match self.os.as_deref() {
            Some("windows") => "winconform-unbound-windows",
            Some("linux") => "winconform-unbound-linux",
            _ => "winconform-unbound",
        }
    }

    fn is_ephemeral(&self) -> bool {
        self.container == ContainerKind::Ephemeral
    }

    pub fn needs_pod(&self) -> bool {
        self.is_ephemeral() || self.change == Change::Resize
    }

    /// The path of the field in the object that is sent.
    pub fn path(&self) -> String {
        self.workload.path(&self.field, self.container)
    }

    /// The body that is sent: minimal, with `os`, `with` and the field; `None` where the object has no place
    /// for the field.
    pub fn body(&self) -> Option<Json> {
        const IMAGE: &str = "winconform/never-run:1";
        let mut object = if self.change == Change::Resize {
            json!({"spec": {"containers": [{"name": "main"}]}})
        } else if self.is_ephemeral() {
            json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": IMAGE}]}})
        } else {
            let mut pod = json!({"spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "main", "image": IMAGE}],
            }});
            if self.container == ContainerKind::Init {
                pod["spec"]["initContainers"] = json!([{"name": "init", "image": IMAGE}]);
            }
            if let Some(os) = &self.os {
                pod["spec"]["os"] = json!({"name": os});
            }
            merge(&mut pod, &self.with);
            self.workload.around(pod)
        };
        if let Some(value) = &self.value {
            put(&mut object, &self.path(), value.clone())?;
        }
        Some(object)
    }
}

impl AdmissionExpectation {
    /// The same expectation of what `query` sends, with the path of the field in that object.
    #[must_use]
    pub fn for_query(&self, query: &AdmissionQuery) -> Self {
        match self {
            Self::Accepted | Self::Dropped | Self::Denied { .. } => self.clone(),
            Self::Refused { reason, field } => {
                let field = field.as_ref().unwrap_or(&query.field);
                Self::Refused {
                    reason: reason.clone(),
                    field: Some(query.workload.path(field, query.container)),
                }
            }
        }
    }
}

fn message(reply: &ApiReply) -> String {
    match reply.body["message"].as_str() {
        Some(message) => message.to_owned(),
        None => printable(&reply.body.to_string()),
    }
}

#[cfg(test)]
mod tests;
