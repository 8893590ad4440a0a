//! Makes foreign text fit for a terminal: bounded, on one line, without control characters.

/// Gives a closed enum the list of its members, and each member its word.
macro_rules! words {
    ($name:ident) => {
        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            /// The member's word.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }
    };
}

/// Gives a newtype over a text `as_str` and `Display`.
macro_rules! name {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

pub(crate) use {name, words};

/// The longest piece of foreign text shown in one message, in characters.
pub const SHOWN: usize = 400;

/// The characters of longer text that are shown of its beginning, and of its end, where errors say what went wrong.
const ENDS: (usize, usize) = (240, 130);

/// Makes foreign text harmless: control, bidirectional and invisible characters are spelled out as `\u{…}`, line ends
/// become `⏎`, tabs `\t`, and of what exceeds [`SHOWN`] characters the middle is counted, not shown.
pub fn printable(raw: &str) -> String {
    let place = |nth| raw.char_indices().nth(nth).map(|(at, _)| at);
    let tail = raw.char_indices().rev().nth(ENDS.1 - 1);
    match (place(SHOWN), place(ENDS.0), tail) {
        (Some(_), Some(head), Some((tail, _))) => {
            let (head, tail) = (spelled(&raw[..head]), spelled(&raw[tail..]));
            format!("{head}… ({} bytes in all) …{tail}", raw.len())
        }
        _ => spelled(raw),
    }
}

fn spelled(raw: &str) -> String {
    let mut shown = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '\n' => shown.push('⏎'),
            '\r' => {}
            '\t' => shown.push_str("\\t"),
            c if is_hostile(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// An exit code; with the name of its NTSTATUS, where Windows documents one.
pub fn exit_code(code: i64) -> String {
    let name = match u32::try_from(code & 0xFFFF_FFFF).unwrap_or_default() {
        0xC000_0005 => "STATUS_ACCESS_VIOLATION",
        0xC000_0017 => "STATUS_NO_MEMORY",
        0xC000_0022 => "STATUS_ACCESS_DENIED",
        0xC000_007B => "STATUS_INVALID_IMAGE_FORMAT",
        0xC000_00FD => "STATUS_STACK_OVERFLOW",
        0xC000_0135 => "STATUS_DLL_NOT_FOUND",
        0xC000_013A => "STATUS_CONTROL_C_EXIT",
        0xC000_0142 => "STATUS_DLL_INIT_FAILED",
        0xC000_0374 => "STATUS_HEAP_CORRUPTION",
        0xC000_0409 => "STATUS_STACK_BUFFER_OVERRUN",
        _ => return code.to_string(),
    };
    format!("{code} (0x{:X} {name})", code & 0xFFFF_FFFF)
}

/// Cuts text to at most `limit` bytes at a character boundary, in place; returns whether it did.
pub fn bound(text: &mut String, limit: usize) -> bool {
    if text.len() <= limit {
        return false;
    }
    text.truncate(text.floor_char_boundary(limit));
    true
}

/// Like [`bound`], for an owned text.
pub(crate) fn bounded(mut text: String, limit: usize) -> String {
    bound(&mut text, limit);
    text
}

/// Cuts the middle out of text of more than `limit` bytes, in place; returns whether it did. Errors tell most at their
/// ends.
pub fn shorten(text: &mut String, limit: usize) -> bool {
    const BETWEEN: &str = " … ";
    let side = limit.saturating_sub(BETWEEN.len()) / 2;
    if text.len() <= limit {
        return false;
    }
    let (head, tail) = (
        text.floor_char_boundary(side),
        text.ceil_char_boundary(text.len() - side),
    );
    text.replace_range(head..tail, BETWEEN);
    true
}

/// Characters that change how the rest of a line looks: C0, C1, bidirectional controls
/// (Unicode UAX #9), zero-width characters and non-characters.
pub fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{FFFE}' | '\u{FFFF}' | '\u{E0000}'..='\u{E007F}')
}

/// Whether a text can be a DNS label apart from its length (RFC 1123).
pub fn is_dns_label(text: &str) -> bool {
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(small) && text.ends_with(small) && text.chars().all(|c| small(c) || c == '-')
}

/// Whether a text can be the name of most objects (apimachinery `validation.IsDNS1123Subdomain`).
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

/// Whether a text can be the key of a label or taint (apimachinery `validation.IsQualifiedName`).
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_dns_subdomain(domain) && is_label_value(name),
        None => is_label_value(text),
    }
}

/// Whether a text can be a label's value that is not empty (apimachinery `validation.IsValidLabelValue`), and so
/// adds nothing to a selector.
pub fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// A text, or `***` if it has an `@`: that may have a user and a password before or after it.
pub fn hide_user(text: &str) -> &str {
    match text.contains('@') {
        true => "***",
        false => text,
    }
}

/// A count with its word, in the plural unless the count is one.
pub fn counted(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_nul_and_bidi_are_spelled_out() {
        assert_eq!(
            printable("a\u{1b}[31mb\0c\u{202e}d"),
            "a\\u{1b}[31mb\\u{0}c\\u{202e}d"
        );
    }

    #[test]
    fn a_megabyte_is_counted_not_shown() {
        let shown = printable(&format!("{}why", "x".repeat((1 << 20) - 3)));
        assert!(shown.chars().count() <= SHOWN, "{shown}");
        assert!(shown.contains("x… (1048576 bytes in all) …x") && shown.ends_with("xwhy"));
        assert_eq!(printable(&shown), shown);
    }

    #[test]
    fn a_status_of_windows_has_its_name() {
        let died = "-1073741502 (0xC0000142 STATUS_DLL_INIT_FAILED)";
        assert_eq!(exit_code(-1_073_741_502), died);
        assert_eq!(
            exit_code(3_221_225_794),
            format!("3221225794{}", &died[11..])
        );
        assert_eq!([exit_code(1), exit_code(-1)], ["1", "-1"]);
    }

    #[test]
    fn bounding_respects_characters() {
        let mut text = "aé".to_owned();
        assert!(bound(&mut text, 2));
        assert_eq!(text, "a");
    }
}
