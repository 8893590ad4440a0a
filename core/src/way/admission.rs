//! The way `admission`: a server-side dry run of one pod, in raw JSON with strict validation.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::exchange::{ApiReply, ApiRequest, Reply, Request, Verb};
use super::place::{Bound, FixtureName};
use super::trouble::{Trouble, TroubleKind};
use super::{Comparison, Difference, Way};
use crate::facts::Os;
use crate::text::printable;

/// What is asked: would this pod be accepted?
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionAsk {
    /// `spec.os.name`, when it is set.
    pub os: Option<Os>,
    /// Merged into the minimal pod (RFC 7386).
    pub with: Json,
    /// The field in question, as in `spec.hostPID`.
    pub field: String,
}

/// What should be seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AdmissionExpect {
    /// Refused, among others for this.
    Refused {
        /// `causes[].reason`, such as `FieldValueForbidden`.
        reason: String,
        /// `causes[].field`.
        field: String,
    },
    /// Accepted, and the field in what came back is as sent.
    Accepted,
}

/// One of `details.causes[]` of a Status.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: String,
    /// The field it is about.
    pub field: String,
    /// In words.
    pub message: String,
}

/// What was seen.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionSeen {
    /// Refused.
    Refused {
        /// HTTP status.
        code: u16,
        /// The causes; empty when a policy or webhook refused.
        causes: Vec<Cause>,
        /// The Status' message.
        message: String,
    },
    /// Accepted, the field as sent.
    Accepted,
    /// Accepted, but the field is not in what came back.
    FieldDropped,
}

/// The way `admission`.
#[derive(Debug)]
pub enum Admission {}

impl Way for Admission {
    type Ask = AdmissionAsk;
    type Expect = AdmissionExpect;
    type Seen = AdmissionSeen;

    fn request(ask: &AdmissionAsk, at: &Bound<'_>) -> Result<Request, Trouble> {
        at.fixture(FixtureName::Namespaces)?;
        // PodSecurity must not answer in validation's place: the privileged namespace
        let namespace = &at.standing.host_namespace;
        Ok(Request::Api(ApiRequest {
            verb: Verb::Create,
            path: format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict"),
            body: Some(ask.pod()),
        }))
    }

    fn read(ask: &AdmissionAsk, _: &Bound<'_>, reply: &Reply) -> Result<AdmissionSeen, Trouble> {
        let Reply::Api(reply) = reply else {
            let detail = "an HTTP answer to an admission look";
            return Err(Trouble::new(TroubleKind::UnrecognisedOutput, detail));
        };
        match reply.status {
            200..=202 if reply.body["kind"] == "Pod" => {
                let sent = at_path(&ask.pod(), &ask.field).cloned();
                let kept = at_path(&reply.body, &ask.field).cloned();
                if sent == kept {
                    Ok(AdmissionSeen::Accepted)
                } else {
                    Ok(AdmissionSeen::FieldDropped)
                }
            }
            // The harness' own permissions are no answer of admission; both come as 403
            403 if is_denied_access(&reply.body) => {
                Err(Trouble::new(TroubleKind::Forbidden, message(reply)))
            }
            400 if message(reply).contains("does not support dry run") => {
                Err(Trouble::new(TroubleKind::Forbidden, message(reply)))
            }
            400 | 403 | 422 if reply.body["kind"] == "Status" => Ok(AdmissionSeen::Refused {
                code: reply.status,
                causes: causes(&reply.body),
                message: message(reply),
            }),
            status => {
                let detail = format!("status {status}: {}", message(reply));
                Err(Trouble::new(TroubleKind::UnrecognisedOutput, detail))
            }
        }
    }

    fn compare(expect: &AdmissionExpect, seen: &AdmissionSeen) -> Comparison {
        let seen_words = match seen {
            AdmissionSeen::Accepted => "accepted".to_owned(),
            AdmissionSeen::FieldDropped => "accepted with the field dropped".to_owned(),
            AdmissionSeen::Refused { code, message, .. } => {
                format!("refused with {code}: {}", printable(message))
            }
        };
        match expect {
            AdmissionExpect::Accepted => {
                let expected = "accepted".to_owned();
                let difference = Difference {
                    expected,
                    seen: seen_words,
                };
                match seen {
                    AdmissionSeen::Accepted => Comparison::Holds(difference),
                    AdmissionSeen::Refused { .. } => Comparison::Refuted(difference),
                    AdmissionSeen::FieldDropped => Comparison::Otherwise(difference),
                }
            }
            AdmissionExpect::Refused { reason, field } => {
                let expected = format!("refused for {field} ({reason})");
                let difference = Difference {
                    expected,
                    seen: seen_words,
                };
                match seen {
                    AdmissionSeen::Accepted | AdmissionSeen::FieldDropped => {
                        Comparison::Refuted(difference)
                    }
                    // Contains, not equals: other fields may add causes of their own
                    AdmissionSeen::Refused { causes, .. }
                        if causes
                            .iter()
                            .any(|c| c.reason == *reason && c.field == *field) =>
                    {
                        Comparison::Holds(difference)
                    }
                    AdmissionSeen::Refused { .. } => Comparison::Otherwise(difference),
                }
            }
        }
    }
}

