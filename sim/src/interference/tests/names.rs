//! Textual forms of faults and fields.

use serde_json::{Value, json};

use crate::interference::{Fault, FieldPath, Trouble};

#[test]
fn every_fault_is_read_as_it_is_written() {
    let others = [
        "admission-allows=spec.hostPID",
        "admission-drops=spec.containers[*].securityContext.privileged",
        "admission-injects=metadata.annotations[\"a.b/c\"]:\"x=y:z\"",
        "admission-drops=container.lifecycle.stopSignal",
        "admission-allows-resize",
        "quota-ignored",
        "gmsa-unchecked",
        "admission-refuses=*",
        "admission-refuses=pods:Forbidden",
        "webhook-refuses=deployments",
        "webhook-refuses=deployments:403",
        "webhook-times-out",
        "webhook-times-out=*",
        "webhook-no-dry-run=jobs",
        "answers-403=pods/exec",
        "answers-403=/metrics",
        "token-expires=12",
        "server-restarts=0",
        "aggregated-down",
        "hostile-texts",
    ];
    for written in others {
        written.parse::<Fault>().expect(written);
    }
    for (written, trouble, share) in [
        ("hang", Trouble::Hang, 1.0),
        ("too-many-requests=0.2", Trouble::TooManyRequests, 0.2),
        ("html-502=0", Trouble::Html502, 0.0),
    ] {
        let fault: Fault = written.parse().expect(written);
        assert_eq!(fault, Fault::Harness(trouble, share), "{written}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for (written, message) in [
        ("html502=0.1", "unknown fault `html502`"),
        ("hang=2", "`hang` cannot be `2`"),
        ("hang=NaN", "`hang` cannot be `NaN`"),
        ("reset=", "`reset` cannot be ``"),
        ("admission-drops", "`admission-drops` cannot be ``"),
        (
            "admission-injects=a:b",
            "`admission-injects` cannot be `a:b`",
        ),
        ("admission-injects=a", "`admission-injects` cannot be `a`"),
        ("hostile-texts=0.5", "`hostile-texts` cannot be `0.5`"),
        ("server-restarts=soon", "`server-restarts` cannot be `soon`"),
        (
            "admission-refuses=pods:no",
            "`admission-refuses` cannot be `pods:no`",
        ),
        (
            "webhook-refuses=pods:404",
            "`webhook-refuses` cannot be `pods:404`",
        ),
    ] {
        let error = written.parse::<Fault>().expect_err(written);
        assert_eq!(error.to_string(), message);
    }
    "admission-allows=spec..x"
        .parse::<Fault>()
        .expect_err("no field");
}

#[test]
fn fields_go_and_come_back() {
    let field = |text: &str| text.parse::<FieldPath>().expect(text);
    let original = json!({ "spec": {
        "hostPID": true,
        "containers": [
            { "name": "a", "securityContext": { "privileged": true } },
            { "name": "b" },
        ],
        "list": [1, 2],
    }});
    for (path, left) in [
        ("spec.hostPID", "/spec/hostPID"),
        (
            "spec.containers[*].securityContext",
            "/spec/containers/0/securityContext",
        ),
        (
            "spec.containers[0].securityContext.privileged",
            "/spec/containers/0/securityContext/privileged",
        ),
        ("spec.list[1]", "/spec/list/1"),
    ] {
        let mut object = original.clone();
        assert!(field(path).remove_from(&mut object), "{path}");
        let left = object.pointer(left).unwrap_or(&Value::Null);
        assert_eq!(left, &Value::Null, "{path}");
        field(path).restore(&mut object, &original);
        assert_eq!(object, original, "{path}");
    }

    // An object that becomes empty is removed too
    let mut object = json!({ "spec": { "os": { "name": "x" }, "initContainers": [{ "name": "i",
        "securityContext": { "privileged": true } }] } });
    let whole = object.clone();
    let fields = ["spec.os.name", "container.securityContext.privileged"].map(field);
    assert!(fields.iter().all(|field| field.remove_from(&mut object)));
    assert_eq!(
        object,
        json!({ "spec": { "initContainers": [{ "name": "i" }] } })
    );
    for field in &fields {
        field.restore(&mut object, &whole);
    }
    assert_eq!(object, whole);

    // A container that the server inserts at the front must not mislead it
    let mut object = original.clone();
    let path = field("spec.containers[*].securityContext");
    path.remove_from(&mut object);
    let containers = object["spec"]["containers"].as_array_mut().expect("a list");
    containers.insert(0, json!({ "name": "sidecar" }));
    path.restore(&mut object, &original);
    assert_eq!(
        object["spec"]["containers"][0],
        json!({ "name": "sidecar" })
    );
    assert_eq!(
        object["spec"]["containers"][1],
        original["spec"]["containers"][0]
    );

    let mut object = original.clone();
    for path in ["spec.nothing.there", "spec.hostPID.inside[*].x"] {
        assert!(!field(path).remove_from(&mut object), "{path}");
        field(path).restore(&mut object, &original);
    }
    assert_eq!(object, original);

    assert!(field("spec.made.here").set(&mut object, &json!(1)));
    assert!(field("container.image").set(&mut object, &json!("i")));
    assert!(!field("spec.initContainers[*].image").set(&mut object, &json!("i")));
    assert_eq!(object["spec"].get("initContainers"), None);
    assert_eq!(object["spec"]["made"]["here"], 1);
    assert_eq!(object["spec"]["containers"][1]["image"], "i");

    for wrong in [
        "", ".", "a.", "a..b", "[0]", "a[x]", "a[0", "a[0]b", "a[\"b]",
    ] {
        wrong.parse::<FieldPath>().expect_err(wrong);
    }
}

#[test]
fn fields_know_their_errors() {
    for (field, place, message, concerned) in [
        ("spec.hostPID", "spec.hostPID", "", true),
        ("spec.hostPID", "spec.hostIPC", "", false),
        ("spec.os.name", "spec.os", "", true),
        ("spec.hostPID", "spec", "it is about hostProcess", false),
        (
            "container.securityContext.windowsOptions.hostProcess",
            "spec",
            "hostProcess",
            true,
        ),
        (
            "spec.containers[*].securityContext",
            "spec.containers[3].securityContext.x",
            "",
            true,
        ),
        (
            "spec.containers[1].image",
            "spec.containers[3].image",
            "",
            false,
        ),
        (
            "container.image",
            "spec.ephemeralContainers[0].image",
            "",
            true,
        ),
        // An error that ephemeral containers cannot be created is about none of their fields
        (
            "container.securityContext.privileged",
            "spec.ephemeralContainers",
            "",
            false,
        ),
        ("spec.hostPID", "<nil>", "", false),
        ("spec.hostPID", "metadata.annotations[a.b/c]", "", false),
    ] {
        let read: FieldPath = field.parse().expect(field);
        assert_eq!(
            read.concerns(place, message),
            concerned,
            "{field} at {place}"
        );
    }
}
