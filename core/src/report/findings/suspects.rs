//! What may be behind a finding: the cluster's webhooks and policies that may have changed what was sent, and
//! the image that a registry does not have.

use crate::facts::{Known, WebhookFact};
use crate::fixture::FixtureKey;
use crate::method::{ErrorKind, ObservationError};
use crate::record::{CheckView, RunView};
use crate::verdict::Reason;

/// What a check's conclusion points to. Foreign text as recorded.
pub(crate) fn suspects(view: &RunView, check: &CheckView) -> Option<String> {
    match check.reason() {
        Some(Reason::Fixture { fixture, error }) => unoffered(view, fixture, error),
        _ => altered(view, check),
    }
}

/// What a registry said of the image of a fixture whose pods got no image that they can run. Foreign text as
/// recorded.
pub(crate) fn unoffered(
    view: &RunView,
    key: &FixtureKey,
    error: &ObservationError,
) -> Option<String> {
    if !matches!(error.kind, ErrorKind::ImagePull | ErrorKind::BuildMismatch) {
        return None;
    }
    let pool = key.pool.as_ref()?;
    let mut images = view.unoffered.iter();
    let image = images.find(|one| one.pool == *pool && one.fixtures.contains(&key.name));
    image.map(ToString::to_string)
}

/// The suspects if something set a field or altered `spec.os` on the way to validation; `None` where nothing
/// was altered.
fn altered(view: &RunView, check: &CheckView) -> Option<String> {
    let assertions = check
        .attempts
        .iter()
        .flat_map(|attempt| &attempt.assertions);
    let altered = assertions
        .filter_map(|assertion| assertion.observation.as_ref())
        .any(|seen| {
            let foreign = seen["refused"]["foreign"].as_array();
            foreign.is_some_and(|fields| !fields.is_empty()) || !seen["os-altered"].is_null()
        });
    if !altered {
        return None;
    }
    Some(match view.facts.as_ref().map(|facts| &facts.webhooks) {
        Some(Known::Fact { value, .. }) => {
            let mutating: Vec<_> = value.iter().filter(|hook| hook.mutates).map(name).collect();
            match mutating.as_slice() {
                [] => "no mutating webhook or policy that is known sees pods; an admission plugin \
                       of the server, perhaps"
                    .to_owned(),
                some => some.join(", "),
            }
        }
        Some(Known::Unknown { reason }) => {
            format!("a mutating webhook or policy; which there are is not known: {reason}")
        }
        None => "a mutating webhook or policy".to_owned(),
    })
}

fn name(hook: &WebhookFact) -> String {
    let WebhookFact {
        kind,
        configuration,
        name,
        ..
    } = hook;
    match name.as_str() {
        "" => format!("{kind} {configuration}"),
        name => format!("{kind} {configuration} ({name})"),
    }
}
