//! Clusters that change or refuse pods on the way to validation: what a look is then worth.

use super::*;

/// A Windows pod with a field, or plain.
fn ask(field: &str, value: Json) -> AdmissionAsk {
    AdmissionAsk {
        os: Some("windows".to_owned()),
        workload: Workload::Pod,
        container: ContainerKind::Init,
        change: Change::Create,
        with: json!({}),
        field: field.to_owned(),
        value: Some(value).filter(|value| !value.is_null()),
    }
}

const ACCEPTED: AdmissionExpect = AdmissionExpect::Accepted;

fn refused(reason: &str, field: Option<&str>) -> AdmissionExpect {
    AdmissionExpect::Refused {
        reason: reason.to_owned(),
        field: field.map(str::to_owned),
    }
}

fn forbidden() -> AdmissionExpect {
    refused("FieldValueForbidden", None)
}

/// How an answer compares, in one word, and what was seen or why nothing was.
fn compared(
    ask: &AdmissionAsk,
    expect: &AdmissionExpect,
    status: u16,
    body: Json,
) -> (&'static str, String) {
    let standing = super::super::Standing::default();
    let reply = Reply::Api(ApiReply { status, body });
    let seen = Admission::read(ask, &Bound::of(&standing), &reply);
    match seen.and_then(|seen| Admission::compare(&expect.of(ask), &seen)) {
        Ok(Comparison::Holds(difference)) => ("holds", difference.seen),
        Ok(Comparison::Refuted(difference)) => ("refuted", difference.seen),
        Ok(Comparison::Otherwise(difference)) => ("otherwise", difference.seen),
        Ok(Comparison::Inapplicable(because)) => ("inapplicable", because),
        Err(trouble) => (trouble.kind.as_str(), trouble.detail),
    }
}

/// A refusal of validation, in the words of `NewInvalid`.
fn invalid(reason: &str, field: &str, message: &str) -> Json {
    let cause = json!({"reason": reason, "field": field, "message": message});
    json!({"kind": "Status", "reason": "Invalid", "details": {"causes": [cause]},
        "message": "Pod \"winconform-dry-run\" is invalid: and so on"})
}

fn refused_for(field: &str) -> Json {
    let message = "Forbidden: cannot be set for a windows pod";
    invalid("FieldValueForbidden", field, message)
}

/// What a server makes of what was sent, with what it fills in by itself.
fn came_back(ask: &AdmissionAsk, change: impl FnOnce(&mut Json)) -> Json {
    let mut pod = ask.body().expect("a body");
    let filled_in = json!({"spec": {"restartPolicy": "Always", "tolerations": [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]}});
    merge(&mut pod, &filled_in);
    pod["spec"]["containers"][0]["resources"] = json!({});
    change(&mut pod);
    pod
}

#[test]
fn a_refusal_that_is_not_of_validation_names_who_refused() {
    let named = |status, message: String, who: &str| {
        let mut body = refused_for("spec.hostPID");
        body["message"] = json!(message);
        for (expect, value) in [(forbidden(), json!(true)), (ACCEPTED, json!(null))] {
            let ask = ask("spec.hostPID", value);
            let (word, detail) = compared(&ask, &expect, status, body.clone());
            assert_eq!(word, "interfered", "{message}: {detail}");
            assert!(
                detail.contains(who) && detail.contains(&message),
                "{detail}"
            );
        }
    };
    let hook = "admission webhook \"h.example\"";
    for (status, words) in [
        (403, ": image not signed"),
        (422, ": Pod \"a\" is invalid: spec.hostPID"),
        (400, ": unknown field \"spec.hostPID\""),
        (403, ": because it is being terminated"),
        (500, " without explanation"),
    ] {
        named(status, format!("{hook} denied the request{words}"), hook);
    }
    let policy = "ValidatingAdmissionPolicy 'p' with binding 'b'";
    let denied = format!("{policy} denied request: no");
    for (status, words, who) in [
        (422, denied.as_str(), policy),
        (401, denied.as_str(), policy),
        (403, "exceeded quota: q, requested: a", "ResourceQuota q"),
        (403, "failed quota: q: must specify a", "ResourceQuota q"),
        (403, "violates PodSecurity \"restricted\"", "PodSecurity"),
        (403, "maximum cpu usage per Pod is 1", "LimitRanger"),
        (403, "error looking up service account", "ServiceAccount"),
        (403, "a reason of its own", "does not say its name"),
    ] {
        named(status, format!("pods \"a\" is forbidden: {words}"), who);
    }
    let policy = "policy 'p' with binding 'b'";
    named(403, format!("{policy} denied request: no"), policy);
}

