//! Text made fit for XML before the writer sees it.
//!
//! The writer drops what its filter takes for terminal sequences: tabs, and everything after a
//! sequence that does not end. Here every character it could drop is spelled out instead. It
//! escapes markup itself, `]]>` included.

use std::fmt::Write as _;

use crate::text::is_hostile;

/// The most bytes of one string, before markup is escaped.
const LONGEST: usize = 16 << 10;

/// The text with line ends kept and every other control character spelled out, bounded.
pub(crate) fn clean(raw: &str) -> String {
    spell(raw, |character, text| match character {
        '\n' => text.push('\n'),
        other => text.extend(other.escape_unicode()),
    })
}

/// The same on one line, for attributes, in which readers take line ends for spaces.
pub(crate) fn clean_line(raw: &str) -> String {
    spell(raw, |character, text| match character {
        '\n' => text.push('⏎'),
        '\r' => {}
        other => text.extend(other.escape_unicode()),
    })
}

fn spell(raw: &str, hostile: impl Fn(char, &mut String)) -> String {
    let mut text = String::with_capacity(raw.len().min(LONGEST));
    for character in raw.chars() {
        if text.len() >= LONGEST {
            let _ = write!(text, "… ({} bytes in all)", raw.len());
            break;
        }
        if is_hostile(character) {
            hostile(character, &mut text);
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use quick_junit::XmlString;

    #[test]
    fn the_writer_finds_nothing_to_drop() {
        for raw in [
            "a\tb",
            "\u{1b}[31mred",
            "\u{1b}]0;title",
            "\u{1b}",
            "\0",
            "\u{9b}31m",
            "\u{7f}",
        ] {
            for cleaned in [clean(raw), clean_line(raw)] {
                assert_eq!(XmlString::new(&cleaned).as_str(), cleaned, "{raw:?}");
                assert!(cleaned.contains("\\u{"), "{cleaned}");
            }
        }
        assert_eq!(clean("a\r\nb"), "a\\u{d}\nb");
        assert_eq!(clean_line("a\r\nb"), "a⏎b");
    }

    #[test]
    fn what_is_too_long_says_so() {
        let text = clean(&"\u{1b}".repeat(1 << 20));
        assert!(text.len() < LONGEST + 64 && text.ends_with("(1048576 bytes in all)"));
    }
}
