//! Which known word a misspelt one was meant to be.

/// The known word that takes the fewest edits to reach; `None` if they exceed a third of the longer word's
/// length.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = written.to_lowercase();
    let edits = |name: &str| strsim::levenshtein(&written, &name.to_lowercase());
    known
        .into_iter()
        .filter(|name| edits(name) * 3 <= written.chars().count().max(name.len()))
        .min_by_key(|name| edits(name))
}

/// A suggestion of that word for the end of a sentence, or an empty text.
pub(crate) fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| {
        format!("; did you mean `{nearest}`?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_is_not_meant() {
        let known = ["dns-down", "kube-proxy-dead", "gone"];
        for (written, near) in [
            ("dns-dwn", Some("dns-down")),
            ("kubeproxy-ded", Some("kube-proxy-dead")),
            ("gon", Some("gone")),
            ("Gone", Some("gone")),
            ("go", None),
            ("", None),
            ("windows", None),
            ("kube", None),
        ] {
            assert_eq!(nearest(written, known), near, "{written}");
        }
        assert_eq!(meant(nearest("gon", known)), "; did you mean `gone`?");
        assert_eq!(meant(None), "");
    }
}