#[test]
fn a_field_is_ours_wherever_the_container_moved() {
    let field = "securityContext.allowPrivilegeEscalation";
    let own = ask(&format!("container.{field}"), json!(false));
    for index in 0..3 {
        let moved = refused_for(&format!("spec.initContainers[{index}].{field}"));
        let seen = compared(&own, &forbidden(), 422, moved);
        assert!(
            seen.0 == "holds" && !seen.1.contains("not sent"),
            "{seen:?}"
        );
    }
    let of_another_list = refused_for(&format!("spec.containers[1].{field}"));
    let seen = compared(&own, &forbidden(), 422, of_another_list);
    assert_eq!(seen.0, "interfered", "{seen:?}");
    for (value, expect, word) in [
        (json!(false), ACCEPTED, "holds"),
        (json!(false), forbidden(), "refuted"),
        (json!(true), forbidden(), "interfered"),
        (json!(null), ACCEPTED, "holds"),
    ] {
        let moved = came_back(&own, |pod| {
            let list = &mut pod["spec"]["initContainers"];
            list[0]["securityContext"]["allowPrivilegeEscalation"] = value;
            *list = json!([{"name": "mesh", "image": "mesh"}, list[0]]);
        });
        let seen = compared(&own, &expect, 201, moved);
        assert_eq!(seen.0, word, "{seen:?}");
    }
}

#[test]
fn an_empty_list_that_a_patch_loses_is_no_failure() {
    let own = ask("spec.securityContext.supplementalGroups", json!([]));
    let lost = |patch: &Json| {
        let pod = came_back(&own, |pod| {
            pod["spec"]["securityContext"] = json!({});
            merge(pod, patch);
        });
        compared(&own, &forbidden(), 201, pod)
    };
    let key = json!([{"key": "os"}]);
    for (patch, what) in [
        (json!({"spec": {"tolerations": key}}), "spec.tolerations"),
        (json!({"spec": {"nodeSelector": key}}), "spec.nodeSelector"),
        (json!({"metadata": {"labels": key}}), "metadata.labels"),
        (json!({"spec": {"dnsConfig": key}}), "spec.dnsConfig"),
        (json!({"spec": {"dnsPolicy": "None"}}), "spec.dnsPolicy"),
        (
            json!({"spec": {"enableServiceLinks": false}}),
            "spec.enableServiceLinks",
        ),
    ] {
        let (word, because) = lost(&patch);
        assert_eq!(word, "inapplicable", "{because}");
        assert!(
            because.contains("value-lost-on-the-way") && because.contains(what),
            "{because}"
        );
    }
    // Nothing else is altered: a policy may have altered nothing to be seen, or validation forgot it
    let (word, detail) = lost(&json!({}));
    assert!(
        word == "interfered" && detail.contains("value-lost-on-the-way"),
        "{detail}"
    );
    // What came back was let pass
    let seen = compared(&own, &forbidden(), 201, came_back(&own, |_| ()));
    assert_eq!(seen.0, "refuted", "{seen:?}");
}

