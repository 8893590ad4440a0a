//! The assertions that must hold beside a case's own.

use strum::IntoStaticStr;

use super::assertion::read_test;
use super::case::read_name;
use crate::document::{Decoder, Node};
use crate::fixture::FixtureName;
use crate::method::{AdmissionExpectation, Assertion, SourceKind, Target, Test};
use crate::verdict::Role;

/// An assertion that must hold in the same round, so that the case's own assertion proves something.
#[derive(Clone, Debug)]
pub struct Control {
    /// Its name within the case.
    pub name: String,
    /// Where it observes from, when not from where the case does.
    pub source: Option<SourceKind>,
    /// What it observes, when not what the case does.
    pub test: Option<Test>,
    /// What it leaves out of what the case sends.
    pub without: Option<Without>,
    /// What it means for the check if it does not hold.
    pub role: Role,
}

/// Whether a control observes as its case does, and something that may be closed to every operating system
/// alike: the outside, pings, datagrams, or port 80 of pods.
fn is_of_any_system(control: &Test, case: &Test) -> bool {
    match (control, case) {
        (Test::Http(test), Test::Http(case)) => match test.query.target {
            // The Services of the win-webserver lead to another port
            Target::Port80OnOtherNodes => match case.query.target {
                Target::Pods | Target::PodsOnOtherNodes => {
                    case.query.of == Some(FixtureName::WIN_WEBSERVER)
                }
                target => target == Target::LoadBalancer && case.query.of == Some(FixtureName::IIS),
            },
            target => target.is_outside() && target == case.query.target,
        },
        (Test::Ping(test), Test::Ping(case)) => {
            test.query.target != Target::Nodes && test.query.of.is_some() == case.query.of.is_some()
        }
        (Test::Udp(_), Test::Udp(_)) => true,
        (_, _) => false,
    }
}

/// Reports a control of the role `other-os` that involves Windows, or observes what every cluster must have.
pub(super) fn check_role(
    decoder: &mut Decoder<'_>,
    node: &Node,
    (case, sources): (&Test, &[SourceKind]),
    control: &Control,
) {
    let test = control.test.as_ref().unwrap_or(case);
    let sources = control
        .source
        .as_ref()
        .map_or(sources, std::slice::from_ref);
    let on_windows = [SourceKind::WindowsPod, SourceKind::WindowsNode];
    let on_linux = [FixtureName::LINUX_SERVER, FixtureName::LINUX_POD_PROBER];
    let is_elsewhere = sources.iter().all(|source| !on_windows.contains(source))
        && test.needs().iter().all(|(name, _)| on_linux.contains(name));
    let (message, hint) = match (control.role, is_elsewhere) {
        (Role::SamePath, _) => return,
        (Role::OtherOs, true) if is_of_any_system(test, case) => return,
        (Role::OtherOs, false) => (
            "a control with the role `other-os` must observe from Linux or from outside, and its target must be on Linux or outside",
            "give it `source: linux-pod`, and a `test` whose target is `linux-server` or outside the cluster",
        ),
        (Role::OtherOs, true) => (
            "the role `other-os` is only for a case that observes a target outside, pings, sends UDP, or observes port 80 of pods",
            "remove `role`: winconform never skips a check of something that every cluster must support",
        ),
    };
    decoder.report(node, message, Some(hint.to_owned()));
}

/// What a control leaves out of what its case sends, so that the server should accept it.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Without {
    Field,
    Os,
}

impl Without {
    /// The assertion of the control: it expects acceptance, and without `os` a field that the case expects to
    /// be dropped is dropped, too.
    pub fn assertion(self, test: &Test) -> Test {
        let Test::Admission(assertion) = test else {
            return test.clone();
        };
        let mut query = assertion.query.clone();
        match self {
            Self::Field => query.value = None,
            Self::Os => query.os = None,
        }
        let expectation = match (self, &assertion.expectation) {
            (Self::Os, AdmissionExpectation::Dropped) => AdmissionExpectation::Dropped,
            _ => AdmissionExpectation::Accepted,
        };
        Test::Admission(Assertion { query, expectation })
    }
}

/// Reads one control; problems are reported to the decoder.
pub(super) fn read_control(decoder: &mut Decoder<'_>, node: &Node) -> Option<Control> {
    let mut fields = decoder.fields(node, "a control")?;
    let name = fields.maybe(decoder, "name", read_name);
    let source = fields.maybe(decoder, "source", |decoder, node| {
        decoder.member(node, "source", SourceKind::ALL)
    });
    let test = fields.maybe(decoder, "test", read_test);
    let without = fields.optional("without");
    let role = fields.or(decoder, "role", Role::SamePath, |decoder, node| {
        let role = decoder.member(node, "role", &["other-os"]);
        role.map(|_| Role::OtherOs)
    });
    let extra = fields.finish(decoder);
    if without.is_none() && matches!(name, Some(None)) {
        decoder.report(node, "a control has no `name`", None);
    }
    let has_others = !matches!((&source, &test), (Some(None), Some(None)));
    let without = match without {
        Some(node) if has_others => {
            let message = "`without` says all of a control";
            let hint = "remove its `test` and `source`".to_owned();
            return decoder.fail(node, message, Some(hint));
        }
        Some(node) => {
            let parts = [Without::Field, Without::Os];
            Some(decoder.member(node, "part that is left out", &parts)?)
        }
        None if has_others => None,
        None => {
            // A mistyped key is reported already
            if extra == 0 {
                report_idle(decoder, node);
            }
            return None;
        }
    };
    let name = name?.or_else(|| match without? {
        Without::Field => Some("without-field".to_owned()),
        Without::Os => Some("without-os".to_owned()),
    });
    Some(Control {
        name: name?,
        source: source?,
        test: test?,
        without,
        role: role?,
    })
}

/// Reports a control that is like its case.
pub(super) fn report_idle(decoder: &mut Decoder<'_>, node: &Node) {
    let hint = "give it a `source` or a `test` of its own".to_owned();
    decoder.report(node, "a control like its case controls nothing", Some(hint));
}
