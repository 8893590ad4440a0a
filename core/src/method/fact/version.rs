//! Versions of products, as nodes report them.

use semver::Version;

/// The numbers that a version begins with, without a leading `v` and without suffixes: `v1.37.0-gke.100`,
/// `20.10`, `18.09.7`, `3.10.2-windows-ltsc2025`. No product's suffix follows semantic versioning, by which
/// `23.0.9-3` would come before 23.0.9. `None` without two numbers.
pub(crate) fn numbers(text: &str) -> Option<Version> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let mut parts = text[..end].split('.').map(|part| part.parse().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    let patch = match parts.next() {
        None => 0,
        Some(patch) => patch?,
    };
    Some(Version::new(major, minor, patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_suffixes_left() {
        for (text, expected) in [
            ("v1.37.0", (1, 37, 0)),
            ("v1.33.4-gke.100", (1, 33, 4)),
            ("1.7.20+azure", (1, 7, 20)),
            ("23.0.9-3", (23, 0, 9)),
            ("18.09.7", (18, 9, 7)),
            ("3.10", (3, 10, 0)),
            ("3.10.2-windows-ltsc2025", (3, 10, 2)),
            ("10.0.20348.2700", (10, 0, 20348)),
        ] {
            let (major, minor, patch) = expected;
            let expected = Version::new(major, minor, patch);
            assert_eq!(numbers(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "v",
            "1",
            "latest",
            "1.",
            "1.x",
            "1.2.",
            "1..2",
            "99999999999999999999.1",
        ] {
            assert_eq!(numbers(text), None, "{text}");
        }
    }
}
