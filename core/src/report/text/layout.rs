//! Text in columns: terminal cells, not characters.

use std::borrow::Cow;

use textwrap::{Options, WordSplitter, WrapAlgorithm};
use unicode_width::UnicodeWidthStr;

use crate::plan::Axis;

/// The fewest columns a report is laid out for.
pub(crate) const NARROWEST: usize = 40;

/// How many terminal cells printable text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The text when it fits, else as much of it as fits with `…`.
pub(crate) fn fit(text: &str, limit: usize) -> String {
    if columns(text) <= limit {
        return text.to_owned();
    }
    // Widths of sequences are not sums of their characters' widths
    let heads = text.char_indices().map(|(end, _)| &text[..end]);
    let head = heads.take_while(|head| columns(head) < limit).last();
    format!("{}…", head.unwrap_or_default())
}

/// The text padded to a number of columns.
pub(crate) fn pad(text: &str, to: usize) -> String {
    let gap = to.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(gap))
}

/// Lines of at most `limit` columns, broken at spaces, and within words that are longer; an id of a check stays whole.
pub fn wrap(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(1);
    let options = Options::new(limit)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_splitter(WordSplitter::NoHyphenation);
    let words = text.split(' ').filter(|word| !word.is_empty());
    let words = words.map(|word| match columns(word) > limit && !has_id(word) {
        true => textwrap::wrap(word, &options).join(" "),
        false => word.to_owned(),
    });
    let words = words.collect::<Vec<_>>().join(" ");
    let lines = textwrap::wrap(&words, options.break_words(false)).into_iter();
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(Cow::into_owned).collect()
}

/// Lines behind a head: the first begins with it, the others with `margin` columns.
pub(crate) fn behind(
    head: &str,
    margin: usize,
    lines: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let margin = " ".repeat(margin);
    let heads = std::iter::once(head).chain(std::iter::repeat(margin.as_str()));
    let lines = heads.zip(lines);
    lines.map(|(head, line)| format!("{head}{line}")).collect()
}

/// Whether a word has the id of a check with its point, and nothing spelled out that might make it any length.
fn has_id(word: &str) -> bool {
    let points = word.split('[').skip(1);
    let mut axes = points.filter_map(|point| Some(point.split_once('=')?.0));
    axes.any(|axis| axis.parse::<Axis>().is_ok()) && !word.contains('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(fit("日本語", 6), "日本語");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(pad("日", 4), "日  ");
    }

    #[test]
    fn lines_break_at_spaces_and_within_long_words() {
        assert_eq!(wrap("a bb  ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
        assert!(wrap("", 5).is_empty());
        for id in ["a.b[pool=c,source=d]", "a.b/c[source=d]", "a.b[family=c]"] {
            assert_eq!(wrap(&format!("check {id}"), 9), ["check", id]);
        }
        assert_eq!(wrap("[a=b][2001:db8::1]", 9), ["[a=b][200", "1:db8::1]"]);
    }
}
