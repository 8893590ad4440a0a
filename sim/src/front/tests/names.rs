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
    assert_eq!(names.len(), Trouble::ALL.len() + 3);
    for entry in FrontFault::catalogue() {
        let parameter = match entry.parameter {
            "[=SHARE]" => "=0.5",
            "=FIELD" => "=spec.x",
            _ => "=spec.x:null",
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

    field("spec.made.here").set(&mut object, &json!(1));
    field("spec.containers[*].image").set(&mut object, &json!("i"));
    assert_eq!(object["spec"]["made"]["here"], 1);
    assert_eq!(object["spec"]["containers"][1]["image"], "i");

    for wrong in [
        "", ".", "a.", "a..b", "[0]", "a[x]", "a[0", "a[0]b", "a[\"b]",
    ] {
        wrong.parse::<FieldPath>().expect_err(wrong);
    }
}
