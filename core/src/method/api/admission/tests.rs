//! Comparisons of assertions, also on clusters that change or refuse pods on the way to validation.

use serde::Deserialize;

use super::*;

/// What `tests.yaml` holds.
#[derive(Deserialize)]
struct Tables {
    refusals: Vec<(u16, String, String)>,
    kept: Vec<(Json, Json, String)>,
    assertions: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    query: Vec<Json>,
    expectation: String,
    status: Option<u16>,
    message: Option<String>,
    body: Option<Json>,
    /// Reason, field and message of each.
    causes: Option<Vec<[String; 3]>>,
    /// The object into which the one sent is merged.
    sent_in: Option<Json>,
    #[serde(default)]
    patch: Json,
    /// Whether the security context comes back empty.
    #[serde(default)]
    loses: bool,
    came: String,
    /// The observation or the error says all of these.
    #[serde(default)]
    says: Vec<String>,
    never: Option<String>,
}

fn tables() -> Tables {
    serde_saphyr::from_str(include_str!("tests.yaml")).expect("tables")
}

/// A Windows pod with a field, or plain.
fn query(field: &str, value: Json) -> AdmissionQuery {
    AdmissionQuery {
        os: Some("windows".to_owned()),
        workload: Workload::Pod,
        container: ContainerKind::Init,
        change: Change::Create,
        with: json!({}),
        field: field.to_owned(),
        value: Some(value).filter(|value| !value.is_null()),
    }
}

impl Row {
    fn query(&self) -> AdmissionQuery {
        let mut query = query(
            self.query[0].as_str().expect("a field"),
            self.query[1].clone(),
        );
        let otherwise = self.query.get(2).and_then(Json::as_object);
        for (what, value) in otherwise.into_iter().flatten() {
            match what.as_str() {
                "os" => query.os = value.as_str().map(str::to_owned),
                "with" => query.with = value.clone(),
                "change" if *value == "resize" => query.change = Change::Resize,
                "container" => {
                    query.container = serde_json::from_value(value.clone()).expect("a container");
                }
                other => panic!("{other}: {value} is nothing of a look"),
            }
        }
        query
    }

    fn answer(&self, query: &AdmissionQuery) -> (u16, Json) {
        if let Some(message) = &self.message {
            let status = json!({"kind": "Status", "message": message});
            return (self.status.expect("a status"), status);
        }
        if let Some(causes) = &self.causes {
            return (422, invalid(causes));
        }
        let body = self.body.clone().or_else(|| {
            let mut pod = self.sent_in.clone()?;
            merge(&mut pod, &query.body().expect("a body"));
            Some(pod)
        });
        let came = body.unwrap_or_else(|| {
            came_back(query, |pod| {
                if self.loses {
                    pod["spec"]["securityContext"] = json!({});
                }
                merge(pod, &self.patch);
            })
        });
        (self.status.unwrap_or(201), came)
    }
}

fn read_expectation(written: &str) -> AdmissionExpectation {
    let (reason, field) = match written.split_once(' ') {
        Some((reason, field)) => (reason, Some(field.to_owned())),
        None => (written, None),
    };
    match reason {
        "accepted" => AdmissionExpectation::Accepted,
        "dropped" => AdmissionExpectation::Dropped,
        "denied" => AdmissionExpectation::Denied {
            by: field.unwrap_or_default(),
        },
        _ => AdmissionExpectation::Refused {
            reason: reason.to_owned(),
            field,
        },
    }
}

fn read(query: &AdmissionQuery, status: u16, body: Json) -> Result<AdmissionObservation> {
    super::read(query, &ApiReply { status, body })
}

/// How an answer compares, in one word, and the words of the observation or the error.
fn compared(
    query: &AdmissionQuery,
    expectation: &str,
    status: u16,
    body: Json,
) -> (&'static str, String) {
    let seen = read(query, status, body);
    match seen
        .and_then(|seen| Admission::compare(&read_expectation(expectation).for_query(query), &seen))
    {
        Ok(Comparison::Met(difference)) => ("met", difference.seen),
        Ok(Comparison::NotMet(difference)) => ("not-met", difference.seen),
        Ok(Comparison::Unexpected(difference)) => ("unexpected", difference.seen),
        Ok(Comparison::NotApplicable(reason)) => ("not-applicable", reason),
        Err(error) => (error.kind.as_str(), error.detail),
    }
}

/// A refusal of validation, in the words of `NewInvalid`.
fn invalid(causes: &[[String; 3]]) -> Json {
    let causes = causes.iter().map(
        |[reason, field, message]| json!({"reason": reason, "field": field, "message": message}),
    );
    json!({"kind": "Status", "reason": "Invalid", "message": "Pod \"x\" is invalid",
        "details": {"causes": causes.collect::<Vec<_>>()}})
}

/// The object that a server returns for the one sent, with what it fills in itself.
fn came_back(query: &AdmissionQuery, change: impl FnOnce(&mut Json)) -> Json {
    let mut pod = query.body().expect("a body");
    let filled_in = json!({"spec": {"restartPolicy": "Always", "tolerations": [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]}});
    merge(&mut pod, &filled_in);
    pod["spec"]["containers"][0]["resources"] = json!({});
    change(&mut pod);
    pod
}

