//! How faults and fields are written.

use std::error::Error;

use serde_json::{Value, json};

use crate::front::{FieldPath, FrontFault, Trouble};

#[test]
fn every_fault_is_read_as_it_is_written() {
    for written in [
        "too-many-requests=0.2",
        "internal-error",
        "gone=0.5",
        "hang=0",
        "reset",
        "cut-exec=0.25",
        "lose-exit-frame",
        "html-502",
        "admission-allows=spec.hostPID",
        "admission-drops=spec.containers[*].securityContext.privileged",
        "admission-injects=metadata.annotations[\"a.b/c\"]:\"x=y:z\"",
        "admission-drops=container.lifecycle.stopSignal",
        "admission-allows-resize",
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
        "slow=0.5",
        "hostile-texts",
    ] {
        let fault: FrontFault = written.parse().expect(written);
        assert_eq!(fault.to_string(), written);
    }
    let all: FrontFault = "hang=1.0".parse().expect("a share");
    assert_eq!(
        all,
        FrontFault::Harness {
            trouble: Trouble::Hang,
            share: 1.0
        }
    );
    assert_eq!(all.to_string(), "hang");
}

#[test]
fn the_catalogue_names_every_fault() {
    let names: Vec<&str> = FrontFault::catalogue()
        .iter()
        .map(|entry| entry.name)
        .collect();
    for trouble in Trouble::ALL {
        assert!(names.contains(&trouble.name()), "{trouble}");
    }
    assert_eq!(names.len(), Trouble::ALL.len() + 13);
    for entry in FrontFault::catalogue() {
        let parameter = match entry.parameter {
            "[=SHARE]" => "=0.5",
            "=FIELD" => "=spec.x",
            "=FIELD:VALUE" => "=spec.x:null",
            "" => "",
            "=N" => "=7",
            parameter => {
                assert!(parameter.contains("RESOURCE"), "{parameter}");
                "=pods"
            }
        };
        let fault: FrontFault = format!("{}{parameter}", entry.name)
            .parse()
            .expect(entry.name);
        assert_eq!(fault.name(), entry.name);
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    for (written, message) in [
        (
            "to-many-request",
            "unknown fault `to-many-request`; did you mean `too-many-requests`?",
        ),
        (
            "html502=0.1",
            "unknown fault `html502`; did you mean `html-502`?",
        ),
        (
            "hang=2",
            "the share of `hang` must be a number from 0 to 1, not `2`",
        ),
        (
            "hang=NaN",
            "the share of `hang` must be a number from 0 to 1, not `NaN`",
        ),
        (
            "reset=",
            "the share of `reset` must be a number from 0 to 1, not ``",
        ),
        (
            "admission-drops",
            "`admission-drops` needs a parameter: `admission-drops=FIELD`",
        ),
        (
            "admission-injects=spec.x",
            "`admission-injects` needs a parameter: `admission-injects=FIELD:VALUE`",
        ),
        (
            "admission-allows=",
            "failed to read the field of `admission-allows`",
        ),
        (
            "admission-allow-resize",
            "unknown fault `admission-allow-resize`; did you mean `admission-allows-resize`?",
        ),
        (
            "hostile-texts=0.5",
            "`hostile-texts` takes no parameter, not even `0.5`",
        ),
        (
            "token-expires",
            "`token-expires` needs a parameter: `token-expires=N`",
        ),
        (
            "server-restarts=soon",
            "`server-restarts` needs a number of requests, such as `server-restarts=20`, not `soon`",
        ),
        (
            "answers-403=Pod",
            "`Pod` of `answers-403` is no resource (`*` is all of them, `pods/exec` a subresource, \
             `/metrics` a path); did you mean `pods`?",
        ),
        (
            "webhook-times-out=deployment",
            "`deployment` of `webhook-times-out` is no resource (`*` is all of them, `pods/exec` a \
             subresource, `/metrics` a path); did you mean `deployments`?",
        ),
        (
            "admission-refuses=pods:forbidden",
            "`admission-refuses` takes no `forbidden` behind the resource, but Invalid, Forbidden, \
             Unauthorized, RequestEntityTooLarge; did you mean `Forbidden`?",
        ),
        (
            "webhook-refuses=pods:404",
            "`webhook-refuses` takes no `404` behind the resource, but 400, 403; did you mean `400`?",
        ),
        (
            "admission-injects=a:b",
            "failed to read `b`, the value of `admission-injects`, as JSON",
        ),
    ] {
        let error = written.parse::<FrontFault>().expect_err(written);
        assert_eq!(error.to_string(), message);
    }
    let error = "admission-allows=spec..x"
        .parse::<FrontFault>()
        .expect_err("no field");
    let source = error.source().expect("a source").to_string();
    assert!(
        source.starts_with("`spec..x` is not the path of a field"),
        "{source}"
    );
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
        let taken = field(path).take(&mut object);
        assert_eq!(taken.len(), 1, "{path}");
        assert_eq!(
            object.pointer(left).unwrap_or(&Value::Null),
            &Value::Null,
            "{path}"
        );
        for one in taken {
            one.restore(&mut object);
        }
        assert_eq!(object, original, "{path}");
    }

    // What is left empty goes as well
    let mut object = json!({ "spec": { "os": { "name": "x" }, "initContainers": [{ "name": "i",
        "securityContext": { "privileged": true } }] } });
    let whole = object.clone();
    let taken = [
        field("spec.os.name").take(&mut object),
        field("container.securityContext.privileged").take(&mut object),
    ];
    assert_eq!(
        object,
        json!({ "spec": { "initContainers": [{ "name": "i" }] } })
    );
    for one in taken.into_iter().flatten() {
        one.restore(&mut object);
    }
    assert_eq!(object, whole);

    // A server that put a container first does not mislead it
    let mut object = original.clone();
    let taken = field("spec.containers[*].securityContext").take(&mut object);
    let containers = object["spec"]["containers"].as_array_mut().expect("a list");
    containers.insert(0, json!({ "name": "sidecar" }));
    for one in taken {
        one.restore(&mut object);
    }
    assert_eq!(
        object["spec"]["containers"][0],
        json!({ "name": "sidecar" })
    );
    assert_eq!(
        object["spec"]["containers"][1],
        original["spec"]["containers"][0]
    );

    let mut object = original.clone();
    assert!(field("spec.nothing.there").take(&mut object).is_empty());
    assert!(
        field("spec.hostPID.inside[*].x")
            .take(&mut object)
            .is_empty()
    );
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
        // That ephemeral containers cannot be created is no rule of any of their fields
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
