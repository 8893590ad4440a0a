//! The text of an error's chain of causes, without anything that may be a secret.

use std::error::Error;

use kube::client::AuthError;
use winconform_core::text::printable;

/// The errors of a chain, outermost first. `io::Error` hides the error it wraps from `source()`.
pub(crate) fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| {
        let error: &'e (dyn Error + 'static) = *error;
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

/// The text of an error's chain. It names each cause once, though kube's errors repeat their source's text.
pub(crate) fn error_text(error: &(dyn Error + 'static)) -> String {
    // An `AuthError` may quote a credential
    if causes(error).any(<dyn Error>::is::<AuthError>) {
        return "the credentials of the kubeconfig cannot be used".to_owned();
    }
    let texts: Vec<_> = causes(error).map(ToString::to_string).collect();
    let mut shown = String::new();
    for (at, text) in texts.iter().enumerate() {
        // Drop the end that repeats the next cause
        let mut part = text.as_str();
        if let Some(next) = texts.get(at + 1) {
            part = part.strip_suffix(next.as_str()).unwrap_or(part);
        }
        let part = part.trim_end_matches([':', ' ']);
        let wrapper = matches!(
            part,
            "ServiceError" | "HyperError" | "client error (Connect)" | ""
        );
        if wrapper || shown.contains(part) {
            continue;
        }
        if !shown.is_empty() {
            shown.push_str(": ");
        }
        shown.push_str(part);
    }
    if shown.is_empty() {
        shown.push_str("no reason given");
    }
    printable(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_chain_is_told_once() {
        let inner = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let error = kube::Error::Service(Box::new(inner));
        assert_eq!(error_text(&error), "connection refused");
    }
}