#[test]
fn each_look_compares_as_its_row_says() {
    for row in tables().assertions {
        let query = row.query();
        let (status, body) = row.answer(&query);
        let (came, said) = compared(&query, &row.expectation, status, body.clone());
        assert_eq!(came, row.came, "{} {status} {body}: {said}", row.query[0]);
        let never = row.never.is_some_and(|never| said.contains(&never));
        let says = row.says.iter().all(|words| said.contains(words));
        assert!(says && !never, "{said}");
    }
}

#[test]
fn a_refusal_that_is_not_of_validation_names_who_refused() {
    for (status, message, who) in tables().refusals {
        let cause = ["FieldValueForbidden", "spec.hostPID", "no"].map(str::to_owned);
        let mut body = invalid(&[cause]);
        body["message"] = json!(message);
        for (expectation, value) in [
            ("FieldValueForbidden", json!(true)),
            ("accepted", json!(null)),
        ] {
            let query = query("spec.hostPID", value);
            let (word, detail) = compared(&query, expectation, status, body.clone());
            assert_eq!(word, "interfered", "{message}: {detail}");
            assert!(
                detail.contains(&who) && detail.contains(&message),
                "{detail}"
            );
        }
    }
}

#[test]
fn a_field_that_came_back_is_held_against_what_was_sent() {
    for (sent, kept, expected) in tables().kept {
        let mut query = query("spec.a", sent);
        query.os = None;
        let pod = json!({"kind": "Pod", "spec": {"a": kept}});
        let word = match read(&query, 201, pod) {
            Ok(seen) => {
                let seen = json!(seen);
                let of_object = seen.as_object().and_then(|seen| seen.keys().next());
                let word = of_object.map(String::as_str).or(seen.as_str());
                word.expect("its word").to_owned()
            }
            Err(error) => error.kind.as_str().to_owned(),
        };
        assert_eq!(word, expected, "{:?}", query.value);
    }
}

#[test]
fn a_field_is_ours_wherever_the_container_moved() {
    let field = "container.securityContext.allowPrivilegeEscalation";
    let own = query(field, json!(false));
    for (value, expectation, word) in [
        (json!(false), "accepted", "met"),
        (json!(false), "FieldValueForbidden", "not-met"),
        (json!(true), "FieldValueForbidden", "interfered"),
        (json!(null), "accepted", "met"),
    ] {
        let moved = came_back(&own, |pod| {
            let list = &mut pod["spec"]["initContainers"];
            list[0]["securityContext"]["allowPrivilegeEscalation"] = value;
            *list = json!([{"name": "mesh", "image": "mesh"}, list[0]]);
        });
        let seen = compared(&own, expectation, 201, moved);
        assert_eq!(seen.0, word, "{seen:?}");
    }
}

#[test]
fn a_refusal_of_what_was_not_sent_is_told_so() {
    let told = |field: &str| {
        let causes = [
            ["FieldValueInvalid", "spec.other", "no"].map(str::to_owned),
            ["FieldValueForbidden", field, "no"].map(str::to_owned),
        ];
        let seen = read(&query("spec.hostPID", json!(true)), 422, invalid(&causes));
        seen.expect("read").to_string()
    };
    let refused = "refused with 422: Pod \"x\" is invalid";
    assert_eq!(told("spec.hostPID"), refused);
    // `spec.other` was not sent either, but validation does not forbid it
    let on_the_way = "spec.hostIPC was not sent: something on the way to validation sets it";
    assert_eq!(told("spec.hostIPC"), format!("{refused}; {on_the_way}"));
    assert_eq!(told("metadata.name"), refused);
}

#[test]
fn what_needs_a_pod_is_asked_of_the_unbound_one_with_its_system() {
    let mut ready = crate::method::ReadyFixtures {
        host_namespace: "host".to_owned(),
        ..crate::method::ReadyFixtures::default()
    };
    let namespaces = FixtureName::NAMESPACES.in_pool(None);
    ready
        .fixtures
        .insert(namespaces, crate::method::ReadyFixture::default());
    let at = Bound::to_ready(&ready);
    for (os, pod) in [
        (Some("windows"), "winconform-unbound-windows"),
        (Some("linux"), "winconform-unbound-linux"),
        (None, "winconform-unbound"),
    ] {
        let query = AdmissionQuery {
            os: os.map(str::to_owned),
            change: Change::Resize,
            container: ContainerKind::Container,
            ..query("container.resources.limits.cpu", json!("1"))
        };
        let asked = Admission::prepare(&query, &at).map(|prepared| prepared.request);
        let Ok(Request::Api(request)) = asked else {
            panic!("a request to the API server")
        };
        let path =
            format!("/api/v1/namespaces/host/pods/{pod}/resize?dryRun=All&fieldValidation=Strict");
        assert_eq!((request.verb, request.path), (Verb::Patch, path));
    }
}
