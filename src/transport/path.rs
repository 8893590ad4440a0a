//! Parts of the API's paths, made safe.

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
