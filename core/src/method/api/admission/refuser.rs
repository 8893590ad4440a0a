//! Finds who refused an object: the validation of the API server, or something else.

/// Whether a refusal of an object of this kind comes from validation: `Pod "a" is invalid: …` (apimachinery
/// `NewInvalid`).
///
/// Nothing else can begin so. The API server puts `admission webhook "…" denied the request` before a
/// webhook's message, and `pods "a" is forbidden: ` before the message of a policy or plugin, whatever code,
/// reason and causes these give (apiserver `webhook/errors`, `admission.NewForbidden`).
pub(super) fn is_validation(kind: &str, message: &str) -> bool {
    let named = message.strip_prefix(kind).unwrap_or_default();
    named.starts_with([' ', '.']) && named.contains("\" is invalid")
}

/// The name of who refused, where a message names one that is not validation (kubernetes 1.37.0,
/// `plugin/pkg/admission`; apiserver, `pkg/admission/plugin`).
pub(super) fn named(message: &str) -> Option<String> {
    if message.starts_with("admission webhook \"") {
        let end = message.find(" denied the request")?;
        return Some(message[..end].to_owned());
    }
    let forbidden = message.split_once(" is forbidden: ");
    // The message of a MutatingAdmissionPolicy has no such prefix
    let said = forbidden.map_or(message, |(_, said)| said);
    if let Some((policy, _)) = said.split_once(" denied request")
        && (policy.starts_with("ValidatingAdmissionPolicy ") || policy.starts_with("policy "))
    {
        return Some(policy.to_owned());
    }
    forbidden?;
    let mut quotas = ["exceeded quota: ", "failed quota: "].into_iter();
    if let Some(rest) = quotas.find_map(|begin| said.strip_prefix(begin)) {
        let end = rest.find([',', ':']).unwrap_or(rest.len());
        return Some(format!("ResourceQuota {}", &rest[..end]));
    }
    // Words of authorisers come from no plugin, whatever the names of users
    let plugin = PLUGINS.iter().find(|(words, _)| said.contains(words));
    let plugin = plugin.filter(|_| !said.starts_with("User "))?;
    Some(plugin.1.to_owned())
}

/// Words that identify plugins whose messages do not name them.
const PLUGINS: [(&str, &str); 6] = [
    ("violates PodSecurity \"", "PodSecurity"),
    (" quota", "ResourceQuota"),
    (" usage per ", "LimitRanger"),
    (" limit to request ratio per ", "LimitRanger"),
    ("service account", "ServiceAccount"),
    ("PriorityClass", "Priority"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validation_names_the_kind_and_says_that_it_is_invalid() {
        assert!(is_validation(
            "Pod",
            "Pod \"a\" is invalid: spec: Forbidden"
        ));
        assert!(!is_validation("Pod", "pods \"a\" is invalid"));
        assert!(!is_validation("Pod", "Pod \"a\" is forbidden"));
        assert!(!is_validation("Pod", "PodX \"a\" is invalid"));
    }
}
