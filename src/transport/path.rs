//! Parts of the API's paths, made safe.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters encoded in a part of only dots: all but those that RFC 3986 calls unreserved, and dots.
const NEVER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
/// The characters encoded in any other part, where a dot is no step in the path and stays.
const USUALLY: &AsciiSet = &NEVER.remove(b'.');

/// One part of a path, or one value of a query, percent-encoded (RFC 3986, unreserved stays).
pub fn encode(part: &str) -> String {
    let dots = part.bytes().all(|byte| byte == b'.');
    utf8_percent_encode(part, if dots { NEVER } else { USUALLY }).to_string()
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
}