#[test]
fn what_something_removes_alters_or_adds_fails_nothing() {
    let own = ask("spec.hostPID", json!(true));
    let zero = ask("spec.securityContext.runAsUser", json!(0));
    let host = ask(
        "spec.securityContext.windowsOptions.hostProcess",
        json!(true),
    );
    // All fields at once, of a pod without a system
    let mut every = ask("spec.hostPID", json!(null));
    (every.os, every.with) = (None, json!({"spec": {"hostPID": true}}));
    let limits = ask("spec.resources", json!({"limits": {"cpu": "1"}}));
    let requests = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
    let needs_host = refused("FieldValueInvalid", Some("spec.hostNetwork"));
    let (no, linux) = (json!(null), json!({"name": "linux"}));
    let no_user = json!({"runAsUser": no, "added": 1});
    for (ask, expect, patch, word) in [
        (&own, forbidden(), json!({"hostPID": no}), "interfered"),
        (&own, ACCEPTED, json!({"hostPID": no}), "interfered"),
        (&own, forbidden(), json!({"os": no}), "interfered"),
        (&own, ACCEPTED, json!({"os": linux}), "interfered"),
        (&own, forbidden(), json!({"dnsConfig": "a"}), "refuted"),
        (&every, ACCEPTED, json!({}), "holds"),
        (&every, ACCEPTED, json!({"hostPID": no}), "interfered"),
        (&every, ACCEPTED, json!({"os": linux}), "interfered"),
        // Defaults of the server
        (
            &limits,
            forbidden(),
            json!({"resources": requests}),
            "refuted",
        ),
        (
            &zero,
            forbidden(),
            json!({"securityContext": no_user}),
            "interfered",
        ),
        (
            &host,
            needs_host.clone(),
            json!({"hostNetwork": true}),
            "interfered",
        ),
        (&host, needs_host, json!({}), "refuted"),
    ] {
        let patch = json!({"spec": patch});
        let seen = compared(ask, &expect, 201, came_back(ask, |pod| merge(pod, &patch)));
        assert_eq!(seen.0, word, "{patch}: {seen:?}");
    }
    // A pod that lost its `spec.os` when it was made
    let mut resize = ask("container.resources.requests", json!({"cpu": "20m"}));
    (resize.change, resize.container) = (Change::Resize, ContainerKind::Container);
    let expect = refused("FieldValueForbidden", Some("[]"));
    for (os, word) in [
        (json!(null), "interfered"),
        (json!({"name": "windows"}), "refuted"),
    ] {
        let mut pod = json!({"kind": "Pod", "spec": {"os": os}});
        merge(&mut pod, &resize.body().expect("a body"));
        assert_eq!(compared(&resize, &expect, 200, pod).0, word);
    }
}

#[test]
fn a_refusal_for_what_was_not_sent_says_nothing_of_what_was() {
    let (own, unset) = (
        ask("spec.hostPID", json!(true)),
        ask("spec.hostPID", json!(false)),
    );
    let plain = ask("spec.os", json!(null));
    let linux = invalid(
        "FieldValueForbidden",
        "spec.hostPID",
        "cannot be set for a linux pod",
    );
    let gone = invalid("FieldValueRequired", "spec.containers[0].image", "");
    let other = invalid("FieldValueInvalid", "spec.hostPID", "");
    let lifecycle = "spec.containers[0].lifecycle.stopSignal";
    let without_os = "may not be set for containers with empty `spec.os.name`";
    let without_os = invalid("FieldValueForbidden", lifecycle, without_os);
    let mut signal = ask("container.lifecycle.stopSignal", json!("SIGTERM"));
    signal.container = ContainerKind::Container;
    for (ask, expect, body, word) in [
        (&own, forbidden(), refused_for("spec.hostIPC"), "interfered"),
        (&unset, ACCEPTED, refused_for("spec.hostIPC"), "interfered"),
        (&own, forbidden(), gone, "interfered"),
        (&own, forbidden(), linux.clone(), "interfered"),
        (&unset, ACCEPTED, linux, "interfered"),
        (&own, forbidden(), other, "otherwise"),
        (&signal, ACCEPTED, without_os, "interfered"),
        (&own, forbidden(), refused_for("spec.os"), "otherwise"),
        (&unset, ACCEPTED, refused_for("spec.hostPID"), "refuted"),
        // A plain pod is what is asked about, whoever added the field
        (&plain, ACCEPTED, refused_for("spec.hostIPC"), "refuted"),
    ] {
        let seen = compared(ask, &expect, 422, body);
        assert_eq!(seen.0, word, "{seen:?}");
    }
}

#[test]
fn a_dropped_field_is_called_so_whatever_its_value() {
    let own = ask("spec.hostUsers", json!(false));
    let dropped = came_back(&own, |pod| pod["spec"]["hostUsers"] = json!(null));
    let seen = compared(&own, &AdmissionExpect::Dropped, 201, dropped);
    assert_eq!(
        seen,
        ("holds", "accepted with the field dropped".to_owned())
    );
}