impl AdmissionAsk {
    /// The pod that is sent: minimal, with `os` and `with`.
    pub fn pod(&self) -> Json {
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "winconform-admission"},
            "spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "main", "image": "winconform/never-run:1"}],
            },
        });
        if let Some(os) = self.os {
            let name = match os {
                Os::Linux => "linux",
                Os::Windows => "windows",
            };
            pod["spec"]["os"] = json!({"name": name});
        }
        merge(&mut pod, &self.with);
        pod
    }
}

/// Merges `patch` into `target` (RFC 7386).
fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Json::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Json::Null), value);
        }
    }
}

/// The value at a path such as `spec.hostPID` or `spec.containers[0].securityContext`.
fn at_path<'j>(object: &'j Json, path: &str) -> Option<&'j Json> {
    path.split('.')
        .try_fold(object, |at, part| match part.split_once('[') {
            None => at.get(part),
            Some((key, index)) => at
                .get(key)?
                .get(index.strip_suffix(']')?.parse::<usize>().ok()?),
        })
}

fn message(reply: &ApiReply) -> String {
    match reply.body["message"].as_str() {
        Some(message) => message.to_owned(),
        None => printable(&reply.body.to_string()),
    }
}

/// Whether a 403 is RBAC's. Its wording is fixed (apiserver `responsewriters.forbiddenMessage`).
fn is_denied_access(status: &Json) -> bool {
    status["message"]
        .as_str()
        .is_some_and(|m| m.contains("cannot create resource \"pods\""))
}

fn causes(status: &Json) -> Vec<Cause> {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let all = status["details"]["causes"].as_array().into_iter().flatten();
    all.map(|cause| Cause {
        reason: text(&cause["reason"]),
        field: text(&cause["field"]),
        message: text(&cause["message"]),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> AdmissionAsk {
        AdmissionAsk {
            os: Some(Os::Windows),
            with: json!({"spec": {"hostPID": true}}),
            field: "spec.hostPID".to_owned(),
        }
    }

    fn read(status: u16, body: Json) -> Result<AdmissionSeen, Trouble> {
        let standing = super::super::Standing::default();
        let at = Bound {
            standing: &standing,
            pool: None,
            build: None,
            image: None,
        };
        Admission::read(&ask(), &at, &Reply::Api(ApiReply { status, body }))
    }

    fn expect() -> AdmissionExpect {
        AdmissionExpect::Refused {
            reason: "FieldValueForbidden".to_owned(),
            field: "spec.hostPID".to_owned(),
        }
    }

    fn refusal(field: &str) -> Json {
        json!({"kind": "Status", "code": 422, "message": "Pod \"x\" is invalid",
            "details": {"causes": [
                {"reason": "FieldValueInvalid", "field": "spec.other", "message": "no"},
                {"reason": "FieldValueForbidden", "field": field, "message": "no"}]}})
    }

    #[test]
    fn the_right_refusal_among_others_holds() {
        let seen = read(422, refusal("spec.hostPID")).expect("read");
        assert!(Admission::compare(&expect(), &seen).holds());
    }

    #[test]
    fn a_refusal_of_another_field_is_otherwise() {
        let seen = read(422, refusal("spec.hostIPC")).expect("read");
        assert!(matches!(
            Admission::compare(&expect(), &seen),
            Comparison::Otherwise(_)
        ));
    }

    #[test]
    fn accepted_and_accepted_with_the_field_dropped_are_told_apart() {
        let kept = json!({"kind": "Pod", "spec": {"hostPID": true}});
        assert_eq!(read(201, kept), Ok(AdmissionSeen::Accepted));
        assert_eq!(
            read(201, json!({"kind": "Pod", "spec": {}})),
            Ok(AdmissionSeen::FieldDropped)
        );
        for seen in [AdmissionSeen::Accepted, AdmissionSeen::FieldDropped] {
            assert!(matches!(
                Admission::compare(&expect(), &seen),
                Comparison::Refuted(_)
            ));
        }
    }

    #[test]
    fn a_lack_of_permission_is_trouble_and_a_policy_is_not() {
        let rbac = "pods is forbidden: User \"x\" cannot create resource \"pods\" in API group";
        let body = |message: &str| json!({"kind": "Status", "message": message});
        assert_eq!(
            read(403, body(rbac)).expect_err("trouble").kind,
            TroubleKind::Forbidden
        );
        let policy = read(403, body("denied by policy")).expect("an answer of admission");
        assert!(matches!(
            Admission::compare(&expect(), &policy),
            Comparison::Otherwise(_)
        ));
    }

    #[test]
    fn an_answer_that_is_no_pod_and_no_status_is_trouble() {
        for (status, body) in [
            (200, json!("hello")),
            (502, json!("<html>")),
            (500, json!({})),
        ] {
            assert!(read(status, body).is_err(), "{status}");
        }
    }
}
