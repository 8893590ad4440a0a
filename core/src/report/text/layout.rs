//! Text in columns: terminal cells, not characters.

use unicode_width::UnicodeWidthStr;

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
    let mut cut = text[..head(text, limit.saturating_sub(1))].to_owned();
    cut.push('…');
    cut
}

/// The text padded to a number of columns.
pub(crate) fn pad(text: &str, to: usize) -> String {
    let gap = to.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(gap))
}

/// Lines of at most `limit` columns, broken at spaces, and within words that are longer.
pub(crate) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word;
        if !line.is_empty() && columns(&line) + 1 + columns(word) > limit {
            lines.push(std::mem::take(&mut line));
        }
        while columns(word) > limit {
            // A character wider than the limit stands alone rather than nowhere
            let first = word.chars().next().map_or(word.len(), char::len_utf8);
            let (start, rest) = word.split_at(head(word, limit).max(first));
            lines.push(start.to_owned());
            word = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The length in bytes of the longest beginning that takes at most `limit` columns.
fn head(text: &str, limit: usize) -> usize {
    let mut end = 0;
    for (at, character) in text.char_indices() {
        let next = at + character.len_utf8();
        // Widths of sequences are not sums of their characters' widths
        if columns(&text[..next]) > limit {
            break;
        }
        end = next;
    }
    end
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
    }
}
