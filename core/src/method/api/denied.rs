//! Reads from a 403 that a server's authorisers deny us something: an admission refusal is a 403, too.

use std::fmt;

use serde_json::Value as Json;

/// An action that a server's authorisers deny us.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denied {
    /// The verb: `create`.
    pub verb: String,
    /// The resource with its subresource (`pods/resize`), or the path (`/metrics`).
    pub what: String,
}

impl Denied {
    /// Reads the denied action from the Status of a 403; `None` where admission refuses.
    ///
    /// The server words the denial itself, whatever its authoriser, and appends the authoriser's reason
    /// (apiserver `responsewriters.Forbidden`, `forbiddenMessage`). The words of a webhook or policy never
    /// appear in the place of a user.
    pub fn from_status(status: &Json) -> Option<Self> {
        let message = status["message"].as_str()?;
        let said = message.split_once("forbidden: ")?;
        // `forbidden`, `pods is forbidden`, `pods "a" is forbidden`
        let subject = said.0.strip_suffix(" is ").unwrap_or(said.0);
        let mut words = subject.split(' ');
        let kind = words.next().unwrap_or_default();
        let name = words.next().is_none_or(|name| name.starts_with('"'));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '/');
        if !kind.chars().all(plain) || !name || words.next().is_some() {
            return None;
        }
        Self::said(said.1)
    }

    /// The same, read from words that quote a server's.
    pub fn quoted(words: &str) -> Option<Self> {
        let (_, said) = words.split_once("forbidden: User ")?;
        Self::said(&format!("User {said}"))
    }

    /// Reads `User "a" cannot VERB resource "R" in API group "G" …` or `… path "P"`.
    fn said(text: &str) -> Option<Self> {
        let rest = after_quoted(text.strip_prefix("User ")?)?;
        let (verb, rest) = rest.strip_prefix(" cannot ")?.split_once(' ')?;
        let rest = ["resource ", "path "]
            .iter()
            .find_map(|word| rest.strip_prefix(word))?;
        let what = rest.strip_prefix('"')?.split('"').next()?;
        Some(Self {
            verb: verb.to_owned(),
            what: what.to_owned(),
        })
    }
}

/// Whether a refusal is for a namespace that is terminating (plugin `NamespaceLifecycle`: 403) or gone (404),
/// rather than for the object sent.
pub fn lacks_namespace(status: u16, message: &str) -> bool {
    match status {
        403 => message.contains("because it is being terminated"),
        404 => message.starts_with("namespaces \""),
        _ => false,
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.what)
    }
}

/// The text after one that is quoted as Go's `%q` does.
fn after_quoted(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (at, character) in text.strip_prefix('"')?.char_indices() {
        match character {
            '"' if !escaped => return text.get(at + 2..),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("denied.yaml");
    use serde_json::json;

    fn denied_by(message: &str) -> Option<String> {
        Denied::from_status(&json!({"kind": "Status", "message": message}))
            .map(|denied| denied.to_string())
    }

    #[test]
    fn what_is_denied_is_read_of_real_answers() {
        // Kubernetes 1.37.0
        for (message, denied) in rows::<(String, String)>(TABLES, "denied") {
            assert_eq!(denied_by(&message).as_deref(), Some(&*denied), "{message}");
            let quoted = Denied::quoted(&format!("/api/v1/x: status 403: {message}"));
            assert_eq!(
                quoted.map(|quoted| quoted.to_string()).as_deref(),
                Some(&*denied)
            );
        }
    }

    #[test]
    fn what_admission_says_is_no_denial() {
        for message in [
            r#"pods "x" is forbidden: violates PodSecurity "baseline:latest": hostPID"#,
            r#"pods "x" is forbidden: exceeded quota: q"#,
            r#"admission webhook "a.b" denied the request: pods is forbidden: User "a" cannot create resource "pods" in API group """#,
            r#"pods "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: forbidden: User "a" cannot create resource "pods""#,
            r#"User "a" cannot create resource "pods""#,
            r#"admission: is forbidden: User "a" cannot create resource "pods""#,
            r#"pods x is forbidden: User "a" cannot create resource "pods""#,
            r#"pods "x" twice is forbidden: User "a" cannot create resource "pods""#,
            r#"forbidden: User "a"#,
            "",
        ] {
            assert_eq!(denied_by(message), None, "{message}");
        }
        assert_eq!(Denied::from_status(&json!("pods")), None);
    }
}
