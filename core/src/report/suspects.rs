//! Who may have changed what was sent, from what the cluster says of its webhooks and policies.

use crate::facts::{Known, WebhookFact};
use crate::record::{CheckView, RunView};

/// What the admission of a check points to: a field was set, or `spec.os` altered, on the way to
/// validation. `None` where nothing was altered. Foreign text as recorded.
pub(super) fn suspects(view: &RunView, check: &CheckView) -> Option<String> {
    let looks = check.attempts.iter().flat_map(|attempt| &attempt.looks);
    let altered = looks
        .filter_map(|look| look.observation.as_ref())
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
        Some(Known::Unknown { because }) => {
            format!("a mutating webhook or policy; which there are is not known: {because}")
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
