//! Asks the server which accesses it allows, without using them.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use serde_json::{Value as Json, json};
use winconform_core::method::{ApiRequest, Verb};
use winconform_core::plan::{Access, Answer, Place};

use crate::transport::Api;

/// The path of reviews, which the server does not keep.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Reviews each access once, with at most as many requests at a time as the limits allow.
///
/// One review for each, not one `SelfSubjectRulesReview` for all: its answer is incomplete where
/// an authoriser is a webhook (it cannot list what it would allow), as with AKS, EKS and GKE.
pub async fn review(api: &Api, accesses: &BTreeSet<Access>) -> BTreeMap<Access, Answer> {
    let asking = accesses.iter().map(|access| async move {
        let answer = review_one(api, access).await;
        (access.clone(), answer)
    });
    let many = api.limits().api_in_flight.max(1);
    futures::stream::iter(asking)
        .buffer_unordered(many)
        .collect()
        .await
}

async fn review_one(api: &Api, access: &Access) -> Answer {
    let request = ApiRequest {
        verb: Verb::Create,
        path: REVIEWS.to_owned(),
        body: Some(body(access)),
    };
    let reply = match api.send(&request).await {
        Ok(reply) => reply,
        Err(error) => return Answer::Unknown(error.to_string()),
    };
    let status = &reply.body["status"];
    match (reply.status, status["allowed"].as_bool()) {
        (200..=201, Some(true)) => Answer::Allowed,
        (200..=201, Some(false)) => {
            let words = [&status["reason"], &status["evaluationError"]];
            let words = words.into_iter().filter_map(Json::as_str);
            let words: Vec<_> = words.filter(|words| !words.is_empty()).collect();
            Answer::Denied(words.join("; "))
        }
        (status, _) => Answer::Unknown(format!("status {status}: {}", reply.message())),
    }
}

fn body(access: &Access) -> Json {
    let spec = match access {
        Access::Url { path, verb } => {
            json!({"nonResourceAttributes": {"path": path, "verb": verb.as_str()}})
        }
        Access::Objects {
            group,
            resource,
            place,
            name,
            verb,
        } => {
            let (resource, below) = resource.split_once('/').unwrap_or((resource, ""));
            let namespace = match place {
                Place::Namespace(namespace) => namespace.as_str(),
                // Empty means all namespaces: the run's own do not exist yet
                Place::Cluster | Place::Own => "",
            };
            json!({"resourceAttributes": {
                "group": group,
                "resource": resource,
                "subresource": below,
                "namespace": namespace,
                "name": name.as_deref().unwrap_or_default(),
                "verb": verb.as_str(),
            }})
        }
    };
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use winconform_core::plan::AccessVerb;

    fn metrics() -> Access {
        Access::Url {
            path: "/metrics".to_owned(),
            verb: AccessVerb::Get,
        }
    }

    fn exec(place: Place) -> Access {
        Access::Objects {
            group: String::new(),
            resource: "pods/exec".to_owned(),
            place,
            name: None,
            verb: AccessVerb::Create,
        }
    }

    #[test]
    fn what_is_in_no_namespace_yet_is_asked_of_all() {
        let asked = |access| body(&access)["spec"]["resourceAttributes"].clone();
        let own = asked(exec(Place::Own));
        assert_eq!(
            (&own["resource"], &own["subresource"]),
            (&json!("pods"), &json!("exec"))
        );
        assert_eq!(own["namespace"], "");
        assert_eq!(
            asked(exec(Place::Namespace("a".to_owned())))["namespace"],
            "a"
        );
        assert_eq!(
            body(&metrics())["spec"],
            json!({"nonResourceAttributes": {"path": "/metrics", "verb": "get"}})
        );
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_apart() {
        for (status, body, expected) in [
            (201, json!({"status": {"allowed": true}}), Answer::Allowed),
            (
                201,
                json!({"status": {"allowed": false, "reason": "no", "evaluationError": "role"}}),
                Answer::Denied("no; role".to_owned()),
            ),
            (
                403,
                json!({"message": "not even that"}),
                Answer::Unknown("status 403: not even that".to_owned()),
            ),
        ] {
            let fake = Fake::default();
            fake.script("POST", status, body);
            let answers = review(&fake.api(), &[metrics()].into()).await;
            assert_eq!(answers[&metrics()], expected);
            assert_eq!(fake.log(), [format!("POST {REVIEWS}")]);
        }
    }
}
