//! Which known word a wrong one is most like.

/// The one of the known words that takes the fewest edits to reach; none if there are no words.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .min_by_key(|name| strsim::levenshtein(written, name))
}
