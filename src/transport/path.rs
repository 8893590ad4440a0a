//! Paths of the API: parts made safe, and which kind of object one is about.

use std::fmt::Write as _;

/// One part of a path, or one value of a query, percent-encoded (RFC 3986, unreserved stays).
pub fn encode(part: &str) -> String {
    // `.` and `..` would be taken as steps in the path
    let dots = !part.is_empty() && part.bytes().all(|byte| byte == b'.');
    let mut encoded = String::with_capacity(part.len());
    for byte in part.bytes() {
        let stays = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if stays && !dots {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a String does not fail");
        }
    }
    encoded
}

/// The kind of object, and subresource, that a path is about: `pods`, `pods/exec`, `version`.
pub(super) fn kind_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let object = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        other => return other.join("/"),
    };
    match object {
        [] => "api".to_owned(),
        ["namespaces", _, kind, _, below @ ..] if !below.is_empty() => {
            format!("{kind}/{}", below.join("/"))
        }
        ["namespaces", _, kind, ..] | [kind, ..] => (*kind).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_one_part() {
        assert_eq!(encode("win-2022.a_b~c"), "win-2022.a_b~c");
        assert_eq!(encode("a/b?c#d e%"), "a%2Fb%3Fc%23d%20e%25");
        assert_eq!(encode(".."), "%2E%2E");
        assert_eq!(encode("é"), "%C3%A9");
    }

    #[test]
    fn paths_are_counted_by_kind() {
        for (path, kind) in [
            ("/version", "version"),
            ("/api/v1/nodes?limit=500", "nodes"),
            ("/api/v1/namespaces/kube-system", "namespaces"),
            ("/api/v1/namespaces/a/pods", "pods"),
            ("/api/v1/namespaces/a/pods/b/exec?command=c", "pods/exec"),
            ("/apis/apps/v1/namespaces/a/deployments/b", "deployments"),
            ("/apis/coordination.k8s.io/v1/leases", "leases"),
        ] {
            assert_eq!(kind_of(path), kind);
        }
    }
}
